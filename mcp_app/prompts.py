"""Prompts, argument completions and the server's instructions."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

import anyio.to_thread
from mcp.types import Completion, CompletionArgument, CompletionContext, PromptReference, ResourceTemplateReference

from mcp_app.tool import Tool
from workbench.errors import NotFound
from workbench.types import TAG_CATALOGUE, Source

if TYPE_CHECKING:
    from mcp.server import MCPServer

    from workbench.opening import Opening
    from workbench.workbench import Workbench

# Completions of ids, folders and tags

MAX_COMPLETIONS = 100  # values per completion, the limit of the protocol


def add_completions(server: MCPServer[dict[str, object]], opening: Opening) -> None:
    """Complete the arguments of prompts and resource templates."""

    @server.completion()
    async def complete(
        ref: PromptReference | ResourceTemplateReference,
        argument: CompletionArgument,
        context: CompletionContext | None,
    ) -> Completion | None:
        arguments = (context.arguments if context is not None else None) or {}
        wb = await opening.ready()
        return await anyio.to_thread.run_sync(complete_argument, wb, argument.name, argument.value, dict(arguments))


def complete_argument(wb: Workbench, name: str, typed: str, context: dict[str, str]) -> Completion | None:
    """Return the values of an argument that match the start of an id or any part of a title."""
    match name:
        case "source_id":
            pairs = [(source.id, source.title) for source in _list_sources(wb, context)]
        case "document_id":
            return _complete_document(wb, typed or None, context)
        case "project_id":
            pairs = [(project.id, project.title) for project in wb.projects.list()]
        case "folder_name":
            pairs = [(folder, folder) for folder in _list_folders(wb, context.get("project_id", ""))]
        case "tags" | "tag":
            usual = (tag for tags in TAG_CATALOGUE.values() for tag in tags)
            earlier, comma, typed = typed.rpartition(",")  # the prompt takes several, separated by commas
            typed = typed.strip()
            prefix = f"{earlier}{comma} " if comma else ""
            used = (tag for source in _list_sources(wb, context) for tag in source.tags)
            pairs = [(prefix + tag, tag) for tag in dict.fromkeys([*used, *usual])]
        case _:
            return None
    return _make_completion(key for key, title in pairs if _matches(typed, key, title))


def _complete_document(wb: Workbench, contains: str | None, context: dict[str, str]) -> Completion:
    """Return the ids of documents; if the context names a project, only its own and global ones."""
    source_id = context.get("source_id") or None
    if context.get("project_id"):
        inside = {source.id for source in _list_sources(wb, context)}
        documents = wb.documents.list(contains=contains, source_id=source_id)
        return _make_completion(document.id for document in documents if document.source_id in inside)
    documents = wb.documents.list(contains=contains, source_id=source_id, limit=MAX_COMPLETIONS)
    total = wb.documents.count(contains=contains, source_id=source_id)
    return Completion(values=[item.id for item in documents], total=total, has_more=total > len(documents))


def _list_sources(wb: Workbench, context: dict[str, str]) -> list[Source]:
    """Return all sources, or those of the context's project and the global ones."""
    if not (project_id := context.get("project_id")):
        return wb.sources.list()
    try:
        project = wb.projects.get(project_id)
    except NotFound:
        return []
    return [source for source in wb.sources.list() if source.project_id in (None, project.id)]


def _list_folders(wb: Workbench, project_id: str) -> list[str]:
    try:
        return [folder.name for folder in wb.projects.folders(project_id)] if project_id else []
    except NotFound:
        return []


def _matches(typed: str, key: str, title: str) -> bool:
    wanted = typed.casefold()
    return key.casefold().startswith(wanted) or wanted in title.casefold()


def _make_completion(values: Iterable[str]) -> Completion:
    fitting = list(values)
    return Completion(values=fitting[:MAX_COMPLETIONS], total=len(fitting), has_more=len(fitting) > MAX_COMPLETIONS)


# Server instructions and the prompt


def build_instructions(tools: Sequence[Tool], *, read_only: bool) -> str:
    """Return the server's instructions, with the line of each tool."""
    lines = [f"- {tool.advice}" for tool in tools if tool.advice]
    mode = "This server is read-only.\n" if read_only else ""
    return (
        "One corpus of documents, searched by meaning and by words. Short queries of 2 to 5 keywords work best.\n"
        f"{mode}Which tool to use:\n" + "\n".join(lines) + "\n"
        "Answers are JSON under 8,000 tokens. Texts in results are cut at 1000 characters ('...'), and 'note' has the "
        "call for the next part. If a call fails, follow its 'suggestion'."
    )


_PROMPT_TOOLS = {"rag_search_project_knowledge", "rag_search_global_knowledge", "rag_list_project_folders"}


def add_prompts(server: MCPServer[dict[str, object]], offered: Collection[str]) -> None:
    """Add the prompt ``search_strategy`` if the tools that it mentions are offered."""
    if not _PROMPT_TOOLS.issubset(offered):
        return

    @server.prompt(
        name="search_strategy",
        title="How to search the knowledge base",
        description="Explains which search tool to use; optionally for a question, project, folder and tags.",
    )
    def search_strategy(question: str = "", project_id: str = "", folder_name: str = "", tags: str = "") -> str:
        both = "rag_search_knowledge_base" in offered
        return render_search_strategy(question, project_id, folder_name, tags, both=both)


def render_search_strategy(
    question: str = "", project_id: str = "", folder_name: str = "", tags: str = "", *, both: bool = True
) -> str:
    """Return the decision tree for choosing a search tool; tags are separated by commas.

    ``both`` is whether a tool is offered that searches project and global sources together.
    """
    project, folder = project_id or "PROJECT_ID", folder_name or "Authentication"
    wanted = [tag.strip() for tag in tags.split(",") if tag.strip()] or ["react"]
    listed = json.dumps(wanted, ensure_ascii=False)
    task = f"\nThe question: {question}\n" if question else ""
    context = f"You are working on project {project_id}.\n" if project_id else ""
    call = f'rag_search_knowledge_base(query, scope="all", project_id="{project}")'
    together = f"Both scopes, the project's results first: {call}\n" if both else ""
    return f"""\
Search the knowledge base before you answer. {context}{task}
Are you working on a specific project?
- Yes: rag_search_project_knowledge(query, project_id="{project}")
  - Relevant results: use them.
  - None: rag_search_global_knowledge(query)
- No: rag_search_global_knowledge(query)
Do you need framework, language or general knowledge? rag_search_global_knowledge(query, tags={listed})

Do you know the folder? rag_search_project_knowledge(query, project_id="{project}", folder_name="{folder}")
If not, list the folders first: rag_list_project_folders(project_id="{project}")
{together}
Write queries of 2 to 5 keywords. Good: "vector search", "authentication JWT", "React hooks patterns".
Bad: full sentences such as "how do I implement user authentication with JWT tokens and handle refresh tokens".
A question may need several searches. Cite the documents that you used."""
