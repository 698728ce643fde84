"""The table of pages: adding one is a module with ``page()`` under pages/ and a line here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import streamlit as st


@dataclass(frozen=True, slots=True)
class PageEntry:
    """A page: its module under pages/ (also its address) and its name in the bar."""

    module: str
    title: str

    def runner(self) -> Callable[[], None]:
        """Return what shows the page; its module is imported when it is first visited."""

        def run() -> None:
            import_module(f"workbench.app.pages.{self.module}").page()

        run.__name__ = self.module
        return run


PAGES = (
    PageEntry("compare", "Compare"),
    PageEntry("library", "Library"),
    PageEntry("crawl", "Crawl"),
    PageEntry("evaluate", "Evaluate"),
    PageEntry("graph", "Graph"),
    PageEntry("connect", "Connect"),
    PageEntry("system", "System"),
)


def pages() -> list[Any]:
    """Return the pages for ``st.navigation``; the first is home."""
    return [
        st.Page(entry.runner(), title=entry.title, url_path=entry.module, default=place == 0)
        for place, entry in enumerate(PAGES)
    ]


def switch(module: str) -> None:
    """Go to a page by its module's name; ends the run."""
    place = next(place for place, entry in enumerate(PAGES) if entry.module == module)
    st.switch_page(pages()[place])
