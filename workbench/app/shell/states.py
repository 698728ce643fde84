"""The screens for when there is nothing to show yet: opening, slow, empty, failed; each says what to do next."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from html import escape
from typing import TYPE_CHECKING

import streamlit as st

from workbench.app.shell.scope_bar import clear_scope
from workbench.app.state.shared import OPENING
from workbench.errors import ConfigurationError, InvalidInput, ModelError, NotFound, ScopeError, StorageError

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

_HEADINGS: dict[type[Exception], str] = {
    StorageError: "The database does not answer",
    ConfigurationError: "A setting is wrong",
    ModelError: "The model cannot be used",
    ScopeError: "The scope does not fit",
    NotFound: "Not found",
    InvalidInput: "The request is not valid",
}


def message(heading: str, *sentences: str, said: str = "") -> None:
    """Show a heading with sentences under it; ``said`` is a text from elsewhere, shown as it is."""
    body = "".join(f"<p>{escape(sentence)}</p>" for sentence in sentences if sentence)
    quoted = f'<p class="said">{escape(said)}</p>' if said else ""
    st.html(f'<div class="wb-state"><h2>{escape(heading)}</h2>{quoted}{body}</div>')


def failed(error: Exception, remedies: Mapping[str, Callable[[], None]] | None = None) -> None:
    """Show an error: what happened, and a button for each remedy; without any, one that tries again."""
    heading = next((text for kind, text in _HEADINGS.items() if isinstance(error, kind)), "That did not work")
    with st.container(key="failed"):
        message(heading, said=str(error))
        if isinstance(error, ScopeError):  # trying again would not help; widening does
            st.button("Search everything", on_click=clear_scope, icon=":material/close:")
            return
        for label, remedy in (remedies or {"Try again": _open_again}).items():
            st.button(label, on_click=remedy)


def _open_again() -> None:
    OPENING.again()


def opening(place: DeltaGenerator) -> None:
    """Show the shape of a page in ``place`` while the workbench opens, and come back by itself."""
    with place.container(key="opening"):
        st.html(
            '<p class="wb-lead" role="status">Opening the workbench: the database starts, '
            "on a first run the sample is read, then the model loads.</p>"
        )
        st.skeleton(height=56)
        columns = st.columns(4)
        for column in columns:
            with column:
                st.skeleton(height=34)
                st.skeleton(height=150)
                st.skeleton(height=150)
    _return_when_open()


@st.fragment(run_every=0.4)
def _return_when_open() -> None:
    if OPENING.settled:
        st.rerun()


def board_skeleton(columns: int) -> None:
    """Show where the columns of a comparison will stand."""
    for column in st.columns(columns):
        with column:
            st.skeleton(height=40)
            for _ in range(3):
                st.skeleton(height=150)
