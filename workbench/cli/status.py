"""``workbench status``: counts, indexes, sizes, versions and current jobs; ``--watch`` refreshes them."""

from __future__ import annotations

import argparse
import time
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from workbench.cli.output import Out, print_fields, print_table
from workbench.cli.session import opened
from workbench.errors import InvalidInput, StorageError
from workbench.formatting import size_text
from workbench.types import far_text, span_text

if TYPE_CHECKING:
    from rich.console import Console

    from workbench.models.bert.session import PrecisionChoice
    from workbench.services.health import Status
    from workbench.storage.jobs import Workload
    from workbench.storage.replica import ReplicaState
    from workbench.workbench import Workbench


@dataclass(frozen=True, slots=True)
class Seen:
    """The state shown by one refresh."""

    replica: ReplicaState | None
    work: Workload
    passages: PrecisionChoice | None


PAUSE = 2.0  # seconds between refreshes
SHORTEST_PAUSE = 0.5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the refresh interval."""
    parser.add_argument(
        "--watch",
        nargs="?",
        type=float,
        const=PAUSE,
        metavar="SECONDS",
        help=f"refresh every SECONDS ({PAUSE:g}) until Ctrl-C; with --json, one document per refresh",
    )


def run(arguments: argparse.Namespace, out: Out) -> int:
    """Print counts, indexes, sizes and versions, once or until Ctrl-C."""
    if arguments.watch is not None and not arguments.watch >= SHORTEST_PAUSE:
        raise InvalidInput(f"Invalid --watch {arguments.watch:g}: use at least {SHORTEST_PAUSE:g} seconds.")
    with opened() as wb:
        if arguments.watch is None:
            _show(wb, out)
        else:
            with suppress(KeyboardInterrupt):
                _watch(wb, arguments.watch, out)
    return 0


def _watch(wb: Workbench, pause: float, out: Out) -> None:
    """Refresh the state until Ctrl-C, full-screen on a terminal, and leave the last one visible."""
    from rich.live import Live
    from rich.text import Text

    def look() -> Text:
        with console.capture() as captured:
            try:
                seen = _seen(wb)
                _print_watched(console, wb.health.status(seen.replica, seen.work), seen)
            except StorageError as error:  # it may recover
                console.print(str(error))
        return Text.from_ansi(captured.get())

    console = out.console()
    while out.as_json or not console.is_terminal:
        _show(wb, out)
        time.sleep(pause)
    shown = look()
    with suppress(KeyboardInterrupt), Live(shown, console=console, auto_refresh=False, screen=True) as live:
        while True:
            time.sleep(pause)
            shown = look()
            live.update(shown, refresh=True)
    console.print(shown)


def _seen(wb: Workbench) -> Seen:
    health = wb.health
    return Seen(health.replica(), health.work(), health.passages())


def _show(wb: Workbench, out: Out) -> None:
    """Show the state once."""
    seen = _seen(wb)
    status = wb.health.status(seen.replica, seen.work)
    out.show(status, lambda console: _print(console, status, seen))


def _print_watched(console: Console, status: Status, seen: Seen) -> None:
    """Print the changing parts, jobs first, because a screen may be too short for the rest."""
    _print_work(console, seen.work)
    documents = f"{status['corpus'].get('documents', 0):,}"
    print_fields(console, {**_replica(seen), "on disk": _disk(status), "documents": documents})
    _print_indexes(console, status)
    console.print(f"Updated at {datetime.now():%H:%M:%S}; press Ctrl-C to stop.")


def _replica(seen: Seen) -> dict[str, str]:
    return {"replica": seen.replica.sentence} if seen.replica else {}


def _disk(status: Status) -> str:
    return f"{size_text(status['database']['bytes'])}; {size_text(status['disk_free_bytes'])} free"


def _print(console: Console, status: Status, seen: Seen) -> None:
    database = status["database"]
    kind = "embedded" if database["embedded"] else "by URL"
    print_fields(
        console,
        {
            "version": status["version"],
            "home": status["home"],
            "database": f"{database['postgres']} with pgvector {database['pgvector']}, {kind}",
            **_replica(seen),
            "on disk": _disk(status),
            "model": ", ".join((status["model"]["name"], *([seen.passages.sentence] if seen.passages else []))),
            **status["corpus"],
            "python": status["python"],
            **status["packages"],
        },
    )
    _print_indexes(console, status)
    _print_work(console, seen.work)


def _print_indexes(console: Console, status: Status) -> None:
    columns = ("Index", "Chunker", "Model", "Documents", "Passages", "Vector search", "On disk")
    rows = [
        (
            f"{index['name']} (default)" if index["is_default"] else index["name"],
            index["chunker"],
            index["embedding_model"],
            index["documents_count"],
            index["passages_count"],
            index["vector_search"],
            size_text(index["bytes"]),
        )
        for index in status["indexes"]
    ]
    print_table(console, columns, rows, "No indexes.")


def _print_work(console: Console, work: Workload) -> None:
    console.print(work.sentence)
    if work.jobs:
        columns = ("Job", "Status", "Done", "Parts", "Workers", "Time left")
        rows = [
            (
                f"{job.title}\n{job.id}",
                "stalled" if job.stalled else job.status,
                far_text(job.share, job.done, job.total),
                f"{job.parts_done:,} of {job.parts:,}" if job.parts else "",
                job.workers,
                span_text(job.seconds_left),
            )
            for job in work.jobs
        ]
        print_table(console, columns, rows, "", yielding=0)
        for job in work.stalled:
            console.print(f"{job.title} ({job.id}): {job.stalled}")
