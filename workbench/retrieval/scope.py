"""Resolving the names of a scope to ids, failing closed: an unknown name is an error, an empty scope finds nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import date

from workbench.errors import Ambiguous, NotFound, ScopeError, list_choices
from workbench.storage.sources import VALID_IDS_HINT, NamedSource, Projects, ScopedSource, Sources, require_single
from workbench.text import LANGUAGES, find_language
from workbench.types import ResolvedScope, Scope

KINDS = ("all", "global", "project")
USES_OF_NAMES = ("prefer", "only", "ignore")


def resolve(scope: Scope, projects: Projects, sources: Sources) -> ResolvedScope:
    """Resolve a scope to source ids, which every search statement applies as a bound predicate before ranking.

    Raises:
        ScopeError: An unknown project, folder or source, or contradictory fields; the message lists
            the valid choices. An unknown tag is not an error: it matches nothing, and a note reports it.
    """
    _check(scope)
    apart = scope.sources is None and scope.documents is None and sources.any_apart()
    plain = replace(scope, names="prefer", ignored_names=())
    if plain == Scope() and not apart:
        return ResolvedScope(names=scope.names, ignored_names=scope.ignored_names, is_whole_corpus=True)
    project_id, folder_id = _project_and_folder(scope, projects)
    named_ids = None if scope.sources is None else _source_ids(scope, project_id, sources)
    names_sources = bool(scope.kind != "all" or project_id or folder_id or scope.tags or named_ids is not None)
    source_ids: tuple[str, ...] | None = None
    preferred: tuple[str, ...] = ()
    scoped: list[ScopedSource] = []
    if names_sources or apart:
        scoped = sources.in_scope(
            kind=scope.kind,
            project_id=project_id,
            folder_id=folder_id,
            tags=scope.tags,
            source_ids=named_ids,
            datasets=not names_sources,
        )
        source_ids = tuple(source.id for source in scoped)
        preferred = tuple(source.id for source in scoped if project_id and source.project_id == project_id)
        preferred = _sources_with_most_tags(scoped, scope.tags) or (preferred if scope.kind == "all" else ())
    return ResolvedScope(
        source_ids=source_ids,
        document_ids=scope.documents,
        document_types=scope.document_types,
        languages=_languages(scope.languages),
        metadata=_group_metadata(scope.metadata),
        since=scope.since,
        until=scope.until,
        preferred_source_ids=preferred,
        notes=_make_notes(scope, source_ids, lambda: _list_tags(scope, sources, project_id, folder_id, named_ids)),
        project_id=_single_id(source.project_id for source in scoped) or project_id,
        folder_id=_single_id(source.folder_id for source in scoped) or folder_id,
        names=scope.names,
        ignored_names=scope.ignored_names,
        is_whole_corpus=plain == Scope(),
    )


def _single_id(ids: Iterable[str | None]) -> str | None:
    places = set(ids)
    return places.pop() if len(places) == 1 else None


def _check(scope: object) -> None:
    if not isinstance(scope, Scope):
        raise ScopeError(f"Invalid scope {scope!r}: use Scope(sources=(...), tags=(...)).")
    for name in ("since", "until"):
        if not isinstance(value := getattr(scope, name), date | None):
            raise ScopeError(f"Invalid value for {name} {value!r}: use a date, such as date(2026, 1, 31).")
    if scope.kind not in KINDS:
        raise ScopeError(f"Invalid scope kind {scope.kind!r}: use one of {list_choices(KINDS)}.")
    if scope.names not in USES_OF_NAMES:
        raise ScopeError(f"Invalid value for names {scope.names!r}: use one of {list_choices(USES_OF_NAMES)}.")
    if scope.kind == "project" and not scope.project:
        raise ScopeError("The scope 'project' needs a project; give one, or use the scope 'all' or 'global'.")
    if scope.kind == "global" and scope.project:
        raise ScopeError("The scope 'global' has no project; omit it, or use the scope 'project'.")
    if scope.folder and not scope.project:
        raise ScopeError("A folder belongs to a project; give the project too.")
    if scope.since and scope.until and scope.since > scope.until:
        raise ScopeError(f"The scope ends ({scope.until}) before it starts ({scope.since}); swap the dates.")


def _project_and_folder(scope: Scope, projects: Projects) -> tuple[str | None, str | None]:
    if not scope.project:
        return None, None
    try:
        project = projects.get(scope.project)
        folder = projects.folder(project.id, scope.folder) if scope.folder else None
    except NotFound as error:
        raise ScopeError(str(error)) from error
    return project.id, folder.id if folder else None


def _source_ids(scope: Scope, project_id: str | None, sources: Sources) -> list[str]:
    """Return the ids of a scope's sources; titles only match sources inside the scope.

    The title or URL of a source outside the scope is an unknown name, so a caller cannot test which titles exist
    elsewhere. Its id is accepted and finds nothing.
    """
    ids: list[str] = []
    try:
        for key in scope.sources or ():
            matching = sources.list_matches(key)
            inside = [source for source in matching if _is_inside(source, scope, project_id)]
            if not inside and matching[0].id != key:
                raise NotFound("source", key, VALID_IDS_HINT)
            ids.append(require_single(key, inside or matching).id)
    except (NotFound, Ambiguous) as error:
        raise ScopeError(str(error)) from error
    return ids


def _is_inside(source: NamedSource, scope: Scope, project_id: str | None) -> bool:
    if scope.kind == "all":
        return project_id is None or source.project_id in (None, project_id)
    return source.project_id == project_id  # None for the scope "global"


def _languages(names: tuple[str, ...]) -> tuple[str, ...]:
    languages = {name: find_language(name) for name in names}
    for name, language in languages.items():
        if language is None:
            valid = list_choices(LANGUAGES, 99)
            raise ScopeError(f"There is no language {name!r}; use one of {valid}, or a code such as 'de'.")
    return tuple(dict.fromkeys(language for language in languages.values() if language))


def _group_metadata(wanted: tuple[str, ...]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    values: dict[str, list[str]] = {}
    for item in wanted:
        name, sign, value = item.partition("=")
        if not (sign and name.strip() and value.strip()):
            raise ScopeError(f"Invalid metadata {item!r}: use NAME=VALUE, such as status=final.")
        values.setdefault(name.strip(), []).append(value.strip().lower())
    return tuple((name, tuple(given)) for name, given in values.items())


def _sources_with_most_tags(scoped: Sequence[ScopedSource], tags: tuple[str, ...]) -> tuple[str, ...]:
    """Return the sources that have the most of the given tags, which win ties; empty if all have the same number."""
    if not tags or not scoped:
        return ()
    wanted = {tag.lower() for tag in tags}
    shared = {source.id: len(wanted & {tag.lower() for tag in source.tags}) for source in scoped}
    most = max(shared.values())
    return tuple(key for key, count in shared.items() if count == most) if min(shared.values()) < most else ()


def _list_tags(
    scope: Scope, sources: Sources, project_id: str | None, folder_id: str | None, named_ids: Sequence[str] | None
) -> list[str]:
    """Return the tags of the sources in a scope without its tag filter; tags of other sources stay hidden."""
    within = sources.in_scope(
        kind=scope.kind, project_id=project_id, folder_id=folder_id, tags=(), source_ids=named_ids
    )
    return sorted({tag for source in within for tag in source.tags})


def note_undated(scope: ResolvedScope, index: str, sources: Sources) -> ResolvedScope:
    """Return a scope with a note on the documents of an index that its dates exclude because they have none."""
    if scope.is_empty or (scope.since is None and scope.until is None):
        return scope
    count = sources.count_undated(index, scope)
    subject = "1 document has no date and is" if count == 1 else f"{count:,} documents have no date and are"
    notes = (*scope.notes, *([f"{subject} left out."] if count else []))
    return replace(scope, notes=tuple(dict.fromkeys(notes)))


def _make_notes(
    scope: Scope, source_ids: tuple[str, ...] | None, tags_in_scope: Callable[[], Sequence[str]]
) -> tuple[str, ...]:
    if source_ids != ():
        return ()
    if not scope.tags:
        return ("The scope has no sources.",)
    from rapidfuzz import process

    others = tags_in_scope()
    near = [match[0] for tag in scope.tags for match in process.extract(tag, others, limit=2, score_cutoff=60)]
    hint = f"other tags: {list_choices(others)}" if others else "no source in scope has tags"
    hint = f"the nearest other tags are {list_choices(dict.fromkeys(near))}" if near else hint
    return (f"No source in scope has any of the tags {list_choices(scope.tags)}; {hint}.",)
