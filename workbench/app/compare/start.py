"""The first minute: what this is, the three ways in, and what comes after the first comparison."""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING

import streamlit as st

from workbench.app.compare.judging import own_test_sets
from workbench.app.shell.navigation import switch
from workbench.app.shell.states import message
from workbench.app.shell.work import PAGES, way_to, way_to_sample
from workbench.app.state import address
from workbench.errors import Ambiguous, NotFound
from workbench.ingestion.readers.formats import format_titles
from workbench.sample import questions_dir
from workbench.services.sample_corpus import SAMPLE_TITLE

if TYPE_CHECKING:
    from workbench.workbench import Workbench

WHAT_IT_IS = (
    "The workbench asks your documents a question in several ways at once, by meaning, by words and by both, and shows "
    "side by side what each finds. You judge, it measures, and the way that wins serves your agents."
)
WAYS = {"library": "Your files", "crawl": "A website"}


def empty_home(wb: Workbench) -> None:
    """Say what this is and offer the three ways in, where there is no document yet."""
    message("Which way of searching suits your documents?", WHAT_IT_IS)
    about = {
        "Your files": f"PDF, Markdown, Word, HTML and {len(format_titles()) - 4} other formats, folders, zip archives.",
        "A website": "Its pages, politely: by its robots.txt, at the rate that you allow.",
        "The sample": "Some fifty articles on retrieval, with questions to click. It takes a minute.",
    }
    columns = st.columns(3, gap="medium")
    for column, (page, title) in zip(columns, WAYS.items(), strict=False):
        with column, st.container(border=True, key=f"way_{page}"):
            _heading(title, about[title])
            way_to(page, is_chief=page == "library")
    with columns[2], st.container(border=True, key="way_sample"):
        _heading("The sample", about["The sample"])
        way_to_sample(wb)


def _heading(title: str, sentence: str) -> None:
    st.html(f'<p class="wb-way"><b>{title}</b><br>{sentence}</p>')


def further_ways() -> None:
    """Offer, below the sample's questions, to bring in documents of one's own."""
    with st.container(horizontal=True, vertical_alignment="center", key="further_ways"):
        st.html('<p class="wb-kind">Or bring your own documents:</p>', width="content")
        for page, (label, icon) in PAGES.items():
            if st.button(label, icon=icon, type="tertiary"):
                switch(page)


def next_step(wb: Workbench, judging: bool) -> None:
    """Say below a comparison what to do next, until there is a test set."""
    if judging or own_test_sets(wb):
        return
    st.html(
        '<p class="wb-serving">Next: press <b>Judge</b> and mark what is relevant by the keys 1, 2 and 3. A few judged '
        "questions make a test set, by which <b>Evaluate</b> tells the best strategy, and <b>Promote</b> gives it to "
        "your agents.</p>"
    )


# --- Questions to try when the box is empty: some only meaning finds, some only words, some misspelt ---

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


def sample_questions(wb: Workbench) -> None:
    """Offer questions that the sample answers, or say how to begin where there is no sample."""
    if not _has_sample(wb):
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


def _has_sample(wb: Workbench) -> bool:
    try:
        return wb.sources.get(SAMPLE_TITLE).documents_count > 0
    except (NotFound, Ambiguous):
        return False
