"""Values shared by all visitors: the workbench and a change counter.

These are module-level values, not ``st.cache_resource``, because the server opens the workbench before the first
visitor has a session.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, TypeVar
from uuid import uuid4

import streamlit as st

from workbench.app.state import address
from workbench.opening import Opening
from workbench.retrieval.strategies import DEFAULT_STRATEGY
from workbench.services.corpus import import_framework
from workbench.telemetry import suppress_telemetry

if TYPE_CHECKING:
    from workbench.types import Index
    from workbench.workbench import Workbench

# The title of the browser's tab

APP_TITLE = "RAG Workbench"
_TAB_KEY = "tab"


def name_tab(**changes: str) -> None:
    """Change parts of the title of the browser's tab, such as "(12%) Projects and folders · Library · RAG Workbench".

    Args:
        changes: ``state`` of the jobs, ``part`` of the page, and ``page``; "" leaves a part out.
    """
    before = st.session_state.get(_TAB_KEY, {})
    tab = before | changes
    if tab == before and changes.keys() == {"state"}:  # which is read every second
        return
    st.session_state[_TAB_KEY] = tab
    state = f"({tab['state']}) " if tab.get("state") else ""
    st.set_page_config(page_title=state + " · ".join(filter(None, (tab.get("part"), tab.get("page"), APP_TITLE))))


# Widgets whose value is in the URL

_Value = TypeVar("_Value")


def show_value(key: str, value: _Value, among: Iterable[str] = ()) -> _Value:
    """Set the value of a widget, unless it has it already, and return it.

    A value assigned in every run is sent to the browser each time, and may arrive late and overwrite a newer choice.
    The widget also needs it as its default: a slow browser may draw only a later run, which does not send the value.

    Args:
        key: Key of the widget.
        value: Its value.
        among: Its choices, if they change: with other choices Streamlit creates a new, empty widget.
    """
    choices, last = tuple(among), f"{key}_choices"
    if key not in st.session_state or st.session_state[key] != value or st.session_state.get(last) != choices:
        st.session_state[key] = value
    st.session_state[last] = choices
    return value


def choose_in_url(
    label: str,
    titles: Mapping[str, str],
    name: str,
    key: str,
    *,
    labelled: bool = False,
    current: str = "",
    width: Literal["content", "stretch"] = "content",
) -> str:
    """Show a choice whose value is in the URL, and return it. The first one is the default, which the URL leaves out.

    Args:
        label: Its label.
        titles: Titles of the values.
        name: Name of the value in the URL.
        key: Key of the widget.
        labelled: Show the label.
        current: The current value, if it does not depend on the URL alone; then there is no default.
        width: Width of the control.
    """
    default, named = "" if current else next(iter(titles)), address.get(name)
    latest = f"{key}_latest"
    shown = str(st.session_state.setdefault(latest, key))
    if current and st.session_state.get(shown, current) != current:
        # Changed by another element: a new widget, because the browser may still send the old one's value.
        shown = st.session_state[latest] = f"{key}_{uuid4().hex[:8]}"
    value = show_value(shown, current or (named if named in titles else default), titles.values())

    def change() -> None:
        if shown == st.session_state[latest]:
            chosen = st.session_state[shown]
            address.put(**{name: None if chosen == default else chosen})

    chosen = st.segmented_control(
        label,
        list(titles),
        default=value,
        key=shown,
        format_func=titles.__getitem__,
        required=True,
        width=width,
        label_visibility="visible" if labelled else "collapsed",
        on_change=change,
    )
    if name == "view":
        name_tab(part="" if chosen in (None, default) else titles[chosen])
    return chosen or default


# Values read once per run of the script

_INDEXES_KEY = "indexes_of_run"


def clear_run_cache() -> None:
    """Clear the values cached during the last run."""
    st.session_state.pop(_INDEXES_KEY, None)


def load_indexes(wb: Workbench) -> Sequence[Index]:
    """Return the indexes with their counts, read once per run.

    Raises:
        StorageError: The database is not available.
    """
    if _INDEXES_KEY not in st.session_state:
        st.session_state[_INDEXES_KEY] = tuple(wb.indexes.list())
    return st.session_state[_INDEXES_KEY]


def current_theme() -> str:
    """Return the theme of this run, "light" or "dark"."""
    return "dark" if st.context.theme.type == "dark" else "light"


def _warm_up(wb: Workbench) -> None:
    """Load the model, the retrieval framework and the LLM client, which take seconds to import."""
    import_framework()
    wb.warm()
    with suppress_telemetry():  # not a user's search
        wb.search("warm", strategy=DEFAULT_STRATEGY, limit=1)
    if wb.corpus.llm is not None:
        _ = wb.corpus.llm.framework  # otherwise the first answer waits for its import


WARM_UP_DELAY_S = 2.0  # seconds for the first page to be drawn before the model is loaded
OPENING = Opening(warmer=_warm_up, patience=WARM_UP_DELAY_S)  # imports would delay the first page
_change_count = [0]


def change_count() -> int:
    """Return how often this process has changed the corpus; part of cache keys."""
    return _change_count[0]


def note_change() -> None:
    """Record a change of documents, sources, projects or indexes."""
    _change_count[0] += 1
