"""Starts worker processes quickly: everything is imported once, then each line on stdin forks one.

Prints the process id of each; a worker runs until it is killed.
"""

from __future__ import annotations

import os
import sys

import workbench.crawling.crawl
import workbench.crawling.http  # noqa: F401 - imported once, for all that are forked
from workbench import Workbench
from workbench.settings import Settings


def main() -> None:
    """Fork a worker for each line."""
    settings = Settings(_env_file=None)  # pyright: ignore[reportCallIssue]
    for _ in sys.stdin:
        child = os.fork()
        if child == 0:
            Workbench.open(settings=settings).start_worker(heartbeat=0.2, stalled=1.0).join()
            os._exit(1)
        print(child, flush=True)


if __name__ == "__main__":
    main()
