"""The title of a PDF: its first heading, its own title, or its file's name where that tells more than either."""

from __future__ import annotations

import re
from pathlib import PurePath

WORD = re.compile(r"[^\W\d_]{3,}")
YEAR = re.compile(r"(?<!\d)(?:19|20)\d\d(?!\d)")
NO_LETTER = re.compile(r"[\W\d_]+")


def title_of(name: str, heading: str, own_title: str) -> str:
    """Return the title of a PDF; "" where the name of its file is a better one than heading and own title.

    A file's name may say of whom and of which year it is ("HARBOUR_2023_report.pdf"). A heading without any word of
    that is one with which all files of a kind begin, such as the name of an authority.
    """
    stem = PurePath(name).stem
    words = [word.casefold() for word in WORD.findall(stem)]
    if not words or not YEAR.search(stem):
        return heading or own_title
    return next((title for title in (heading, own_title) if _shares(title, words)), "")


def _shares(title: str, words: list[str]) -> bool:
    """Tell whether a title has one of the words, also where it writes two of its own in the place of one."""
    letters = NO_LETTER.sub("", title.casefold())
    return any(word in letters for word in words)
