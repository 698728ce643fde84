"""The part of the Crawl page where a crawl begins: an address, how far to go, and a look at what that would bring."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import streamlit as st

from workbench.app import address
from workbench.app.labels import counted, escaped
from workbench.app.table import Column, table
from workbench.errors import WorkbenchError

if TYPE_CHECKING:
    from workbench.workbench import Workbench

WITHIN = {"path": "The start page's folder", "host": "The whole host", "domain": "The host and its subdomains"}
BROWSER = {"auto": "Where a page is empty without it", "always": "For every page", "never": "Never"}
GONE = {"remove": "Remove their documents", "keep": "Keep them, marked as gone"}
_SEEN = "crawl_dry_run"
SAMPLE = 1_500  # characters of a sample that are shown


def start_form(workbench: Workbench) -> None:
    """Show the form, and below it what a look at the site found."""
    with st.container(border=True, key="crawl_start"):
        url = st.text_input("Start page", key="crawl_url", placeholder="https://docs.example.com/guide/")
        source, options = _options(workbench)
        with st.container(horizontal=True, vertical_alignment="center"):
            look = st.button("Look first", key="crawl_look", disabled=not url)
            go = st.button("Start crawl", key="crawl_go", type="primary", disabled=not url)
            st.caption("Looking fetches a few pages and stores nothing.")
    if look:
        _look(workbench, url, options)
    if go:
        _start(workbench, url, source, options)
    seen = st.session_state.get(_SEEN)
    if seen is not None and seen["asked"] == url:
        show_dry_run(seen)


def _options(workbench: Workbench) -> tuple[str | None, dict[str, Any]]:
    first, second, third, fourth = st.columns([2, 2, 3, 4], vertical_alignment="bottom")
    with first, st.container(height=40, border=False, vertical_alignment="center"):
        recursive = st.toggle("Follow links", value=True, key="crawl_recursive")
    with second:
        most = st.number_input("Pages at most", 1, 100_000, 200, key="crawl_most", disabled=not recursive)
    with third:
        within = st.selectbox("Keep to", list(WITHIN), format_func=WITHIN.__getitem__, key="crawl_within")
    with fourth:
        source = _source(workbench)
    with st.expander("Patterns, browser, what is gone"):
        left, right = st.columns(2)
        with left:
            include = st.text_area("Only addresses with one of these in them (one a line)", key="crawl_include")
            browser = st.selectbox("Render with a browser", list(BROWSER), format_func=BROWSER.__getitem__)
        with right:
            exclude = st.text_area("No addresses with one of these in them (one a line)", key="crawl_exclude")
            gone = st.selectbox("When pages are gone", list(GONE), format_func=GONE.__getitem__)
    return source, {
        "recursive": recursive,
        "max_pages": int(most),
        "within": within,
        "include": _lines(include),
        "exclude": _lines(exclude),
        "browser": browser,
        "gone": gone,
    }


def _source(workbench: Workbench) -> str | None:
    titles = [source.title for source in workbench.knowledge.sources(source_type="crawl")]
    return st.selectbox(
        "Into source", titles, index=None, accept_new_options=True, key="crawl_source",
        placeholder="One of its own, or type a name",
    )  # fmt: skip


def _look(workbench: Workbench, url: str, options: Mapping[str, Any]) -> None:
    try:
        with st.spinner("Looking at the site…"):
            st.session_state[_SEEN] = workbench.crawls.dry_run(url, **options) | {"asked": url}
    except WorkbenchError as error:
        st.session_state.pop(_SEEN, None)
        st.error(escaped(str(error)))


def _start(workbench: Workbench, url: str, source: str | None, options: Mapping[str, Any]) -> None:
    try:
        job = workbench.crawls.start(url, source=source, **options)
    except WorkbenchError as error:
        st.error(escaped(str(error)))
        return
    st.session_state.pop(_SEEN, None)
    address.put(job=job.id)
    st.rerun()


def show_dry_run(seen: Mapping[str, Any]) -> None:
    """Show what a crawl would fetch, what not and why, samples of the text, and an estimate."""
    estimate = seen["estimate"]
    least = "at least " if estimate["at_least"] else ""
    st.subheader(f"This crawl would fetch {least}{counted(estimate['pages'], 'page')}", anchor=False)
    st.caption(
        f"About {max(1, round(estimate['seconds'])):,} s of fetching, {estimate['text_bytes'] / 1000:,.0f} kB of text, "
        f"{estimate['passages']:,} passages. Nothing has been stored."
    )
    names = ["Samples", f"To fetch ({len(seen['would_fetch'])})", f"Not fetched ({len(seen['would_not_fetch'])})"]
    samples, wanted, refused = st.tabs(names)
    with samples:
        _samples(seen["samples"])
    with wanted:
        columns = (Column("url", "Address"), Column("via", "Found by"), Column("depth", "Links away", "number"))
        table("dry_wanted", columns, _rows(seen["would_fetch"]), label="Pages to fetch", noun="pages")
    with refused:
        columns = (Column("url", "Address"), Column("reason", "Why not"))
        rows = _rows([*seen["would_not_fetch"], *seen["failed"]])
        table("dry_refused", columns, rows, label="Not fetched", noun="pages", empty="Nothing is kept out.")


def _samples(samples: Sequence[Mapping[str, Any]]) -> None:
    for sample in samples:
        st.markdown(f"**{escaped(sample['title'] or sample['url'])}** · {sample['characters']:,} characters")
        st.code(sample["text"][:SAMPLE], language=None, wrap_lines=True, height=220)


def _rows(entries: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [{"id": entry["url"], "name": entry["url"], "cells": dict(entry)} for entry in entries]


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]
