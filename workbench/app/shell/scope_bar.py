"""The bar below the navigation: the scope (project, folder, tags, sources) and the index."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING

import streamlit as st

from workbench.app.state import address
from workbench.app.state.shared import change_count, load_indexes, show_value
from workbench.app.widgets.looks import MINOR_METADATA, escape_markdown, make_label_function
from workbench.errors import NotFound, ScopeError, WorkbenchError
from workbench.text import language_title
from workbench.types import Scope

if TYPE_CHECKING:
    from evals.test_set import MeasuredScope
    from workbench.workbench import Workbench

_SCOPE_PARAMETERS = ("kind", "project", "folder", "tag", "source", "language", "metadata", "since", "until")


def read_scope() -> Scope:
    """Return the scope of the URL; unknown names are kept, so that a search fails closed."""
    sources, kind = address.get_all("source"), address.get("kind")
    return Scope(
        kind="global" if kind == "global" else "project" if kind == "project" else "all",
        project=address.get("project") or None,
        folder=address.get("folder") or None,
        tags=address.get_all("tag"),
        sources=sources or None,
        languages=address.get_all("language"),
        metadata=address.get_all("metadata"),
        since=_read_date("since"),
        until=_read_date("until"),
        names="only" if address.get("names") == "only" else "prefer",
        ignored_names=address.get_all("without"),
    )


def _read_date(name: str) -> date | None:
    try:
        return date.fromisoformat(address.get(name))
    except ValueError:  # none, or invalid: the bar reports it
        return None


def read_lasting_scope() -> Scope:
    """Return the scope of the URL without parts that apply to a single question, such as ignored names."""
    return replace(read_scope(), names="prefer", ignored_names=())


def make_scope_changes(measured: MeasuredScope) -> dict[str, list[str]]:
    """Return the changes of the URL that choose a scope; an empty list removes a value.

    Single documents and document types, which the bar does not offer, are left out.
    """
    scope = measured.scope
    values = (
        *(
            [] if scope.kind == "all" else [scope.kind],
            [scope.project],
            [scope.folder and measured.title(scope.folder)],
        ),
        *(scope.tags, scope.sources or (), scope.languages, scope.metadata, [scope.since], [scope.until]),
    )
    return {name: [str(one) for one in given if one] for name, given in zip(_SCOPE_PARAMETERS, values, strict=True)}


def format_scope(wb: Workbench, scope: Scope) -> str:
    """Return a scope as text for Evaluate."""
    from evals.gateway import describe_scope

    try:
        return describe_scope(wb, scope).text
    except WorkbenchError:
        return "a scope with deleted parts"


def is_same_scope(wb: Workbench, measured: MeasuredScope, scope: Scope) -> bool:
    """Return whether a test set's scope equals another, which may use titles instead of ids."""
    from evals.gateway import describe_scope

    try:
        return describe_scope(wb, scope).scope == measured.scope
    except WorkbenchError:
        return False


def read_index() -> str | None:
    """Return the index of the URL; None is the default one."""
    return address.get("index") or None


def show_scope_bar(wb: Workbench, *, with_index: bool = True) -> None:
    """Show the scope and the index, each in a popover whose label is the current choice."""
    _drop_invalid_dates()
    projects = {project.id: project.title for project in wb.projects.list()}
    inside = _list_offered_sources(wb)
    sources = {key: title for key, title in wb.sources.titles().items() if inside is None or key in inside}
    indexes = {index.name: index for index in load_indexes(wb)}
    with st.container(key="scopebar", horizontal=True, gap="small", vertical_alignment="center"):
        with st.popover(
            f"**Scope** {_summarise_scope(projects, sources)}",
            type="tertiary",
            key="scope_popover",
        ):
            _show_scope_choices(wb, projects, sources, inside)
        if not with_index:
            return
        default = next((name for name, index in indexes.items() if index.is_default), "")
        with suppress(NotFound):  # an index of a test set's own corpus is not listed
            if (named := read_index()) and named not in indexes:
                indexes[named] = wb.indexes.get(named)
        name = _format_value({name: name for name in indexes}, read_index() or default)
        with st.popover(f"**Index** {name}", type="tertiary", key="index_popover"):
            _show_choice("Index", "index", {n: n for n in indexes}, f"{default} (default)")
            chosen = indexes.get(read_index() or default)
            if chosen:
                settings = escape_markdown(f"{chosen.chunker} passages, {chosen.embedding_model}")
                st.caption(f"{settings}, {chosen.passages_count:,} passages")
        show_finder()


def show_finder() -> None:
    """Show the button that opens the finder; the scope bar has one."""
    with st.container(key="finder", width="content"):
        st.html('<button class="wb-find" type="button">Find <kbd>Ctrl K</kbd></button>', width="content")


def _drop_invalid_dates() -> None:
    for name in ("since", "until"):
        if address.get(name) and _read_date(name) is None:
            invalid = escape_markdown(f"Invalid date in the address: {name}={address.get(name)}. Use YYYY-MM-DD.")
            st.toast(invalid, icon=":material/error:")
            address.put(**{name: None})


def _list_offered_sources(wb: Workbench) -> Sequence[str] | None:
    """Return the ids of the sources in the chosen project, folder and kind; None if none of them is chosen."""
    chosen = read_scope()
    place = Scope(kind=chosen.kind, project=chosen.project, folder=chosen.folder)
    try:
        return None if place == Scope() else wb.requests.resolve(place).source_ids
    except ScopeError:  # the search reports the unknown name
        return ()


