"""The Library's questions before it changes something, and the notice of what it did."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import streamlit as st

from workbench.app.engine import ENGINE
from workbench.app.labels import counted, labelled
from workbench.errors import WorkbenchError
from workbench.services.knowledge import Deleted
from workbench.types import Document, Source

if TYPE_CHECKING:
    from workbench.workbench import Workbench

_NOTICE = "notice"


def show_notice() -> None:
    """Show what the last action did, once."""
    notice = st.session_state.pop(_NOTICE, None)
    if notice:
        st.success(notice, icon=":material/check:")


def act(change: Callable[[], str]) -> None:
    """Do a change and close the dialog with a notice of what it did; show what hindered it instead."""
    try:
        st.session_state[_NOTICE] = change()
    except WorkbenchError as error:
        st.error(str(error))
        return
    ENGINE.changed()
    st.rerun()


def removed(gone: Sequence[Deleted]) -> str:
    """Say what deletions took along."""
    totals = (
        (sum(one.sources for one in gone), "source"),
        (sum(one.documents for one in gone), "document"),
        (sum(one.passages for one in gone), "passage"),
    )
    return "Removed " + ", ".join(counted(number, noun) for number, noun in totals if number or noun == "passage") + "."


@st.dialog("Delete sources")
def delete_sources(workbench: Workbench, sources: Sequence[Source]) -> None:
    """Ask before sources go, saying what goes with them."""
    documents = sum(source.documents_count for source in sources)
    passages = sum(source.passages_count for source in sources)
    for source in sources[:8]:
        st.text(f"{source.title}  ({counted(source.documents_count, 'document')})")
    if len(sources) > 8:
        st.text(f"and {len(sources) - 8} more")
    st.markdown(
        f"This removes {counted(len(sources), 'source')} with {counted(documents, 'document')} and "
        f"{counted(passages, 'passage')} for good. Your files stay where they are."
    )
    _confirm(
        f"Delete {counted(len(sources), 'source')}",
        lambda: removed([workbench.knowledge.delete_source(source.id) for source in sources]),
    )


@st.dialog("Delete documents")
def delete_documents(workbench: Workbench, documents: Sequence[Document]) -> None:
    """Ask before documents go, saying what goes with them."""
    for document in documents[:8]:
        st.text(document.title)
    if len(documents) > 8:
        st.text(f"and {len(documents) - 8} more")
    passages = sum(document.passages_count for document in documents)
    st.markdown(f"This removes {counted(len(documents), 'document')} and {counted(passages, 'passage')} for good.")
    _confirm(
        f"Delete {counted(len(documents), 'document')}",
        lambda: removed([workbench.knowledge.delete_document(document.id) for document in documents]),
    )


def _confirm(label: str, change: Callable[[], str]) -> None:
    with st.container(horizontal=True):
        if st.button(label, type="primary", key="confirm_delete"):
            act(change)
        if st.button("Keep", key="keep"):
            st.rerun()


@st.dialog("Move sources")
def move_sources(workbench: Workbench, sources: Sequence[Source]) -> None:
    """Ask where sources belong: a project and folder, or everywhere."""
    projects = {project.id: project.title for project in workbench.projects.list()}
    st.text(", ".join(source.title for source in sources[:5]) + (" …" if len(sources) > 5 else ""))
    project = st.selectbox("Project", ["", *projects], format_func=labelled(projects, "None: found everywhere"))
    names = [folder.name for folder in workbench.projects.folders(project)] if project else []
    folder = st.selectbox("Folder", ["", *names], format_func=lambda name: name or "None", disabled=not names)
    if not projects:
        st.caption("There are no projects yet; make one under “Projects and folders”.")

    def change() -> str:
        for source in sources:
            workbench.knowledge.update_source(source.id, project=project, folder=folder)
        where = f"{projects[project]}{' / ' + folder if folder else ''}" if project else "everywhere"
        return f"Moved {counted(len(sources), 'source')} to {where}."

    if st.button("Move", type="primary"):
        act(change)


@st.dialog("Tag sources")
def tag_sources(workbench: Workbench, sources: Sequence[Source]) -> None:
    """Ask which tags sources get and which they lose."""
    known = list(workbench.knowledge.tags())
    present = list(dict.fromkeys(tag for source in sources for tag in source.tags))
    add = st.multiselect("Add", known, accept_new_options=True, placeholder="Choose or type a tag")
    drop = st.multiselect(
        "Take off", present, disabled=not present, placeholder="None" if present else "They have none"
    )

    def change() -> str:
        for source in sources:
            kept = [tag for tag in source.tags if tag not in drop]
            workbench.knowledge.update_source(source.id, tags=[*kept, *(tag for tag in add if tag not in kept)])
        return f"Tagged {counted(len(sources), 'source')}."

    if st.button("Save", type="primary"):
        act(change)


@st.dialog("Rename source")
def rename_source(workbench: Workbench, source: Source) -> None:
    """Ask for a source's new title."""
    title = st.text_input("Title", source.title, max_chars=300)
    if st.button("Rename", type="primary"):
        act(lambda: f"Renamed to {workbench.knowledge.update_source(source.id, title=title).title}.")


@st.dialog("Rename document")
def rename_document(workbench: Workbench, document: Document) -> None:
    """Ask for a document's new title."""
    title = st.text_input("Title", document.title, max_chars=300)
    if st.button("Rename", type="primary"):
        act(lambda: f"Renamed to {workbench.knowledge.update_document(document.id, title=title).title}.")
