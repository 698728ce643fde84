"""The values that all visitors of this process share: the workbench and a count of the changes.

Module-level values and not ``st.cache_resource``: the server begins to open before the first visitor has a session.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import streamlit as st

from workbench.opening import Opening, warm_model
from workbench.retrieval.first_import import import_framework
from workbench.retrieval.strategies import DEFAULT_STRATEGY
from workbench.telemetry import untold

if TYPE_CHECKING:
    from workbench.types import Index
    from workbench.workbench import Workbench

# --- Widgets whose value the address holds: the page says what they show, and hears from the browser what was ---


def show_value(key: str, value: object, among: Iterable[str] = ()) -> None:
    """Let the widget of this key show a value, where it does not show it yet.

    ``among`` names the choices of a widget whose choices change: with others it is another widget to Streamlit, which
    begins empty. A value that is assigned in every run is sent back to the browser each time; where that comes late, it
    takes the place of a newer choice, and the next request carries the old one as if a person had chosen it.
    """
    choices, last = tuple(among), f"{key}_choices"
    if key not in st.session_state or st.session_state[key] != value or st.session_state.get(last) != choices:
        st.session_state[key] = value
    st.session_state[last] = choices


# --- Reads that several parts of a page need: made once in a run of the script, so that all of them tell the same ---

_INDEXES = "indexes_of_run"


def begin_run() -> None:
    """Drop what the run before has read."""
    st.session_state.pop(_INDEXES, None)


def indexes_of_run(wb: Workbench) -> Sequence[Index]:
    """Return a person's indexes with what they hold, which is counted once a run. Raises StorageError."""
    if _INDEXES not in st.session_state:
        st.session_state[_INDEXES] = tuple(wb.indexes.list())
    return st.session_state[_INDEXES]


def theme_of_run() -> str:
    """Return "light" or "dark": the theme whose colours this run gives to its charts."""
    return "dark" if st.context.theme.type == "dark" else "light"


def _warm(wb: Workbench) -> None:
    """Load the model, the retrieval framework, and the parts of the language model that take seconds to import."""
    import_framework()
    warm_model(wb)
    with untold():  # nobody asked for it
        wb.search("warm", strategy=DEFAULT_STRATEGY, limit=1)
    if wb.corpus.llm is not None:
        _ = wb.corpus.llm.framework  # the first answer would wait for its import


LONGEST_UNDRAWN = 2.0  # seconds in which the first page is drawn; the model is loaded then, or where no browser comes
OPENING = Opening(warmer=_warm, patience=LONGEST_UNDRAWN)  # what is imported beside the first page keeps it waiting
_changes = [0]


def changes() -> int:
    """Return how often this process changed the corpus, so that a page can tell that an answer is out of date."""
    return _changes[0]


def note_change() -> None:
    """Count a change of documents, sources, projects or indexes."""
    _changes[0] += 1
