"""Widgets whose value the address holds: the page says what they show, and hears from the browser what was chosen."""

from __future__ import annotations

from collections.abc import Iterable

import streamlit as st


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
