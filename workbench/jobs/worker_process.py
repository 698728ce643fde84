"""A worker in a process of its own, so that heavy work never holds up the process that answers people."""

from __future__ import annotations

import logging
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence

from workbench.errors import WorkbenchError

logger = logging.getLogger(__name__)

LOOK = 0.5  # seconds between two looks whether there is work
RESTART_DELAY_S = 5.0  # seconds after a worker that could not start, or a database that did not answer
HASTE = 0.1  # seconds for the watching thread, if the process is to end at once
GRACE = 5.0  # seconds a worker gets to give its jobs back; killed then, its jobs are found by other workers


class WorkerProcess:
    """A process that starts with the first job that waits, and again where it died; it ends with this process.

    The command reads its standard input and stops when that ends, so it also stops where this process is killed.
    """

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str], is_work_waiting: Callable[[], bool]
    ) -> None:
        self._command, self._environment, self._is_work_waiting = list(command), dict(environment), is_work_waiting
        self._process: subprocess.Popen[bytes] | None = None
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="worker-process", daemon=True)

    def start(self) -> None:
        """Begin to watch for work."""
        self._thread.start()

    @property
    def pid(self) -> int | None:
        """The id of the worker's process while it lives."""
        process = self._process
        return process.pid if process is not None and process.poll() is None else None

    def stop(self, *, waits: bool = True) -> None:
        """Let the worker give its jobs back to the queue and end; without ``waits`` it does so after this process."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(GRACE if waits else HASTE)
        process, self._process = self._process, None
        if process is None:
            return
        if process.stdin is not None:
            process.stdin.close()
        if not waits:
            return
        try:
            process.wait(GRACE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _watch(self) -> None:
        while not self._stopping.is_set():
            pause = LOOK
            try:
                if self.pid is None and self._is_work_waiting():
                    self._process = subprocess.Popen(self._command, env=self._environment, stdin=subprocess.PIPE)
                    pause = RESTART_DELAY_S
            except (WorkbenchError, OSError) as error:
                logger.warning("the worker's process could not be started: %s", error)
                pause = RESTART_DELAY_S
            self._stopping.wait(pause)
