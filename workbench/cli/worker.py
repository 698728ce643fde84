"""``workbench worker``: run queued jobs, on any machine that reaches the database."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
from types import FrameType

from workbench.cli.output import Output
from workbench.cli.session import open_workbench
from workbench.errors import InvalidInput, StorageError
from workbench.runtime import exit_now

DEFAULT_CONCURRENCY = 3
MAX_CONCURRENCY = 32  # jobs at the same time
BACKGROUND_NICENESS = 5  # niceness of a worker started by an app or a server
STOP_TIMEOUT_S = 0.7  # seconds for a running job to finish its document before it returns to the queue


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument(
        "--concurrency", type=int, default=DEFAULT_CONCURRENCY, metavar="N", help="jobs at the same time (%(default)s)"
    )
    parser.add_argument(
        "--until-input-ends",
        action="store_true",
        help="stop when standard input is closed, as when the parent process ends",
    )


def run(arguments: argparse.Namespace, out: Output) -> int:
    """Run jobs until Ctrl-C or SIGTERM; running jobs return to the queue."""
    if not 1 <= arguments.concurrency <= MAX_CONCURRENCY:
        raise InvalidInput(f"Invalid --concurrency {arguments.concurrency}: use a number from 1 to {MAX_CONCURRENCY}.")
    from evals.background import make_runners

    stopping = threading.Event()

    def stop(number: int, frame: FrameType | None) -> None:
        stopping.set()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    if arguments.until_input_ends:
        if sys.platform != "win32":
            os.nice(BACKGROUND_NICENESS)
        threading.Thread(target=lambda: (sys.stdin.buffer.read(), stopping.set()), daemon=True).start()
    with open_workbench() as wb:
        worker = wb.start_worker(make_runners(wb), concurrency=arguments.concurrency)
        out.message(f"Worker {worker.name} is running; press Ctrl-C to stop it and return running jobs to the queue.")
        while worker.is_alive and not stopping.wait(0.2):
            continue
        if not worker.is_alive:
            raise StorageError("The worker lost its connection to the queue; see the log above, then start it again.")
        out.message("Stopping; running jobs return to the queue.")
        if not worker.leave(STOP_TIMEOUT_S):
            exit_now()
    if arguments.until_input_ends:
        exit_now()  # the parent waits, and a normal interpreter shutdown takes half a second
    return 0
