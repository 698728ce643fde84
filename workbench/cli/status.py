"""``workbench status``: counts, indexes, sizes and versions, and the work that goes on; ``--watch`` looks again."""

from __future__ import annotations

import argparse
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

from workbench.cli.lifetime import opened
from workbench.cli.output import Out, print_fields, print_table
from workbench.errors import InvalidInput
from workbench.sizes import size_text
from workbench.types import time_left

if TYPE_CHECKING:
    from rich.console import Console

    from workbench.models.bert.trial import PrecisionChoice
    from workbench.services.health import Servers, Status
    from workbench.storage.workload import Workload
    from workbench.workbench import Workbench


@dataclass(frozen=True, slots=True)
class Seen:
    """The state that one look shows."""

    servers: Servers
    work: Workload
    passages: PrecisionChoice | None


PAUSE = 2.0  # seconds between two looks
SHORTEST_PAUSE = 0.5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare how often to look again."""
    parser.add_argument(
        "--watch",
        nargs="?",
        type=float,
        const=PAUSE,
        metavar="SECONDS",
        help=f"look again every so many seconds ({PAUSE:g}) until Ctrl-C; with --json, a document a look",
    )


def run(arguments: argparse.Namespace, out: Out) -> int:
    """Print counts, indexes, sizes and versions, once or until Ctrl-C."""
    if arguments.watch is not None and not arguments.watch >= SHORTEST_PAUSE:
        raise InvalidInput(f"--watch looks every {SHORTEST_PAUSE:g} seconds at most, not every {arguments.watch:g}.")
    with opened() as workbench:
        if arguments.watch is None:
            _show(workbench, out)
        else:
            with suppress(KeyboardInterrupt):
                _watch(workbench, arguments.watch, out)
    return 0


def _watch(workbench: Workbench, pause: float, out: Out) -> NoReturn:
    """Show the state again and again, in one place of the terminal where there is one."""
    from rich.live import Live
    from rich.text import Text

    def look() -> Text:
        with console.capture() as captured:
            _show(workbench, out, console)
        return Text.from_ansi(captured.get())

    console = out.console()
    while out.as_json or not console.is_terminal:
        _show(workbench, out)
        time.sleep(pause)
    with Live(look(), console=console, auto_refresh=False, vertical_overflow="visible") as live:
        while True:
            time.sleep(pause)
            live.update(look(), refresh=True)


def _show(workbench: Workbench, out: Out, console: Console | None = None) -> None:
    """Ask everything once and show it, on a console of its own where there is one."""
    health = workbench.health
    seen = Seen(health.servers(), health.work(), health.passages())
    status = health.status(seen.servers, seen.work)
    if console is None:
        out.show(status, lambda console: _print(console, status, seen))
    else:
        _print(console, status, seen)


def _print(console: Console, status: Status, seen: Seen) -> None:
    servers = seen.servers
    database = status["database"]
    kind = "embedded" if database["embedded"] else "by URL"
    beside = f" here, {size_text(servers.bytes_on_shards)} on shards" if servers.shards else ""
    print_fields(
        console,
        {
            "version": status["version"],
            "home": status["home"],
            "database": f"{database['postgres']} with pgvector {database['pgvector']}, {kind}",
            **({"replica": servers.replica.sentence} if servers.replica else {}),
            **{f"shard {shard.number}": shard.sentence for shard in servers.shards},
            **{f"move {place}": move.sentence for place, move in enumerate(servers.moves, 1)},
            "on disk": f"{size_text(database['bytes'])}{beside}; {size_text(status['disk_free_bytes'])} free",
            "model": ", ".join((status["model"]["name"], *([seen.passages.sentence] if seen.passages else []))),
            **status["corpus"],
            "python": status["python"],
            **status["packages"],
        },
    )
    columns = ("Index", "Chunker", "Model", "Documents", "Passages", "On disk")
    rows = [
        (
            f"{index['name']} (default)" if index["is_default"] else index["name"],
            index["chunker"],
            index["embedding_model"],
            index["documents_count"],
            index["passages_count"],
            size_text(index["bytes"]),
        )
        for index in status["indexes"]
    ]
    print_table(console, columns, rows, "There are no indexes.")
    _print_work(console, seen.work)


def _print_work(console: Console, work: Workload) -> None:
    console.print(work.sentence)
    if work.jobs:
        columns = ("Job", "Kind", "Status", "Done", "Of", "Parts", "Hands", "Left", "What")
        rows = [
            (
                job.id,
                job.kind,
                job.status,
                job.done,
                job.total,
                f"{job.parts_done} of {job.parts}" if job.parts else "",
                job.hands,
                time_left(job.seconds_left),
                job.title,
            )
            for job in work.jobs
        ]
        print_table(console, columns, rows, "")
