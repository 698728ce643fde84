"""An answer in the making: a thread writes it, the page reads the text so far, and leaving the page stops it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import streamlit as st

from workbench.retrieval.first_import import import_framework
from workbench.types import Passage

if TYPE_CHECKING:
    from workbench.services.answers import Answer, AnswerStream

_KEY = "answering"


@dataclass(slots=True)
class Answering:
    """An answer so far; ``answer`` or ``error`` is set before ``settled``, neither when a person stopped it."""

    key: Hashable
    text: str = ""
    passages: tuple[Passage, ...] = ()
    answer: Answer | None = None
    error: Exception | None = None
    settled: threading.Event = field(default_factory=threading.Event)
    stopped: threading.Event = field(default_factory=threading.Event)

    @property
    def state(self) -> str:
        """The state: writing, stopped, failed or done."""
        if not self.settled.is_set():
            return "stopped" if self.stopped.is_set() else "writing"
        if self.error is not None:
            return "failed"
        return "done" if self.answer is not None else "stopped"

    def write(self, begin: Callable[[], AnswerStream]) -> None:
        """Ask, and append piece by piece until the end or a stop."""
        try:
            import_framework()
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
    writing: Answering | None = st.session_state.get(_KEY)
    if writing is None or writing.key != key:
        stop()
        writing = Answering(key)
        st.session_state[_KEY] = writing
        threading.Thread(target=writing.write, args=(begin,), name="answer", daemon=True).start()
    return writing


def is_writing(key: Hashable) -> bool:
    """Tell whether an answer with that key has still to come, not yet begun ones too."""
    writing: Answering | None = st.session_state.get(_KEY)
    return writing is None or writing.key != key or writing.state == "writing"


def stop() -> None:
    """Let the answer that is being written end where it is."""
    if _KEY in st.session_state:
        st.session_state[_KEY].stopped.set()


def again() -> None:
    """Drop the answer, so that it is asked for anew."""
    stop()
    st.session_state.pop(_KEY, None)
