"""``workbench sources``: collections of documents."""

from __future__ import annotations

import argparse

from workbench.cli.options import Subcommands, add_yes_option, confirm, run_subcommand
from workbench.cli.output import Output
from workbench.cli.session import open_workbench
from workbench.types import DATASET, SOURCE_TYPES

run = run_subcommand
CREATABLE_TYPES = tuple(kind for kind in SOURCE_TYPES if kind != DATASET)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the subcommands."""
    verbs = Subcommands(parser)
    listing = verbs.add("list", "List sources with their counts of documents and passages.", _run_list)
    listing.add_argument("--scope", choices=("global", "project"))
    listing.add_argument("--project", metavar="ID", help="id or title of a project")
    listing.add_argument("--type", choices=SOURCE_TYPES)
    listing.add_argument("--limit", type=int, metavar="N")
    listing.add_argument("--offset", type=int, default=0, metavar="N")
    verbs.add("show", "Show one source.", _run_show).add_argument("id", metavar="ID", help="id, title or URL")
    create = verbs.add("create", "Create an empty source.", _run_create)
    create.add_argument("title", metavar="TITLE")
    create.add_argument("--type", choices=CREATABLE_TYPES, default="upload")
    _add_fields(create)
    update = verbs.add("update", "Change the given fields.", _run_update)
    update.add_argument("id", metavar="ID")
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
        help="hidden sheets, rows, slides and text of its files; ingest them again to apply it",
    )
    _add_fields(update)
    delete = verbs.add("delete", "Delete a source with its documents and passages.", _run_delete)
    delete.add_argument("id", metavar="ID")
    add_yes_option(delete)


def _add_fields(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--url", metavar="URL")
    parser.add_argument("--project", metavar="ID", help='project; "" makes the source global')
    parser.add_argument("--folder", metavar="NAME", help='folder in the project; "" removes it from its folder')
    parser.add_argument("--tag", action="append", metavar="T", help="tag, replacing the present ones; may be repeated")


def _run_list(arguments: argparse.Namespace, out: Output) -> int:
    with open_workbench() as wb:
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
        out.remark(f"Conversations, articles and archives are listed separately: --type {kinds}.")
    return 0


def _run_show(arguments: argparse.Namespace, out: Output) -> int:
    with open_workbench() as wb:
        source = wb.sources.get(arguments.id)
    return out.fields(source, source.to_dict())


def _run_create(arguments: argparse.Namespace, out: Output) -> int:
    with open_workbench() as wb:
        source = wb.sources.create(
            arguments.title,
            source_type=arguments.type,
            url=arguments.url,
            project=arguments.project,
            folder=arguments.folder,
            tags=arguments.tag or (),
        )
    return out.fields(source, source.to_dict())


def _run_update(arguments: argparse.Namespace, out: Output) -> int:
    with open_workbench() as wb:
        source = wb.sources.update(
            arguments.id,
            title=arguments.title,
            url=arguments.url,
            project=arguments.project,
            folder=arguments.folder,
            tags=() if arguments.no_tags else arguments.tag,
            language=arguments.language,
            encoding=arguments.encoding,
            hidden=arguments.hidden,
        )
    return out.fields(source, source.to_dict())


def _run_delete(arguments: argparse.Namespace, out: Output) -> int:
    with open_workbench() as wb:
        source = wb.sources.get(arguments.id)
        confirm(arguments, out, f"{source.title!r} has {source.documents_count:,} documents.")
        deletion = wb.sources.delete(source.id)
    sentence = f"Deleted {deletion.title!r} with {deletion.documents:,} documents and {deletion.passages:,} passages."
    return out.sentence(deletion, sentence)
