"""Starts worker processes quickly: one process imports everything, then forks a worker for each line on its stdin."""

from __future__ import annotations

import atexit
import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path

import psutil


class WorkerProcess:
    """A worker in another process, with the methods of ``Popen`` that tests use."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._process = psutil.Process(pid)

    def poll(self) -> int | None:
        """Return None while it runs."""
        return None if self._process.is_running() else 0

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal, unless it has ended."""
        with suppress(psutil.NoSuchProcess):
            self._process.send_signal(number)

    def kill(self) -> None:
        """End it at once."""
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)

    def wait(self, timeout: float = 60) -> None:
        """Wait until it has ended."""
        self._process.wait(timeout)


def worker_process(database_url: str, home: Path, *, stalled: float = 4.0, **settings: str) -> WorkerProcess:
    """Start a worker with the model 'hash' on a database; ``stalled`` is its patience with others, in seconds."""
    values = {"HOME": str(home), "DATABASE_URL": database_url, "EMBEDDING_MODEL": "hash"} | settings
    if _open_nest().poll() is not None:  # ended with a test that took too long
        _open_nest.cache_clear()
    nest = _open_nest()
    assert nest.stdin is not None and nest.stdout is not None
    nest.stdin.write(json.dumps([stalled, {f"WORKBENCH_{name}": value for name, value in values.items()}]) + "\n")
    nest.stdin.flush()
    return WorkerProcess(int(nest.stdout.readline()))


@cache
def _open_nest() -> subprocess.Popen[str]:
    """Start the process that forks workers; it ends with this one."""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    nest = subprocess.Popen(
        [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    )
    atexit.register(nest.communicate)
    return nest


def _run_worker(stalled: float, variables: dict[str, str]) -> None:
    from workbench import Workbench

    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # its own output is not the number that the nest prints
    os.environ.update(variables)
    Workbench.open().start_worker(heartbeat=0.2, stalled=stalled).join()


def main() -> None:
    """Fork a worker for each line and print its process id; those that are left end with this process."""
    import llama_index.core  # noqa: F401

    import workbench.crawling.crawl
    import workbench.crawling.http
    import workbench.jobs.runners
    import workbench.workbench  # noqa: F401 - imported once, for all that are forked

    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the dead ones leave no zombies
    workers: list[int] = []
    for line in sys.stdin:
        worker = os.fork()
        if worker == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            try:
                _run_worker(*json.loads(line))
            finally:
                os._exit(1)
        workers.append(worker)
        print(worker, flush=True)
    for worker in workers:
        with suppress(ProcessLookupError):
            os.kill(worker, signal.SIGKILL)


if __name__ == "__main__":
    main()
