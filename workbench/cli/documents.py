"""``workbench ingest`` and ``documents``: the files, pages and texts of the corpus."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.cli.options import Subcommands, add_repeated, add_yes_option, confirm
from workbench.cli.output import Output, print_fields, print_table, strip_control_chars
from workbench.cli.session import cancel_on_sigint, open_workbench
from workbench.errors import Cancelled, InvalidInput, UnreadableDocument
from workbench.formatting import parse_assignments
from workbench.types import Document, IngestReport

if TYPE_CHECKING:
    from rich.console import Console

    from workbench.workbench import Workbench

# workbench ingest


def declare_ingest(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("paths", nargs="+", metavar="PATH", help="a file, a folder or a zip archive of files")
    parser.add_argument(
        "--source", metavar="TITLE|ID", help="source to add them to; created if no source has that title"
    )
    parser.add_argument("--project", metavar="ID", help="project of a new source")
    parser.add_argument("--folder", metavar="NAME", help="folder in that project")
    add_repeated(parser, "--tag", "T", "tag the source")
    parser.add_argument("--index", metavar="NAME", help="fill this index instead of the default and the promoted ones")
    parser.add_argument("--background", action="store_true", help="ingest as a job; see 'workbench jobs'")


def run_ingest(arguments: argparse.Namespace, out: Output) -> int:
    """Ingest; return 1 if no document could be read."""
    from workbench.ingestion.readers.formats import describe_missing, expand_home

    if (sentence := describe_missing([expand_home(path) for path in arguments.paths])) is not None:
        raise UnreadableDocument(sentence)
    if arguments.background:
        with open_workbench() as wb:
            return _enqueue_ingest(wb, arguments, out)
    with open_workbench() as wb, out.progress("Ingest") as show, cancel_on_sigint(out) as should_stop:
        try:
            report = wb.ingest(
                arguments.paths,
                source=arguments.source,
                project=arguments.project,
                folder=arguments.folder,
                tags=arguments.tag,
                index=arguments.index,
                on_progress=show,
                should_stop=should_stop,
            )
        except Cancelled as error:
            raise Cancelled(f"{error} Repeat the command to continue.") from error
    out.show(report, lambda console: _print_report(console, report))
    read = report.added + report.updated + report.unchanged
    if not read:
        out.message("No document could be read; see the reasons above and 'workbench ingest --help'.")
    return 0 if read else 1


def _enqueue_ingest(wb: Workbench, arguments: argparse.Namespace, out: Output) -> int:
    """Queue the work for a worker, which must see the files under the same paths."""
    from workbench.ingestion.incoming import source_title
    from workbench.ingestion.readers.formats import expand_home
    from workbench.services.sources import UPLOADS_TITLE, LocationNames

    if arguments.index:
        wb.indexes.get(arguments.index)  # an unknown index or project fails here, not later in the job
    place = LocationNames(project=arguments.project, folder=arguments.folder)
    title = arguments.source or source_title([expand_home(path) for path in arguments.paths]) or UPLOADS_TITLE
    job = wb.jobs.enqueue_ingest(arguments.paths, source=title, **place, tags=arguments.tag, index=arguments.index)
    return out.job(job.id, {"job": job.id, "title": job.title, "status": job.status})


def _print_report(console: Console, report: IngestReport) -> None:
    counts = [(report.added, "added"), (report.updated, "updated"), (report.unchanged, "unchanged")]
    counts.append((len(report.failures), "failed"))
    console.print("Documents: " + ", ".join(f"{count:,} {what}" for count, what in counts))
    console.print(f"Passages stored: {report.passages:,}; embedded: {report.embedded:,}; {report.seconds:.1f} s")
    if report.source_id:
        console.print(f"Source: {report.source_id}")
    for note in report.notes:
        console.print(strip_control_chars(note), markup=False, highlight=False)
    if report.left_out_sentence:
        console.print(strip_control_chars(report.left_out_sentence), markup=False)
    if report.offer:
        console.print(report.offer, markup=False, highlight=False)
    if report.failures:
        rows = [(failure.path, failure.error) for failure in report.failures]
        print_table(console, ("Not read", "Reason"), rows, "")


# workbench documents


def declare_documents(parser: argparse.ArgumentParser) -> None:
    verbs = Subcommands(parser)
    listing = verbs.add("list", "List documents, oldest first.", _list_documents)
    listing.add_argument("--source", metavar="ID", help="only documents of this source (id or title)")
    listing.add_argument("--type", metavar="TYPE", help="only this type, such as pdf")
    listing.add_argument("--contains", metavar="TEXT", help="only titles with this text")
    listing.add_argument("--named", metavar="WORDS", help="only documents with these words in title, path or URL")
    listing.add_argument("--limit", type=int, default=100, metavar="N", help="maximum number (%(default)s)")
    listing.add_argument("--offset", type=int, default=0, metavar="N")
    show = verbs.add("show", "Show one document with its text.", _show_document, "id")
    show.add_argument("--passages", action="store_true", help="show its passages in an index")
    show.add_argument("--index", metavar="NAME", help="index for --passages")
    create = verbs.add("create", "Create a document from a file or a text.", _create_document)
    create.add_argument("--source", metavar="ID", help="source to add it to (Uploads)")
    _add_content(create)
    update = verbs.add("update", "Change the given fields or the content.", _update_document, "id")
    _add_content(update)
    add_yes_option(verbs.add("delete", "Delete a document with its passages.", _delete_document, "id"))


def _add_content(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--file", metavar="PATH", help="read the content from this file")
    parser.add_argument("--text", metavar="TEXT", help="content as Markdown; - for standard input")
    parser.add_argument("--title", metavar="TITLE")
    parser.add_argument("--url", metavar="URL")
    add_repeated(parser, "--meta", "NAME=VALUE", "metadata")


def _list_documents(wb: Workbench, arguments: argparse.Namespace, out: Output) -> int:
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


def _show_document(wb: Workbench, arguments: argparse.Namespace, out: Output) -> int:
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


def _create_document(wb: Workbench, arguments: argparse.Namespace, out: Output) -> int:
    content = _read_content(arguments)
    if content["path"] is None and content["text"] is None:
        raise InvalidInput("No content given; use --file or --text.")
    written = wb.documents.create(source=arguments.source, **content)
    return _print_document(out, written.document, written.outcome, written.notes)


def _update_document(wb: Workbench, arguments: argparse.Namespace, out: Output) -> int:
    written = wb.documents.update(arguments.id, **_read_content(arguments))
    return _print_document(out, written.document, written.outcome, written.notes)


def _delete_document(wb: Workbench, arguments: argparse.Namespace, out: Output) -> int:
    document = wb.documents.get(arguments.id)
    confirm(arguments, out, f"{document.title!r} has {document.passages_count:,} passages.")
    deletion = wb.documents.delete(document.id)
    return out.sentence(deletion, f"Deleted {deletion.title!r} with {deletion.passages:,} passages.")


def _read_content(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the content and the fields of a document as keyword arguments."""
    if arguments.file is not None and arguments.text is not None:
        raise InvalidInput("Use either --file or --text, not both.")
    text = sys.stdin.read() if arguments.text == "-" else arguments.text
    path = Path(arguments.file) if arguments.file is not None else None
    about = {"title": arguments.title, "url": arguments.url}
    return {"path": path, "text": text, **about, "metadata": parse_assignments(arguments.meta, "--meta") or None}


def _print_document(out: Output, document: Document, outcome: str, notes: Sequence[str]) -> int:
    fields = {name: item for name, item in document.to_dict().items() if name != "text"} | {"outcome": outcome}
    return out.fields(fields | ({"notes": list(notes)} if notes else {}))
