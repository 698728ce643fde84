"""``workbench crawl``: crawl a website into a source, or preview a crawl."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from workbench.cli.options import parse_number
from workbench.cli.output import Output, describe_queued, print_fields, print_table
from workbench.cli.session import cancel_on_sigint, open_workbench
from workbench.crawling.messages import outcome_label
from workbench.errors import InvalidInput
from workbench.formatting import size_text
from workbench.types import JsonObject, JsonValue, as_integer, as_number, as_object, as_text

if TYPE_CHECKING:
    from rich.console import Console

    from workbench.crawling.preview import DryRun
    from workbench.workbench import Workbench

MAX_ROWS_SHOWN = 20  # rows of a preview
FAILED_STATUSES = ("failed", "cancelled")
REFRESH_HELP = "download every page again, even if unchanged since an earlier crawl"
ACCEPT_REMOVALS_HELP = "remove documents of missing pages even if they are more than 20%% of the source"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
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
    parser.add_argument(
        "--include", action="append", default=[], metavar="P", help="only URLs that contain this; may be repeated"
    )
    parser.add_argument(
        "--exclude", action="append", default=[], metavar="P", help="no URLs that contain this; may be repeated"
    )
    parser.add_argument("--source", metavar="S", help="title or id of the source to fill")
    parser.add_argument("--project", metavar="ID", help="project of a new source")
    parser.add_argument("--folder", metavar="NAME", help="folder in that project")
    parser.add_argument("--tag", action="append", default=[], metavar="T", help="tag the source; may be repeated")
    browser = parser.add_mutually_exclusive_group()
    browser.add_argument("--browser", action="store_true", help="render every page in Chromium, not only empty ones")
    browser.add_argument("--no-browser", action="store_true", help="never start a browser")
    parser.add_argument("--keep-gone", action="store_true", help="keep documents of missing pages, marked as removed")
    parser.add_argument("--refresh", action="store_true", help=REFRESH_HELP)
    parser.add_argument("--accept-removals", action="store_true", help=ACCEPT_REMOVALS_HELP)
    parser.add_argument(
        "--rate", type=parse_number, metavar="N", help="requests per second and host, instead of the automatic rate"
    )
    parser.add_argument("--concurrency", type=parse_number, metavar="N", help="concurrent requests, 1 to 32")
    parser.add_argument("--dry-run", action="store_true", help="show what would be fetched without storing anything")
    parser.add_argument("--wait", action="store_true", help="run the crawl in this process and show its progress")


def run(arguments: argparse.Namespace, out: Output) -> int:
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
        crawl = wb.crawls.start(arguments.url, **place, tags=arguments.tag, **options).to_dict()
        if arguments.wait:
            return wait_crawl(wb, as_text(crawl["id"]), out)
        out.show(crawl, lambda console: print_crawl(console, crawl))
        out.message(describe_queued(as_text(crawl["id"])))
    return 0


def wait_crawl(wb: Workbench, job_id: str, out: Output) -> int:
    """Run jobs here until a crawl has ended, show its progress, then its outcome; Ctrl-C cancels it."""
    wb.work()
    with out.progress("Crawl") as show, cancel_on_sigint(out) as should_stop:
        is_cancelled = False
        while not (job := wb.jobs.wait(job_id, timeout=0.3, on_progress=show)).is_finished:
            if should_stop() and not is_cancelled:
                wb.jobs.cancel(job_id)
                is_cancelled = True
    crawl = wb.crawls.get(job_id).to_dict()
    out.show(crawl, lambda console: print_crawl(console, crawl))
    if crawl["pages_failed"]:
        out.message(f"List failed addresses with 'workbench jobs show {job_id}'.")
    if as_object(crawl["outcomes"])["held"]:
        out.message(f"Remove the held documents with 'workbench jobs accept-removals {job_id}'.")
    return 1 if job.status in FAILED_STATUSES else 0


def print_crawl(console: Console, crawl: JsonObject) -> None:
    """Print the fields and counts of a crawl."""
    done, total = as_integer(crawl["pages_done"]), as_integer(crawl["pages_total"])
    outcomes = {name: as_integer(count) for name, count in as_object(crawl["outcomes"]).items()}
    fields = {name: crawl[name] for name in ("id", "url", "source_id", "status")} | {
        "pages done": f"{done:,} of {total:,}",
        outcome_label("fetched"): crawl["pages_waiting"],
        outcome_label("queued"): crawl["pages_pending"],
        **{outcome_label(name): count for name, count in outcomes.items() if count},
        "passages": crawl["total_chunks"],
        "text": size_text(as_integer(crawl["bytes"])),
        "message": crawl["message"],
    }
    print_fields(console, fields)
    if reasons := as_object(crawl["not_fetched"]):
        _print_reasons(console, reasons)


def _print_reasons(console: Console, reasons: Mapping[str, JsonValue]) -> None:
    """Print why addresses are not fetched, with counts; reasons beyond the last row are counted together."""
    rows = list(reasons.items())
    rest = sum(as_integer(count) for _, count in rows[MAX_ROWS_SHOWN:])
    rows = rows[:MAX_ROWS_SHOWN] + ([("other reasons", rest)] if rest else [])
    print_table(console, ("Reason not fetched", "Addresses"), rows, "")


def _read_options(arguments: argparse.Namespace) -> dict[str, Any]:
    options: dict[str, Any] = {
        "recursive": arguments.recursive,
        "max_pages": arguments.max_pages,
        "within": arguments.within,
        "include": arguments.include,
        "exclude": arguments.exclude,
        "browser": "always" if arguments.browser else "never" if arguments.no_browser else "auto",
        "gone": "keep" if arguments.keep_gone else "remove",
        "refresh": arguments.refresh,
        "accept_removals": arguments.accept_removals,
    }
    chosen = {"max_depth": arguments.max_depth, "rate": arguments.rate, "concurrency": arguments.concurrency}
    return options | {name: value for name, value in chosen.items() if value is not None}


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
