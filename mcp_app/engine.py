"""The workbench behind the server: opened and warmed in the background, waited for by the first call.

Its imports take seconds, so none of them happens before the server has answered its first message.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from workbench.workbench import Workbench

LONGEST_CLOSE = 20.0  # seconds that the end of the process waits for an opening; longer is only the very first one


class Engine:
    """Opens a workbench once, however many calls wait for it; a failed opening is tried again by the next call."""

    def __init__(self, opening: Callable[[], Workbench]) -> None:
        """``opening`` returns an open, warmed workbench; it runs in a thread of its own."""
        self._opening = opening
        self._lock = threading.Lock()
        self._future: Future[Workbench] | None = None

    @classmethod
    def of(cls, workbench: Workbench) -> Engine:
        """Return an engine over a workbench that is open already; closing it stays with its owner."""
        engine = cls(lambda: workbench)
        engine._future = Future()
        engine._future.set_result(workbench)
        return engine

    def start(self) -> Future[Workbench]:
        """Begin to open, unless that has begun."""
        with self._lock:
            failed = self._future is not None and self._future.done() and self._future.exception() is not None
            if self._future is None or failed:
                self._future = Future()
                threading.Thread(target=self._open, args=(self._future,), name="open-workbench", daemon=True).start()
            return self._future

    async def ready(self) -> Workbench:
        """Return the workbench, waiting for it. Raises what its opening raised."""
        future = self.start()
        return future.result() if future.done() else await asyncio.shield(asyncio.wrap_future(future))

    def wait(self, timeout: float | None = None) -> Workbench:
        """Return the workbench from a thread that may block."""
        return self.start().result(timeout)

    @property
    def is_ready(self) -> bool:
        """True when calls are served without waiting."""
        future = self._future
        return future is not None and future.done() and future.exception() is None

    def work_jobs(self) -> None:
        """Let this process take jobs from now on; what it leaves unfinished, another worker goes on with."""
        workbench = self.wait()
        with self._lock:  # two calls at once must not start two workers
            if workbench.settings.run_worker:
                workbench.work()

    def close(self) -> bool:
        """Close the workbench, where one was opened; an opening on its way is waited for.

        False says that it goes on still: its native threads would not survive the interpreter's end.
        """
        with self._lock:
            future, self._future = self._future, None
        if future is None:
            return True
        wait([future], LONGEST_CLOSE)
        if future.done() and future.exception() is None:
            future.result().close()
        return future.done()

    def _open(self, future: Future[Workbench]) -> None:
        try:
            future.set_result(self._opening())
        except BaseException as error:  # noqa: BLE001 - whoever waits is told
            future.set_exception(error)


def opening_from_settings() -> Workbench:
    """Open the workbench that the environment describes and load its model."""
    from workbench.errors import WorkbenchError
    from workbench.workbench import Workbench

    workbench = Workbench.open()
    if workbench.settings.run_worker:
        workbench.work()
    try:
        workbench.warm()
    except WorkbenchError as error:  # the calls that need the model will say so; the others can be served
        import logging

        logging.getLogger(__name__).warning("%s", error)
    return workbench
