"""Prompts: the search decision tree, ready to be put before a task."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mcp.server import MCPServer


_NAMED = {"rag_search_project_knowledge", "rag_search_global_knowledge", "rag_list_project_folders"}


def add_prompts(server: MCPServer[dict[str, object]], offered: Collection[str]) -> None:
    """Offer the prompt ``search_strategy`` if the tools that it names are offered."""
    if not _NAMED.issubset(offered):
        return

    @server.prompt(
        name="search_strategy",
        title="How to search the knowledge base",
        description="Teaches which search tool to take when; optionally for a question, a project, a folder and tags.",
    )
    def search_strategy(question: str = "", project_id: str = "", folder_name: str = "", tags: str = "") -> str:
        both = "rag_search_knowledge_base" in offered
        return search_strategy_text(question, project_id, folder_name, tags, both=both)


def search_strategy_text(
    question: str = "", project_id: str = "", folder_name: str = "", tags: str = "", *, both: bool = True
) -> str:
    """Return the decision tree, made concrete if a question or a project is known.

    ``both`` is False if no tool is offered that searches a project and the global sources together.
    """
    project, folder = project_id or "PROJECT_ID", folder_name or "Authentication"
    wanted = [tag.strip() for tag in tags.split(",") if tag.strip()] or ["react"]
    listed = json.dumps(wanted, ensure_ascii=False)
    task = f"\nThe question now: {question}\n" if question else ""
    place = f"You work on the project {project_id}.\n" if project_id else ""
    call = f'rag_search_knowledge_base(query, scope="all", project_id="{project}")'
    together = f"Both scopes together, the project's first: {call}\n" if both else ""
    return f"""\
Find knowledge before you answer. {place}{task}
Are you working on a specific project?
- Yes: rag_search_project_knowledge(query, project_id="{project}")
  - Relevant results: use them.
  - None: rag_search_global_knowledge(query)
- No: rag_search_global_knowledge(query)
Do you need framework, language or general knowledge? rag_search_global_knowledge(query, tags={listed})

Do you know the folder? rag_search_project_knowledge(query, project_id="{project}", folder_name="{folder}")
If not, discover the folders first: rag_list_project_folders(project_id="{project}")
{together}
Write queries of 2 to 5 keywords. Good: "vector search", "authentication JWT", "React hooks patterns".
Bad: whole sentences such as "how do I implement user authentication with JWT tokens and handle refresh tokens".
One question may take several searches. Name the documents that you relied on."""
