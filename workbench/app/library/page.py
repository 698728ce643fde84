"""The Library page: add, organise and delete sources and their documents."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING

import streamlit as st

from workbench.app.shell.scope_bar import read_index
from workbench.app.shell.work import (
    NO_PROJECT,
    JobView,
    ask_files,
    list_job_views,
    select_for_tray,
    show_start_buttons,
    show_upload_area,
)
from workbench.app.state import address
from workbench.app.state.shared import OPENING, choose_in_url, name_tab
from workbench.app.widgets.looks import MINOR_METADATA, escape_markdown, make_label_function, show_message
from workbench.app.widgets.notices import (
    run_change,
    show_confirmation,
    show_language_offer,
    show_notice,
    store_warning,
)
from workbench.app.widgets.reader import MAX_METADATA_CHARS, list_metadata, open_document, show_reader
from workbench.app.widgets.table import Column, make_time_cell, show_table
from workbench.errors import Conflict, NotFound
from workbench.formatting import count_text, sources_text
from workbench.services.sources import Deletion
from workbench.text import AUTO, LANGUAGES, MAX_PASSAGES_STEMMED_AT_ONCE, language_title
from workbench.types import Document, Folder, Project, Source

if TYPE_CHECKING:
    from workbench.workbench import Workbench

# Dialogs for sources and documents


def describe_deletions(deletions: Sequence[Deletion]) -> str:
    """Describe what was deleted."""
    sources = sum(deletion.sources for deletion in deletions)
    families = sum(deletion.families for deletion in deletions)
    documents = sum(deletion.documents for deletion in deletions)
    parts = [sources_text(sources, families)] if sources or families else []
    parts += [count_text(documents, "document")] if documents else []
    parts += [count_text(sum(deletion.passages for deletion in deletions), "passage")]
    return f"Deleted {', '.join(parts)}."


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
    show_confirmation(
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
    show_confirmation(
        f"Delete {count_text(len(documents), 'document')}",
        lambda: describe_deletions([wb.documents.delete(document.id) for document in documents]),
    )


@st.dialog("Move sources")
def move_sources(wb: Workbench, sources: Sequence[Source]) -> None:
    """Ask for the project and folder of sources."""
    projects = {project.id: project.title for project in wb.projects.list()}
    st.text(", ".join(source.title for source in sources[:5]) + (" …" if len(sources) > 5 else ""))
    places, now = ["", *projects], sources[0]
    project = st.selectbox(
        "Project", places, places.index(now.project_id or ""), format_func=make_label_function(projects, NO_PROJECT)
    )
    names = ["", *(folder.name for folder in wb.projects.folders(project))] if project else [""]
    at = names.index(now.folder_name) if now.folder_name in names else 0
    folder = st.selectbox("Folder", names, at, format_func=lambda name: name or "None", disabled=len(names) < 2)
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


@st.dialog("Edit document")
def edit_document(wb: Workbench, document: Document) -> None:
    """Ask for a document's title and metadata."""
    title = st.text_input("Title", document.title, max_chars=300)
    before = list_metadata(document)
    st.markdown("Metadata, such as author, date or status")
    rows = st.data_editor(
        [{"Name": name, "Value": text} for name, text in before.items()] or [{"Name": "", "Value": ""}],
        num_rows="dynamic", hide_index=True, key=f"metadata_{document.id}",
        column_config={"Name": st.column_config.TextColumn(pinned=True)},
    )  # fmt: skip

    def change() -> str:
        saved = save_document(wb, document, title, find_metadata_changes(document, rows))
        return f'"{saved.title}" saved.'

    if st.button("Save", type="primary"):
        run_change(change)


def save_document(
    wb: Workbench, before: Document, title: str, changes: Mapping[str, str | list[str] | None]
) -> Document:
    """Save what was edited; ``before`` is the document that was shown. Raises Conflict if others changed the same."""
    now = wb.documents.get(before.id)
    found = {name: (now.metadata.get(name), before.metadata.get(name), new) for name, new in changes.items()}
    if title != before.title:
        found["title"] = (now.title, before.title, title)
    changed = {name: value for name, (value, *known) in found.items() if value not in known}
    if changed:
        shown = list_metadata(now) | {"title": now.title}
        values = ", ".join(f"{name}: {shown.get(name, 'removed')}" for name in changed)
        raise Conflict(f"Changed by someone else while you edited: {values}. Open the document again.")
    title_change = None if title == before.title else title
    return wb.documents.update(before.id, title=title_change, metadata=changes, unchanged_since=now.updated_at).document


