"""``workbench mcp``: serve the tools to agents, over stdio or HTTP."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from workbench.cli.output import Output


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the server's options."""
    from mcp_app.__main__ import add_arguments as add_server_arguments

    add_server_arguments(parser)


def run(arguments: argparse.Namespace, out: Output) -> int:
    """Serve until the client disconnects; stdout is reserved for the protocol."""
    del out
    from mcp_app.__main__ import run as serve

    serve(arguments)
    return 0
