"""``workbench sources`` and ``projects``: collections of documents, and how they are organised."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from workbench.cli.options import Subcommands, add_yes_option, confirm
from workbench.cli.output import Output, format_own
from workbench.formatting import count_text, sources_text
from workbench.types import DATASET, SOURCE_TYPES

if TYPE_CHECKING:
    from workbench.workbench import Workbench

# workbench sources

CREATABLE_TYPES = tuple(kind for kind in SOURCE_TYPES if kind != DATASET)


def declare_sources(parser: argparse.ArgumentParser) -> None:
    verbs = Subcommands(parser)
    listing = verbs.add("list", "List sources with their counts of documents and passages.", _list_sources)
    listing.add_argument("--scope", choices=("global", "project"))
    listing.add_argument("--project", metavar="ID", help="id or title of a project")
    listing.add_argument("--type", choices=SOURCE_TYPES)
    listing.add_argument("--limit", type=int, metavar="N")
    listing.add_argument("--offset", type=int, default=0, metavar="N")
    show = verbs.add("show", "Show one source.", lambda wb, arguments, out: out.fields(wb.sources.get(arguments.id)))
    show.add_argument("id", metavar="ID", help="id, title or URL")
    create = verbs.add("create", "Create an empty source.", _create_source, "title")
    create.add_argument("--type", choices=CREATABLE_TYPES, default="upload")
    _add_fields(create)
    update = verbs.add("update", "Change the given fields.", _update_source, "id")
    update.add_argument("--title", metavar="TITLE")
    update.add_argument("--no-tags", action="store_true", help="remove all tags")
    update.add_argument(
        "--language", metavar="NAME", help="language for stemming, such as english; auto detects it for each document"
    )
    update.add_argument(
        "--encoding",
        metavar="NAME",
        help="encoding of its texts, such as windows-1251; auto detects it; ingest its files again to apply it",
    )
    update.add_argument(
        "--hidden",
        choices=("read", "skip"),
        help="comments and hidden sheets, rows, slides and text of its files; ingest them again to apply it",
    )
    _add_fields(update)
    add_yes_option(verbs.add("delete", "Delete a source with its documents and passages.", _delete_source, "id"))


def _add_fields(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--url", metavar="URL")
    parser.add_argument("--project", metavar="ID", help='project; "" makes the source global')
    parser.add_argument("--folder", metavar="NAME", help='folder in the project; "" removes it from its folder')
    parser.add_argument("--tag", action="append", metavar="T", help="tag, replacing the present ones; may be repeated")


def _list_sources(wb: Workbench, arguments: argparse.Namespace, out: Output) -> int:
    project = wb.projects.get(arguments.project).id if arguments.project else None
    conditions = {"scope": arguments.scope, "project_id": project, "source_type": arguments.type}
    sources = wb.sources.list(limit=arguments.limit, offset=arguments.offset, **conditions)
    total = wb.sources.count(**conditions)
    apart = [] if arguments.type else wb.sources.of_families()
    rows = [
        (s.id, s.title, s.source_type, s.folder_name or s.scope, ", ".join(s.tags), s.documents_count, s.passages_count)
        for s in sources
    ]
    columns = ("Id", "Title", "Type", "Project or folder", "Tags", "Documents", "Passages")
    empty = "No sources; add documents with 'workbench ingest PATH'."
    out.table({"sources": sources, "total": total}, columns, rows, empty)
    if apart:
        kinds = " or ".join(dict.fromkeys(source.source_type for source in apart))
        out.message(f"Conversations, articles and archives are listed separately: --type {kinds}.")
    return 0


def _create_source(wb: Workbench, arguments: argparse.Namespace, out: Output) -> int:
    source = wb.sources.create(
        arguments.title,
        source_type=arguments.type,
        url=arguments.url,
        project=arguments.project,
        folder=arguments.folder,
        tags=arguments.tag or (),
    )
    return out.fields(source)


def _update_source(wb: Workbench, arguments: argparse.Namespace, out: Output) -> int:
    names = ("title", "url", "project", "folder", "language", "encoding", "hidden")
    changes = {name: getattr(arguments, name) for name in names}
    return out.fields(wb.sources.update(arguments.id, tags=() if arguments.no_tags else arguments.tag, **changes))


def _delete_source(wb: Workbench, arguments: argparse.Namespace, out: Output) -> int:
    source = wb.sources.get(arguments.id)
    confirm(arguments, out, f"{source.title!r} has {source.documents_count:,} documents.")
    deletion = wb.sources.delete(source.id)
    sentence = f"Deleted {deletion.title!r} with {deletion.documents:,} documents and {deletion.passages:,} passages."
    return out.sentence(deletion, sentence)


# workbench projects


def declare_projects(parser: argparse.ArgumentParser) -> None:
    verbs = Subcommands(parser)
    verbs.add("list", "List projects.", _list_projects)
    verbs.add("show", "Show one project with its folders.", _show_project, "id")
    create = verbs.add("create", "Create a project.", _create_project, "title")
    create.add_argument("--description", default="", metavar="TEXT")
    update = verbs.add("update", "Change the given fields.", _update_project, "id")
    update.add_argument("--title", metavar="TITLE")
    update.add_argument("--description", metavar="TEXT")
    add_yes_option(verbs.add("delete", "Delete a project with its sources and their documents.", _delete_project, "id"))
    verbs.add("folders", "List a project's folders.", _list_folders, "project")
    for name, purpose, run in (
        ("create-folder", "Create a folder in a project.", _create_folder),
        ("update-folder", "Change the given fields of a folder.", _update_folder),
        ("delete-folder", "Delete a folder; its sources stay in the project.", _delete_folder),
    ):
        verb = verbs.add(name, purpose, run)
        verb.add_argument("project", metavar="PROJECT", help="id or title of the project")
        verb.add_argument("name", metavar="FOLDER", help="name or id of the folder")
        if run is _update_folder:
            verb.add_argument("--name", dest="new_name", metavar="NAME")
        if run is not _delete_folder:
            verb.add_argument("--description", metavar="TEXT")
            verb.add_argument("--color", metavar="#RRGGBB")
            verb.add_argument("--icon", metavar="NAME")


def _read_appearance(arguments: argparse.Namespace) -> dict[str, str]:
    values = {"description": arguments.description, "color": arguments.color, "icon_name": arguments.icon}
    return {name: value for name, value in values.items() if value is not None}


def _list_projects(wb: Workbench, arguments: argparse.Namespace, out: Output) -> int:
    projects = wb.projects.list()
    rows = [(p.id, p.title, p.description, format_own(p.source_count, p.family_count)) for p in projects]
    empty = "No projects; create one with 'workbench projects create TITLE'."
    value = {"projects": projects, "total": len(projects)}
    return out.table(value, ("Id", "Title", "Description", "Sources"), rows, empty)


def _show_project(wb: Workbench, arguments: argparse.Namespace, out: Output) -> int:
    project = wb.projects.get(arguments.id)
    folders = wb.projects.folders(project.id)
    return out.fields(
        project.to_dict() | {"folders": [folder.to_dict() for folder in folders]},
        project.to_dict() | {"folders": [folder.name for folder in folders]},
    )


def _create_project(wb: Workbench, arguments: argparse.Namespace, out: Output) -> int:
    return out.fields(wb.projects.create(arguments.title, arguments.description))


def _update_project(wb: Workbench, arguments: argparse.Namespace, out: Output) -> int:
    return out.fields(wb.projects.update(arguments.id, title=arguments.title, description=arguments.description))


def _delete_project(wb: Workbench, arguments: argparse.Namespace, out: Output) -> int:
    project = wb.projects.get(arguments.id)
    confirm(arguments, out, f"{project.title!r} has {sources_text(project.source_count, project.family_count)}.")
    deletion = wb.projects.delete(project.id)
    sources = sources_text(deletion.sources, deletion.families)
    sentence = f"Deleted {deletion.title!r} with {sources}: {count_text(deletion.documents, 'document')} in all."
    return out.sentence(deletion, sentence)


def _list_folders(wb: Workbench, arguments: argparse.Namespace, out: Output) -> int:
    folders = wb.projects.folders(arguments.project)
    rows = [(f.id, f.name, f.description, format_own(f.source_count, f.family_count)) for f in folders]
    value = {"folders": folders, "total": len(folders)}
    return out.table(value, ("Id", "Name", "Description", "Sources"), rows, "No folders in this project.")


def _create_folder(wb: Workbench, arguments: argparse.Namespace, out: Output) -> int:
    return out.fields(wb.projects.create_folder(arguments.project, arguments.name, **_read_appearance(arguments)))


def _update_folder(wb: Workbench, arguments: argparse.Namespace, out: Output) -> int:
    changes = _read_appearance(arguments)
    return out.fields(wb.projects.update_folder(arguments.project, arguments.name, name=arguments.new_name, **changes))


def _delete_folder(wb: Workbench, arguments: argparse.Namespace, out: Output) -> int:
    folder = wb.projects.delete_folder(arguments.project, arguments.name)
    sources = sources_text(folder.source_count, folder.family_count)
    sentence = f"Deleted the folder {folder.name!r}; the project keeps its {sources}."
    return out.sentence(folder, sentence)