def find_metadata_changes(
    document: Document, rows: Iterable[Mapping[str, str | None]]
) -> dict[str, str | list[str] | None]:
    """Return what was edited: new values by name, and None for a name that was removed; a list stays a list."""
    before = list_metadata(document)
    edited = {(row.get("Name") or "").strip(): (row.get("Value") or "").strip() for row in rows}
    after = {name: text for name, text in edited.items() if name and text}
    changes: dict[str, str | list[str] | None] = {name: None for name in before if name not in after}
    for name, text in after.items():
        if before.get(name) != text:
            is_list = isinstance(document.metadata.get(name), list)
            changes[name] = [part.strip() for part in text.split(",") if part.strip()] if is_list else text
    return changes


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
            "A project groups sources. A search scoped to it sees its sources and those without a project, but not "
            "those of other projects. Folders divide a project further.",
        )
    for project in projects:
        with st.container(border=True, key=f"project_{project.id}"):
            _show_project(wb, project)


def _show_project(wb: Workbench, project: Project) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        st.html(
            f'<div><b>{escape(project.title)}</b> <span class="wb-kind">'
            f"{sources_text(project.source_count, project.family_count)}</span><br>{escape(project.description)}</div>",
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
        about = f"{sources_text(folder.source_count, folder.family_count)} {folder.description}"
        st.html(
            f'<div style="display:flex;gap:8px;align-items:center"><span aria-hidden="true" class="wb-icon" '
            f'style="color:{colour}">{_folder_icon(folder)}</span><span>{escape(folder.name)} '
            f'<span class="wb-kind">{escape(about)}</span></span></div>',
            width="stretch",
        )
        with st.container(horizontal=True, width="content"):
            if st.button("Edit", key=f"edit_{folder.id}", type="tertiary", icon=":material/edit:"):
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
    families = [source for source in wb.sources.of_families() if source.project_id == project.id]
    sources = wb.sources.list(project_id=project.id)
    documents = sum(source.documents_count for source in [*sources, *families])
    st.text(project.title)
    st.markdown(
        f"This permanently deletes the project, its folders and {sources_text(len(sources), len(families))}: "
        f"{count_text(documents, 'document')} in all. Sources without a project are kept."
    )
    show_confirmation("Delete project", lambda: describe_deletions([wb.projects.delete(project.id)]))


@st.dialog("Delete folder")
def delete_folder(wb: Workbench, project: Project, folder: Folder) -> None:
    """Ask for confirmation before a folder is deleted; its sources stay in the project."""
    st.text(f"{project.title} / {folder.name}")
    sources = sources_text(folder.source_count, folder.family_count)
    st.markdown(f"This deletes the folder. The project keeps its {sources}.")
    show_confirmation(
        "Delete folder", lambda: f'Folder "{wb.projects.delete_folder(project.id, folder.id).name}" deleted.'
    )


# The language of a source


@st.dialog("Source language")
def ask_language(wb: Workbench, source: Source) -> None:
    """Ask for the language of a source's documents, and stem their words again."""
    now = (
        "detected for each document"
        if source.language == AUTO
        else f"{_language_choice_title(source.language)} for all documents"
    )
    st.markdown(
        "The language of each document is detected from its text. If that is wrong, set the language for all documents "
        "of this source, including future ones. Their words are stemmed again in every index, which takes as long as "
        f"adding them did. Current: {now}."
    )
    language = st.selectbox(
        "Language",
        (AUTO, *LANGUAGES),
        index=None,
        format_func=_language_choice_title,
        placeholder="Choose a language",
        key="source_language",
    )

    def change() -> str:
        is_quick = source.passages_count <= MAX_PASSAGES_STEMMED_AT_ONCE
        wb.sources.update(source.id, language=language, build=is_quick)
        documents = count_text(source.documents_count, "document")
        if not is_quick:
            wb.jobs.enqueue_stemming()
            return f"Stemming {documents} again; progress is shown below."
        if language == AUTO:
            return f"Stemmed {documents} by the detected language of each."
        return f"Stemmed {documents} as {_language_choice_title(language or '')}."

    if st.button("Set language", type="primary", disabled=language is None):
        with st.spinner("Stemming…"):
            run_change(change)


def _language_choice_title(language: str) -> str:
    return "Detect automatically" if language == AUTO else language_title(language) or "None (no stemming)"


# How the files of a source are read

HIDDEN_CHOICES = {"read": "Read and mark them", "skip": "Leave them out"}


@st.dialog("File settings")
def ask_reading(wb: Workbench, source: Source) -> None:
    """Ask for the encoding of a source's files, and whether their comments and hidden parts are read."""
    st.markdown("Applies to files added from now on. To apply it to existing files, add them again.")
    encoding = st.text_input(
        "Text encoding", source.encoding or AUTO, help=f"For example windows-1251; {AUTO} detects it for each file."
    )
    hidden = st.radio(
        "Comments, and hidden sheets, rows, slides and text",
        list(HIDDEN_CHOICES),
        index=list(HIDDEN_CHOICES).index(source.hidden),
        format_func=HIDDEN_CHOICES.__getitem__,
    )

    def change() -> str:
        wb.sources.update(source.id, encoding=encoding.strip() or AUTO, hidden=hidden)
        return "File settings saved."

    if st.button("Save", type="primary"):
        run_change(change)


# One source and its documents

MAX_DOCUMENTS_SHOWN = 5_000  # documents listed at once
DOCUMENT_COLUMNS = (
    Column("title", "Document"),
    Column("type", "Type", whole=True),
    Column("date", "Date", "shown"),
    Column("passages", "Passages", "number"),
    Column("updated", "Updated", "shown"),
)


def show_source(wb: Workbench, source: Source) -> None:
    """Show a source, its documents, and actions for both."""
    name_tab(part=source.title)
    st.button("Library", icon=":material/arrow_back:", type="tertiary", on_click=lambda: address.put(open=None))
    with st.container(horizontal=True, vertical_alignment="center"):
        st.title(escape_markdown(source.title), anchor=False, width="stretch")
        with st.container(horizontal=True, width="content"):
            _show_source_actions(wb, source)
    facts = [
        count_text(source.documents_count, "document"),
        count_text(source.passages_count, "passage"),
        source.source_type,
    ]
    facts += [f"#{tag}" for tag in source.tags]
    st.caption(escape_markdown(" · ".join(facts)))
    documents = wb.documents.list(source_id=source.id, limit=MAX_DOCUMENTS_SHOWN)
    actions = st.container(key="document_actions", horizontal=True, vertical_alignment="center", gap="small")
    chosen = show_table(
        f"documents_{source.id}",
        DOCUMENT_COLUMNS,
        [make_document_row(document) for document in documents],
        label="Documents",
        noun="documents",
        empty="This source has no documents.",
        selectable=True,
        opens=True,
    )
    if chosen.opened:
        open_document(chosen.opened)
    if source.documents_count > MAX_DOCUMENTS_SHOWN:
        st.caption(f"Showing the first {MAX_DOCUMENTS_SHOWN:,}.")
    selected = [document for document in documents if document.id in chosen.selected]
    with actions:
        _show_document_actions(wb, selected)


def _show_source_actions(wb: Workbench, source: Source) -> None:
    for label, icon, ask in (
        ("Add files", "upload_file", ask_files),
        ("Move", "drive_file_move", lambda wb, source: move_sources(wb, [source])),
        ("Tag", "sell", lambda wb, source: tag_sources(wb, [source])),
        ("Rename", "edit", rename_source),
        ("Language", "translate", ask_language),
        ("File settings", "tune", ask_reading),
        ("Delete", "delete", lambda wb, source: delete_sources(wb, [source])),
    ):
        if st.button(label, type="tertiary", icon=f":material/{icon}:"):
            ask(wb, source)


def _show_document_actions(wb: Workbench, selected: list[Document]) -> None:
    if not selected:
        st.caption("Open a document to read it with its passages highlighted. Select documents to edit or delete them.")
        return
    st.markdown(f"**{len(selected)} selected**", width="content")
    if st.button("Edit document", icon=":material/edit:", disabled=len(selected) > 1):
        edit_document(wb, selected[0])
    if st.button("Delete documents", icon=":material/delete:"):
        delete_documents(wb, selected)


def make_document_row(document: Document) -> dict[str, object]:
    """Return a document as a row of the table, with its path or URL and its metadata below the title."""
    known = [
        f"{name}: {text[:MAX_METADATA_CHARS]}"
        for name, text in list_metadata(document).items()
        if name not in MINOR_METADATA
    ]
    where, dated = " · ".join(filter(None, (document.path or document.url, *known))), document.document_date
    return {
        "id": document.id,
        "name": document.title,
        "cells": {
            "title": document.title,
            "type": document.document_type,
            "date": {"text": f"{dated:%-d %b %Y}" if dated else "–", "order": str(dated or "")},
            "passages": document.passages_count,
            "updated": make_time_cell(document.updated_at),
        },
        "notes": {"title": where} if where else {},
    }


REFRESH_S = 1.5  # seconds between refreshes while sources are indexed
_SELECTION_KEY = "selected_sources"
VIEWS = {"sources": "Sources", "projects": "Projects and folders"}
SOURCE_COLUMNS = (
    Column("title", "Source"),
    Column("place", "Project", whole=True),
    Column("tags", "Tags", "tags"),
    Column("type", "Type", whole=True),
    Column("documents", "Documents", "number"),
    Column("passages", "Passages", "number"),
    Column("updated", "Updated", "shown"),
)


def page() -> None:
    """Show the source named in the URL, or else the list of sources or projects."""
    wb = OPENING.workbench
    show_notice()
    opened = address.get("open")
    if opened:
        _show_opened(wb, opened)
    else:
        st.title("Library", anchor=False)
        _show_views(wb)
    show_reader(wb, read_index())


def _show_opened(wb: Workbench, source_id: str) -> None:
    try:
        source = wb.sources.get(source_id)
    except NotFound as error:
        store_warning(str(error))
        address.put(open=None)
        st.rerun()
    show_source(wb, source)


def _show_views(wb: Workbench) -> None:
    if choose_in_url("View", VIEWS, "view", "library_view") == "projects":
        show_projects(wb)
        return
    sources = wb.sources.list()
    show_upload_area(wb, sources)
    sources += wb.sources.of_families()  # after the others; distinguished by their type
    _show_sources(wb, sources)
    if any(work.job.kind == "ingest" and not work.is_running for work in select_for_tray(list_job_views()).values()):
        show_language_offer(wb)


def _show_sources(wb: Workbench, sources: Sequence[Source]) -> None:
    if not sources:
        show_message(
            "No sources yet", "Drop files above, or start another way. Each upload, website or sample is a source."
        )
        show_start_buttons(wb, "crawl")
        return
    actions = st.container(key="source_actions", horizontal=True, vertical_alignment="center", gap="small")
    if describe_indexing(list_job_views().values()):
        chosen = st.fragment(_refresh_table, run_every=REFRESH_S)(wb)
    else:
        chosen = _show_table(wb, sources)
    selected = [source for source in sources if source.id in chosen]
    with actions:
        _show_actions(wb, selected)


def _refresh_table(wb: Workbench) -> tuple[str, ...]:
    """Show the current sources; if the selection changes, redraw the page to update its buttons."""
    before = st.session_state.get(_SELECTION_KEY)
    chosen = _show_table(wb, [*wb.sources.list(), *wb.sources.of_families()])
    st.session_state[_SELECTION_KEY] = chosen
    if before is not None and chosen != before:
        st.rerun()
    return chosen


def _show_table(wb: Workbench, sources: Sequence[Source]) -> tuple[str, ...]:
    """Show sources, with the progress of those being indexed; return the ids of the selected ones."""
    filling = describe_indexing(list_job_views().values())
    projects = {project.id: project.title for project in wb.projects.list()}
    chosen = show_table(
        "sources",
        SOURCE_COLUMNS,
        [
            make_source_row(source, projects, filling.get(source.id, ""))
            for source in sorted(sources, key=lambda source: str(source.updated_at or ""), reverse=True)
        ],
        label="Sources",
        noun="sources",
        selectable=True,
        opens=True,
    )
    if chosen.opened:
        address.put(open=chosen.opened)
        st.rerun()
    return chosen.selected


def describe_indexing(works: Iterable[JobView]) -> dict[str, str]:
    """Return the progress of sources that are being indexed, by id."""
    return {
        work.job.source_id: f"Indexing, {work.job.share:.0%}" if work.job.share else "Indexing"
        for work in works
        if work.is_running and work.job.source_id
    }


def _show_actions(wb: Workbench, selected: Sequence[Source]) -> None:
    if not selected:
        st.caption("Select sources to move, tag, rename or delete them.")
        return
    st.markdown(f"**{len(selected)} selected**", width="content")
    if st.button("Move", icon=":material/drive_file_move:"):
        move_sources(wb, selected)
    if st.button("Tag", icon=":material/sell:"):
        tag_sources(wb, selected)
    if st.button("Rename", icon=":material/edit:", disabled=len(selected) > 1):
        rename_source(wb, selected[0])
    if st.button("Delete", icon=":material/delete:"):
        delete_sources(wb, selected)


def make_source_row(source: Source, projects: dict[str, str], filling: str = "") -> dict[str, object]:
    """Return a source as a row of the table; ``filling`` is the progress of indexing."""
    about = " · ".join(part for part in (source.url, filling) if part)
    place = projects.get(source.project_id or "", "") + (f" / {source.folder_name}" if source.folder_name else "")
    return {
        "id": source.id,
        "name": source.title,
        "cells": {
            "title": source.title,
            "place": place or NO_PROJECT,
            "tags": list(source.tags),
            "type": source.source_type,
            "documents": source.documents_count,
            "passages": source.passages_count,
            "updated": make_time_cell(source.updated_at),
        },
        "notes": {"title": about} if about else {},
    }
