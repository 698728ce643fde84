"""An answer on its way: written in a thread, read by the page as far as it has come, stopped when nobody waits."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import streamlit as st

from workbench.types import Passage

if TYPE_CHECKING:
    from workbench.services.answers import Answer, AnswerStream

_KEY = "answering"


@dataclass(slots=True)
class Answering:
    """What there is of an answer; ``answer`` or ``error`` is set before ``settled``, neither when it was stopped."""

    key: Hashable
    text: str = ""
    passages: tuple[Passage, ...] = ()
    answer: Answer | None = None
    error: Exception | None = None
    settled: threading.Event = field(default_factory=threading.Event)
    stopped: threading.Event = field(default_factory=threading.Event)

    @property
    def state(self) -> str:
        """One of writing, stopped, failed, done."""
        if not self.settled.is_set():
            return "stopped" if self.stopped.is_set() else "writing"
        if self.error is not None:
            return "failed"
        return "done" if self.answer is not None else "stopped"

    def write(self, begin: Callable[[], AnswerStream]) -> None:
        """Ask, and take piece by piece until the end or until it is stopped."""
        try:
            stream = begin()
            self.passages = stream.passages
            for piece in stream:
                if self.stopped.is_set():
                    return
                self.text += piece
            self.answer = stream.answer()
        except Exception as error:  # noqa: BLE001 - shown, or raised again, in the page's thread, which asked
            self.error = error
        finally:
            self.settled.set()


def answering(key: Hashable, begin: Callable[[], AnswerStream]) -> Answering:
    """Return this session's answer with that key, begun now unless it was before; another one is stopped."""
    found: Answering | None = st.session_state.get(_KEY)
    if found is None or found.key != key:
        stop()
        found = Answering(key)
        st.session_state[_KEY] = found
        threading.Thread(target=found.write, args=(begin,), name="answer", daemon=True).start()
    return found


def is_writing(key: Hashable) -> bool:
    """Tell whether an answer with that key has still to come, not yet begun ones too."""
    found: Answering | None = st.session_state.get(_KEY)
    return found is None or found.key != key or found.state == "writing"


def stop() -> None:
    """Let the answer that is being written end where it is."""
    if _KEY in st.session_state:
        st.session_state[_KEY].stopped.set()


def again() -> None:
    """Drop the answer, so that it is asked for anew."""
    stop()
    st.session_state.pop(_KEY, None)
