"""``workbench worker``: take jobs out of the queue, on any machine that reaches the database."""

from __future__ import annotations

import argparse
import signal
import threading
from types import FrameType

from workbench.cli.opening import opened
from workbench.cli.output import Out
from workbench.errors import InvalidInput, StorageError

CONCURRENCY = 3
MOST = 32


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument(
        "--concurrency", type=int, default=CONCURRENCY, metavar="N", help="jobs side by side (%(default)s)"
    )


def run(arguments: argparse.Namespace, out: Out) -> int:
    """Work until Ctrl-C or SIGTERM; running jobs go back into the queue."""
    if not 1 <= arguments.concurrency <= MOST:
        raise InvalidInput(f"--concurrency cannot be {arguments.concurrency}; use a number from 1 to {MOST}.")
    from workbench.jobs import start_worker

    asked = threading.Event()

    def stop(number: int, frame: FrameType | None) -> None:
        asked.set()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    with opened() as workbench:
        worker = start_worker(workbench, concurrency=arguments.concurrency)
        out.message(f"Worker {worker.name} takes jobs; Ctrl-C gives running ones back and ends it.")
        while worker.is_alive and not asked.wait(0.5):
            continue
        if not worker.is_alive:
            raise StorageError("The worker lost the queue; see its log above, then start it again.")
        out.message("Stopping; running jobs go back into the queue.")
        worker.stop()
    return 0
