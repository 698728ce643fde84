"""Prompts: the search decision tree, ready to be put before a task."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mcp_app.server import WorkbenchServer


def add_prompts(server: WorkbenchServer) -> None:
    """Offer the prompt ``search_strategy``."""

    @server.prompt(
        name="search_strategy",
        title="How to search the knowledge base",
        description="Teaches which search tool to take when; optionally for a question and a project.",
    )
    def search_strategy(question: str = "", project_id: str = "") -> str:
        return search_strategy_text(question, project_id)


def search_strategy_text(question: str = "", project_id: str = "") -> str:
    """Return the decision tree, made concrete where a question or a project is known."""
    project = project_id or "PROJECT_ID"
    task = f"\nThe question now: {question}\n" if question else ""
    place = f"You work on the project {project_id}.\n" if project_id else ""
    return f"""\
Find knowledge before you answer. {place}{task}
Are you working on a specific project?
- Yes: rag_search_project_knowledge(query, project_id="{project}")
  - Relevant results: use them.
  - None: rag_search_global_knowledge(query)
- No: rag_search_global_knowledge(query)
Do you need framework, language or general knowledge? rag_search_global_knowledge(query, tags=["react"])

Do you know the folder? rag_search_project_knowledge(query, project_id="{project}", folder_name="Authentication")
If not, discover the folders first: rag_list_project_folders(project_id="{project}")
Both scopes together, the project's first: rag_search_knowledge_base(query, scope="all", project_id="{project}")

Write queries of 2 to 5 keywords. Good: "vector search", "authentication JWT", "React hooks patterns".
Bad: whole sentences such as "how do I implement user authentication with JWT tokens and handle refresh tokens".
One question may take several searches. Name the documents that you relied on."""
