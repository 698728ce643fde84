"""The notice of the last change, and the door through which every change of a dialog goes."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from workbench.app.state.shared import note_change
from workbench.app.widgets.labels import escaped
from workbench.errors import WorkbenchError

_NOTICE, _WARNING = "notice", "warning_of_the_last_visit"


def show_notice() -> None:
    """Show the sentence about the last change, once."""
    notice, warning = st.session_state.pop(_NOTICE, None), st.session_state.pop(_WARNING, None)
    if notice:
        st.success(escaped(notice), icon=":material/check:")
    if warning:
        st.warning(escaped(warning), icon=":material/info:")


def leave_notice(sentence: str) -> None:
    """Let the next drawing of the page show a sentence, literally."""
    st.session_state[_NOTICE] = sentence


def leave_warning(sentence: str) -> None:
    """Let the next drawing of the page show a sentence as a warning, literally."""
    st.session_state[_WARNING] = sentence


def act(change: Callable[[], str]) -> None:
    """Make a change and close the dialog with the sentence it returns; show the error instead where it fails."""
    try:
        leave_notice(change())
    except WorkbenchError as error:
        st.error(escaped(str(error)))
        return
    note_change()
    st.rerun()
