"""``workbench jobs``: watch, cancel and resume long-running work."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from workbench.cli.crawl import ACCEPT_REMOVALS_HELP, REFRESH_HELP
from workbench.cli.options import Subcommands, run_subcommand
from workbench.cli.output import Output, print_fields, print_table
from workbench.cli.session import open_workbench
from workbench.types import progress_text, time_left_text

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from rich.console import Console

    from workbench.storage.crawls import CrawlPage
    from workbench.storage.jobs import Job
    from workbench.workbench import Workbench

run = run_subcommand
DEFAULT_LOG_LINES = 20
FAILED_STATUSES = ("failed", "cancelled")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the subcommands."""
    verbs = Subcommands(parser)
    listing = verbs.add("list", "List jobs, newest first.", _run_list)
    listing.add_argument("--kind", metavar="K", help="only jobs of this kind, such as crawl")
    listing.add_argument("--status", metavar="S", help="only jobs with this status, such as running")
    listing.add_argument("--limit", type=int, default=50, metavar="N", help="maximum number (%(default)s)")
    show = verbs.add("show", "Show a job with its log and failures.", _run_show)
    show.add_argument("id", metavar="ID")
    show.add_argument("--log", type=int, default=DEFAULT_LOG_LINES, metavar="N", help="lines of its log (%(default)s)")
    for name, purpose, act in (
        ("cancel", "Stop a job; finished work is kept.", _run_cancel),
        ("resume", "Resume a cancelled or failed job.", _run_resume),
        ("retry-failed", "Fetch the failed pages of a crawl again.", _run_retry_failed),
        ("accept-removals", "Accept the removals that a crawl held back.", _run_accept_removals),
        ("recrawl", "Crawl the same site again, as a new job.", _run_recrawl),
    ):
        verb = verbs.add(name, purpose, act)
        verb.add_argument("id", metavar="ID")
        if act is not _run_cancel:
            verb.add_argument("--wait", action="store_true", help="run it in this process until it ends")
        if act is _run_recrawl:
            verb.add_argument("--refresh", action="store_true", help=REFRESH_HELP)
            verb.add_argument("--accept-removals", action="store_true", help=ACCEPT_REMOVALS_HELP)


def _run_list(arguments: argparse.Namespace, out: Output) -> int:
    with open_workbench() as wb:
        jobs = wb.jobs.list(kind=arguments.kind, status=arguments.status, limit=arguments.limit)
    rows = [
        (
            job.id,
            job.kind,
            job.state,
            progress_text(job.share, job.done, job.total),
            job.title,
            _format_time(job.created_at),
        )
        for job in jobs
    ]
    value = {"jobs": [job.to_dict() for job in jobs], "total": len(jobs)}

    def human(console: Console) -> None:
        print_table(console, ("Id", "Kind", "Status", "Progress", "Title", "Created"), rows, "No jobs.")
        for job in jobs:
            if job.stalled:
                console.print(f"{job.id}: {job.stalled}")

    out.show(value, human)
    return 0


def _run_show(arguments: argparse.Namespace, out: Output) -> int:
    with open_workbench() as wb:
        return _print_job(wb, wb.jobs.get(arguments.id), out, arguments.log)


def _run_cancel(arguments: argparse.Namespace, out: Output) -> int:
    with open_workbench() as wb:
        return _print_job(wb, wb.jobs.cancel(arguments.id), out)


def _run_resume(arguments: argparse.Namespace, out: Output) -> int:
    with open_workbench() as wb:
        wb.jobs.resume(arguments.id)
        return _follow(wb, arguments.id, arguments.wait, out)


def _run_retry_failed(arguments: argparse.Namespace, out: Output) -> int:
    with open_workbench() as wb:
        wb.crawls.retry_failed(arguments.id)
        return _follow(wb, arguments.id, arguments.wait, out)


def _run_accept_removals(arguments: argparse.Namespace, out: Output) -> int:
    with open_workbench() as wb:
        wb.crawls.accept_removals(arguments.id)
        return _follow(wb, arguments.id, arguments.wait, out)


def _run_recrawl(arguments: argparse.Namespace, out: Output) -> int:
    with open_workbench() as wb:
        changes = {"refresh": arguments.refresh, "accept_removals": arguments.accept_removals}
        crawl = wb.crawls.recrawl(arguments.id, **changes)
        return _follow(wb, crawl.id, arguments.wait, out)


def _follow(wb: Workbench, job_id: str, wait: bool, out: Output) -> int:
    if not wait:
        return _print_job(wb, wb.jobs.get(job_id), out)
    from evals.background import make_runners

    wb.work(make_runners(wb))
    with out.progress("Job") as show:
        job = wb.jobs.wait(job_id, on_progress=show)
    _print_job(wb, job, out)
    return 1 if job.status in FAILED_STATUSES else 0


def _print_job(wb: Workbench, job: Job, out: Output, lines: int = DEFAULT_LOG_LINES) -> int:
    log = wb.jobs.log(job.id, limit=lines) if lines else []
    parts = wb.jobs.parts(job.id).to_json()
    value: dict[str, Any] = job.to_dict() | parts | {"log": log}
    failures: list[dict[str, Any]] = []
    held: list[CrawlPage] = []
    not_fetched: Mapping[str, int] = {}
    if job.kind == "crawl":
        failures = wb.crawls.failures(job.id)
        held = wb.crawls.pages(job.id, outcome="held")
        crawl = wb.crawls.get(job.id)
        not_fetched = crawl.not_fetched
        value |= {"crawl": crawl, "failures": failures}
        value |= {"held": [{"url": page.url, "reason": page.reason} for page in held]}

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
        print_fields(console, fields)
        if failures:
            rows = [(failure["url"], failure["reason"]) for failure in failures]
            print_table(console, ("Failed", "Reason"), rows, "")
        if held:
            print_table(console, ("Removal held", "Reason"), [(page.url, page.reason) for page in held], "")
            console.print(f"Remove them with 'workbench jobs accept-removals {job.id}'.")
        if not_fetched:
            print_table(console, ("Reason not fetched", "Addresses"), list(not_fetched.items()), "")
        if log:
            print_table(console, ("Log", ""), [(_format_time(line.at), line.message) for line in log], "")

    out.show(value, human)
    return 0


def _format_time(moment: datetime | None) -> str:
    return moment.astimezone().strftime("%Y-%m-%d %H:%M:%S") if moment else ""
