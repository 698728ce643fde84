"""``workbench connect``: configure a desktop client to start this workbench, or list clients that have called it."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.cli.output import Out
from workbench.cli.session import opened
from workbench.errors import Cancelled, InvalidInput, StorageError, choices

if TYPE_CHECKING:
    from workbench.app.connect.connections import FileChange
    from workbench.settings import Settings
    from workbench.storage.tool_calls import Caller


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument(
        "client", nargs="?", metavar="CLIENT", help="claude-desktop, claude-code, cursor, vscode or zed"
    )
    parser.add_argument(
        "--undo",
        action="store_true",
        help="remove this workbench from the client's file, and restore the entry that it replaced",
    )
    parser.add_argument(
        "--file", type=Path, metavar="FILE", help="configuration file of the client, such as that of a project"
    )
    from mcp_app.__main__ import TOOLSETS_HELP

    parser.add_argument("--toolsets", default="", metavar="A,B", help=TOOLSETS_HELP)
    parser.add_argument("--read-only", action="store_true", help="offer only read-only tools")
    parser.add_argument("--yes", action="store_true", help="write without confirmation")
    parser.add_argument(
        "--with-database", action="store_true", help="write the database URL into the file, password included"
    )


def run(arguments: argparse.Namespace, out: Out) -> int:
    """Show the change, write it if confirmed, and report calls of the client."""
    from workbench.app.connect.connections import CLIENT_FILES, apply, seen, undoing
    from workbench.settings import load_settings

    settings = load_settings()
    if arguments.client is None:
        callers = _callers(out)
        states = {client: seen(client, settings.home, callers) for client in CLIENT_FILES}
        lines = "\n".join(f"{name:<15} {state}" for name, state in states.items())
        out.show(states, lambda console: console.print(lines, soft_wrap=True, markup=False))
        return 0
    if arguments.client not in CLIENT_FILES:
        raise InvalidInput(f"Unknown client {arguments.client!r}; use one of {choices(CLIENT_FILES)}.")
    if arguments.undo:
        change = undoing(arguments.client, settings.home, arguments.file)
    else:
        change = _connecting(arguments, settings)
    if not change.is_none:
        _confirm(arguments, out, change)
    apply(change, settings.home)
    state = _undone(change, settings) if arguments.undo else _written(change)
    if not arguments.undo:
        state += " " + seen(arguments.client, settings.home, _callers(out))
    value = {"client": change.client, "file": str(change.path), "changed": not change.is_none, "state": state}
    out.show(value, lambda console: console.print(state, soft_wrap=True, markup=False))
    return 0


def _connecting(arguments: argparse.Namespace, settings: Settings) -> FileChange:
    from workbench.app.connect.clients import connection_of, with_database
    from workbench.app.connect.connections import planned

    toolsets = tuple(name.strip() for name in arguments.toolsets.split(",") if name.strip())
    connection = connection_of(settings, "stdio", toolsets, arguments.read_only, client=arguments.client)
    if settings.database_url is not None:
        connection = with_database(connection, settings, password=arguments.with_database)
    return planned(arguments.client, connection, settings.home, arguments.file)


def _confirm(arguments: argparse.Namespace, out: Out, change: FileChange) -> None:
    out.message(change.difference)
    if arguments.yes:
        return
    if out.as_json or not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise InvalidInput(f"Nothing was written to {change.path}; use --yes to write this change.")
    print("Write this? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise Cancelled("Nothing was written.")


def _written(change: FileChange) -> str:
    return f"{change.path} is up to date." if change.is_none else f"Written to {change.path}."


def _undone(change: FileChange, settings: Settings) -> str:
    """Describe what was undone, and which other files still configure this workbench."""
    from workbench.app.connect.clients import NAME
    from workbench.app.connect.connections import notes_of

    if change.is_none and change.entry is None:
        done = f"This workbench is not in {change.path}."
    elif change.is_none:
        done = f"The entry '{NAME}' in {change.path} was not written by 'workbench connect'; it was not changed."
    elif change.entry is not None:
        done = f"Restored the previous entry '{NAME}' in {change.path}."
    else:
        done = f"Removed from {change.path}."
    others = [note.file for note in notes_of(settings.home).get(change.client, [])]
    return done + (f" It is also in {', '.join(others)}; use --undo again to remove it there." if others else "")


def _callers(out: Out) -> dict[str, Caller]:
    try:
        with opened() as wb:
            return wb.tool_calls.callers()
    except StorageError as error:  # the file can still be written
        out.message(f"{error} Calls of clients are unknown.")
        return {}
