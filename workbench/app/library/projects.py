"""Projects and folders, and the dialogs that change sources, documents, projects and folders."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from html import escape
from typing import TYPE_CHECKING

import streamlit as st

from workbench.app.shell.states import show_message
from workbench.app.widgets.looks import make_label_function
from workbench.app.widgets.notices import run_change
from workbench.formatting import count_text
from workbench.services.sources import Deletion
from workbench.types import Document, Folder, Project, Source

if TYPE_CHECKING:
    from workbench.workbench import Workbench

# Dialogs for sources and documents


def describe_deletions(deletions: Sequence[Deletion]) -> str:
    """Describe what was deleted."""
    totals = (
        (sum(deletion.sources for deletion in deletions), "source"),
        (sum(deletion.documents for deletion in deletions), "document"),
        (sum(deletion.passages for deletion in deletions), "passage"),
    )
    return (
        "Deleted " + ", ".join(count_text(number, noun) for number, noun in totals if number or noun == "passage") + "."
    )


@st.dialog("Delete sources")
def delete_sources(wb: Workbench, sources: Sequence[Source]) -> None:
    """Ask for confirmation before sources are deleted."""
    documents = sum(source.documents_count for source in sources)
    passages = sum(source.passages_count for source in sources)
    for source in sources[:8]:
        st.text(f"{source.title}  ({count_text(source.documents_count, 'document')})")
    if len(sources) > 8:
        st.text(f"and {len(sources) - 8} more")
    st.markdown(
        f"This permanently deletes {count_text(len(sources), 'source')} with {count_text(documents, 'document')} and "
        f"{count_text(passages, 'passage')}. Your original files are not affected."
    )
    _confirm(
        f"Delete {count_text(len(sources), 'source')}",
        lambda: describe_deletions([wb.sources.delete(source.id) for source in sources]),
    )


@st.dialog("Delete documents")
def delete_documents(wb: Workbench, documents: Sequence[Document]) -> None:
    """Ask for confirmation before documents are deleted."""
    for document in documents[:8]:
        st.text(document.title)
    if len(documents) > 8:
        st.text(f"and {len(documents) - 8} more")
    passages = sum(document.passages_count for document in documents)
    st.markdown(
        f"This permanently deletes {count_text(len(documents), 'document')} and {count_text(passages, 'passage')}."
    )
    _confirm(
        f"Delete {count_text(len(documents), 'document')}",
        lambda: describe_deletions([wb.documents.delete(document.id) for document in documents]),
    )


def _confirm(label: str, change: Callable[[], str]) -> None:
    with st.container(horizontal=True):
        if st.button(label, type="primary", key="confirm_delete"):
            run_change(change)
        if st.button("Cancel", key="keep"):
            st.rerun()


@st.dialog("Move sources")
def move_sources(wb: Workbench, sources: Sequence[Source]) -> None:
    """Ask for the project and folder of sources."""
    projects = {project.id: project.title for project in wb.projects.list()}
    st.text(", ".join(source.title for source in sources[:5]) + (" …" if len(sources) > 5 else ""))
    project = st.selectbox(
        "Project", ["", *projects], format_func=make_label_function(projects, "No project (visible in every scope)")
    )
    names = [folder.name for folder in wb.projects.folders(project)] if project else []
    folder = st.selectbox("Folder", ["", *names], format_func=lambda name: name or "None", disabled=not names)
    if not projects:
        st.caption("No projects yet. Create one under “Projects and folders”.")

    def change() -> str:
        for source in sources:
            wb.sources.update(source.id, project=project, folder=folder)
        where = f"{projects[project]}{' / ' + folder if folder else ''}" if project else "no project"
        return f"Moved {count_text(len(sources), 'source')} to {where}."

    if st.button("Move", type="primary"):
        run_change(change)


@st.dialog("Tag sources")
def tag_sources(wb: Workbench, sources: Sequence[Source]) -> None:
    """Ask for tags to add to sources and to remove from them."""
    tags = list(wb.sources.tags())
    present = list(dict.fromkeys(tag for source in sources for tag in source.tags))
    add = st.multiselect("Add", tags, accept_new_options=True, placeholder="Select or enter a tag")
    drop = st.multiselect("Remove", present, disabled=not present, placeholder="None" if present else "No tags")

    def change() -> str:
        for source in sources:
            staying = [tag for tag in source.tags if tag not in drop]
            wb.sources.update(source.id, tags=[*staying, *(tag for tag in add if tag not in staying)])
        return f"Updated tags of {count_text(len(sources), 'source')}."

    if st.button("Save", type="primary"):
        run_change(change)


@st.dialog("Rename source")
def rename_source(wb: Workbench, source: Source) -> None:
    """Ask for a source's new title."""
    title = st.text_input("Title", source.title, max_chars=300)
    if st.button("Rename", type="primary"):
        run_change(lambda: f'Renamed to "{wb.sources.update(source.id, title=title).title}".')


@st.dialog("Rename document")
def rename_document(wb: Workbench, document: Document) -> None:
    """Ask for a document's new title."""
    title = st.text_input("Title", document.title, max_chars=300)
    if st.button("Rename", type="primary"):
        run_change(lambda: f'Renamed to "{wb.documents.update(document.id, title=title).document.title}".')


ICONS = ("folder", "book", "code", "science", "groups", "support_agent", "gavel", "payments", "bug_report", "public")
_COLOUR_PATTERN = re.compile(r"#[0-9a-fA-F]{3,8}")


