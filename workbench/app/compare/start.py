"""The first visit: what the workbench does, three ways to add documents, and the next step."""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING

import streamlit as st

from workbench.app.compare.judging import list_own_test_sets
from workbench.app.shell.navigation import switch_page
from workbench.app.shell.states import show_message
from workbench.app.shell.work import START_PAGES, show_add_button, show_sample_button
from workbench.app.state import address
from workbench.errors import Ambiguous, NotFound
from workbench.ingestion.readers.formats import list_format_titles
from workbench.sample import questions_dir
from workbench.services.sample_corpus import SAMPLE_TITLE

if TYPE_CHECKING:
    from workbench.workbench import Workbench

INTRODUCTION = (
    "Search your documents with several strategies at once: by meaning, by keywords and by both. You "
    "judge the results, the workbench scores each strategy, and your agents get the winner."
)
WAY_TITLES = {"library": "Your files", "crawl": "A website"}


def show_empty_home(wb: Workbench) -> None:
    """Explain the workbench and offer three ways to add the first documents."""
    show_message("Which search strategy works best for your documents?", INTRODUCTION)
    about = {
        "Your files": (
            f"PDF, Markdown, Word, HTML and {len(list_format_titles()) - 4} other formats; folders; zip archives."
        ),
        "A website": "Crawls its pages; respects robots.txt and your rate limit.",
        "Sample documents": "About fifty articles on retrieval, with questions to try. Loads in about a minute.",
    }
    columns = st.columns(3, gap="medium")
    for column, (page, title) in zip(columns, WAY_TITLES.items(), strict=False):
        with column, st.container(border=True, key=f"way_{page}"):
            _show_heading(title, about[title])
            show_add_button(page, is_chief=page == "library")
    with columns[2], st.container(border=True, key="way_sample"):
        _show_heading("Sample documents", about["Sample documents"])
        show_sample_button(wb)


def _show_heading(title: str, sentence: str) -> None:
    st.html(f'<p class="wb-way"><b>{title}</b><br>{sentence}</p>')


def show_further_ways() -> None:
    """Offer, below the sample questions, to add one's own documents."""
    with st.container(horizontal=True, vertical_alignment="center", key="further_ways"):
        st.html('<p class="wb-kind">Or add your own documents:</p>', width="content")
        for page, (label, icon) in START_PAGES.items():
            if st.button(label, icon=icon, type="tertiary"):
                switch_page(page)


def show_next_step(wb: Workbench, judging: bool) -> None:
    """Show the next step below a comparison, until there is a test set."""
    if judging or list_own_test_sets(wb):
        return
    st.html(
        '<p class="wb-serving">Next: click <b>Judge</b> and grade results with the keys 1, 2 and 3. Judge a few '
        "questions, then compare strategies in <b>Evaluate</b> and <b>Promote</b> the winner.</p>"
    )


# Sample questions: paraphrased, exact and misspelled

_KIND_TITLES = {"meaning": "Paraphrased", "keyword": "Names, codes and rare words", "typo": "Misspelled"}
_QUESTIONS_PER_KIND = 3


@cache
def _load_questions() -> dict[str, list[str]]:
    by_kind: dict[str, list[str]] = {kind: [] for kind in _KIND_TITLES}
    for line in (questions_dir() / "queries.jsonl").read_text(encoding="utf-8").splitlines():
        question = json.loads(line)
        if question.get("kind") in by_kind and len(question["text"]) < 58:
            by_kind[question["kind"]].append(question["text"])
    return {kind: texts[:_QUESTIONS_PER_KIND] for kind, texts in by_kind.items() if texts}


def show_sample_questions(wb: Workbench) -> None:
    """Offer sample questions, or explain the page if the sample is not loaded."""
    if not _has_sample(wb):
        show_message(
            "Ask a question",
            "Each column shows the results of one strategy; the lines between the columns show where they agree.",
        )
        return
    st.html(f'<p class="wb-lead">{INTRODUCTION}</p>')
    st.html('<p class="wb-lead">Each column shows one strategy; the lines between them show where they disagree. '
            "Ask anything, or start with one of these.</p>")  # fmt: skip
    with st.container(key="sample_questions"):
        columns = st.columns(len(_load_questions()), gap="large")
    for column, (kind, texts) in zip(columns, _load_questions().items(), strict=True):
        with column:
            st.html(f'<p class="wb-kind">{_KIND_TITLES[kind]}</p>')
            for place, text in enumerate(texts):
                key = f"sample_{kind}_{place}"
                st.button(text, key=key, type="tertiary", on_click=address.put, kwargs={"q": text})
    show_further_ways()


def _has_sample(wb: Workbench) -> bool:
    try:
        return wb.sources.get(SAMPLE_TITLE).documents_count > 0
    except (NotFound, Ambiguous):
        return False
