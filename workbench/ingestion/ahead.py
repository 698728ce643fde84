"""Run an iterator ahead of its consumer in a thread, a few items at most."""

from __future__ import annotations

import queue
import threading
from collections.abc import Generator, Iterable
from typing import TypeVar

T = TypeVar("T")
_END = object()
GRACE = 0.5  # seconds


def run_ahead(items: Iterable[T], depth: int = 256) -> Generator[T, None, None]:
    """Yield the items in order while the next ones are computed; an exception comes out where its item would.

    Closing the generator stops the thread after the item it is at; it is waited for a moment only, as a book of a
    thousand pages may be what it is at.
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
            offer(_END)
        except BaseException as error:  # noqa: BLE001 - handed to the consumer, which raises it
            offer(_Raised(error))

    thread = threading.Thread(target=produce, name="read-ahead", daemon=True)
    thread.start()
    try:
        while True:
            item = waiting.get()
            if item is _END:
                return
            if isinstance(item, _Raised):
                raise item.error
            yield item  # pyright: ignore[reportReturnType]
    finally:
        stopped.set()
        thread.join(GRACE)


class _Raised:
    def __init__(self, error: BaseException) -> None:
        self.error = error
