"""``workbench app``: serve the app in the browser."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from workbench.cli.output import Output
from workbench.cli.session import ensure_sample
from workbench.errors import InvalidInput
from workbench.runtime import check_extra, exit_now

if TYPE_CHECKING:
    from workbench.app.shell.serve import PublicServer
    from workbench.types import ShouldStop
    from workbench.workbench import Workbench

DEFAULT_PORT = 8501


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("--port", type=int, default=DEFAULT_PORT, metavar="N", help="port to listen on (%(default)s)")
    parser.add_argument("--host", default="127.0.0.1", metavar="H", help="address to listen on (%(default)s)")
    parser.add_argument("--no-sample", action="store_true", help="do not load the sample into an empty corpus")


def run(arguments: argparse.Namespace, out: Output, public: PublicServer | None = None) -> int:
    """Serve until Ctrl-C; on first run, load the sample before the first page. ``public`` also serves agents."""
    if not 1 <= arguments.port <= 65535:
        raise InvalidInput(f"Invalid --port {arguments.port}: use a number from 1 to 65535.")
    check_extra("app")
    from workbench.app.shell.serve import serve

    def first_run(wb: Workbench, should_stop: ShouldStop) -> None:
        ensure_sample(wb, out, should_stop)

    prepare = None if arguments.no_sample else first_run
    exit_now(
        serve(arguments.port, host=arguments.host, prepare=prepare, public=public)
    )  # does not wait for the server's threads
