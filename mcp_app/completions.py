"""Completions: ids, titles, folders and tags while a person or a client types an argument."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import anyio.to_thread
from mcp.types import Completion

from workbench.errors import NotFound
from workbench.services.tag_catalogue import TAG_CATALOGUE

if TYPE_CHECKING:
    from mcp_app.server import WorkbenchServer
    from workbench.workbench import Workbench

MOST = 100  # values that one completion may carry


def add_completions(server: WorkbenchServer) -> None:
    """Complete the arguments of prompts and resource templates."""

    @server.completion()
    async def complete(ref: Any, argument: Any, context: Any) -> Completion | None:
        known = (getattr(context, "arguments", None) or {}) if context is not None else {}
        workbench = await server.engine.ready()
        return await anyio.to_thread.run_sync(completed, workbench, argument.name, argument.value, dict(known))


def completed(workbench: Workbench, name: str, typed: str, known: dict[str, str]) -> Completion | None:
    """Return what an argument may be, given the beginning of an id or any part of a title."""
    match name:
        case "source_id":
            pairs = [(source.id, source.title) for source in workbench.knowledge.sources()]
        case "document_id":
            contains = typed if typed and not typed.startswith("doc_") else None
            pairs = [(item.id, item.title) for item in workbench.knowledge.documents(contains=contains, limit=1000)]
        case "project_id":
            pairs = [(project.id, project.title) for project in workbench.projects.list()]
        case "folder_name":
            pairs = [(folder, folder) for folder in _folders(workbench, known.get("project_id", ""))]
        case "tags" | "tag":
            usual = (tag for tags in TAG_CATALOGUE.values() for tag in tags)
            pairs = [(tag, tag) for tag in dict.fromkeys([*workbench.knowledge.tags(), *usual])]
        case _:
            return None
    return _completion(key for key, title in pairs if _matches(typed, key, title))


def _folders(workbench: Workbench, project_id: str) -> list[str]:
    try:
        return [folder.name for folder in workbench.projects.folders(project_id)] if project_id else []
    except NotFound:
        return []


def _matches(typed: str, key: str, title: str) -> bool:
    wanted = typed.casefold()
    return key.casefold().startswith(wanted) or wanted in title.casefold()


def _completion(values: Iterable[str]) -> Completion:
    found = list(values)
    return Completion(values=found[:MOST], total=len(found), has_more=len(found) > MOST)
