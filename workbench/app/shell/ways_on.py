"""The ways in for documents as buttons, for every page that has nothing to show without them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from workbench.app.shell.navigation import switch
from workbench.app.shell.sample_work import start_sample
from workbench.app.shell.work import WORKS

if TYPE_CHECKING:
    from workbench.workbench import Workbench

PAGES = {"library": ("Add files", ":material/upload_file:"), "crawl": ("Crawl a site", ":material/travel_explore:")}


def way_to(page: str, *, is_chief: bool = False) -> None:
    """Show the button that leads to a page through which documents come in."""
    label, icon = PAGES[page]
    if st.button(label, icon=icon, type="primary" if is_chief else "secondary", key=f"to_{page}"):
        switch(page)


def way_to_sample(workbench: Workbench) -> None:
    """Show the button that loads the sample, disabled while work goes on."""
    loading = any(work.running for work in WORKS.all().values())
    why = "Other work goes on; the sample can be loaded after it." if loading else None
    if st.button("Load the sample", icon=":material/auto_stories:", disabled=loading, help=why, key="to_sample"):
        start_sample(workbench)
        st.rerun()


def ways_on(workbench: Workbench, *pages: str) -> None:
    """Show buttons in a row: to these pages, of which the one for files is the chief one, and for the sample."""
    with st.container(horizontal=True, key="ways_on"):
        for page in pages:
            way_to(page, is_chief=page == "library")
        way_to_sample(workbench)
