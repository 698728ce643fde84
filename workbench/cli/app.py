"""``workbench app``: serve the app in the browser."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from workbench.cli.opening import opened, stoppable
from workbench.cli.output import Out
from workbench.errors import InvalidInput

if TYPE_CHECKING:
    from workbench.workbench import Workbench

PORT = 8501


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("--port", type=int, default=PORT, metavar="N", help="where to serve it (%(default)s)")
    parser.add_argument("--host", default="127.0.0.1", metavar="H", help="the address to listen on (%(default)s)")
    parser.add_argument("--no-sample", action="store_true", help="leave an empty corpus empty")


def run(arguments: argparse.Namespace, out: Out) -> int:
    """Load the sample on a first run, then serve until Ctrl-C."""
    if not 1 <= arguments.port <= 65535:
        raise InvalidInput(f"--port cannot be {arguments.port}; use a number from 1 to 65535.")
    if not arguments.no_sample:
        with opened() as workbench:
            _load_sample(workbench, out)
    from workbench.app.serve import serve

    return serve(port=arguments.port, host=arguments.host)


def _load_sample(workbench: Workbench, out: Out) -> None:
    """Give an empty corpus something to search."""
    from workbench.services.sample_corpus import load_sample, needs_sample

    if not needs_sample(workbench.knowledge):
        return
    out.message("First run: loading the sample corpus, about 50 articles on retrieval.")
    with out.progress("Sample") as show, stoppable(out) as should_stop:
        report = load_sample(workbench.knowledge, on_progress=show, should_stop=should_stop)
    out.message(f"Loaded {report.added + report.unchanged:,} articles in {report.seconds:.0f} s.")
