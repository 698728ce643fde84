"""The notice of the last change, and the door through which every change of a dialog goes."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import streamlit as st
from streamlit.components import v2
from streamlit.components.v2.types import ComponentRenderer

from workbench.app.state.address import rooted
from workbench.app.state.shared import note_change
from workbench.app.widgets.looks import escaped, hue_rules
from workbench.errors import WorkbenchError
from workbench.models.registry import BUILT_IN
from workbench.services.indexes import NOT_INSTALLED, OFFERED

if TYPE_CHECKING:
    from workbench.workbench import Workbench

# --- The files the browser gets: a component's script is shared/ and its own folder's .js files, joined by name ---

_APP = Path(__file__).parent.parent
_STYLESHEET = _APP / "shell" / "theme.css"
_STATIC = "/app/static/"  # where Streamlit serves the fonts, under the path of the app
_SHARED = _APP / "widgets" / "scripts" / "shared"


@cache
def stylesheet() -> str:
    """Return the style of every page as an element; its fonts lie under the app's own path."""
    text = _STYLESHEET.read_text(encoding="utf-8").replace(_STATIC, rooted(_STATIC))
    return f"<style>{text}</style>"


@cache
def component(name: str) -> ComponentRenderer:
    """Register the component "room/name" of <room>/scripts/<name>/ once a process; returns the function to mount it."""
    room, _, own = name.partition("/")
    folders = (_SHARED, _APP / room / "scripts" / own)
    script, style = (
        "\n".join(path.read_text(encoding="utf-8") for folder in folders for path in sorted(folder.glob(kind)))
        for kind in ("*.js", "*.css")
    )
    style = f"{hue_rules()}\n{style}"
    return v2.component(f"workbench_{own}", html='<div class="root"></div>', css=style, js=script)


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


# --- The offer of an index for other languages as a person sees it, with the button that takes it ---


def language_offer(wb: Workbench) -> None:
    """Offer the index where it would help and there is none yet; say so where its package is missing."""
    offer = wb.indexes.language_offer()
    if offer is None:
        return
    with st.container(key="language_offer"):
        st.markdown(offer.sentence)
        if not BUILT_IN[OFFERED].is_installed:
            st.caption(NOT_INSTALLED)
        elif st.button("Build an index for these languages", icon=":material/translate:", key="index_languages"):
            act(lambda: _build(wb))


def _build(wb: Workbench) -> str:
    taken = {index.name: index for index in wb.indexes.list()}
    chunker = next(index.chunker for index in taken.values() if index.is_default)
    name = next(name for name in (OFFERED, *(f"{OFFERED}_{n}" for n in range(2, 100))) if name not in taken)
    index = wb.indexes.create(name, chunker=chunker, embedding_model=OFFERED)
    wb.jobs.enqueue_index_build(index.name)
    return f"Made the index {index.name}; it is being built, and searches go on meanwhile."
