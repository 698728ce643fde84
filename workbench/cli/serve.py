"""``workbench serve``: the app, MCP, the HTTP API and health checks on one port."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from workbench.cli.session import ensure_sample
from workbench.errors import InvalidInput
from workbench.runtime import check_extra, exit_now

if TYPE_CHECKING:
    from workbench.cli.output import Output
    from workbench.types import ShouldStop
    from workbench.workbench import Workbench

DEFAULT_PORT = 8501


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    from mcp_app.__main__ import TOOLSETS_HELP

    parser.add_argument("--port", type=int, default=DEFAULT_PORT, metavar="N", help="port to listen on (%(default)s)")
    parser.add_argument("--host", default="127.0.0.1", metavar="H", help="address to listen on (%(default)s)")
    parser.add_argument(
        "--base-path", default="", metavar="PATH", help="path prefix behind a reverse proxy, such as /workbench"
    )
    parser.add_argument("--toolsets", default="", metavar="A,B", help=TOOLSETS_HELP)
    parser.add_argument("--read-only", action="store_true", help="offer agents only read-only tools")
    parser.add_argument("--no-sample", action="store_true", help="do not load the sample into an empty corpus")


def run(arguments: argparse.Namespace, out: Output) -> int:
    """Serve until Ctrl-C; other machines need a token."""
    if not 1 <= arguments.port <= 65535:
        raise InvalidInput(f"Invalid --port {arguments.port}: use a number from 1 to 65535.")
    check_extra("app")
    from workbench.app.shell.serve import PublicServer, serve

    names = tuple(name.strip() for name in arguments.toolsets.split(",") if name.strip())
    base_path = f"/{arguments.base_path.strip('/')}" if arguments.base_path.strip("/") else ""
    place = PublicServer(base_path, names, arguments.read_only)

    def first_run(wb: Workbench, should_stop: ShouldStop) -> None:
        ensure_sample(wb, out, should_stop)

    prepare = None if arguments.no_sample else first_run
    exit_now(serve(arguments.port, host=arguments.host, prepare=prepare, public=place))
