"""``workbench crawl``: bring a website in, or see what that would do."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from workbench.cli.opening import opened, stoppable
from workbench.cli.output import Out, print_fields, print_table, size_text

if TYPE_CHECKING:
    from rich.console import Console

    from workbench.workbench import Workbench

SHOWN = 20  # rows of a list that is only a look
FAILED = ("failed", "cancelled")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("url", metavar="URL", help="the page to start from")
    parser.add_argument("--recursive", action="store_true", help="follow links, the site's maps and its llms.txt")
    parser.add_argument("--max-pages", type=int, default=100, metavar="N", help="pages at most (%(default)s)")
    parser.add_argument("--max-depth", type=int, metavar="N", help="links away from the start page at most")
    parser.add_argument("--within", choices=("path", "host", "domain"), default="path", help="keep to (%(default)s)")
    parser.add_argument("--include", action="append", default=[], metavar="P", help="only addresses with this in them")
    parser.add_argument("--exclude", action="append", default=[], metavar="P", help="no addresses with this in them")
    parser.add_argument("--source", metavar="S", help="the source (title or id) to crawl into")
    parser.add_argument("--project", metavar="ID", help="the project of a new source")
    parser.add_argument("--folder", metavar="NAME", help="the folder of that project")
    parser.add_argument("--tag", action="append", default=[], metavar="T", help="tag the source; may be repeated")
    parser.add_argument("--browser", action="store_true", help="render every page in Chromium, not only empty ones")
    parser.add_argument("--no-browser", action="store_true", help="never start a browser")
    parser.add_argument("--keep-gone", action="store_true", help="mark documents whose pages are gone, not delete them")
    parser.add_argument("--rate", type=float, metavar="N", help="requests a second and host, in place of a polite rate")
    parser.add_argument("--dry-run", action="store_true", help="look, tell, and store nothing")
    parser.add_argument("--wait", action="store_true", help="work on it here and show how it goes until it has ended")


def run(arguments: argparse.Namespace, out: Out) -> int:
    """Start a crawl, or look; 1 when a crawl that was waited for brought nothing in."""
    options = _options(arguments)
    with opened() as workbench:
        if arguments.dry_run:
            seen = workbench.crawls.dry_run(arguments.url, **options)
            out.show(seen, lambda console: _print_dry_run(console, seen))
            return 0
        place = {"source": arguments.source, "project": arguments.project, "folder": arguments.folder}
        crawl = workbench.crawls.start(arguments.url, **place, tags=arguments.tag, **options).to_dict()
        if arguments.wait:
            return wait_for(workbench, crawl["id"], out)
        out.show(crawl, lambda console: print_crawl(console, crawl))
        out.message(
            f"A worker crawls it (the app, the MCP server, or 'workbench worker'); 'workbench jobs show {crawl['id']}'."
        )
    return 0


def wait_for(workbench: Workbench, job_id: str, out: Out) -> int:
    """Work here until a crawl has ended, show how it goes, then the outcome; Ctrl-C cancels it."""
    workbench.work()
    with out.progress("Crawl") as show, stoppable(out) as should_stop:
        asked = False
        while not (job := workbench.jobs.wait(job_id, timeout=0.3, on_progress=show)).is_finished:
            if should_stop() and not asked:
                workbench.jobs.cancel(job_id)
                asked = True
    crawl = workbench.crawls.get(job_id).to_dict()
    out.show(crawl, lambda console: print_crawl(console, crawl))
    if crawl["pages_failed"]:
        out.message(f"Every failed address with its reason: 'workbench jobs show {job_id}'.")
    return 1 if job.status in FAILED else 0


def print_crawl(console: Console, crawl: Mapping[str, Any]) -> None:
    """Print a crawl with its counts."""
    shown = ("id", "url", "source_id", "status", "pages_crawled", "pages_failed", "pages_pending")
    fields = {name: crawl[name] for name in shown} | {
        "documents_created": crawl["documents_created"],
        "passages": crawl["total_chunks"],
        "text": size_text(crawl["bytes"]),
        "outcomes": {name: count for name, count in crawl["outcomes"].items() if count},
        "message": crawl["message"],
    }
    print_fields(console, fields)


def _options(arguments: argparse.Namespace) -> dict[str, Any]:
    options: dict[str, Any] = {
        "recursive": arguments.recursive,
        "max_pages": arguments.max_pages,
        "within": arguments.within,
        "include": arguments.include,
        "exclude": arguments.exclude,
        "browser": "always" if arguments.browser else "never" if arguments.no_browser else "auto",
        "gone": "keep" if arguments.keep_gone else "remove",
    }
    given = {"max_depth": arguments.max_depth, "rate": arguments.rate}
    return options | {name: value for name, value in given.items() if value is not None}


def _print_dry_run(console: Console, seen: Mapping[str, Any]) -> None:
    estimate = seen["estimate"]
    least = "at least " if estimate["at_least"] else ""
    console.print(
        f"Would fetch {least}{estimate['pages']:,} pages: about {estimate['seconds']:,.0f} s of fetching, "
        f"{size_text(estimate['text_bytes'])} of text, {estimate['passages']:,} passages. Nothing was stored."
    )
    rows = [(entry["url"], entry["via"], entry["depth"]) for entry in seen["would_fetch"][:SHOWN]]
    print_table(console, ("Would fetch", "Found by", "Depth"), rows, "Nothing.")
    refused = [(entry["url"], entry["reason"]) for entry in (seen["would_not_fetch"] + seen["failed"])[:SHOWN]]
    if refused:
        print_table(console, ("Would not fetch", "Why"), refused, "")
    for sample in seen["samples"]:
        console.print(f"\n--- {sample['title']} · {sample['url']} · {sample['characters']:,} characters")
        console.print(sample["text"][:600])
