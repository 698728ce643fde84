"""An iterator that runs ahead of its consumer in a thread: a few items, and no more bytes than there is room for."""

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
_END = object()
GRACE = 0.5  # seconds
ASK = 0.1  # seconds between two looks whether to stop


def run_ahead(items: Iterable[T], depth: int = 256, ask: Callable[[], None] | None = None) -> Generator[T, None, None]:
    """Yield the items in order while the next ``depth`` are computed; an exception comes out where its item would.

    ``ask`` is called again and again while an item is waited for, and may raise to stop. Closing the generator stops
    the thread after the item it is at; it is waited for a moment only, as a book may be what it is at.
    """
    waiting: queue.Queue[object] = queue.Queue(maxsize=depth)
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
            offer(_END)
        except BaseException as error:  # noqa: BLE001 - handed to the consumer, which raises it
            offer(_Raised(error))

    thread = threading.Thread(target=copy_context().run, args=(produce,), name="read-ahead", daemon=True)
    thread.start()
    try:
        while True:
            item = _next(waiting, ask)
            if item is _END:
                return
            if isinstance(item, _Raised):
                raise item.error
            yield item  # pyright: ignore[reportReturnType]
            del item  # it may be large, and the next one takes long
    finally:
        stopped.set()
        thread.join(GRACE)


def _next(waiting: queue.Queue[object], ask: Callable[[], None] | None) -> object:
    while True:
        try:
            return waiting.get(timeout=None if ask is None else ASK)
        except queue.Empty:
            if ask is not None:
                ask()


class Room:
    """Room for the bytes of items that run ahead; an item that is larger than all of it goes alone."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._taken = 0
        self._closed = False
        self._changed = threading.Condition()

    def fits(self, size: int) -> bool:
        """Tell whether ``take`` would not wait now."""
        with self._changed:
            return self._fits(size)

    def take(self, size: int) -> bool:
        """Take room, waiting until there is some; False says that it was closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._fits(size))
            self._taken += size
            return not self._closed

    def give_back(self, size: int) -> None:
        """Give back room that was taken."""
        with self._changed:
            self._taken -= size
            self._changed.notify_all()

    def close(self) -> None:
        """Let nobody wait any more, for nothing more is wanted."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _fits(self, size: int) -> bool:
        return self._taken == 0 or self._taken + size <= self._size


class _Raised:
    def __init__(self, error: BaseException) -> None:
        self.error = error


# --- Writing behind the model in a thread of its own; a write under way when somebody stops is given up, whole ---


class WriteBehind:
    """One transaction at a time, in order. Leaving with an error gives up the one under way: it is rolled back."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="write")
        self._last: Future[None] | None = None
        self._connection: Connection | None = None
        self._lock = Lock()

    def submit(self, write: Callable[[Connection], T], then: Callable[[T], None]) -> None:
        """Call ``write(connection)`` in a transaction, and ``then`` with its result once it is committed."""
        self._last = self._pool.submit(self._run, write, then)

    def wait(self, ask: Callable[[], None]) -> None:
        """Wait for the submitted writes; ``ask`` is called again and again meanwhile and may raise to stop.

        Raises:
            StorageError: it could not be written.
        """
        if self._last is not None:
            while not wait([self._last], timeout=ASK).done:
                ask()
            self._last.result()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None and self._last is not None and not wait([self._last], timeout=GRACE).done:
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
        """Cancel its statements until one of them ends it; between two statements there is nothing to cancel."""
        while not wait([writing], timeout=ASK).done:
            with self._lock:  # so that the connection cannot serve somebody else meanwhile
                if self._connection is not None:
                    self._connection.cancel_safe()
