"""Reads that several parts of a page need: made once in a run of the script, so that all of them tell the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import streamlit as st

if TYPE_CHECKING:
    from workbench.types import Index
    from workbench.workbench import Workbench

_INDEXES = "indexes_of_run"


def begin_run() -> None:
    """Drop what the run before has read."""
    st.session_state.pop(_INDEXES, None)


def indexes_of_run(workbench: Workbench) -> Sequence[Index]:
    """Return a person's indexes with what they hold, which is counted once a run. Raises StorageError."""
    if _INDEXES not in st.session_state:
        st.session_state[_INDEXES] = tuple(workbench.indexes.list())
    return st.session_state[_INDEXES]


def theme_of_run() -> str:
    """Return "light" or "dark": the theme whose colours this run gives to its charts."""
    return "dark" if st.context.theme.type == "dark" else "light"