def show_projects(wb: Workbench) -> None:
    """Show every project with its folders."""
    projects = wb.projects.list()
    if st.button("New project", type="primary", icon=":material/add:"):
        edit_project(wb, None)
    if not projects:
        show_message(
            "No projects yet",
            "A project groups sources. A search scoped to it sees its sources and those without a project, but none "
            "of other projects. Folders divide a project further.",
        )
    for project in projects:
        with st.container(border=True, key=f"project_{project.id}"):
            _show_project(wb, project)


def _show_project(wb: Workbench, project: Project) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        st.html(
            f'<div><b style="font-size: 15px">{escape(project.title)}</b> <span class="wb-kind">'
            f"{count_text(project.source_count, 'source')}</span><br>{escape(project.description)}</div>",
            width="stretch",
        )
        if st.button("New folder", key=f"add_{project.id}", type="tertiary", icon=":material/create_new_folder:"):
            edit_folder(wb, project, None)
        if st.button("Edit", key=f"edit_{project.id}", type="tertiary", icon=":material/edit:"):
            edit_project(wb, project)
        if st.button("Delete", key=f"delete_{project.id}", type="tertiary", icon=":material/delete:"):
            delete_project(wb, project)
    for folder in wb.projects.folders(project.id):
        _show_folder(wb, project, folder)


def _show_folder(wb: Workbench, project: Project, folder: Folder) -> None:
    with st.container(horizontal=True, vertical_alignment="center", key=f"folder_{folder.id}"):
        colour = folder.color if _COLOUR_PATTERN.fullmatch(folder.color) else "#6e6961"
        about = f"{count_text(folder.source_count, 'source')} {folder.description}"
        st.html(
            f'<div style="display:flex;gap:10px;align-items:baseline"><span style="width:11px;height:11px;'
            f'border-radius:2px;background:{colour};display:inline-block"></span><span>{escape(folder.name)} '
            f'<span class="wb-kind">{escape(about)}</span></span></div>',
            width="stretch",
        )
        if st.button("Edit", key=f"edit_{folder.id}", type="tertiary", icon=f":material/{_folder_icon(folder)}:"):
            edit_folder(wb, project, folder)
        if st.button("Delete", key=f"delete_{folder.id}", type="tertiary", icon=":material/delete:"):
            delete_folder(wb, project, folder)


def _folder_icon(folder: Folder) -> str:
    return folder.icon_name if folder.icon_name in ICONS else "folder"


@st.dialog("Project")
def edit_project(wb: Workbench, project: Project | None) -> None:
    """Ask for the title and description of a new or existing project."""
    title = st.text_input("Title", project.title if project else "", max_chars=300)
    description = st.text_area("Description", project.description if project else "", height=90)

    def change() -> str:
        if project is None:
            return f'Project "{wb.projects.create(title, description).title}" created.'
        return f'Project "{wb.projects.update(project.id, title=title, description=description).title}" saved.'

    if st.button("Save", type="primary"):
        run_change(change)


@st.dialog("Folder")
def edit_folder(wb: Workbench, project: Project, folder: Folder | None) -> None:
    """Ask for a folder's name, description, colour and icon."""
    name = st.text_input("Name", folder.name if folder else "", max_chars=300)
    description = st.text_input("Description", folder.description if folder else "")
    colour = st.color_picker("Colour", folder.color if folder else "#6366f1")
    icon = st.pills(
        "Icon", ICONS, default=_folder_icon(folder) if folder else "folder", required=True,
        format_func=lambda item: f":material/{item}:",
    )  # fmt: skip

    def change() -> str:
        if folder is None:
            created = wb.projects.create_folder(project.id, name, description, colour, icon or "folder")
            return f'Folder "{created.name}" created in {project.title}.'
        saved = wb.projects.update_folder(
            project.id, folder.id, name=name, description=description, color=colour, icon_name=icon
        )
        return f'Folder "{saved.name}" saved.'

    if st.button("Save", type="primary"):
        run_change(change)


@st.dialog("Delete project")
def delete_project(wb: Workbench, project: Project) -> None:
    """Ask for confirmation before a project and its sources are deleted."""
    sources = wb.sources.list(project_id=project.id)
    documents = sum(source.documents_count for source in sources)
    st.text(project.title)
    st.markdown(
        f"This permanently deletes the project, its folders, {count_text(len(sources), 'source')} and "
        f"{count_text(documents, 'document')}. Sources without a project are kept."
    )
    with st.container(horizontal=True):
        if st.button("Delete project", type="primary", key="confirm_delete"):
            run_change(lambda: describe_deletions([wb.projects.delete(project.id)]))
        if st.button("Cancel", key="keep"):
            st.rerun()


@st.dialog("Delete folder")
def delete_folder(wb: Workbench, project: Project, folder: Folder) -> None:
    """Ask for confirmation before a folder is deleted; its sources stay in the project."""
    st.text(f"{project.title} / {folder.name}")
    st.markdown(f"This deletes the folder. Its {count_text(folder.source_count, 'source')} stay in the project.")
    with st.container(horizontal=True):
        if st.button("Delete folder", type="primary", key="confirm_delete"):
            run_change(lambda: f'Folder "{wb.projects.delete_folder(project.id, folder.id).name}" deleted.')
        if st.button("Cancel", key="keep"):
            st.rerun()
