"""The slim bar under the navigation: what is searched (project, folder, tags, sources) and in which index."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import streamlit as st

from workbench.app import address
from workbench.app.labels import escaped, labelled
from workbench.types import Scope

if TYPE_CHECKING:
    from workbench.workbench import Workbench


def current_scope() -> Scope:
    """Return the scope that the address names; unknown names stay in it, so that a search fails closed."""
    sources = address.get_all("source")
    return Scope(
        project=address.get("project") or None,
        folder=address.get("folder") or None,
        tags=address.get_all("tag"),
        sources=sources or None,
    )


def current_index() -> str | None:
    """Return the index that the address names; None is the default one."""
    return address.get("index") or None


def scope_bar(workbench: Workbench) -> None:
    """Show the scope and the index, each behind a button that says what is chosen."""
    projects = {project.id: project.title for project in workbench.projects.list()}
    sources = {source.id: source.title for source in workbench.knowledge.sources()}
    indexes = {index.name: index for index in workbench.indexes.list()}
    with st.container(key="scopebar", horizontal=True, gap="small", vertical_alignment="center"):
        with st.popover(
            f"**Scope** {_summary(projects, sources)}", type="tertiary", key="scope_popover", help="What is searched"
        ):
            _scope_choices(workbench, projects, sources)
        default = next((name for name, index in indexes.items() if index.is_default), "")
        with st.popover(
            f"**Index** {current_index() or default}", type="tertiary", key="index_popover", help="Where it is searched"
        ):
            _choice("Index", "index", {n: n for n in indexes}, f"{default} (default)")
            chosen = indexes.get(current_index() or default)
            if chosen:
                st.caption(f"{chosen.chunker} passages, {chosen.embedding_model}, {chosen.passages_count:,} passages")


def _scope_choices(workbench: Workbench, projects: Mapping[str, str], sources: Mapping[str, str]) -> None:
    _choice("Project", "project", projects, "Every project", clears=("folder",))
    chosen = address.get("project")
    if chosen in projects:
        folders = {folder.name: folder.name for folder in workbench.projects.folders(chosen)}
        if folders or address.get("folder"):
            _choice("Folder", "folder", folders, "Every folder")
    tags = workbench.knowledge.tags()
    _choices("Tags (any of)", "tag", {tag: f"{tag} · {count}" for tag, count in tags.items()})
    _choices("Sources", "source", sources)
    if any(address.get_all(name) for name in ("project", "folder", "tag", "source")):
        st.button("Search everything", on_click=clear_scope, type="tertiary", icon=":material/close:")


def _summary(projects: Mapping[str, str], sources: Mapping[str, str]) -> str:
    parts = []
    project, folder = address.get("project"), address.get("folder")
    if project:
        parts.append(escaped(projects.get(project, project), 48) + (f" / {escaped(folder, 48)}" if folder else ""))
    parts += [f"#{escaped(tag, 48)}" for tag in address.get_all("tag")]
    chosen = address.get_all("source")
    if len(chosen) == 1:
        parts.append(escaped(sources.get(chosen[0], chosen[0]), 48))
    elif chosen:
        parts.append(f"{len(chosen)} sources")
    return " · ".join(parts) or "everything"


def _choice(label: str, name: str, options: Mapping[str, str], nothing: str, clears: Sequence[str] = ()) -> None:
    """A select box that is a view of one value of the address; a value that is not there is shown as such."""
    key, value = f"scope_{name}", address.get(name)
    shown = {"": nothing, **options} | ({value: f"{value} (not found)"} if value and value not in options else {})
    st.session_state[key] = value

    def change() -> None:
        address.put(**{name: st.session_state[key], **dict.fromkeys(clears)})

    st.selectbox(label, list(shown), format_func=labelled(shown), key=key, on_change=change)


def _choices(label: str, name: str, options: Mapping[str, str]) -> None:
    key, values = f"scope_{name}", list(address.get_all(name))
    shown = dict(options) | {value: f"{value} (not found)" for value in values if value not in options}
    if not shown:
        return
    st.session_state[key] = values

    def change() -> None:
        address.put(**{name: st.session_state[key]})

    st.multiselect(label, list(shown), format_func=labelled(shown), key=key, on_change=change)


def clear_scope() -> None:
    """Take the scope out of the address; the index stays."""
    address.put(project=None, folder=None, tag=None, source=None)
