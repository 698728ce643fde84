"""``workbench serve``: the app, MCP, the HTTP API and health checks on one port."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from workbench.cli import app
from workbench.runtime import check_extra

if TYPE_CHECKING:
    from workbench.cli.output import Output


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    from mcp_app.__main__ import TOOLSETS_HELP

    app.add_arguments(parser)
    parser.add_argument(
        "--base-path", default="", metavar="PATH", help="path prefix behind a reverse proxy, such as /workbench"
    )
    parser.add_argument("--toolsets", default="", metavar="A,B", help=TOOLSETS_HELP)
    parser.add_argument("--read-only", action="store_true", help="offer agents only read-only tools")


def run(arguments: argparse.Namespace, out: Output) -> int:
    """Serve until Ctrl-C; other machines need a token."""
    check_extra("app")
    from workbench.app.shell.serve import PublicServer

    names = tuple(name.strip() for name in arguments.toolsets.split(",") if name.strip())
    base_path = f"/{arguments.base_path.strip('/')}" if arguments.base_path.strip("/") else ""
    return app.run(arguments, out, PublicServer(base_path, names, arguments.read_only))
