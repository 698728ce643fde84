"""Questions to try when the box is empty: some only meaning finds, some only words, some misspelt."""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING

import streamlit as st

from workbench.app.compare.start.ways_in import WHAT_IT_IS, further_ways
from workbench.app.shell.states import message
from workbench.app.state import address
from workbench.errors import Ambiguous, NotFound
from workbench.sample import questions_dir
from workbench.services.sample_corpus import SAMPLE_TITLE

if TYPE_CHECKING:
    from workbench.workbench import Workbench

_KINDS = {"meaning": "Other words than the text", "keyword": "A name, a code, a rare word", "typo": "Misspelt"}
_EACH = 3


@cache
def _by_kind() -> dict[str, list[str]]:
    by_kind: dict[str, list[str]] = {kind: [] for kind in _KINDS}
    for line in (questions_dir() / "queries.jsonl").read_text(encoding="utf-8").splitlines():
        question = json.loads(line)
        if question.get("kind") in by_kind and len(question["text"]) < 58:
            by_kind[question["kind"]].append(question["text"])
    return {kind: texts[:_EACH] for kind, texts in by_kind.items() if texts}


def sample_questions(workbench: Workbench) -> None:
    """Offer questions that the sample answers, or say how to begin where there is no sample."""
    if not _has_sample(workbench):
        message(
            "Ask a question", "Each column answers it in its own way; the lines between them show which of them agree."
        )
        return
    st.html(f'<p class="wb-lead">{WHAT_IT_IS}</p>')
    st.html('<p class="wb-lead">Each strategy answers in a column of its own, and the lines between the columns show '
            "where they part. Ask anything, or begin with one of these.</p>")  # fmt: skip
    with st.container(key="sample_questions"):
        columns = st.columns(len(_by_kind()), gap="large")
    for column, (kind, texts) in zip(columns, _by_kind().items(), strict=True):
        with column:
            st.html(f'<p class="wb-kind">{_KINDS[kind]}</p>')
            for place, text in enumerate(texts):
                key = f"sample_{kind}_{place}"
                st.button(text, key=key, type="tertiary", on_click=address.put, kwargs={"q": text})
    further_ways()


def _has_sample(workbench: Workbench) -> bool:
    try:
        return workbench.sources.get(SAMPLE_TITLE).documents_count > 0
    except (NotFound, Ambiguous):
        return False
