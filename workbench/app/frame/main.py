"""The script that Streamlit runs for every visit; it draws the frame around the current page."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import streamlit as st

from workbench.app.shell.navigation import PageEntry, show_navigation
from workbench.app.shell.scope_bar import show_finder, show_scope_bar
from workbench.app.shell.states import show_error, show_opening
from workbench.app.shell.work import show_tray
from workbench.app.state import address
from workbench.app.state.shared import APP_TITLE, OPENING, clear_run_cache, current_theme, name_tab
from workbench.app.widgets.notices import load_stylesheet, mount
from workbench.errors import WorkbenchError

# Pages. A new page is a folder with page.py, a case here that imports it, and an entry in PAGES.


def _show_page(name: str) -> None:
    """Import a page on its first visit, and draw it."""
    match name:
        case "compare":
            from workbench.app.compare.page import page
        case "library":
            from workbench.app.library.page import page
        case "crawl":
            from workbench.app.crawl.page import page
        case "evaluate":
            from workbench.app.evaluate.page import page
        case "graph":
            from workbench.app.graph.page import page
        case "connect":
            from workbench.app.connect.page import page
        case _:
            from workbench.app.system.page import page
    page()


PAGES = (
    PageEntry("compare", "Compare", partial(_show_page, "compare")),
    PageEntry("library", "Library", partial(_show_page, "library"), lists_files=True),
    PageEntry("crawl", "Crawl", partial(_show_page, "crawl"), jobs=("crawl",)),
    PageEntry(
        "evaluate",
        "Evaluate",
        partial(_show_page, "evaluate"),
        jobs=("experiment", "optimise", "learn"),
        has_scope=False,
    ),
    PageEntry("graph", "Graph", partial(_show_page, "graph")),
    PageEntry("connect", "Connect", partial(_show_page, "connect")),
    PageEntry("system", "System", partial(_show_page, "system")),
)


OPENING_WAIT_S = 0.2  # seconds to wait for the workbench before a skeleton is shown


def main() -> None:
    """Show the navigation, the scope bar, the tray and the page."""
    icon = Path(__file__).parent / "static" / "icon.svg"
    st.set_page_config(page_title=APP_TITLE, page_icon=str(icon), layout="wide")
    st.html(load_stylesheet())
    st.logo(str(icon), size="medium")
    entry, page = show_navigation(PAGES)
    name_tab(page=entry.title, part="")
    address.arrive(entry.name)
    clear_run_cache()
    in_the_meantime = st.empty()  # a separate slot, which the page clears immediately
    try:
        wb = OPENING.wait(OPENING_WAIT_S)
        if wb is None:
            show_opening(in_the_meantime)
            return
        if entry.has_scope:
            show_scope_bar(wb)
        else:
            show_finder()
        show_tray(entry)
        page.run()
    except WorkbenchError as error:
        show_error(error)
    address.remember()
    mount("shell/shortcuts", "shortcuts", {"theme": current_theme()}, "theme")  # charts get the theme's colours
    OPENING.warm_now()


if __name__ == "__main__":  # so Streamlit runs it; an import, for PAGES, must not open the workbench
    main()
