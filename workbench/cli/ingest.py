"""``workbench ingest``: read files and folders into a source."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from workbench.cli.output import Output, print_table, strip_control_chars
from workbench.cli.session import cancel_on_sigint, open_workbench
from workbench.errors import Cancelled, UnreadableDocument

if TYPE_CHECKING:
    from rich.console import Console

    from workbench.types import IngestReport


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("paths", nargs="+", metavar="PATH", help="a file, a folder or a zip archive of files")
    parser.add_argument(
        "--source", metavar="TITLE|ID", help="source to add them to; created if no source has that title"
    )
    parser.add_argument("--project", metavar="ID", help="project of a new source")
    parser.add_argument("--folder", metavar="NAME", help="folder in that project")
    parser.add_argument("--tag", action="append", default=[], metavar="T", help="tag the source; may be repeated")
    parser.add_argument("--index", metavar="NAME", help="fill this index instead of the default and the promoted ones")
    parser.add_argument("--background", action="store_true", help="ingest as a job; see 'workbench jobs'")


def run(arguments: argparse.Namespace, out: Output) -> int:
    """Ingest; return 1 if no document could be read."""
    from workbench.ingestion.readers.formats import describe_missing, expand_home

    if (sentence := describe_missing([expand_home(path) for path in arguments.paths])) is not None:
        raise UnreadableDocument(sentence)
    if arguments.background:
        return _enqueue(arguments, out)
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


def _enqueue(arguments: argparse.Namespace, out: Output) -> int:
    """Queue the work for a worker, which must see the files under the same paths."""
    from workbench.ingestion.incoming import source_title
    from workbench.ingestion.readers.formats import expand_home
    from workbench.services.sources import UPLOADS_TITLE, LocationNames

    with open_workbench() as wb:
        if arguments.index:
            wb.indexes.get(arguments.index)  # an unknown index or project fails here, not later in the job
        place = LocationNames(project=arguments.project, folder=arguments.folder)
        title = arguments.source or source_title([expand_home(path) for path in arguments.paths]) or UPLOADS_TITLE
        source = wb.sources.ensure(title, **place, tags=arguments.tag, for_ingest=True)
        job = wb.jobs.enqueue_ingest(
            arguments.paths, source=title, **place, tags=arguments.tag, index=arguments.index, source_id=source.id
        )
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
