"""Opens the workbench in the background, so that the app and the MCP server can serve requests while it starts.

Opening has two steps, both in one thread. After the first, the database is available: lists and files can be shown.
After the second, the model is loaded, so that the first search is as fast as later ones.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import wait as settled_futures
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from workbench.errors import WorkbenchError
from workbench.runtime import pause_gc

if TYPE_CHECKING:
    from workbench.settings import Settings
    from workbench.workbench import Workbench

logger = logging.getLogger(__name__)

CLOSE_TIMEOUT_S = 0.1  # seconds that shutdown waits for a database that is starting, and for a model that is loading
REQUESTS_TIMEOUT_S = 0.2  # seconds that shutdown waits for requests in progress
RELOAD_GRACE_S = 20.0  # seconds for which requests in progress may use the workbench with the old settings
END_TIMEOUT_S = 0.6  # seconds of a whole shutdown: clients and service managers kill slow processes

Opener = Callable[[], "Workbench"]
Warmer = Callable[["Workbench"], None]
SignalHandler = Callable[[int, FrameType | None], object]


class Opening:
    """Opens one workbench for each process, however many callers wait for it. All methods are thread-safe.

    Nothing is opened before the first call of ``start``, ``wait`` or ``ready``.
    """

    def __init__(self, opener: Opener | None = None, warmer: Warmer | None = None, *, patience: float = 0.0) -> None:
        """Configure the two steps.

        Args:
            opener: Returns an open workbench; by default the one that the environment describes.
            warmer: Loads what searches need; by default the embedding model.
            patience: Seconds between the two steps; ``warm_now`` ends the pause.
        """
        self._patience, self._may_warm = patience, threading.Event()
        self._opener, self._warmer = opener or open_configured, warmer or (lambda wb: wb.warm())
        self._lock = threading.Lock()
        self._future: Future[Workbench] | None = None
        self._thread: threading.Thread | None = None
        self._warm = threading.Event()

    @classmethod
    def from_open_workbench(cls, wb: Workbench) -> Opening:
        """Return an opening that serves an open workbench."""
        opening = cls()
        opening.use(wb)
        return opening

    def configure(self, opener: Opener) -> None:
        """Set the opener; call it before ``start``."""
        self._opener = opener

    def use(self, wb: Workbench) -> None:
        """Serve a workbench that is already open and warm."""
        with self._lock:
            self._future = Future()
            self._future.set_result(wb)
            self._warm.set()
            self._may_warm.clear()

    def start(self) -> Future[Workbench]:
        """Start opening unless already started; an error is kept until ``again`` is called."""
        with self._lock:
            return self._future if self._future is not None else self._begin()

    def again(self) -> Future[Workbench]:
        """Start opening, even after an error."""
        with self._lock:
            return self._begin() if self._future is None or _has_failed(self._future) else self._future

    def reload(self) -> Workbench:
        """Open the workbench with the settings as they are now; the previous one is closed a little later.

        Raises:
            WorkbenchError: It could not be opened; the previous one stays open.
        """
        wb = self._opener()
        future: Future[Workbench] = Future()
        future.set_result(wb)
        with self._lock:
            before, self._future = self._future, future
            self._warm.clear()
            self._thread = threading.Thread(target=self._warm_up, args=(future,), name="warm-workbench", daemon=True)
            self._thread.start()
        if before is not None and before.done() and not _has_failed(before):
            closing = threading.Timer(RELOAD_GRACE_S, before.result().close)
            closing.daemon = True
            closing.start()
        return wb

    def wait(self, seconds: float | None = None) -> Workbench | None:
        """Return the workbench, or None if it is still opening after ``seconds``.

        Raises:
            WorkbenchError: It could not be opened; the message can be shown, and ``again`` retries.
        """
        future = self.start()
        settled_futures([future], seconds)
        return future.result() if future.done() else None

    async def ready(self) -> Workbench:
        """Return the workbench once it is open; retries after an earlier error.

        Raises:
            WorkbenchError: It could not be opened.
        """
        future = self.again()
        return future.result() if future.done() else await asyncio.shield(asyncio.wrap_future(future))

    @property
    def settings(self) -> Settings:
        """The settings of the open workbench, otherwise those of the environment.

        Raises:
            ConfigurationError: A setting is invalid.
        """
        if self.is_ready:
            return self.workbench.settings
        from workbench.settings import load_settings

        return load_settings()

    @property
    def workbench(self) -> Workbench:
        """The open workbench, for callers that know that it is open. Raises WorkbenchError if it is not open."""
        future = self._future
        if future is None or not future.done():
            raise WorkbenchError("The workbench is still opening; try again in a moment.")
        return future.result()

    @property
    def is_settled(self) -> bool:
        """True once opening has succeeded or failed."""
        return self._future is not None and self._future.done()

    @property
    def is_ready(self) -> bool:
        """True if the workbench is open and calls need not wait."""
        return self._future is not None and self._future.done() and not _has_failed(self._future)

    @property
    def is_warm(self) -> bool:
        """True if the model is loaded too."""
        return self._warm.is_set()

    @property
    def may_warm(self) -> bool:
        """True once ``warm_now`` was called for this workbench."""
        return self._may_warm.is_set()

    def warm_now(self) -> None:
        """Start the second step as soon as the first is done: requests it would have delayed have been served."""
        self._may_warm.set()

    def work_jobs(self) -> None:
        """Keep a child process that runs jobs when there are any, if the settings allow it."""
        wb = self.workbench
        with self._lock:  # two calls at once must not start two workers
            if wb.settings.run_worker:
                wb.start_worker_process()

    def close(self) -> bool:
        """Close the workbench if it was opened, without waiting for its worker process, which ends shortly after.

        Returns:
            False if the database or model is still being opened; the model's native threads would not survive the
            interpreter's shutdown.
        """
        with self._lock:
            future, self._future = self._future, None
            thread, self._thread = self._thread, None
            self._warm.clear()
            self._may_warm.set()  # do not keep the thread waiting
        if future is not None:
            settled_futures([future], CLOSE_TIMEOUT_S)
        if thread is not None:
            thread.join(CLOSE_TIMEOUT_S)
        if future is not None and future.done() and not _has_failed(future):
            future.result().close(waits=False)
        return thread is None or not thread.is_alive()

    def _begin(self) -> Future[Workbench]:
        """Start the thread; the caller holds the lock."""
        future: Future[Workbench] = Future()
        self._future = future
        self._may_warm.clear()
        self._thread = threading.Thread(target=self._open, args=(future,), name="open-workbench", daemon=True)
        self._thread.start()
        return future

    def _open(self, future: Future[Workbench]) -> None:
        try:
            wb = self._opener()
        except BaseException as error:  # noqa: BLE001 - waiting callers receive it
            future.set_exception(error)
            return
        future.set_result(wb)
        self._may_warm.wait(self._patience)
        if self._future is future:  # else closed in the meantime
            self._warm_up(future)

    def _warm_up(self, future: Future[Workbench]) -> None:
        try:
            self._warmer(future.result())
        except WorkbenchError as error:  # calls that need the model raise it again; others can be served
            if self._future is future:  # else the close caused it
                logger.warning("%s", error)
            return
        if self._future is future:
            self._warm.set()


def open_configured(
    home: Path | str | None = None,
    database_url: str | None = None,
    settings: Settings | None = None,
    *,
    starts_worker: bool = True,
) -> Workbench:
    """Open the workbench described by the arguments and the environment, and let it run jobs if configured.

    Raises:
        ConfigurationError: A setting is invalid.
        StorageError: The database is unreachable.
    """
    from workbench.settings import load_settings

    chosen = settings or load_settings(home=home, database_url=database_url)
    start_database(chosen)
    with pause_gc():
        from workbench.workbench import Workbench

    wb = Workbench.open(settings=chosen)
    if starts_worker and wb.settings.run_worker:
        wb.start_worker_process()
    return wb


def end_soon() -> None:
    """Limit the time of a shutdown that has begun; what is left then is rolled back, returned or stopped by others."""

    def end() -> None:
        time.sleep(END_TIMEOUT_S)
        postgres = sys.modules.get("workbench.storage.postgres")
        if postgres is not None:
            postgres.stop_servers_after_exit()
        os._exit(0)

    threading.Thread(target=end, name="end-soon", daemon=True).start()


def end_soon_on_signals() -> None:
    """Limit the shutdown of the uvicorn server that runs this event loop in the main thread."""
    if threading.current_thread() is not threading.main_thread():
        return
    for number in (signal.SIGINT, signal.SIGTERM):
        handler = signal.getsignal(number)
        server = getattr(handler, "__self__", None)
        if server is None or not callable(handler):
            continue
        server.config.timeout_graceful_shutdown = REQUESTS_TIMEOUT_S  # by default it waits for every stream to end

        def handle(number: int, frame: FrameType | None, handler: SignalHandler = handler) -> None:
            end_soon()
            logging.getLogger("uvicorn.error").disabled = True  # it would print traces of cancelled requests
            handler(number, frame)

        signal.signal(number, handle)


def start_database(settings: Settings) -> None:
    """Start the embedded database, if it is used, in the background while the workbench is being imported."""
    if settings.database_url is None:
        from workbench.storage.postgres import start_in_background

        start_in_background(settings.postgres_dir)


def _has_failed(future: Future[Workbench]) -> bool:
    return future.done() and future.exception() is not None
