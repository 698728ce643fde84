"""The part of a long document that the reader shows at once, cut where a block of Markdown begins."""

from __future__ import annotations

import re

from workbench.types.results import Span

SIZE = 150_000  # characters shown at once
_FENCE = re.compile(r"^ {0,3}(`{3,}(?!.*`)|~{3,})", re.MULTILINE)
_HEADING = re.compile(r"^#{1,6} ", re.MULTILINE)
_GAP = re.compile(r"\n\n(?=\S)")


def window(text: str, wanted: int | None, place: Span | None, size: int = SIZE) -> Span:
    """Return the part that begins about ``wanted``, or else has ``place`` in its middle, or else the first.

    A text of up to twice ``size`` is shown whole.
    """
    if len(text) <= 2 * size:
        return 0, len(text)
    if wanted is None or wanted >= len(text):
        wanted = min(place[0] - size // 2 if place else 0, len(text) - size)
    start = block_start(text, wanted, size // 4)
    if len(text) - start <= size * 5 // 4:
        return start, len(text)
    end = block_start(text, start + size, size // 4)
    if place and start <= place[0] < start + size < place[1]:  # a place of one piece is not cut
        end = max(end, min(place[1], start + 2 * size))
    return start, end


def block_start(text: str, wanted: int, slack: int) -> int:
    """Return where a block begins: at ``wanted`` or up to ``slack`` characters before it.

    A heading is taken first, then a gap between blocks, then a line. In code the code's beginning is taken, if near.
    """
    if wanted <= 0:
        return 0
    opening, closed = _fences(text, wanted)
    if opening is None and _begins(text, wanted):
        return wanted
    lowest = max(0, wanted - slack)
    if opening is not None and opening >= lowest:
        return opening
    if opening is None:
        lowest = max(lowest, closed)
        for pattern in (_HEADING, _GAP):
            places = [
                match.end() if pattern is _GAP else match.start() for match in pattern.finditer(text, lowest, wanted)
            ]
            if places:
                return places[-1]
    line = text.rfind("\n", max(0, wanted - slack), wanted) + 1
    return line or wanted


def _begins(text: str, place: int) -> bool:
    """Tell whether a block begins at a place, which lies in no code."""
    if text[place - 1] != "\n":
        return False
    return text[place - 2 : place] == "\n\n" or bool(_HEADING.match(text, place) or _FENCE.match(text, place))


def _fences(text: str, wanted: int) -> tuple[int | None, int]:
    """Return where the code begins that ``wanted`` is in, and where the last code before it ends."""
    opening: re.Match[str] | None = None
    closed = 0
    for fence in _FENCE.finditer(text, 0, wanted):
        if opening is None:
            opening = fence
        elif fence[1][0] == opening[1][0] and len(fence[1]) >= len(opening[1]):
            opening, closed = None, fence.end()
    return (opening.start() if opening else None), closed
