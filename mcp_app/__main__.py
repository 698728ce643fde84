"""``python -m mcp_app``: the server without the rest of the command line."""

from __future__ import annotations

import argparse
import sys

from workbench.errors import WorkbenchError
from workbench.runtime import exit_on_closed_input, install_signal_handlers, limit_blas_threads, pause_gc, relax_gc

# written out, so that --help need not import the tools
TOOLSETS_HELP = (
    "toolsets to offer: knowledge, scoped, reading, articles, workspace, archives, all or default (default), evaluation"
)


def main(argv: list[str] | None = None) -> int:
    """Run the server and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m mcp_app", description="Serve the workbench's tools over MCP.")
    add_arguments(parser)
    arguments = parser.parse_args(argv)
    if argv is None:
        relax_gc()
        limit_blas_threads()
        install_signal_handlers()
    try:
        run(arguments)
    except WorkbenchError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the server's options, shared with ``workbench mcp``."""
    parser.add_argument(
        "--transport", default="stdio", metavar="stdio|http", help="how clients connect (default: stdio)"
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on, for http (default: 127.0.0.1)")
    parser.add_argument(
        "--port", type=int, default=8765, help="port to listen on, for http (default: 8765; 0: any free port)"
    )
    parser.add_argument("--toolsets", default="", metavar="A,B", help=TOOLSETS_HELP)
    parser.add_argument("--read-only", action="store_true", help="offer only tools and actions that change nothing")
    parser.add_argument(
        "--client", metavar="NAME", help="client name in the call log (default: the name the client sends)"
    )


def run(arguments: argparse.Namespace) -> None:
    """Import the server and serve with parsed options until the client disconnects.

    Raises:
        InvalidInput: The transport or a toolset does not exist.
        ConfigurationError: A setting is invalid, or HTTP would be open to other machines without a token.
    """
    with exit_on_closed_input(arguments.transport == "stdio"), pause_gc():
        from mcp_app.serving import serve

    serve(
        arguments.transport,
        host=arguments.host,
        port=arguments.port,
        toolsets=[name.strip() for name in arguments.toolsets.split(",") if name.strip()],
        read_only=arguments.read_only,
        client=arguments.client,
    )


if __name__ == "__main__":
    sys.exit(main())
