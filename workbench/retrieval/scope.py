"""From a scope's names to ids, failing closed: an unknown name is an error, an empty scope finds nothing."""

from __future__ import annotations

from datetime import date

from workbench.errors import NotFound, ScopeError, choices
from workbench.storage.projects import Projects
from workbench.storage.sources import Sources
from workbench.types import ResolvedScope, Scope

KINDS = ("all", "global", "project")


def resolve(scope: Scope, projects: Projects, sources: Sources) -> ResolvedScope:
    """Resolve a scope to source ids, which reach every leaf as a bound predicate before ranking.

    Raises:
        ScopeError: an unknown project, folder or source, or fields that contradict each other; the message lists
            the valid choices. An unknown tag is no error: it matches nothing, and a note says so.
    """
    _check(scope)
    if scope == Scope():
        return ResolvedScope()
    project_id, folder_id = _project_and_folder(scope, projects)
    named = None if scope.sources is None else _source_ids(scope.sources, sources)
    narrows_sources = scope.kind != "all" or project_id or folder_id or scope.tags or named is not None
    source_ids: tuple[str, ...] | None = None
    preferred: tuple[str, ...] = ()
    found: list[dict] = []
    if narrows_sources:
        found = sources.in_scope(
            kind=scope.kind, project_id=project_id, folder_id=folder_id, tags=scope.tags, source_ids=named
        )
        source_ids = tuple(row["id"] for row in found)
        preferred = tuple(row["id"] for row in found if project_id and row["project_id"] == project_id)
        preferred = _more_tags_first(found, scope.tags) or (preferred if scope.kind == "all" else ())
    return ResolvedScope(
        source_ids=source_ids,
        document_ids=scope.documents,
        document_types=scope.document_types,
        since=scope.since,
        until=scope.until,
        preferred_source_ids=preferred,
        notes=_notes(scope, sources, source_ids),
        project_id=_shared(found, "project_id") or project_id,
        folder_id=_shared(found, "folder_id") or folder_id,
    )


def _shared(found: list[dict], field: str) -> str | None:
    """The place that all sources of a scope have in common."""
    places = {row[field] for row in found}
    return places.pop() if len(places) == 1 else None


def _check(scope: Scope) -> None:
    if not isinstance(scope, Scope):
        raise ScopeError(f"A scope cannot be {scope!r}; write it as Scope(sources=(...), tags=(...)).")
    for name in ("since", "until"):
        if not isinstance(given := getattr(scope, name), date | None):
            raise ScopeError(f"{name} cannot be {given!r}; use a date, such as date(2026, 1, 31).")
    if scope.kind not in KINDS:
        raise ScopeError(f"A scope cannot be {scope.kind!r}; use one of {choices(KINDS)}.")
    if scope.kind == "project" and not scope.project:
        raise ScopeError("The scope 'project' needs a project; name one, or use the scope 'all' or 'global'.")
    if scope.kind == "global" and scope.project:
        raise ScopeError("The scope 'global' cannot have a project; drop the project, or use the scope 'project'.")
    if scope.folder and not scope.project:
        raise ScopeError("A folder belongs to a project; name the project too.")
    if scope.since and scope.until and scope.since > scope.until:
        raise ScopeError(f"The scope ends ({scope.until}) before it begins ({scope.since}); exchange the dates.")


def _project_and_folder(scope: Scope, projects: Projects) -> tuple[str | None, str | None]:
    if not scope.project:
        return None, None
    try:
        project = projects.get(scope.project)
        folder = projects.folder(project.id, scope.folder) if scope.folder else None
    except NotFound as error:
        raise ScopeError(str(error)) from error
    return project.id, folder.id if folder else None


def _source_ids(keys: tuple[str, ...], sources: Sources) -> list[str]:
    try:
        return [sources.find(key).id for key in keys]
    except NotFound as error:
        raise ScopeError(str(error)) from error


def _more_tags_first(found: list[dict], tags: tuple[str, ...]) -> tuple[str, ...]:
    """The sources with the most of the wanted tags win among equals; none does where all have the same number."""
    if not tags or not found:
        return ()
    shared = {row["id"]: len(set(tags) & set(row["tags"])) for row in found}
    most = max(shared.values())
    return tuple(key for key, count in shared.items() if count == most) if min(shared.values()) < most else ()


def _notes(scope: Scope, sources: Sources, source_ids: tuple[str, ...] | None) -> tuple[str, ...]:
    if source_ids != ():
        return ()
    if not scope.tags:
        return ("The scope holds no sources.",)
    from rapidfuzz import process

    known = sources.tags()
    near = [match[0] for tag in scope.tags for match in process.extract(tag, list(known), limit=2, score_cutoff=60)]
    hint = f"the nearest known tags are {choices(dict.fromkeys(near))}" if near else f"known tags: {choices(known)}"
    return (f"No source in scope has any of the tags {choices(scope.tags)}; {hint}.",)
