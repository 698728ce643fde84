"""Completions: ids, titles, folders and tags while a person or a client types an argument."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import anyio.to_thread
from mcp.types import Completion, CompletionArgument, CompletionContext, PromptReference, ResourceTemplateReference

from workbench.errors import NotFound
from workbench.services.sources import TAG_CATALOGUE

if TYPE_CHECKING:
    from mcp.server import MCPServer

    from workbench.opening import Opening
    from workbench.types import Source
    from workbench.workbench import Workbench

MOST = 100  # values that one completion may carry


def add_completions(server: MCPServer[dict[str, object]], opening: Opening) -> None:
    """Complete the arguments of prompts and resource templates."""

    @server.completion()
    async def complete(
        ref: PromptReference | ResourceTemplateReference,
        argument: CompletionArgument,
        context: CompletionContext | None,
    ) -> Completion | None:
        del ref
        arguments = (context.arguments if context is not None else None) or {}
        workbench = await opening.ready()
        return await anyio.to_thread.run_sync(completed, workbench, argument.name, argument.value, dict(arguments))


def completed(workbench: Workbench, name: str, typed: str, context: dict[str, str]) -> Completion | None:
    """Return the values an argument may take, given the beginning of an id or any part of a title."""
    match name:
        case "source_id":
            pairs = [(source.id, source.title) for source in _sources(workbench, context)]
        case "document_id":
            contains, source_id = typed or None, context.get("source_id") or None
            values = [item.id for item in workbench.documents.list(contains=contains, source_id=source_id, limit=MOST)]
            total = workbench.documents.count(contains=contains, source_id=source_id)
            return Completion(values=values, total=total, has_more=total > len(values))
        case "project_id":
            pairs = [(project.id, project.title) for project in workbench.projects.list()]
        case "folder_name":
            pairs = [(folder, folder) for folder in _folders(workbench, context.get("project_id", ""))]
        case "tags" | "tag":
            usual = (tag for tags in TAG_CATALOGUE.values() for tag in tags)
            before, comma, typed = typed.rpartition(",")  # the prompt takes several, with commas between
            typed = typed.strip()
            prefix = f"{before}{comma} " if comma else ""
            used = (tag for source in _sources(workbench, context) for tag in source.tags)
            pairs = [(prefix + tag, tag) for tag in dict.fromkeys([*used, *usual])]
        case _:
            return None
    return _completion(key for key, title in pairs if _matches(typed, key, title))


def _sources(workbench: Workbench, context: dict[str, str]) -> list[Source]:
    """Return the sources to choose from: all, or a project's and the global ones if the context names a project."""
    if not (project_id := context.get("project_id")):
        return workbench.sources.list()
    try:
        project = workbench.projects.get(project_id)
    except NotFound:
        return []
    return [source for source in workbench.sources.list() if source.project_id in (None, project.id)]


def _folders(workbench: Workbench, project_id: str) -> list[str]:
    try:
        return [folder.name for folder in workbench.projects.folders(project_id)] if project_id else []
    except NotFound:
        return []


def _matches(typed: str, key: str, title: str) -> bool:
    wanted = typed.casefold()
    return key.casefold().startswith(wanted) or wanted in title.casefold()


def _completion(values: Iterable[str]) -> Completion:
    fitting = list(values)
    return Completion(values=fitting[:MOST], total=len(fitting), has_more=len(fitting) > MOST)
