"""The answer above the board, streamed; its citation numbers open the passages they cite."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import streamlit as st

from workbench.app.compare.columns import SearchSettings
from workbench.app.state import address
from workbench.app.state.shared import change_count
from workbench.app.widgets.looks import format_place, strategy_title, strip_markdown
from workbench.app.widgets.notices import load_component
from workbench.app.widgets.promoting import LiveStrategy, find_live_columns
from workbench.app.widgets.reader import open_document
from workbench.errors import WorkbenchError
from workbench.retrieval.first_import import import_framework
from workbench.retrieval.options import Ask, split_strategy
from workbench.services.answers import DEFAULT_PASSAGES
from workbench.types import Comparison, JsonObject, Passage

if TYPE_CHECKING:
    from workbench.services.answers import Answer, AnswerStream
    from workbench.workbench import Workbench

# The answer that is being written, in a thread

_SESSION_KEY = "answering"


@dataclass(slots=True)
class PendingText:
    """An answer that is being written, or has been.

    Attributes:
        key: Identifies the question, the scope and the strategy.
        text: The text so far.
        passages: The passages it may cite.
        answer: The complete answer; None until then, and after a failure or a cancellation.
        error: The failure, if any.
        settled: Set last, when the thread ends.
        stopped: Set to cancel it.
    """

    key: Hashable
    text: str = ""
    passages: tuple[Passage, ...] = ()
    answer: Answer | None = None
    error: Exception | None = None
    settled: threading.Event = field(default_factory=threading.Event)
    stopped: threading.Event = field(default_factory=threading.Event)

    @property
    def state(self) -> str:
        """One of "writing", "stopped", "failed" and "done"."""
        if not self.settled.is_set():
            return "stopped" if self.stopped.is_set() else "writing"
        if self.error is not None:
            return "failed"
        return "done" if self.answer is not None else "stopped"

    def write(self, begin: Callable[[], AnswerStream]) -> None:
        """Ask, and append the pieces of the answer until it ends or is stopped."""
        try:
            import_framework()
            stream = begin()
            self.passages = stream.passages
            for piece in stream:
                if self.stopped.is_set():
                    return
                self.text += piece
            self.answer = stream.answer()
        except Exception as error:  # noqa: BLE001 - shown or raised again in the page's thread
            self.error = error
        finally:
            self.settled.set()


def get_or_start_answer(key: Hashable, begin: Callable[[], AnswerStream]) -> PendingText:
    """Return this session's answer for a key, started if necessary; an answer for another key is stopped."""
    writing: PendingText | None = st.session_state.get(_SESSION_KEY)
    if writing is None or writing.key != key:
        cancel_answer()
        writing = PendingText(key)
        st.session_state[_SESSION_KEY] = writing
        threading.Thread(target=writing.write, args=(begin,), name="answer", daemon=True).start()
    return writing


def is_writing(key: Hashable) -> bool:
    """Return whether the answer for a key is not complete, or has not been started."""
    writing: PendingText | None = st.session_state.get(_SESSION_KEY)
    return writing is None or writing.key != key or writing.state == "writing"


def cancel_answer() -> None:
    """Cancel the answer that is being written."""
    if _SESSION_KEY in st.session_state:
        st.session_state[_SESSION_KEY].stopped.set()


def restart_answer() -> None:
    """Drop the answer, so that it is requested again."""
    cancel_answer()
    st.session_state.pop(_SESSION_KEY, None)


_QUOTE_PATTERN = re.compile(r".+?\[\d{1,3}\](?=\s|$)", re.DOTALL)
REFRESH_S = 0.15  # seconds between refreshes of an answer that is being written


def show_answer_button() -> None:
    """Show the button that toggles the answer; the URL keeps the choice."""
    shown = bool(address.get("answer"))
    st.button(
        "Hide answer" if shown else "Answer",
        key="answer_button",
        type="tertiary",
        icon=":material/short_text:",
        on_click=lambda: address.put(answer=None if shown else "1"),
    )


def show_answer_panel(wb: Workbench, comparison: Comparison, asking: SearchSettings, serving: LiveStrategy) -> None:
    """Answer from the column of the live strategy, or from the first one; do nothing if the answer is off."""
    if not address.get("answer"):
        cancel_answer()
        return
    column = [*find_live_columns(serving, comparison, asking.parameters), *comparison.strategies][0]
    strategy, own_index = split_strategy(column, None)
    index, parameters = own_index or asking.index, asking.parameters.get(strategy)
    key = (comparison.query, column, asking.scope, index, repr(parameters), change_count())

    def panel() -> None:
        writing = get_or_start_answer(
            key,
            lambda: wb.answers.ask(
                comparison.query, Ask(strategy, DEFAULT_PASSAGES, asking.scope, index, parameters or {})
            ),
        )
        _draw_answer(writing, strategy_title(column), own_index or "", was_writing)

    was_writing = is_writing(key)
    st.fragment(panel, run_every=REFRESH_S if was_writing else None)()


def _draw_answer(writing: PendingText, strategy: str, cut: str, was_writing: bool) -> None:
    state = writing.state
    if state == "failed" and not isinstance(writing.error, WorkbenchError):
        assert writing.error is not None
        raise writing.error
    result = load_component("compare/answer")(
        key="answer",
        data=build_answer_data(writing, state, strategy),
        on_open_change=_ignore_event,
        on_stop_change=cancel_answer,
        on_again_change=restart_answer,
    )
    if result.open and 1 <= int(result.open) <= len(writing.passages):
        passage = writing.passages[int(result.open) - 1]
        address.put(cut=cut)
        open_document(passage.document_id, passage.start, passage.end)
        st.rerun()
    if result.again or (was_writing and state != "writing"):
        st.rerun()


def build_answer_data(writing: PendingText, state: str, strategy: str) -> JsonObject:
    """Return the data of the panel."""
    answer = writing.answer
    return {
        "state": state,
        "kind": answer.kind if answer else "",
        "text": _format_extracts(writing.text) if answer and answer.kind == "extracts" else writing.text,
        "passages": _list_passages(writing.passages),
        "model": answer.model if answer else "",
        "strategy": strategy,
        "notes": list(answer.degraded) if answer else [],
        "error": str(writing.error) if writing.error else "",
        "ms": round(answer.timings_ms.get("total", 0.0), 1) if answer else None,
    }


def _format_extracts(text: str) -> str:
    """Return quoted Markdown sentences as plain text; each ends in its citation."""
    return " ".join(strip_markdown(quote).removeprefix("· ") for quote in _QUOTE_PATTERN.findall(text))


def _list_passages(passages: Sequence[Passage]) -> list[JsonObject]:
    return [
        {
            "title": passage.document_title,
            "place": format_place(passage, passage.headings) or passage.path or passage.url or "",
        }
        for passage in passages
    ]


def _ignore_event() -> None:
    """Do nothing: Streamlit requires a callback, and the trigger is read from the result."""
