"""Prefetching items in a thread within a byte budget, and writing transactions in another thread."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextvars import copy_context
from threading import Lock
from types import TracebackType
from typing import Self, TypeVar

from workbench.storage.database import Connection, Database

T = TypeVar("T")
_END_MARKER = object()
MAX_PREFETCHED = 256  # items
CLOSE_TIMEOUT_S = 0.5  # seconds
CANCEL_CHECK_INTERVAL_S = 0.1  # seconds between checks for cancellation


def prefetch(items: Iterable[T], ask: Callable[[], None] | None = None) -> Generator[T, None, None]:
    """Yield items in order while a thread computes the next ones; exceptions are also raised in order.

    ``ask`` is called repeatedly while waiting and may raise to stop. Closing the generator stops the thread after its
    current item, but waits only briefly, as that may be a large document.
    """
    waiting: queue.Queue[object] = queue.Queue(maxsize=MAX_PREFETCHED)
    stopped = threading.Event()

    def offer(item: object) -> bool:
        while not stopped.is_set():
            try:
                waiting.put(item, timeout=0.1)
                return True
            except queue.Full:
                continue
        return False

    def produce() -> None:
        try:
            for item in items:
                if not offer(item):
                    return
                del item
            offer(_END_MARKER)
        except BaseException as error:  # noqa: BLE001 - passed to the consumer, which raises it
            offer(_Raised(error))

    thread = threading.Thread(target=copy_context().run, args=(produce,), name="read-ahead", daemon=True)
    thread.start()
    try:
        while True:
            item = _next_item(waiting, ask)
            if item is _END_MARKER:
                return
            if isinstance(item, _Raised):
                raise item.error
            yield item  # pyright: ignore[reportReturnType]
            del item  # release it while waiting for the next one
    finally:
        stopped.set()
        thread.join(CLOSE_TIMEOUT_S)


def _next_item(waiting: queue.Queue[object], ask: Callable[[], None] | None) -> object:
    while True:
        try:
            return waiting.get(timeout=None if ask is None else CANCEL_CHECK_INTERVAL_S)
        except queue.Empty:
            if ask is not None:
                ask()


class ByteBudget:
    """A budget of bytes for prefetched items. An item larger than the whole budget is admitted alone."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._taken = 0
        self._closed = False
        self._changed = threading.Condition()

    def fits(self, size: int) -> bool:
        """Return whether ``take`` would return without waiting."""
        with self._changed:
            return self._fits(size)

    def take(self, size: int) -> bool:
        """Take bytes from the budget, waiting if necessary; return False if the budget was closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._fits(size))
            self._taken += size
            return not self._closed

    def give_back(self, size: int) -> None:
        """Return bytes to the budget."""
        with self._changed:
            self._taken -= size
            self._changed.notify_all()

    def close(self) -> None:
        """Wake all waiting threads; no further items are needed."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _fits(self, size: int) -> bool:
        return self._taken == 0 or self._taken + size <= self._size


class _Raised:
    def __init__(self, error: BaseException) -> None:
        self.error = error


# --- Writing in a thread, rolled back on cancellation ---


class WriteBehind:
    """Runs one transaction at a time, in order. Leaving the context with an error rolls back the current one."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="write")
        self._last: Future[None] | None = None
        self._connection: Connection | None = None
        self._lock = Lock()

    def submit(self, write: Callable[[Connection], T], then: Callable[[T], None]) -> None:
        """Call ``write(connection)`` in a transaction, and ``then`` with its result after the commit."""
        self._last = self._pool.submit(self._run, write, then)

    def wait(self, ask: Callable[[], None]) -> None:
        """Wait for the submitted writes; ``ask`` is called repeatedly and may raise to stop.

        Raises:
            StorageError: A write failed.
        """
        if self._last is not None:
            while not wait([self._last], timeout=CANCEL_CHECK_INTERVAL_S).done:
                ask()
            self._last.result()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None and self._last is not None and not wait([self._last], timeout=CLOSE_TIMEOUT_S).done:
            self._give_up(self._last)
        self._pool.shutdown()

    def _run(self, write: Callable[[Connection], T], then: Callable[[T], None]) -> None:
        with self._database.transaction() as connection:
            with self._lock:
                self._connection = connection
            try:
                result = write(connection)
            finally:
                with self._lock:
                    self._connection = None
        then(result)

    def _give_up(self, writing: Future[None]) -> None:
        """Cancel the statements of a write until it ends; between statements there is nothing to cancel."""
        while not wait([writing], timeout=CANCEL_CHECK_INTERVAL_S).done:
            with self._lock:  # so that the connection is not reused at the same time
                if self._connection is not None:
                    self._connection.cancel_safe()
