"""An iterator that runs ahead of its consumer in a thread: a few items, and no more bytes than there is room for."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Generator, Iterable
from contextvars import copy_context
from typing import TypeVar

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
