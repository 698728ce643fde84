"""``workbench status``, ``doctor`` and ``settings``: counts, current jobs, checks, and settings with their origins."""

from __future__ import annotations

import argparse
import sys
import time
from contextlib import suppress
from dataclasses import asdict
from datetime import datetime
from getpass import getpass
from typing import TYPE_CHECKING

from workbench.cli.options import Subcommands
from workbench.cli.output import Output, format_own, print_fields, print_table
from workbench.cli.session import open_workbench
from workbench.errors import InvalidInput, StorageError, WorkbenchError
from workbench.formatting import size_text
from workbench.types import duration_text, progress_text

if TYPE_CHECKING:
    from rich.console import Console

    from workbench.services.health import Check, Status
    from workbench.storage.jobs import Workload
    from workbench.workbench import Workbench

# workbench status


REFRESH_INTERVAL_S = 2.0  # seconds between refreshes
MIN_REFRESH_INTERVAL_S = 0.5


def declare_status(parser: argparse.ArgumentParser) -> None:
    """Declare the refresh interval."""
    parser.add_argument(
        "--watch",
        nargs="?",
        type=float,
        const=REFRESH_INTERVAL_S,
        metavar="SECONDS",
        help=f"refresh every SECONDS ({REFRESH_INTERVAL_S:g}) until Ctrl-C; with --json, one document per refresh",
    )


def run_status(arguments: argparse.Namespace, out: Output) -> int:
    """Print counts, indexes, sizes and versions, once or until Ctrl-C."""
    if arguments.watch is not None and not arguments.watch >= MIN_REFRESH_INTERVAL_S:
        raise InvalidInput(f"Invalid --watch {arguments.watch:g}: use at least {MIN_REFRESH_INTERVAL_S:g} seconds.")
    with open_workbench() as wb:
        if arguments.watch is None:
            _show_status(wb, out)
        else:
            with suppress(KeyboardInterrupt):
                _watch(wb, arguments.watch, out)
    return 0


def _watch(wb: Workbench, pause: float, out: Output) -> None:
    """Refresh the state until Ctrl-C, full-screen on a terminal, and leave the last one visible."""
    from rich.live import Live
    from rich.text import Text

    def look() -> Text:
        with console.capture() as captured:
            try:
                console.print(f"Updated at {datetime.now():%H:%M:%S}; press Ctrl-C to stop.")
                _print_status(console, wb)
            except StorageError as error:  # it may recover
                console.print(str(error))
        return Text.from_ansi(captured.get())

    console = out.console()
    while out.as_json or not console.is_terminal:
        _show_status(wb, out)
        time.sleep(pause)
    shown = look()
    with suppress(KeyboardInterrupt), Live(shown, console=console, auto_refresh=False, screen=True) as live:
        while True:
            time.sleep(pause)
            shown = look()
            live.update(shown, refresh=True)
    console.print(shown)


def _show_status(wb: Workbench, out: Output) -> None:
    """Show the state once."""
    out.show(wb.health.status() if out.as_json else None, lambda console: _print_status(console, wb))


def _print_status(console: Console, wb: Workbench) -> None:
    """Print the state, the changing parts first, because a screen may be too short for the rest."""
    replica, work, passages = wb.health.replica(), wb.health.work(), wb.health.passages()
    status = wb.health.status(replica, work)
    database = status["database"]
    kind = "embedded" if database["embedded"] else "by URL"
    _print_work(console, work)
    print_fields(
        console,
        {
            **({"replica": replica.sentence} if replica else {}),
            "on disk": f"{size_text(database['bytes'])}; {size_text(status['disk_free_bytes'])} free",
            **status["corpus"],
            "model": ", ".join((status["model"]["name"], *([passages.sentence] if passages else []))),
            "database": f"{database['postgres']} with pgvector {database['pgvector']}, {kind}",
            "version": status["version"],
            "home": status["home"],
            "python": status["python"],
            **status["packages"],
        },
    )
    _print_indexes(console, status)


