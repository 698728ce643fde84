"""Navigation between pages, which are listed in ``workbench/app/frame/main.py``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from urllib.parse import unquote, urlsplit

import streamlit as st
from streamlit.navigation.page import StreamlitPage

from workbench.app.shell.serve import MISSING_PAGE
from workbench.app.state import address

MAX_PATH_CHARS = 80  # characters of an unknown path that are shown


@dataclass(frozen=True, slots=True)
class PageEntry:
    """A page of the app."""

    name: str  # its name in URLs and code
    title: str  # its title in the navigation bar
    draw: Callable[[], None]  # draws it
    jobs: tuple[str, ...] = ()  # kinds of jobs that it shows itself, so that the tray omits them
    lists_files: bool = False  # true if the tray lists uploaded files on this page
    has_scope: bool = True  # false if each test set on it has its own scope, so that there is no scope bar


def show_navigation(entries: Sequence[PageEntry]) -> tuple[PageEntry, StreamlitPage]:
    """Show the navigation bar, and return the current entry with its page to run. The first page is home.

    Streamlit serves home at / only, and names only in small letters. Names as people type them (/compare, /Evaluate)
    lead to their page with the query kept. Unknown paths get a hidden page that reports them.
    """
    pages = {
        entry.name: st.Page(entry.draw, title=entry.title, url_path=entry.name if place else "", default=place == 0)
        for place, entry in enumerate(entries)
    }
    st.session_state[address.PAGES_KEY] = pages
    asked = _current_path()
    meant = pages.get(asked.lower())
    missing = PageEntry(MISSING_PAGE, "Page not found", lambda: _show_missing(asked))
    if asked and (meant is None or meant.url_path != asked):
        entries, pages = [*entries, missing], {**pages, f"/{asked}": _make_hidden_page(missing, asked)}
    current = st.navigation(list(pages.values()), position="top")
    if meant is not None and current.url_path == asked != meant.url_path:
        st.switch_page(meant, query_params={name: st.query_params.get_all(name) for name in st.query_params})
    place = next((place for place, page in enumerate(pages.values()) if page.url_path == current.url_path), 0)
    return entries[place], current


def _make_hidden_page(entry: PageEntry, path: str) -> StreamlitPage:
    return st.Page(entry.draw, title=entry.title, url_path=path, visibility="hidden")


def _current_path() -> str:
    """Return the last part of the path in the browser, "" for home."""
    base = str(st.get_option("server.baseUrlPath") or "").strip("/")
    path = urlsplit(str(st.context.url or "")).path.strip("/")
    return unquote(path.removeprefix(base).rpartition("/")[2])


def _show_missing(path: str) -> None:
    """Report an unknown path, with links to all pages."""
    known: dict[str, StreamlitPage] = st.session_state[address.PAGES_KEY]
    if path == MISSING_PAGE:  # a path of several parts is passed as a value
        path = address.get("path", path).strip("/")
    with st.container(key="failed"):
        body = f"<h2>Page /{escape(path[:MAX_PATH_CHARS])} not found</h2><p>Go to:</p>"
        st.html(f'<div class="wb-state">{body}</div>')
        for page in known.values():
            st.page_link(page)
