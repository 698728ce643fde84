"""Citation marks in an answer's text: [1] and [2][3], each naming one of the passages that were shown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

_MARK = re.compile(r"\[(\d{1,3}(?:\s*[,;]\s*\d{1,3})*)\]")
_BEGUN = re.compile(r"\[[\d\s,;]{0,24}$")


def known_marks(pieces: Iterable[str], passages: int) -> Iterator[str]:
    """Pass a text on piece by piece, with marks of passages that were never shown left out, and "[1, 2]" as "[1][2]".

    Text that may still become a mark is held back until it is one or is none.
    """
    begun_mark = ""
    for piece in pieces:
        begun_mark += piece
        begun = _BEGUN.search(begun_mark)
        ready, begun_mark = (begun_mark[: begun.start()], begun_mark[begun.start() :]) if begun else (begun_mark, "")
        if ready:
            yield _checked(ready, passages)
    if begun_mark:
        yield _checked(begun_mark, passages)


def numbers_in(text: str) -> list[int]:
    """Return the passages a text cites, in the order of their first mark."""
    numbers = (int(number) for mark in _MARK.finditer(text) for number in re.split(r"\D+", mark.group(1)))
    return list(dict.fromkeys(numbers))


def without_marks(text: str) -> str:
    """Return a document's sentence without its own marks ("[12]" of a footnote), which would read as citations.

    A sentence with code keeps them: they are indexes there.
    """
    return text if "`" in text else _MARK.sub("", text)


def _checked(text: str, passages: int) -> str:
    def marks(match: re.Match[str]) -> str:
        numbers = dict.fromkeys(int(number) for number in re.split(r"\D+", match.group(1)))
        return "".join(f"[{number}]" for number in numbers if 1 <= number <= passages)

    return _MARK.sub(marks, text)
