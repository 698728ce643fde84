"""``workbench worker``: take jobs out of the queue, on any machine that reaches the database."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
from types import FrameType

from workbench.cli.output import Out
from workbench.cli.session import opened
from workbench.errors import InvalidInput, StorageError
from workbench.runtime import end_now

CONCURRENCY = 3
MOST = 32
BESIDE_PEOPLE = 5  # how much a worker beside an app or a server yields the processor to it
PATIENCE = 0.7  # seconds that a running job gets to come to a whole document; then it goes back as it stands


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument(
        "--concurrency", type=int, default=CONCURRENCY, metavar="N", help="jobs side by side (%(default)s)"
    )
    parser.add_argument(
        "--until-input-ends",
        action="store_true",
        help="end when standard input is closed, as when the process that started it ends",
    )


def run(arguments: argparse.Namespace, out: Out) -> int:
    """Work until Ctrl-C or SIGTERM; running jobs go back into the queue."""
    if not 1 <= arguments.concurrency <= MOST:
        raise InvalidInput(f"--concurrency cannot be {arguments.concurrency}; use a number from 1 to {MOST}.")
    from evals.background import runners

    stopping = threading.Event()

    def stop(number: int, frame: FrameType | None) -> None:
        stopping.set()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    if arguments.until_input_ends:
        if sys.platform != "win32":
            os.nice(BESIDE_PEOPLE)
        threading.Thread(target=lambda: (sys.stdin.buffer.read(), stopping.set()), daemon=True).start()
    with opened() as wb:
        worker = wb.start_worker(runners(wb), concurrency=arguments.concurrency)
        out.message(f"Worker {worker.name} takes jobs; Ctrl-C gives running ones back and ends it.")
        while worker.is_alive and not stopping.wait(0.2):
            continue
        if not worker.is_alive:
            raise StorageError("The worker lost the queue; see its log above, then start it again.")
        out.message("Stopping; running jobs go back into the queue.")
        if not worker.leave(PATIENCE):
            end_now()
    if arguments.until_input_ends:
        end_now()  # the process that started it waits; to take the interpreter down costs half a second, for nothing
    return 0
