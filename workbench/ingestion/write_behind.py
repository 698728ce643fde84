"""Writing behind the model in a thread of its own; a write under way when somebody stops is given up, whole."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from threading import Lock
from types import TracebackType
from typing import Self, TypeVar

from workbench.storage.database import Connection, Database

T = TypeVar("T")
ASK = 0.1  # seconds between two looks whether to stop
GRACE = 0.5  # seconds a transaction gets to end by itself: most take less, a book of thousands of passages does not


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
