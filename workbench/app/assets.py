"""The files the browser gets: a component's script is shared/ and its own folder's .js files, joined by name."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from streamlit.components import v2

_HERE = Path(__file__).parent
STYLESHEET = _HERE / "theme.css"


@cache
def component(name: str) -> Any:
    """Register the component in components/<name>/ once a process and return what mounts it."""
    folders = (_HERE / "components" / "shared", _HERE / "components" / name)
    script, style = (
        "\n".join(path.read_text(encoding="utf-8") for folder in folders for path in sorted(folder.glob(kind)))
        for kind in ("*.js", "*.css")
    )
    return v2.component(f"workbench_{name}", html='<div class="root"></div>', css=style, js=script)
