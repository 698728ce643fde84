"""The navigation between pages; the table of them is ``workbench/app/frame/main.py``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from urllib.parse import unquote, urlsplit

import streamlit as st
from streamlit.navigation.page import StreamlitPage

from workbench.app.shell.serve import MISSING
from workbench.app.state import address

_PAGES = "pages_of_the_app"
LONGEST_PATH = 80  # characters of an unknown path that are repeated


@dataclass(frozen=True, slots=True)
class PageEntry:
    """A page: its name in addresses and code, its title in the bar, the function that draws it.

    ``jobs`` are the kinds of jobs that the page shows itself, so that the bar of long work leaves them out there;
    ``lists_files`` lets that bar list the files of uploads under their line.
    """

    name: str
    title: str
    draw: Callable[[], None]
    jobs: tuple[str, ...] = ()
    lists_files: bool = False


def navigation(entries: Sequence[PageEntry]) -> tuple[PageEntry, StreamlitPage]:
    """Show the bar of pages; returns the entry that the address names, and its page to run. The first is home.

    A path that no page has gets one of its own, outside of the bar, that says so.
    """
    pages = {
        entry.name: st.Page(entry.draw, title=entry.title, url_path=entry.name, default=place == 0)
        for place, entry in enumerate(entries)
    }
    st.session_state[_PAGES] = pages
    asked = _asked_path()
    missing = PageEntry(MISSING, "No such page", lambda: _missing(asked))
    if asked and asked not in pages:
        entries, pages = [*entries, missing], {**pages, asked: _hidden(missing, asked)}
    current = st.navigation(list(pages.values()), position="top")
    place = next((place for place, page in enumerate(pages.values()) if page.url_path == current.url_path), 0)
    return entries[place], current


def _hidden(entry: PageEntry, path: str) -> StreamlitPage:
    return st.Page(entry.draw, title=entry.title, url_path=path, visibility="hidden")


def _asked_path() -> str:
    """Return the last part of the path that the browser shows, "" for home."""
    base = str(st.get_option("server.baseUrlPath") or "").strip("/")
    path = urlsplit(str(st.context.url or "")).path.strip("/")
    return unquote(path.removeprefix(base).rpartition("/")[2])


def _missing(path: str) -> None:
    """Say that there is no page of that path, and lead to those that there are."""
    known: dict[str, StreamlitPage] = st.session_state[_PAGES]
    if path == MISSING:  # of several parts, which came as a value
        path = address.get("path", path).strip("/")
    with st.container(key="failed"):
        body = f"<h2>There is no page /{escape(path[:LONGEST_PATH])}</h2><p>These are the pages:</p>"
        st.html(f'<div class="wb-state">{body}</div>')
        for page in known.values():
            st.page_link(page)


def switch(name: str) -> None:
    """Go to the page of that name; ends the run. Raises KeyError where the table has none."""
    st.switch_page(st.session_state[_PAGES][name])
