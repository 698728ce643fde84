"""``workbench app``, ``serve``, ``mcp`` and ``connect``: serve people and agents."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.cli.output import Output
from workbench.cli.session import ensure_sample, open_workbench
from workbench.errors import Cancelled, InvalidInput, StorageError, list_choices
from workbench.runtime import check_extra, exit_now

if TYPE_CHECKING:
    from workbench.app.connect.connections import FileChange
    from workbench.app.shell.serve import PublicServer
    from workbench.settings import Settings
    from workbench.storage.tool_calls import Caller
    from workbench.types import ShouldStop
    from workbench.workbench import Workbench

# workbench app

DEFAULT_PORT = 8501


def declare_app(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--port", type=int, default=DEFAULT_PORT, metavar="N", help="port to listen on (%(default)s)")
    parser.add_argument("--host", default="127.0.0.1", metavar="H", help="address to listen on (%(default)s)")
    parser.add_argument("--no-sample", action="store_true", help="do not load the sample into an empty corpus")


def run_app(arguments: argparse.Namespace, out: Output, public: PublicServer | None = None) -> int:
    """Serve until Ctrl-C; on first run, load the sample before the first page. ``public`` also serves agents."""
    if not 1 <= arguments.port <= 65535:
        raise InvalidInput(f"Invalid --port {arguments.port}: use a number from 1 to 65535.")
    check_extra("app")
    from workbench.app.shell.serve import serve

    def first_run(wb: Workbench, should_stop: ShouldStop) -> None:
        ensure_sample(wb, out, should_stop)

    prepare = None if arguments.no_sample else first_run
    # does not wait for the server's threads
    exit_now(serve(arguments.port, host=arguments.host, prepare=prepare, public=public))


# workbench serve


def declare_serve(parser: argparse.ArgumentParser) -> None:
    from mcp_app.__main__ import TOOLSETS_HELP

    declare_app(parser)
    parser.add_argument(
        "--base-path", default="", metavar="PATH", help="path prefix behind a reverse proxy, such as /workbench"
    )
    parser.add_argument("--toolsets", default="", metavar="A,B", help=TOOLSETS_HELP)
    parser.add_argument("--read-only", action="store_true", help="offer agents only read-only tools")


def run_serve(arguments: argparse.Namespace, out: Output) -> int:
    """Serve until Ctrl-C; other machines need a token."""
    check_extra("app")
    from workbench.app.shell.serve import PublicServer

    names = tuple(name.strip() for name in arguments.toolsets.split(",") if name.strip())
    base_path = f"/{arguments.base_path.strip('/')}" if arguments.base_path.strip("/") else ""
    return run_app(arguments, out, PublicServer(base_path, names, arguments.read_only))


# workbench mcp


def declare_mcp(parser: argparse.ArgumentParser) -> None:
    """Add the server's options."""
    from mcp_app.__main__ import add_arguments as add_server_arguments

    add_server_arguments(parser)


def run_mcp(arguments: argparse.Namespace, out: Output) -> int:
    """Serve until the client disconnects; stdout is reserved for the protocol."""
    from mcp_app.__main__ import run as serve

    serve(arguments)
    return 0


# workbench connect


def declare_connect(parser: argparse.ArgumentParser) -> None:
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


def run_connect(arguments: argparse.Namespace, out: Output) -> int:
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
        _confirm_change(arguments, out, change)
    apply_change(change, settings.home)
    if arguments.undo:
        state = _describe_undone(change)
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
    return plan_connection(arguments.client, connection, arguments.file)


def _confirm_change(arguments: argparse.Namespace, out: Output, change: FileChange) -> None:
    out.message(change.difference)
    if arguments.yes:
        return
    if out.as_json or not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise InvalidInput(f"Nothing was written to {change.path}. Use --yes to write this change.")
    print("Write this? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise Cancelled("Nothing was written.")


def _describe_undone(change: FileChange) -> str:
    """Describe what was undone."""
    from workbench.app.connect.clients import SERVER_NAME

    sentences = {
        "nothing": f"Nothing to remove from {change.path}.",
        "foreign": f"'{SERVER_NAME}' in {change.path} was not added by 'workbench connect' and was left unchanged.",
        "restored": f"Restored {change.path}." if change.after is not None else f"Deleted {change.path}.",
        "removed": f"Removed '{SERVER_NAME}' from {change.path}."
        + (f" The file before 'workbench connect' is {change.backup}." if change.backup else ""),
    }
    return sentences[change.outcome]


def _load_callers(out: Output) -> dict[str, Caller]:
    try:
        with open_workbench() as wb:
            return wb.tool_calls.callers()
    except StorageError as error:  # the file can be written without it
        out.message(f"{error} Cannot show which clients have called.")
        return {}
