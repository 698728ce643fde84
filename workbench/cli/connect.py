"""``workbench connect``: connect a desktop client, or list which clients have called."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.cli.output import Output
from workbench.cli.session import open_workbench
from workbench.errors import Cancelled, InvalidInput, StorageError, list_choices

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
        help="restore the client's file from its backup, or remove the entry if the file has changed since",
    )
    parser.add_argument("--file", type=Path, metavar="FILE", help="the client's file, such as a project's")
    from mcp_app.__main__ import TOOLSETS_HELP

    parser.add_argument("--toolsets", default="", metavar="A,B", help=TOOLSETS_HELP)
    parser.add_argument("--read-only", action="store_true", help="offer only tools that change nothing")
    parser.add_argument("--yes", action="store_true", help="write without asking")
    parser.add_argument(
        "--with-database", action="store_true", help="write the database URL, including its password, into the file"
    )


def run(arguments: argparse.Namespace, out: Output) -> int:
    """Show the change, write it if confirmed, and report whether the client has called."""
    from workbench.app.connect.connections import CLIENT_FILES, apply_change, describe_state, plan_undo
    from workbench.settings import load_settings

    settings = load_settings()
    if arguments.client is None:
        callers = _load_callers(out)
        states = {client: describe_state(client, settings.home, callers) for client in CLIENT_FILES}
        lines = "\n".join(f"{name:<15} {state}" for name, state in states.items())
        return out.sentence(states, lines)
    if arguments.client not in CLIENT_FILES:
        raise InvalidInput(f"Unknown client {arguments.client!r}; use one of {list_choices(CLIENT_FILES)}.")
    if arguments.undo:
        change = plan_undo(arguments.client, settings.home, arguments.file)
    else:
        change = _plan_connection(arguments, settings)
    if not change.is_none:
        _confirm(arguments, out, change)
    apply_change(change, settings.home)
    if arguments.undo:
        state = _describe_undone(change, settings)
    else:
        state = f"{change.path} is up to date. " if change.is_none else f"Written to {change.path}. "
        state += describe_state(arguments.client, settings.home, _load_callers(out))
    value = {"client": change.client, "file": str(change.path), "changed": not change.is_none, "state": state}
    return out.sentence(value, state)


def _plan_connection(arguments: argparse.Namespace, settings: Settings) -> FileChange:
    from workbench.app.connect.clients import add_database_url, make_connection
    from workbench.app.connect.connections import plan_connection

    toolsets = tuple(name.strip() for name in arguments.toolsets.split(",") if name.strip())
    connection = make_connection(settings, "stdio", toolsets, arguments.read_only, client=arguments.client)
    if settings.database_url is not None:
        connection = add_database_url(connection, settings, password=arguments.with_database)
    return plan_connection(arguments.client, connection, settings.home, arguments.file)


def _confirm(arguments: argparse.Namespace, out: Output, change: FileChange) -> None:
    out.message(change.difference)
    if arguments.yes:
        return
    if out.as_json or not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise InvalidInput(f"Nothing was written to {change.path}. Use --yes to write this change.")
    print("Write this? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise Cancelled("Nothing was written.")


def _describe_undone(change: FileChange, settings: Settings) -> str:
    """Describe what was undone, and which other files of the client still contain this workbench."""
    from workbench.app.connect.clients import SERVER_NAME
    from workbench.app.connect.connections import read_notes

    sentences = {
        "nothing": f"Nothing to remove from {change.path}.",
        "foreign": f"'{SERVER_NAME}' in {change.path} was not added by 'workbench connect' and was left unchanged.",
        "restored": f"Restored {change.path}." if change.after is not None else f"Deleted {change.path}.",
        "removed": f"Removed '{SERVER_NAME}' from {change.path}."
        + (f" The file before 'workbench connect' is {change.backup}." if change.backup else ""),
    }
    others = [note.file for note in read_notes(settings.home).get(change.client, [])]
    more = f" Still connected in {', '.join(others)}; run --undo again to disconnect it." if others else ""
    return sentences[change.outcome] + more


def _load_callers(out: Output) -> dict[str, Caller]:
    try:
        with open_workbench() as wb:
            return wb.tool_calls.callers()
    except StorageError as error:  # the file can be written without it
        out.message(f"{error} Cannot show which clients have called.")
        return {}
