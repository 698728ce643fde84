"""What an agent is told when it connects: which tool to take when."""

from __future__ import annotations

from collections.abc import Sequence

from mcp_app.tool import Tool

_LINES = (
    (
        "rag_search_project_knowledge",
        "Working on a known project: rag_search_project_knowledge(query, project_id), with folder_name when you know "
        "the folder; nothing relevant there: rag_search_global_knowledge(query).",
    ),
    (
        "rag_search_global_knowledge",
        "Frameworks, languages, general practice: rag_search_global_knowledge(query, tags=[...]).",
    ),
    (
        "rag_search_knowledge_base",
        "Project and global together, or single passages: "
        "rag_search_knowledge_base(query, scope, project_id, return_mode).",
    ),
    (
        "rag_get_available_sources",
        "What there is: rag_get_available_sources; a project's folders: rag_list_project_folders.",
    ),
    (
        "search_knowledge_base",
        "Passages with a choice of search type and a similarity threshold: search_knowledge_base.",
    ),
    ("manage_document", "Add, change, list or delete documents and their sources: manage_document, manage_source."),
    (
        "crawl_website",
        "Bring a website in: crawl_website answers at once with a job; follow it by manage_crawl_job(action='get').",
    ),
    (
        "search_articles",
        "The written articles on concepts, patterns and practices: search_articles, then get_article(slug).",
    ),
    ("search_semantic", "Past conversations of a workspace: search_semantic; after changes embed_workspace first."),
    ("searchLocalArchives", "The research archive with its citations: searchLocalArchives."),
)


def instructions(tools: Sequence[Tool], *, read_only: bool) -> str:
    """Return the server's instructions for the tools it offers."""
    names = {tool.name for tool in tools}
    lines = [f"- {line}" for name, line in _LINES if name in names]
    mode = "This server is read-only: nothing can be changed.\n" if read_only else ""
    return (
        "One corpus of documents, searched by meaning and by words. Queries work best short: 2 to 5 keywords.\n"
        f"{mode}Which tool to take:\n" + "\n".join(lines) + "\n"
        "Answers are JSON and stay under 8,000 tokens: texts end in '...' after 1000 characters. A document's "
        "whole text is the resource document://ID. A failed call says what to do in 'suggestion'."
    )
