"""The script that Streamlit runs for every visit: the frame around the current page."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from workbench.app.shell.navigation import PageEntry, navigation
from workbench.app.shell.scope_bar import scope_bar
from workbench.app.shell.states import failed, opening
from workbench.app.shell.work import work_bar
from workbench.app.state import address
from workbench.app.state.shared import OPENING, begin_run, theme_of_run
from workbench.app.widgets.notices import component, stylesheet
from workbench.errors import WorkbenchError

# Pages. A new page is a folder with page.py, a function here that imports it, and an entry in PAGES.


def _compare() -> None:
    from workbench.app.compare.page import page

    page()


def _library() -> None:
    from workbench.app.library.page import page

    page()


def _crawl() -> None:
    from workbench.app.crawl.page import page

    page()


def _evaluate() -> None:
    from workbench.app.evaluate.page import page

    page()


def _graph() -> None:
    from workbench.app.graph.page import page

    page()


def _connect() -> None:
    from workbench.app.connect.page import page

    page()


def _system() -> None:
    from workbench.app.system.page import page

    page()


PAGES = (
    PageEntry("compare", "Compare", _compare),
    PageEntry("library", "Library", _library, lists_files=True),
    PageEntry("crawl", "Crawl", _crawl, jobs=("crawl",)),
    PageEntry("evaluate", "Evaluate", _evaluate, jobs=("experiment", "optimise", "learn")),
    PageEntry("graph", "Graph", _graph),
    PageEntry("connect", "Connect", _connect),
    PageEntry("system", "System", _system),
)


PATIENCE = 0.2  # seconds to wait for the workbench before a skeleton is shown


def main() -> None:
    """Show the navigation, the scope bar, the tray and the page."""
    icon = Path(__file__).parent / "static" / "icon.svg"
    st.set_page_config(page_title="RAG Workbench", page_icon=str(icon), layout="wide")
    st.html(stylesheet())
    st.logo(str(icon), size="medium")
    entry, page = navigation(PAGES)
    address.arrive(entry.name)
    begin_run()
    in_the_meantime = st.empty()  # a slot of its own, which the page clears at once
    try:
        wb = OPENING.wait(PATIENCE)
        if wb is None:
            opening(in_the_meantime)
            return
        scope_bar(wb)
        work_bar(entry)
        page.run()
    except WorkbenchError as error:
        failed(error)
    address.remember()
    component("shell/shortcuts")(key="shortcuts", data={"theme": theme_of_run()}, on_theme_change=_drawn_anew)
    OPENING.warm_now()


def _drawn_anew() -> None:
    """Do nothing: the callback reruns the page, so that charts get the colours of the new theme."""


main()
