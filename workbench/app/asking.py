"""Ask without holding up the page: in a thread, the answer kept for as long as the page asks the same."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any

import streamlit as st

_KEY = "asked"
PATIENCE = 1.0  # seconds before a page says that it is still working


@dataclass(slots=True)
class Asked:
    """One question on its way: ``answer`` or ``error`` is set before ``settled``."""

    key: Hashable
    began: float = field(default_factory=time.monotonic)
    settled: threading.Event = field(default_factory=threading.Event)
    answer: Any = None
    error: Exception | None = None

    @property
    def seconds(self) -> float:
        """How long it has been on its way."""
        return time.monotonic() - self.began


def ask(key: Hashable, call: Callable[[], Any]) -> Asked:
    """Return the question of this session with that key, asked now unless it was before; waits a moment for the answer.

    Raises:
        Exception: what ``call`` raised, each time the page is drawn, until ``forget``.
    """
    asked: Asked | None = st.session_state.get(_KEY)
    if asked is None or asked.key != key:
        asked = Asked(key)
        st.session_state[_KEY] = asked
        threading.Thread(target=_answer, args=(asked, call), name="ask", daemon=True).start()
    asked.settled.wait(max(0.0, PATIENCE - asked.seconds))
    if asked.error is not None:
        raise asked.error
    return asked


def forget() -> None:
    """Drop the question, so that it is asked anew."""
    st.session_state.pop(_KEY, None)


def _answer(asked: Asked, call: Callable[[], Any]) -> None:
    try:
        asked.answer = call()
    except Exception as error:  # noqa: BLE001 - raised again in the page's thread, which asked
        asked.error = error
    finally:
        asked.settled.set()
