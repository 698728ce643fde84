"""The one background opener: the app and the MCP server answer their first reader while the workbench still opens.

Opening has two steps in one thread. After the first the database serves: lists and files can be shown. After the
second the model is loaded: the first search is as fast as the others.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import wait as settled_futures
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.errors import WorkbenchError
from workbench.runtime import nothing_is_garbage

if TYPE_CHECKING:
    from workbench.settings import Settings
    from workbench.workbench import Workbench

logger = logging.getLogger(__name__)

LONGEST_CLOSE = 20.0  # seconds that the end of the process waits for a database that is just being started
LONGEST_WARMING = 0.5  # seconds that it waits for a model that is just being loaded

Opener = Callable[[], "Workbench"]
Warmer = Callable[["Workbench"], None]


class Opening:
    """Opens one workbench a process, however many callers wait for it; all methods may be called from any thread.

    Nothing happens before the first call of ``start``, ``wait`` or ``ready``.
    """

    def __init__(self, opener: Opener | None = None, warmer: Warmer | None = None, *, patience: float = 0.0) -> None:
        """Take the two steps: ``opener`` returns an open workbench, ``warmer`` loads what its searches need.

        By default they open what the environment describes and load its model. Between them lie ``patience`` seconds,
        or fewer where ``warm_now`` says so.
        """
        self._patience, self._may_warm = patience, threading.Event()
        self._opener, self._warmer = opener or open_configured, warmer or warm_model
        self._lock = threading.Lock()
        self._future: Future[Workbench] | None = None
        self._thread: threading.Thread | None = None
        self._warm = threading.Event()

    @classmethod
    def of(cls, workbench: Workbench) -> Opening:
        """Return an opening that serves a workbench which is open already."""
        opening = cls()
        opening.use(workbench)
        return opening

    def configure(self, opener: Opener) -> None:
        """Set how the workbench is opened; before the first ``start``."""
        self._opener = opener

    def use(self, workbench: Workbench) -> None:
        """Serve a workbench that is open and warm already."""
        with self._lock:
            self._future = Future()
            self._future.set_result(workbench)
            self._warm.set()
            self._may_warm.clear()

    def start(self) -> Future[Workbench]:
        """Begin to open, unless that has begun; an error stays until ``again``."""
        with self._lock:
            return self._future if self._future is not None else self._begin()

    def again(self) -> Future[Workbench]:
        """Begin to open, also after an error."""
        with self._lock:
            return self._begin() if self._future is None or _failed(self._future) else self._future

    def wait(self, seconds: float | None = None) -> Workbench | None:
        """Return the workbench when it is open within ``seconds``, None when it is still opening.

        Raises:
            WorkbenchError: it could not be opened; the sentence can be shown, and ``again`` tries once more.
        """
        future = self.start()
        settled_futures([future], seconds)
        return future.result() if future.done() else None

    async def ready(self) -> Workbench:
        """Return the workbench as soon as it is open; after an error this opens again. Raises what opening raised."""
        future = self.again()
        return future.result() if future.done() else await asyncio.shield(asyncio.wrap_future(future))

    @property
    def settings(self) -> Settings:
        """The settings of the open workbench, else those that the environment describes. Raises ConfigurationError."""
        if self.is_ready:
            return self.workbench.settings
        from workbench.settings import load_settings

        return load_settings()

    @property
    def workbench(self) -> Workbench:
        """The open workbench, for callers that know it to be open. Raises WorkbenchError where it is not."""
        future = self._future
        if future is None or not future.done():
            raise WorkbenchError("The workbench is still opening; try again in a moment.")
        return future.result()

    @property
    def settled(self) -> bool:
        """True once it is known whether the workbench opens."""
        return self._future is not None and self._future.done()

    @property
    def is_ready(self) -> bool:
        """True when the workbench is open and calls are served without waiting."""
        return self._future is not None and self._future.done() and not _failed(self._future)

    @property
    def is_warm(self) -> bool:
        """True when the model is loaded too."""
        return self._warm.is_set()

    @property
    def may_warm(self) -> bool:
        """True once ``warm_now`` said so of this workbench."""
        return self._may_warm.is_set()

    def warm_now(self) -> None:
        """Let the second step begin as soon as the first is done: what it would have kept waiting is served."""
        self._may_warm.set()

    def work_jobs(self) -> None:
        """Keep a process beside this one that runs jobs as soon as there are some, where the settings allow it."""
        workbench = self.workbench
        with self._lock:  # two calls at once must not start two workers
            if workbench.settings.run_worker:
                workbench.work_beside()

    def close(self, *, waits: bool = True) -> bool:
        """Close the workbench, where one was opened; an opening on its way is waited for.

        Without ``waits`` neither the worker's process nor a model that is being loaded is waited for.
        False says that it goes on still: its native threads would not survive the interpreter's end.
        """
        with self._lock:
            future, self._future = self._future, None
            thread, self._thread = self._thread, None
            self._warm.clear()
            self._may_warm.set()  # nobody waits for it any more
        if future is not None:
            settled_futures([future], LONGEST_CLOSE)
        if thread is not None:
            thread.join(LONGEST_WARMING if waits else 0)
        if future is not None and future.done() and not _failed(future):
            future.result().close(waits=waits)
        return thread is None or not thread.is_alive()

    def _begin(self) -> Future[Workbench]:
        """Start the thread; the lock is the caller's."""
        future: Future[Workbench] = Future()
        self._future = future
        self._may_warm.clear()
        self._thread = threading.Thread(target=self._open, args=(future,), name="open-workbench", daemon=True)
        self._thread.start()
        return future

    def _open(self, future: Future[Workbench]) -> None:
        try:
            workbench = self._opener()
        except BaseException as error:  # noqa: BLE001 - the callers that wait are told
            future.set_exception(error)
            return
        future.set_result(workbench)
        self._may_warm.wait(self._patience)
        if self._future is not future:  # closed meanwhile
            return
        try:
            self._warmer(workbench)
        except WorkbenchError as error:  # the calls that need the model say so; the others can be served
            logger.warning("%s", error)
            return
        if self._future is future:
            self._warm.set()


def open_configured(
    home: Path | str | None = None, database_url: str | None = None, settings: Settings | None = None
) -> Workbench:
    """Open the workbench that the arguments and the environment describe, and let it take jobs where that is set.

    Raises:
        ConfigurationError: a setting is wrong. StorageError: the database cannot be reached.
    """
    from workbench.settings import load_settings

    chosen = settings or load_settings(home=home, database_url=database_url)
    start_database(chosen)
    with nothing_is_garbage():
        from workbench.workbench import Workbench

    workbench = Workbench.open(settings=chosen)
    if workbench.settings.run_worker:
        workbench.work_beside()
    return workbench


def start_database(settings: Settings) -> None:
    """Begin to start the embedded database, where it is used: it comes up while the workbench is being imported."""
    if settings.database_url is None:
        from workbench.storage.postgres import start_ahead

        start_ahead(settings.postgres_dir)


def warm_model(workbench: Workbench) -> None:
    """Load the workbench's embedding model. Raises ModelError."""
    workbench.warm()


def _failed(future: Future[Workbench]) -> bool:
    return future.done() and future.exception() is not None
