"""Words on widgets: Streamlit reads labels as Markdown, and select boxes show ids by their names."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from workbench.sizes import counted

_MARKDOWN = frozenset("\\`*_{}[]#|~:$<>!&()+-=")
_JOINER = "\u2060"  # takes no room
# Streamlit looks for these after it has undone the backslashes: addresses, icons and emoji, arrows and dashes.
_AFTERWARDS = re.compile(
    r"(?<=http)(?=s?://)|(?<=www)(?=\.)|(?<=@)|(?<=:)(?=[\w+/-]+:)|(?<=-)(?=[->])|(?<=<)(?=[-=])|(?<=[>~])(?==)",
    re.IGNORECASE,
)
NAMED = 3  # files of a sentence about several
_LIST = re.compile(r"^(\d+)\.")


def escaped(text: str, longest: int | None = None) -> str:
    """Return text that Streamlit's Markdown shows literally, on one line, cut to ``longest`` characters.

    Every text that does not come from this code goes through it on its way into a label, a dialog's title, a toast or
    a Markdown element: no picture of it is loaded, no link of it is live, no directive of it is obeyed.
    """
    line = " ".join(text.split())
    cut = line if longest is None or len(line) <= longest else line[: longest - 1] + "…"
    safe = "".join(f"\\{char}" if char in _MARKDOWN else char for char in _AFTERWARDS.sub(_JOINER, cut))
    return _LIST.sub(r"\1\\.", safe)


def labelled(names: Mapping[str, str], otherwise: str | None = None) -> Callable[[str | None], str]:
    """Return the function that shows a key by its name; other keys show as ``otherwise``, or as themselves."""

    def show(key: str | None) -> str:
        return str(names.get(key or "", otherwise if otherwise is not None else key))

    return show


def unread_sentence(names: Sequence[str]) -> str:
    """Return "clip.mp4 is of a kind that cannot be read.", or the same of several files; "" of none."""
    if not names:
        return ""
    if len(names) == 1:
        return f"{names[0]} is of a kind that cannot be read."
    named, others = (names, 0) if len(names) <= NAMED else (names[: NAMED - 1], len(names) - NAMED + 1)
    last = counted(others, "other file") if others else named[-1]
    return f"{', '.join(named if others else named[:-1])} and {last} are of kinds that cannot be read."
