"""``workbench documents``: the files, pages and texts of the corpus."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.cli.options import Subcommands, add_yes_option, confirm, run_subcommand
from workbench.cli.output import Output, print_fields, strip_control_chars
from workbench.cli.session import open_workbench
from workbench.errors import InvalidInput, UnreadableDocument
from workbench.formatting import parse_assignments
from workbench.types import Document

if TYPE_CHECKING:
    from rich.console import Console

run = run_subcommand


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the subcommands."""
    verbs = Subcommands(parser)
    listing = verbs.add("list", "List documents, oldest first.", _run_list)
    listing.add_argument("--source", metavar="ID", help="only documents of this source (id or title)")
    listing.add_argument("--type", metavar="TYPE", help="only this type, such as pdf")
    listing.add_argument("--contains", metavar="TEXT", help="only titles with this text")
    listing.add_argument("--named", metavar="WORDS", help="only documents with these words in title, path or URL")
    listing.add_argument("--limit", type=int, default=100, metavar="N", help="maximum number (%(default)s)")
    listing.add_argument("--offset", type=int, default=0, metavar="N")
    show = verbs.add("show", "Show one document with its text.", _run_show)
    show.add_argument("id", metavar="ID")
    show.add_argument("--passages", action="store_true", help="show its passages in an index")
    show.add_argument("--index", metavar="NAME", help="index for --passages")
    create = verbs.add("create", "Create a document from a file or a text.", _run_create)
    create.add_argument("--source", metavar="ID", help="source to add it to (Uploads)")
    _add_content(create)
    update = verbs.add("update", "Change the given fields or the content.", _run_update)
    update.add_argument("id", metavar="ID")
    _add_content(update)
    delete = verbs.add("delete", "Delete a document with its passages.", _run_delete)
    delete.add_argument("id", metavar="ID")
    add_yes_option(delete)


def _add_content(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--file", metavar="PATH", help="read the content from this file")
    parser.add_argument("--text", metavar="TEXT", help="content as Markdown; - for standard input")
    parser.add_argument("--title", metavar="TITLE")
    parser.add_argument("--url", metavar="URL")
    parser.add_argument("--meta", action="append", default=[], metavar="NAME=VALUE", help="metadata; may be repeated")


def _run_list(arguments: argparse.Namespace, out: Output) -> int:
    with open_workbench() as wb:
        source = wb.sources.get(arguments.source).id if arguments.source else None
        conditions = {"source_id": source, "document_type": arguments.type, "contains": arguments.contains}
        conditions["named"] = arguments.named
        documents = wb.documents.list(limit=arguments.limit, offset=arguments.offset, **conditions)
        total = wb.documents.count(**conditions)
    rows = [(d.id, d.title, d.document_type, d.path or d.url, d.passages_count) for d in documents]
    columns = ("Id", "Title", "Type", "Path or URL", "Passages")
    out.table({"documents": documents, "total": total}, columns, rows, "No documents.")
    if len(documents) < total:
        out.message(f"{len(documents):,} of {total:,} shown; use --limit and --offset to see more.")
    return 0


def _run_show(arguments: argparse.Namespace, out: Output) -> int:
    with open_workbench() as wb:
        document = wb.documents.get(arguments.id)
        passages = wb.documents.passages(document.id, index=arguments.index) if arguments.passages else []
    value = document.to_dict()
    if arguments.passages:
        value["passages"] = [
            {"passage_id": p.node_id, "start": p.metadata["start"], "end": p.metadata["end"], "text": p.text}
            for p in passages
        ]
    fields = {name: item for name, item in document.to_dict().items() if name not in ("text", "content_hash")}

    def human(console: Console) -> None:
        print_fields(console, fields)
        blocks = [f"[{p.metadata['start']}-{p.metadata['end']}] {p.text}" for p in passages]
        text = "\n\n".join(blocks) if arguments.passages else document.text or ""
        print(f"\n{strip_control_chars(text)}")

    out.show(value, human)
    return 0


def _run_create(arguments: argparse.Namespace, out: Output) -> int:
    path, text = _read_content(arguments)
    if path is None and text is None:
        raise InvalidInput("No content given; use --file or --text.")
    with open_workbench() as wb:
        written = wb.documents.create(
            path=path,
            text=text,
            source=arguments.source,
            title=arguments.title,
            url=arguments.url,
            metadata=parse_assignments(arguments.meta, "--meta"),
        )
    return _print_document(out, written.document, written.outcome)


def _run_update(arguments: argparse.Namespace, out: Output) -> int:
    path, text = _read_content(arguments)
    with open_workbench() as wb:
        written = wb.documents.update(
            arguments.id,
            path=path,
            text=text,
            title=arguments.title,
            url=arguments.url,
            metadata=parse_assignments(arguments.meta, "--meta") or None,
        )
    return _print_document(out, written.document, written.outcome)


def _run_delete(arguments: argparse.Namespace, out: Output) -> int:
    with open_workbench() as wb:
        document = wb.documents.get(arguments.id)
        confirm(arguments, out, f"{document.title!r} has {document.passages_count:,} passages.")
        deletion = wb.documents.delete(document.id)
    return out.sentence(deletion, f"Deleted {deletion.title!r} with {deletion.passages:,} passages.")


def _read_content(arguments: argparse.Namespace) -> tuple[Path | None, str | None]:
    if arguments.file is not None and arguments.text is not None:
        raise InvalidInput("Use either --file or --text, not both.")
    if arguments.file is not None and not Path(arguments.file).is_file():
        raise UnreadableDocument(f"No such file: {arguments.file!r}.")
    text = sys.stdin.read() if arguments.text == "-" else arguments.text
    return (Path(arguments.file) if arguments.file is not None else None), text


def _print_document(out: Output, document: Document, outcome: str) -> int:
    value = {name: item for name, item in document.to_dict().items() if name != "text"} | {"outcome": outcome}
    return out.fields(value, value)
