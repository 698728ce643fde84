"""Taking a comparison along: files in three forms, and the link that shows it again."""

from __future__ import annotations

from urllib.parse import urlencode

import streamlit as st

from workbench.app.compare.columns import Asking
from workbench.comparison_files import FORMS, Asked
from workbench.types import Comparison

MAX_FILE_NAME_CHARS = 60  # characters of a file's name


def export_button(comparison: Comparison, asking: Asking, limit: int) -> None:
    """Show the button with the forms and the link behind it."""
    asked = Asked(tuple(comparison.strategies), limit, asking.scope, asking.index, asking.parameters)
    with st.popover("Export", type="tertiary", icon=":material/ios_share:", key="export_popover"):
        for ending, (title, media_type, write) in FORMS.items():
            st.download_button(
                title,
                lambda write=write: write(comparison, asked),
                file_name(comparison.query) + ending,
                media_type,
                icon=":material/download:",
                on_click="ignore",
                width="stretch",
            )
        with st.container(key="copy_link"):
            st.caption("A link to this comparison; the sign at its right end copies it")
            st.code(link(), language=None, wrap_lines=True)


def file_name(question: str) -> str:
    """Return a file's name for a question: its words, nothing that a system could stumble over."""
    words = "".join(char if char.isalnum() else "-" for char in question)
    return "-".join(part for part in words.split("-") if part)[:MAX_FILE_NAME_CHARS] or "comparison"


def link() -> str:
    """Return the address of the page as it is now."""
    query = urlencode({name: st.query_params.get_all(name) for name in st.query_params}, doseq=True)
    return f"{str(st.context.url).partition('?')[0]}?{query}"
