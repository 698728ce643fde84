"""The answer above the board: written as it comes, its numbers open the passages they cite."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import streamlit as st

from workbench.app import address
from workbench.app.answering import Answering, again, answering, is_writing, stop
from workbench.app.assets import component
from workbench.app.board import Asking
from workbench.app.board_data import place_of, title_of
from workbench.app.card_text import plain
from workbench.app.engine import ENGINE
from workbench.app.promoting import Serving, serving_columns
from workbench.app.reader import open_document
from workbench.errors import WorkbenchError
from workbench.services.search import named
from workbench.types import Comparison, Passage

if TYPE_CHECKING:
    from workbench.workbench import Workbench

_QUOTE = re.compile(r".+?\[\d{1,3}\](?=\s|$)", re.DOTALL)
EVERY = 0.15  # seconds between looks at an answer that is being written


def answer_button() -> None:
    """Show the button that turns the answer on and off; the address keeps it."""
    shown = bool(address.get("answer"))
    st.button(
        "Hide the answer" if shown else "Answer",
        key="answer_button",
        type="tertiary",
        icon=":material/short_text:",
        on_click=lambda: address.put(answer=None if shown else "1"),
    )


def answer_panel(workbench: Workbench, comparison: Comparison, asking: Asking, serving: Serving) -> None:
    """Answer from the column that serves the scope, else from the first one; nothing where it is turned off."""
    if not address.get("answer"):
        stop()
        return
    column = [*serving_columns(serving, comparison, asking.parameters), *comparison.strategies][0]
    strategy, own_index = named(column, None)
    index, parameters = own_index or asking.index, asking.parameters.get(strategy)
    key = (comparison.query, column, asking.scope, index, repr(parameters), ENGINE.changes)

    def panel() -> None:
        found = answering(
            key,
            lambda: workbench.answers.ask(
                comparison.query, strategy=strategy, scope=asking.scope, index=index, parameters=parameters
            ),
        )
        _shown(found, title_of(column), own_index or "", was_writing)

    was_writing = is_writing(key)
    st.fragment(panel, run_every=EVERY if was_writing else None)()


def _shown(found: Answering, strategy: str, cut: str, was_writing: bool) -> None:
    state = found.state
    if state == "failed" and not isinstance(found.error, WorkbenchError):
        assert found.error is not None
        raise found.error
    result = component("answer")(
        key="answer",
        data=answer_data(found, state, strategy),
        on_open_change=_nothing,
        on_stop_change=stop,
        on_again_change=again,
    )
    if result.open and 1 <= int(result.open) <= len(found.passages):
        passage = found.passages[int(result.open) - 1]
        address.put(cut=cut)
        open_document(passage.document_id, passage.start, passage.end)
        st.rerun()
    if result.again or (was_writing and state != "writing"):
        st.rerun()


def answer_data(found: Answering, state: str, strategy: str) -> dict[str, Any]:
    """Return what the panel draws; of the passages, those that the text so far can cite."""
    answer = found.answer
    return {
        "state": state,
        "kind": answer.kind if answer else "",
        "text": _extracts(found.text) if answer and answer.kind == "extracts" else found.text,
        "passages": _passages(found.passages),
        "model": answer.model if answer else "",
        "strategy": strategy,
        "notes": list(answer.degraded) if answer else [],
        "error": str(found.error) if found.error else "",
        "ms": round(answer.timings_ms.get("total", 0.0), 1) if answer else None,
    }


def _extracts(text: str) -> str:
    """Return quoted sentences, which are pieces of Markdown, as running text; each still ends in its mark."""
    return " ".join(plain(quote).removeprefix("· ") for quote in _QUOTE.findall(text))


def _passages(passages: Sequence[Passage]) -> list[dict[str, Any]]:
    return [
        {
            "title": passage.document_title,
            "place": place_of(passage, [str(heading) for heading in passage.metadata.get("heading_path", ())])
            or passage.path
            or passage.url
            or "",
        }
        for passage in passages
    ]


def _nothing() -> None:
    """The trigger is read from the result; Streamlit wants a callback."""
