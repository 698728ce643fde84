"""Questions that never hold up the page: a thread asks, and the answer is kept while the page asks the same."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import streamlit as st

from workbench.retrieval.first_import import import_framework

_KEY = "asked"
T = TypeVar("T")
PATIENCE = 1.0  # seconds before a page says that it is still working


@dataclass(slots=True)
class PendingAnswer(Generic[T]):
    """One question on its way: ``answer`` or ``error`` is set before ``settled``."""

    key: Hashable
    began: float = field(default_factory=time.monotonic)
    settled: threading.Event = field(default_factory=threading.Event)
    answer: T | None = None
    error: Exception | None = None

    @property
    def seconds(self) -> float:
        """The seconds that it has been on its way."""
        return time.monotonic() - self.began


def ask(key: Hashable, call: Callable[[], T]) -> PendingAnswer[T]:
    """Return the question of this session with that key, asked now unless it was before; waits a moment for the answer.

    Raises:
        Exception: the one that ``call`` raised, each time the page is drawn, until ``forget``.
    """
    pending: PendingAnswer[T] | None = st.session_state.get(_KEY)
    if pending is None or pending.key != key:
        pending = PendingAnswer(key)
        st.session_state[_KEY] = pending
        threading.Thread(target=_answer, args=(pending, call), name="ask", daemon=True).start()
    pending.settled.wait(max(0.0, PATIENCE - pending.seconds))
    if pending.error is not None:
        raise pending.error
    return pending


def forget() -> None:
    """Drop the question, so that it is asked anew."""
    st.session_state.pop(_KEY, None)


def _answer(pending: PendingAnswer[T], call: Callable[[], T]) -> None:
    try:
        import_framework()
        pending.answer = call()
    except Exception as error:  # noqa: BLE001 - raised again in the page's thread, which asked
        pending.error = error
    finally:
        pending.settled.set()