def _print_indexes(console: Console, status: Status) -> None:
    columns = ("Index", "Chunker", "Model", "Documents", "Passages", "Vector search", "On disk")
    rows = [
        (
            f"{index['name']} (default)" if index["is_default"] else index["name"],
            index["chunker"],
            index["embedding_model"],
            format_own(index["documents_count"], index["family_count"]),
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
        columns = ("Job", "Status", "Progress", "Parts", "Workers", "Time left")
        rows = [
            (
                f"{job.title}\n{job.id}",
                job.state,
                progress_text(job.share, job.done, job.total),
                f"{job.parts_done:,} of {job.parts:,}" if job.parts else "",
                job.workers,
                duration_text(job.seconds_left),
            )
            for job in work.jobs
        ]
        print_table(console, columns, rows, "", yielding=0)
        for job in work.stalled:
            console.print(f"{job.title} ({job.id}): {job.stalled}")


# workbench doctor


def declare_doctor(parser: argparse.ArgumentParser) -> None:
    """Declare no arguments."""


def run_doctor(arguments: argparse.Namespace, out: Output) -> int:
    """Print one line per check; return 1 if one failed."""
    checks = _run_checks()
    well = all(check.ok for check in checks)

    def human(console: Console) -> None:
        from rich.text import Text

        for check in checks:
            mark = Text("ok    " if check.ok else "FAILED", style="green" if check.ok else "bold red")
            console.print(Text.assemble(mark, f"  {check.name}: {check.detail}"), soft_wrap=True)

    out.show({"ok": well, "checks": checks}, human)
    return 0 if well else 1


def _run_checks() -> list[Check]:
    try:
        with open_workbench() as wb:
            return wb.health.doctor()
    except WorkbenchError as error:  # without a database nothing else can be checked
        from workbench.services.health import Check

        return [Check("database", False, str(error))]


# workbench settings


def declare_settings(parser: argparse.ArgumentParser) -> None:
    from workbench.workbench import TRIED_MODELS

    verbs = Subcommands(parser)
    verbs.add_offline("list", "List settings with their origins; values of secrets are not shown.", _list_settings)
    changed = verbs.add_offline("set", "Write a setting or a provider's API key to .env.", _set_setting, "name")
    changed.add_argument("value", nargs="?", metavar="VALUE", help="its value; without one, it is read from stdin")
    verbs.add_offline("unset", "Remove a setting or an API key from .env.", _unset_setting, "name")
    tried = verbs.add_offline("test", "Use a model of the settings once.", _try_model)
    tried.add_argument("model", choices=TRIED_MODELS, help="the model")


def _list_settings(arguments: argparse.Namespace, out: Output) -> int:
    from workbench.settings import list_settings

    settings = list_settings()
    rows = [(each.variable, each.value, each.origin) for each in settings]
    return out.table({"settings": [asdict(each) for each in settings]}, ("Variable", "Value", "From"), rows)


def _set_setting(arguments: argparse.Namespace, out: Output) -> int:
    from workbench.settings import is_secret

    value = arguments.value
    if value is not None and is_secret(arguments.name):
        raise InvalidInput(f"{arguments.name} is a secret: leave out its value, which is then read from stdin.")
    if value is None:
        value = getpass(f"{arguments.name}: ") if sys.stdin.isatty() else sys.stdin.readline().rstrip("\r\n")
    if not value:
        raise InvalidInput(f"No value for {arguments.name}; remove it with 'workbench settings unset'.")
    return _write(arguments.name, value, out)


def _unset_setting(arguments: argparse.Namespace, out: Output) -> int:
    return _write(arguments.name, "", out)


def _write(name: str, value: str, out: Output) -> int:
    from workbench.settings import write_settings

    file, variable = write_settings({name: value}), name.upper()
    sentence = f"{variable} {'written to' if value else 'removed from'} {file}. Restart running servers and workers."
    return out.sentence({"variable": variable, "file": str(file), "is_set": bool(value)}, sentence)


def _try_model(arguments: argparse.Namespace, out: Output) -> int:
    from workbench.settings import load_settings
    from workbench.workbench import try_model

    result = try_model(load_settings(), arguments.model)
    return out.sentence({"model": arguments.model, "result": result}, result)