def _show_scope_choices(
    wb: Workbench, projects: Mapping[str, str], sources: Mapping[str, str], inside: Sequence[str] | None
) -> None:
    """Show the choices of a scope; tags, sources and languages are those ``inside`` the chosen project."""
    _show_choice("Project", "project", projects, "All projects", clears=("folder", "kind"))
    chosen = address.get("project")
    if chosen in projects:
        folders = {folder.name: folder.name for folder in wb.projects.folders(chosen)}
        if folders or address.get("folder"):
            _show_choice("Folder", "folder", folders, "All folders")
    _show_choice("Include", "kind", _list_kinds(chosen), "Project and unassigned sources" if chosen else "All sources")
    tags = wb.sources.tags(inside)
    _show_choices("Tags (any of)", "tag", {tag: f"{tag} · {count}" for tag, count in tags.items()})
    _show_choices("Sources", "source", sources)
    _show_choices("Languages", "language", _list_languages(wb, inside))
    _show_choices("Metadata", "metadata", list_metadata_values(wb, inside))
    with st.container(horizontal=True):
        _show_date("Since", "since")
        _show_date("Until", "until")
    if is_scoped():
        st.button("Clear scope", on_click=clear_scope, type="tertiary", icon=":material/close:")


def list_metadata_values(wb: Workbench, inside: Sequence[str] | None) -> dict[str, str]:
    """Return the values of metadata in sources, such as "status: final · 12", by NAME=VALUE."""
    counts = _load_metadata(wb, None if inside is None else tuple(inside), change_count())
    return {item: f"{item.replace('=', ': ', 1)} · {count:,}" for item, count in counts.items()}


@st.cache_data(max_entries=16, ttl=60, show_spinner=False)
def _load_metadata(_wb: Workbench, inside: tuple[str, ...] | None, changes: int) -> dict[str, int]:
    counts = _wb.sources.metadata_values(inside)
    return {item: count for item, count in counts.items() if item.partition("=")[0] not in MINOR_METADATA}


def _list_languages(wb: Workbench, inside: Sequence[str] | None) -> dict[str, str]:
    """Return the languages of the current index in sources with passage counts; {} if there is only one."""
    try:
        languages = wb.indexes.languages(read_index(), inside)
    except NotFound:  # the search reports the unknown index
        return {}
    titles = {name: f"{language_title(name) or 'Other'} · {count:,}" for name, count in languages.items()}
    return titles if len(titles) > 1 else {}


def _list_kinds(project: str) -> dict[str, str]:
    """Return the choices that restrict a scope to one kind of source."""
    only_global = {"global": "Unassigned sources only"}
    return {"project": "This project only", **only_global} if project else only_global


def _summarise_scope(projects: Mapping[str, str], sources: Mapping[str, str]) -> str:
    parts = []
    project, folder = address.get("project"), address.get("folder")
    if address.get("kind") == "global":
        parts.append("unassigned sources")
    if project:
        others = "" if folder or address.get("kind") == "project" else " and unassigned sources"
        inside = f" / {escape_markdown(folder, 48)}" if folder else ""
        parts.append(_format_value(projects, project) + inside + others)
    parts += [f"#{escape_markdown(tag, 48)}" for tag in address.get_all("tag")]
    parts += [escape_markdown(language_title(name) or name, 48) for name in address.get_all("language")]
    parts += [escape_markdown(item.replace("=", " ", 1), 48) for item in address.get_all("metadata")]
    parts += [f"{name} {_read_date(name):%-d %b %Y}" for name in ("since", "until") if _read_date(name)]
    chosen = address.get_all("source")
    if len(chosen) == 1:
        parts.append(_format_value(sources, chosen[0]))
    elif chosen:
        parts.append(f"{len(chosen)} sources")
    return " · ".join(parts) or "everything"


def _format_value(titles: Mapping[str, str], value: str) -> str:
    """Return the title of a value in the URL, or the value marked as not found."""
    known = titles.get(value) or (value if value in titles.values() else None)  # a URL may use a title
    return escape_markdown(known, 48) if known else f"{escape_markdown(value, 48)} :red[(not found)]"


def _show_choice(label: str, name: str, options: Mapping[str, str], nothing: str, clears: Sequence[str] = ()) -> None:
    """Show a select box for a value in the URL; an unknown value is marked as not found."""
    key, value = f"scope_{name}", address.get(name)
    labels = {"": nothing, **options} | ({value: f"{value} (not found)"} if value and value not in options else {})
    place = list(labels).index(show_value(key, value, labels.values()))

    def change() -> None:
        address.put(**{name: st.session_state[key], **dict.fromkeys(clears)})

    st.selectbox(label, list(labels), place, format_func=make_label_function(labels), key=key, on_change=change)


def _show_choices(label: str, name: str, options: Mapping[str, str]) -> None:
    key, values = f"scope_{name}", list(address.get_all(name))
    others = [value for value in values if value not in options]
    labels = dict(options) | {one: one if one in options.values() else f"{one} (not found)" for one in others}
    if not labels:
        return
    show_value(key, values, labels.values())

    def change() -> None:
        address.put(**{name: st.session_state[key]})

    st.multiselect(label, list(labels), values, format_func=make_label_function(labels), key=key, on_change=change)


def _show_date(label: str, name: str) -> None:
    key = f"scope_{name}"
    value = show_value(key, _read_date(name))

    def change() -> None:
        chosen = st.session_state[key]
        address.put(**{name: chosen.isoformat() if chosen else None})

    st.date_input(
        label,
        value,
        min_value=date(1900, 1, 1),
        format="YYYY-MM-DD",
        key=key,
        on_change=change,
        help="By the date of the document; documents without one are left out",
    )


def is_scoped() -> bool:
    """Return whether the URL restricts the scope."""
    return any(address.get_all(name) for name in _SCOPE_PARAMETERS)


def clear_scope() -> None:
    """Remove the scope from the URL, but not the index."""
    address.put(**dict.fromkeys(_SCOPE_PARAMETERS))
