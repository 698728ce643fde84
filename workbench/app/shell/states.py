"""Screens for pages without content: starting, loading, empty, failed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import streamlit as st

from workbench.app.shell.scope_bar import clear_scope
from workbench.app.state.shared import OPENING
from workbench.app.widgets.looks import show_message
from workbench.errors import (
    ConfigurationError,
    InvalidInput,
    ModelError,
    NotFound,
    OtherVersion,
    ScopeError,
    StorageError,
)

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

_HEADINGS: dict[type[Exception], str] = {
    OtherVersion: "Database of another version",
    StorageError: "Database not available",
    ConfigurationError: "Invalid setting",
    ModelError: "Model not available",
    ScopeError: "Invalid scope",
    NotFound: "Not found",
    InvalidInput: "Invalid request",
}


def show_error(error: Exception, remedies: Mapping[str, Callable[[], None]] | None = None) -> None:
    """Show an error and a button for each remedy, or a "Try again" button if that can help."""
    heading = next((text for kind, text in _HEADINGS.items() if isinstance(error, kind)), "Something went wrong")
    with st.container(key="failed"):
        show_message(heading, detail=str(error))
        if isinstance(error, ScopeError):  # trying again would not help
            st.button("Clear scope", on_click=clear_scope, icon=":material/close:")
            return
        if isinstance(error, OtherVersion):
            st.markdown("Then start the app again with that home or database.")
            return
        for label, remedy in (remedies or {"Try again": _reopen}).items():
            st.button(label, on_click=remedy)


def _reopen() -> None:
    OPENING.again()


def show_opening(place: DeltaGenerator) -> None:
    """Show a skeleton in ``place`` while the workbench starts, and rerun when it is ready."""
    with place.container(key="opening"):
        st.html(
            '<p class="wb-lead" role="status">Starting the workbench: database, sample (first run only), model…</p>'
        )
        st.skeleton(height=56)
        columns = st.columns(4)
        for column in columns:
            with column:
                st.skeleton(height=34)
                st.skeleton(height=150)
                st.skeleton(height=150)
    _rerun_when_open()


@st.fragment(run_every=0.4)
def _rerun_when_open() -> None:
    if OPENING.is_settled:
        st.rerun()


def show_board_skeleton(columns: int) -> None:
    """Show a skeleton of the columns of a comparison."""
    for column in st.columns(columns):
        with column:
            st.skeleton(height=40)
            for _ in range(3):
                st.skeleton(height=150)
