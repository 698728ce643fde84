"""The Library's questions before it changes something, and the notice of what it did."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import streamlit as st

from workbench.app.widgets.labels import labelled
from workbench.app.widgets.notices import act
from workbench.services.sources import Deletion
from workbench.sizes import counted
from workbench.types import Document, Source

if TYPE_CHECKING:
    from workbench.workbench import Workbench


def removed(deletions: Sequence[Deletion]) -> str:
    """Say what deletions took along."""
    totals = (
        (sum(deletion.sources for deletion in deletions), "source"),
        (sum(deletion.documents for deletion in deletions), "document"),
        (sum(deletion.passages for deletion in deletions), "passage"),
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
        lambda: removed([workbench.sources.delete(source.id) for source in sources]),
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
        lambda: removed([workbench.documents.delete(document.id) for document in documents]),
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
    project = st.selectbox(
        "Project", ["", *projects], format_func=labelled(projects, "No project: found in every scope")
    )
    names = [folder.name for folder in workbench.projects.folders(project)] if project else []
    folder = st.selectbox("Folder", ["", *names], format_func=lambda name: name or "None", disabled=not names)
    if not projects:
        st.caption("There are no projects yet; make one under “Projects and folders”.")

    def change() -> str:
        for source in sources:
            workbench.sources.update(source.id, project=project, folder=folder)
        where = f"{projects[project]}{' / ' + folder if folder else ''}" if project else "everywhere"
        return f"Moved {counted(len(sources), 'source')} to {where}."

    if st.button("Move", type="primary"):
        act(change)


@st.dialog("Tag sources")
def tag_sources(workbench: Workbench, sources: Sequence[Source]) -> None:
    """Ask which tags sources get and which they lose."""
    tags = list(workbench.sources.tags())
    present = list(dict.fromkeys(tag for source in sources for tag in source.tags))
    add = st.multiselect("Add", tags, accept_new_options=True, placeholder="Choose or type a tag")
    drop = st.multiselect("Remove", present, disabled=not present, placeholder="None" if present else "They have none")

    def change() -> str:
        for source in sources:
            staying = [tag for tag in source.tags if tag not in drop]
            workbench.sources.update(source.id, tags=[*staying, *(tag for tag in add if tag not in staying)])
        return f"Tagged {counted(len(sources), 'source')}."

    if st.button("Save", type="primary"):
        act(change)


@st.dialog("Rename source")
def rename_source(workbench: Workbench, source: Source) -> None:
    """Ask for a source's new title."""
    title = st.text_input("Title", source.title, max_chars=300)
    if st.button("Rename", type="primary"):
        act(lambda: f"Renamed to {workbench.sources.update(source.id, title=title).title}.")


@st.dialog("Rename document")
def rename_document(workbench: Workbench, document: Document) -> None:
    """Ask for a document's new title."""
    title = st.text_input("Title", document.title, max_chars=300)
    if st.button("Rename", type="primary"):
        act(lambda: f"Renamed to {workbench.documents.update(document.id, title=title).document.title}.")
