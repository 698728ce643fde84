"""``workbench projects``: projects and their folders."""

from __future__ import annotations

import argparse

from workbench.cli.options import SubcommandFunction, Subcommands, add_yes_option, confirm, run_subcommand
from workbench.cli.output import Output, format_own
from workbench.cli.session import open_workbench
from workbench.formatting import count_text, sources_text
from workbench.types import Folder, Project

run = run_subcommand


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the subcommands."""
    verbs = Subcommands(parser)
    verbs.add("list", "List projects.", _run_list)
    verbs.add("show", "Show one project with its folders.", _run_show).add_argument("id", metavar="ID")
    create = verbs.add("create", "Create a project.", _run_create)
    create.add_argument("title", metavar="TITLE")
    create.add_argument("--description", default="", metavar="TEXT")
    update = verbs.add("update", "Change the given fields.", _run_update)
    update.add_argument("id", metavar="ID")
    update.add_argument("--title", metavar="TITLE")
    update.add_argument("--description", metavar="TEXT")
    delete = verbs.add("delete", "Delete a project with its sources and their documents.", _run_delete)
    delete.add_argument("id", metavar="ID")
    add_yes_option(delete)
    verbs.add("folders", "List a project's folders.", _run_folders).add_argument("project", metavar="PROJECT")
    making = _add_folder_command(verbs, "create-folder", "Create a folder in a project.", _run_create_folder)
    _add_appearance(making)
    changing = _add_folder_command(verbs, "update-folder", "Change the given fields of a folder.", _run_update_folder)
    changing.add_argument("--name", dest="new_name", metavar="NAME")
    _add_appearance(changing)
    _add_folder_command(verbs, "delete-folder", "Delete a folder; its sources stay in the project.", _run_delete_folder)


def _add_folder_command(
    verbs: Subcommands, name: str, purpose: str, serve: SubcommandFunction
) -> argparse.ArgumentParser:
    verb = verbs.add(name, purpose, serve)
    verb.add_argument("project", metavar="PROJECT", help="id or title of the project")
    verb.add_argument("name", metavar="FOLDER", help="name or id of the folder")
    return verb


def _add_appearance(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--description", metavar="TEXT")
    parser.add_argument("--color", metavar="#RRGGBB")
    parser.add_argument("--icon", metavar="NAME")


def _read_appearance(arguments: argparse.Namespace) -> dict[str, str]:
    values = {"description": arguments.description, "color": arguments.color, "icon_name": arguments.icon}
    return {name: value for name, value in values.items() if value is not None}


def _run_list(arguments: argparse.Namespace, out: Output) -> int:
    with open_workbench() as wb:
        projects = wb.projects.list()
    rows = [
        (project.id, project.title, project.description, format_own(project.source_count, project.family_count))
        for project in projects
    ]
    columns = ("Id", "Title", "Description", "Sources")
    empty = "No projects; create one with 'workbench projects create TITLE'."
    value = {"projects": projects, "total": len(projects)}
    return out.table(value, columns, rows, empty)


def _run_show(arguments: argparse.Namespace, out: Output) -> int:
    with open_workbench() as wb:
        project = wb.projects.get(arguments.id)
        folders = wb.projects.folders(project.id)
    return _print_fields(out, project, folders)


def _run_create(arguments: argparse.Namespace, out: Output) -> int:
    with open_workbench() as wb:
        return _print_fields(out, wb.projects.create(arguments.title, arguments.description))


def _run_update(arguments: argparse.Namespace, out: Output) -> int:
    with open_workbench() as wb:
        changed = wb.projects.update(arguments.id, title=arguments.title, description=arguments.description)
    return _print_fields(out, changed)


def _run_delete(arguments: argparse.Namespace, out: Output) -> int:
    with open_workbench() as wb:
        project = wb.projects.get(arguments.id)
        confirm(arguments, out, f"{project.title!r} has {sources_text(project.source_count, project.family_count)}.")
        deletion = wb.projects.delete(project.id)
    sources = sources_text(deletion.sources, deletion.families)
    sentence = f"Deleted {deletion.title!r} with {sources}: {count_text(deletion.documents, 'document')} in all."
    return out.sentence(deletion, sentence)


def _run_folders(arguments: argparse.Namespace, out: Output) -> int:
    with open_workbench() as wb:
        folders = wb.projects.folders(arguments.project)
    rows = [
        (folder.id, folder.name, folder.description, format_own(folder.source_count, folder.family_count))
        for folder in folders
    ]
    columns = ("Id", "Name", "Description", "Sources")
    value = {"folders": folders, "total": len(folders)}
    return out.table(value, columns, rows, "No folders in this project.")


def _run_create_folder(arguments: argparse.Namespace, out: Output) -> int:
    with open_workbench() as wb:
        folder = wb.projects.create_folder(arguments.project, arguments.name, **_read_appearance(arguments))
    return _print_fields(out, folder)


def _run_update_folder(arguments: argparse.Namespace, out: Output) -> int:
    with open_workbench() as wb:
        folder = wb.projects.update_folder(
            arguments.project, arguments.name, name=arguments.new_name, **_read_appearance(arguments)
        )
    return _print_fields(out, folder)


def _run_delete_folder(arguments: argparse.Namespace, out: Output) -> int:
    with open_workbench() as wb:
        folder = wb.projects.delete_folder(arguments.project, arguments.name)
    sources = sources_text(folder.source_count, folder.family_count)
    sentence = f"Deleted the folder {folder.name!r}; the project keeps its {sources}."
    return out.sentence(folder, sentence)


def _print_fields(out: Output, thing: Project | Folder, folders: list[Folder] | None = None) -> int:
    value = thing.to_dict()
    if folders is not None:
        value["folders"] = [folder.to_dict() for folder in folders]
    shown = thing.to_dict() | ({"folders": [folder.name for folder in folders]} if folders is not None else {})
    return out.fields(value, shown)
