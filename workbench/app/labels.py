"""Words on widgets: Streamlit reads labels as Markdown, and select boxes show ids by their names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

_SIZES = ((2**30, "GB"), (2**20, "MB"), (2**10, "KB"))
_MARKDOWN = frozenset("\\`*_{}[]#|~:$<>!")


def escaped(text: str, longest: int | None = None) -> str:
    """Return text that Streamlit's Markdown shows as it is, cut to ``longest`` characters."""
    cut = text if longest is None or len(text) <= longest else text[: longest - 1] + "…"
    return "".join(f"\\{char}" if char in _MARKDOWN else char for char in cut)


def labelled(names: Mapping[str, str], otherwise: str | None = None) -> Callable[[Any], str]:
    """Return the function that shows a key by its name; other keys show as ``otherwise``, or as themselves."""

    def show(key: Any) -> str:
        return str(names.get(key, otherwise if otherwise is not None else key))

    return show


def counted(number: int, noun: str) -> str:
    """Return "1 source", "2 sources"."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def size(count: int) -> str:
    """Return a number of bytes for people: "12.3 MB"."""
    for unit, name in _SIZES:
        if count >= unit:
            return f"{count / unit:,.1f} {name}"
    return f"{count} bytes"
