"""The files the browser gets: a component's script is shared/ and its own folder's .js files, joined by name.

A component lies in the folder ``scripts`` of the page that shows it: ``compare/scripts/board`` is "compare/board".
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from streamlit.components import v2
from streamlit.components.v2.types import ComponentRenderer

from workbench.app.state.base_path import rooted
from workbench.app.widgets.looks import hue_rules

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
