"""The first minute: what this is, the three ways in, and what comes after the first comparison."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from workbench.app.compare.judging.judgments import own_test_sets
from workbench.app.shell.navigation import switch
from workbench.app.shell.states import message
from workbench.app.shell.ways_on import PAGES, way_to, way_to_sample
from workbench.ingestion.readers.formats import format_titles

if TYPE_CHECKING:
    from workbench.workbench import Workbench

WHAT_IT_IS = (
    "The workbench asks your documents a question in several ways at once, by meaning, by words and by both, and shows "
    "side by side what each finds. You judge, it measures, and the way that wins serves your agents."
)
WAYS = {"library": "Your files", "crawl": "A website"}


def empty_home(workbench: Workbench) -> None:
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
        way_to_sample(workbench)


def _heading(title: str, sentence: str) -> None:
    st.html(f'<p class="wb-way"><b>{title}</b><br>{sentence}</p>')


def further_ways() -> None:
    """Offer, below the sample's questions, to bring in documents of one's own."""
    with st.container(horizontal=True, vertical_alignment="center", key="further_ways"):
        st.html('<p class="wb-kind">Or bring your own documents:</p>', width="content")
        for page, (label, icon) in PAGES.items():
            if st.button(label, icon=icon, type="tertiary"):
                switch(page)


def next_step(workbench: Workbench, judging: bool) -> None:
    """Say below a comparison what to do next, until there is a test set."""
    if judging or own_test_sets(workbench):
        return
    st.html(
        '<p class="wb-serving">Next: press <b>Judge</b> and mark what is relevant by the keys 1, 2 and 3. A few judged '
        "questions make a test set, by which <b>Evaluate</b> tells the best strategy, and <b>Promote</b> gives it to "
        "your agents.</p>"
    )
