"""``workbench crawl``, ``jobs`` and ``worker``: long-running work."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
from collections.abc import Mapping
from types import FrameType
from typing import TYPE_CHECKING, Any

from workbench.cli.options import Subcommands, add_repeated, parse_number
from workbench.cli.output import Output, describe_queued, print_fields, print_table
from workbench.cli.session import cancel_on_sigint, open_workbench
from workbench.crawling.options import UNFETCHED_OUTCOMES, outcome_label
from workbench.errors import InvalidInput, StorageError
from workbench.formatting import size_text
from workbench.runtime import exit_now
from workbench.types import (
    JsonObject,
    JsonValue,
    as_integer,
    as_number,
    progress_text,
    time_left_text,
)

if TYPE_CHECKING:
    from datetime import datetime

    from rich.console import Console

    from workbench.crawling.preview import DryRun
    from workbench.storage.jobs import Job
    from workbench.workbench import Workbench

# workbench crawl

MAX_ROWS_SHOWN = 20  # rows of a preview
FAILED_STATUSES = ("failed", "cancelled")
REFRESH_HELP = "download every page again, even if unchanged since an earlier crawl"
ACCEPT_REMOVALS_HELP = "remove documents even if they are more than 20%% of the source, and most of a page's text"


def declare_crawl(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("url", metavar="URL", help="page to start from")
    parser.add_argument("--recursive", action="store_true", help="follow links, sitemaps and llms.txt")
    parser.add_argument(
        "--max-pages", type=parse_number, default=100, metavar="N", help="maximum number of pages (%(default)s)"
    )
    parser.add_argument(
        "--max-depth", type=parse_number, metavar="N", help="maximum number of links from the start page"
    )
    parser.add_argument(
        "--within",
        choices=("path", "host", "domain"),
        default="path",
        help="stay within the path, host or domain of the start page (%(default)s)",
    )
    add_repeated(parser, "--include", "P", "only URLs that contain this")
    add_repeated(parser, "--exclude", "P", "no URLs that contain this")
    parser.add_argument("--source", metavar="S", help="title or id of the source to fill")
    parser.add_argument("--project", metavar="ID", help="project of a new source")
    parser.add_argument("--folder", metavar="NAME", help="folder in that project")
    add_repeated(parser, "--tag", "T", "tag the source")
    browser = parser.add_mutually_exclusive_group()
    browser.add_argument("--browser", action="store_true", help="render every page in Chromium, not only empty ones")
    browser.add_argument("--no-browser", action="store_true", help="never start a browser")
    parser.add_argument("--keep-gone", action="store_true", help="keep documents of missing pages, marked as gone")
    parser.add_argument("--refresh", action="store_true", help=REFRESH_HELP)
    parser.add_argument("--accept-removals", action="store_true", help=ACCEPT_REMOVALS_HELP)
    parser.add_argument(
        "--rate", type=parse_number, metavar="N", help="requests per second and host, instead of the automatic rate"
    )
    parser.add_argument("--concurrency", type=parse_number, metavar="N", help="concurrent requests, 1 to 32")
    parser.add_argument("--dry-run", action="store_true", help="show what would be fetched without storing anything")
    parser.add_argument("--wait", action="store_true", help="run the crawl in this process and show its progress")


def run_crawl(arguments: argparse.Namespace, out: Output) -> int:
    """Start or preview a crawl; return 1 if a crawl run here failed."""
    options = _read_options(arguments)
    storing = [f"--{name}" for name in ("wait", "source", "project", "folder", "tag") if getattr(arguments, name)]
    if arguments.dry_run and storing:
        raise InvalidInput(f"--dry-run stores nothing; omit {' and '.join(storing)}.")
    with open_workbench() as wb:
        if arguments.dry_run:
            report = wb.crawls.dry_run(arguments.url, **options)
            out.show(report, lambda console: _print_dry_run(console, report))
            return 0
        place = {"source": arguments.source, "project": arguments.project, "folder": arguments.folder}
        crawl = wb.crawls.start(arguments.url, **place, tags=arguments.tag, **options)
        if not arguments.wait:
            out.message(describe_queued(crawl.id))
            shown = {"id": crawl.id, "url": crawl.url, "source_id": crawl.source_id, "status": crawl.status}
            return out.fields(crawl, shown)
        job = _run_job(wb, crawl.id, "Crawl", out)
        _print_job(wb, job, out, lines=0, value=wb.crawls.get(crawl.id).to_dict())
    return 1 if job.status in FAILED_STATUSES else 0


def _run_job(wb: Workbench, job_id: str, title: str, out: Output) -> Job:
    """Run jobs here until one has ended, and show its progress; Ctrl-C cancels it."""
    from evals.background import make_runners

    wb.work(make_runners(wb))
    with out.progress(title) as show, cancel_on_sigint(out) as should_stop:
        is_cancelled = False
        while not (job := wb.jobs.wait(job_id, timeout=0.3, on_progress=show)).is_finished:
            if should_stop() and not is_cancelled:
                wb.jobs.cancel(job_id)
                is_cancelled = True
    return job


def _print_reasons(console: Console, reasons: Mapping[str, JsonValue]) -> None:
    """Print why addresses are not fetched, with counts; reasons beyond the last row are counted together."""
    rows = list(reasons.items())
    rest = sum(as_integer(count) for _, count in rows[MAX_ROWS_SHOWN:])
    rows = rows[:MAX_ROWS_SHOWN] + ([("other reasons", rest)] if rest else [])
    print_table(console, ("Reason not fetched", "Addresses"), rows, "")


def _read_options(arguments: argparse.Namespace) -> dict[str, Any]:
    names = ("recursive", "max_pages", "within", "include", "exclude", "refresh", "accept_removals")
    names += ("max_depth", "rate", "concurrency")
    options = {name: getattr(arguments, name) for name in names if getattr(arguments, name) is not None}
    browser = "always" if arguments.browser else "never" if arguments.no_browser else "auto"
    return {**options, "browser": browser, "gone": "keep" if arguments.keep_gone else "remove"}


def _print_dry_run(console: Console, report: DryRun) -> None:
    estimate = report["estimate"]
    pages, passages = as_integer(estimate["pages"]), as_integer(estimate["passages"])
    least = "at least " if estimate["at_least"] else ""
    console.print(
        f"Would fetch {least}{pages:,} pages: about {as_number(estimate['seconds']):,.0f} s of fetching, "
        f"{size_text(as_integer(estimate['text_bytes']))} of text, {passages:,} passages. Nothing was stored."
    )
    rows = [(entry["url"], entry["via"], entry["depth"]) for entry in report["would_fetch"][:MAX_ROWS_SHOWN]]
    print_table(console, ("Would fetch", "Found by", "Depth"), rows, "Nothing.")
    refused = [
        (entry["url"], entry["reason"]) for entry in (report["would_not_fetch"] + report["failed"])[:MAX_ROWS_SHOWN]
    ]
    if refused:
        print_table(console, ("Would not fetch", "Why"), refused, "")
    if report["not_fetched"]:
        _print_reasons(console, report["not_fetched"])
    for sample in report["samples"]:
        console.print(f"\n--- {sample['title']} · {sample['url']} · {sample['characters']:,} characters")
        console.print(sample["text"][:600])


# workbench jobs

DEFAULT_LOG_LINES = 20


def declare_jobs(parser: argparse.ArgumentParser) -> None:
    verbs = Subcommands(parser)
    listing = verbs.add("list", "List jobs, newest first.", _list_jobs)
    listing.add_argument("--kind", metavar="K", help="only jobs of this kind, such as crawl")
    listing.add_argument("--status", metavar="S", help="only jobs with this status, such as running")
    listing.add_argument("--limit", type=int, default=50, metavar="N", help="maximum number (%(default)s)")
    show = verbs.add("show", "Show a job with its log and failures.", _show_job, "id")
    show.add_argument("--log", type=int, default=DEFAULT_LOG_LINES, metavar="N", help="lines of its log (%(default)s)")
    verbs.add("cancel", "Stop a job; finished work is kept.", _cancel_job, "id")
    for name, purpose in (
        ("resume", "Resume a cancelled or failed job."),
        ("retry-failed", "Fetch the failed pages of a crawl again."),
        ("accept-removals", "Accept the removals that a crawl held back."),
        ("recrawl", "Crawl the same site again, as a new job."),
    ):
        verb = verbs.add(name, purpose, _continue_job, "id")
        verb.add_argument("--wait", action="store_true", help="run it in this process until it ends")
    verb.add_argument("--refresh", action="store_true", help=REFRESH_HELP)
    verb.add_argument("--accept-removals", action="store_true", help=ACCEPT_REMOVALS_HELP)


def _list_jobs(wb: Workbench, arguments: argparse.Namespace, out: Output) -> int:
    jobs = wb.jobs.list(kind=arguments.kind, status=arguments.status, limit=arguments.limit)
    rows = [
        (j.id, j.kind, j.state, progress_text(j.share, j.done, j.total), j.title, _format_time(j.created_at))
        for j in jobs
    ]
    value = {"jobs": [job.to_dict() for job in jobs], "total": len(jobs)}

    def human(console: Console) -> None:
        print_table(console, ("Id", "Kind", "Status", "Progress", "Title", "Created"), rows, "No jobs.")
        for job in jobs:
            if job.stalled:
                console.print(f"{job.id}: {job.stalled}")

    out.show(value, human)
    return 0


def _show_job(wb: Workbench, arguments: argparse.Namespace, out: Output) -> int:
    return _print_job(wb, wb.jobs.get(arguments.id), out, arguments.log)


def _cancel_job(wb: Workbench, arguments: argparse.Namespace, out: Output) -> int:
    return _print_job(wb, wb.jobs.cancel(arguments.id), out)


def _continue_job(wb: Workbench, arguments: argparse.Namespace, out: Output) -> int:
    """Resume, retry or repeat a job, and with ``--wait`` run it here until it ends."""
    if arguments.verb_name == "recrawl":
        changes = {"refresh": arguments.refresh, "accept_removals": arguments.accept_removals}
        job_id = wb.crawls.recrawl(arguments.id, **changes).id
    else:
        verbs = {"retry-failed": wb.crawls.retry_failed, "accept-removals": wb.crawls.accept_removals}
        job_id = verbs.get(arguments.verb_name, wb.jobs.resume)(arguments.id).id
    if not arguments.wait:
        return _print_job(wb, wb.jobs.get(job_id), out)
    job = _run_job(wb, job_id, "Job", out)
    _print_job(wb, job, out)
    return 1 if job.status in FAILED_STATUSES else 0


def _print_job(
    wb: Workbench, job: Job, out: Output, lines: int = DEFAULT_LOG_LINES, value: JsonObject | None = None
) -> int:
    """Show a job with the latest ``lines`` of its log, and with the pages of a crawl; as JSON, ``value`` if given."""
    log = wb.jobs.log(job.id, limit=lines) if lines else []
    parts = wb.jobs.parts(job.id).to_json()
    result: dict[str, Any] = job.to_dict() | parts | {"log": log}
    counts: dict[str, object] = {}
    pages: dict[str, list[tuple[object, object]]] = {}  # rows of each table of a crawl
    if job.kind == "crawl":
        crawl, failures = wb.crawls.get(job.id), wb.crawls.failures(job.id)
        held = [{"url": page.url, "reason": page.reason} for page in wb.crawls.pages(job.id, outcome="held")]
        result |= {"crawl": crawl, "failures": failures, "held": held}
        counts = {outcome_label(name): n for name, n in crawl.outcomes.items() if n and name not in UNFETCHED_OUTCOMES}
        counts |= {"source": crawl.source_id, "passages": crawl.total_chunks, "text": size_text(crawl.bytes)}
        pages = {"Failed": [(page["url"], page["reason"]) for page in failures]}
        pages["Removal held"] = [(page["url"], page["reason"]) for page in held]
        pages["Reason not fetched"] = list(crawl.not_fetched.items())

    def human(console: Console) -> None:
        names = ("id", "kind", "title", "status", "done", "total", "message", "error", "worker")
        fields = {name: getattr(job, name) for name in names} | {"created": _format_time(job.created_at)}
        fields["status"] = job.state
        if job.stalled:
            fields["stalled"] = job.stalled
        if not job.is_finished and job.total:
            fields["progress"] = ", ".join(filter(None, (f"{job.share:.0%}", time_left_text(job.seconds_left))))
        if parts:
            fields |= {"parts": f"{parts['parts_done']} of {parts['parts']}", "workers": parts["hands"]}
        print_fields(console, fields | counts)
        for title, rows in pages.items():
            if rows:
                print_table(console, (title, "Addresses" if title == "Reason not fetched" else "Reason"), rows, "")
                if title == "Removal held":
                    console.print(f"Remove them with 'workbench jobs accept-removals {job.id}'.")
        if log:
            print_table(console, ("Log", ""), [(_format_time(line.at), line.message) for line in log], "")

    out.show(value or result, human)
    return 0


def _format_time(moment: datetime | None) -> str:
    return moment.astimezone().strftime("%Y-%m-%d %H:%M:%S") if moment else ""


# workbench worker

DEFAULT_CONCURRENCY = 3
MAX_CONCURRENCY = 32  # jobs at the same time
BACKGROUND_NICENESS = 5  # niceness of a worker started by an app or a server
STOP_TIMEOUT_S = 0.7  # seconds for a running job to finish its document before it returns to the queue


def declare_worker(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--concurrency", type=int, default=DEFAULT_CONCURRENCY, metavar="N", help="jobs at the same time (%(default)s)"
    )
    parser.add_argument(
        "--until-input-ends",
        action="store_true",
        help="stop when standard input is closed, as when the parent process ends",
    )


def run_worker(arguments: argparse.Namespace, out: Output) -> int:
    """Run jobs until Ctrl-C or SIGTERM; running jobs return to the queue."""
    if not 1 <= arguments.concurrency <= MAX_CONCURRENCY:
        raise InvalidInput(f"Invalid --concurrency {arguments.concurrency}: use a number from 1 to {MAX_CONCURRENCY}.")
    from evals.background import make_runners

    stopping = threading.Event()

    def stop(number: int, frame: FrameType | None) -> None:
        stopping.set()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    if arguments.until_input_ends:
        if sys.platform != "win32":
            os.nice(BACKGROUND_NICENESS)
        threading.Thread(target=lambda: (sys.stdin.buffer.read(), stopping.set()), daemon=True).start()
    with open_workbench() as wb:
        worker = wb.start_worker(make_runners(wb), concurrency=arguments.concurrency)
        out.message(f"Worker {worker.name} is running; press Ctrl-C to stop it and return running jobs to the queue.")
        while worker.is_alive and not stopping.wait(0.2):
            continue
        if not worker.is_alive:
            raise StorageError("The worker lost its connection to the queue; see the log above, then start it again.")
        out.message("Stopping; running jobs return to the queue.")
        if not worker.leave(STOP_TIMEOUT_S):
            exit_now()
    if arguments.until_input_ends:
        exit_now()  # the parent waits, and a normal interpreter shutdown takes half a second
    return 0
