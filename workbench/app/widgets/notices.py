"""Notices of changes, the browser components and style sheet, and the offer of a multilingual index."""

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

# Scripts and styles for the browser

_APP = Path(__file__).parent.parent
_STYLESHEET = _APP / "shell" / "theme.css"
_STATIC = "/app/static/"  # path under which Streamlit serves the fonts
_SHARED = _APP / "widgets" / "scripts" / "shared"


@cache
def stylesheet() -> str:
    """Return the style sheet of every page as an element, with the fonts under the app's base path."""
    text = _STYLESHEET.read_text(encoding="utf-8").replace(_STATIC, rooted(_STATIC))
    return f"<style>{text}</style>"


@cache
def component(name: str) -> ComponentRenderer:
    """Register the component "room/name" once per process, and return the function that mounts it.

    Its script is that of widgets/scripts/shared followed by the files of <room>/scripts/<name>, by name.
    """
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
    """Show the notice of the last change, once."""
    notice, warning = st.session_state.pop(_NOTICE, None), st.session_state.pop(_WARNING, None)
    if notice:
        st.success(escaped(notice), icon=":material/check:")
    if warning:
        st.warning(escaped(warning), icon=":material/info:")


def leave_notice(sentence: str) -> None:
    """Store a notice for the next run of the page; it is shown literally."""
    st.session_state[_NOTICE] = sentence


def leave_warning(sentence: str) -> None:
    """Store a warning for the next run of the page; it is shown literally."""
    st.session_state[_WARNING] = sentence


def act(change: Callable[[], str]) -> None:
    """Make a change and close the dialog with the notice it returns, or show the error."""
    try:
        leave_notice(change())
    except WorkbenchError as error:
        st.error(escaped(str(error)))
        return
    note_change()
    st.rerun()


# Offer of an index for other languages


def language_offer(wb: Workbench) -> None:
    """Offer a multilingual index if it would help, or explain how to install its package."""
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
    return f'Index "{index.name}" created. It is being built; searches continue to work.'
