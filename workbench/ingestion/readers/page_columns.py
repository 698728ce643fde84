"""Stretches of a page that are set in two columns, so that a table in one is not read with what stands beside it.

A gutter is the left edge at which lines of words begin in the middle of the page, one below another, while nothing goes
over it. Tables have no words at such an edge line after line: what stands to the right of their labels is figures.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from liteparse.types import TextItem

WORDS = re.compile(r"[^\W\d_]{3}.*[^\W\d_]{3}")
MIDDLE = (0.35, 0.65)  # of the page's width, between which a gutter ends
LEFT_EDGE_TOLERANCE = 2.0  # points within which lines begin at one edge
OVER = 4.0  # points that a text must reach beyond an edge to go over it
LEAST = 12  # lines of words that begin at the gutter
STEP = 4.0  # points in which edges are counted


@dataclass(frozen=True, slots=True)
class Region:
    """Items of a page that are read together, and the stretch of the page between left and right, top and bottom."""

    items: tuple[TextItem, ...]
    left: float
    right: float
    top: float
    bottom: float


def regions_of(items: Sequence[TextItem], width: float) -> list[Region]:
    """Return the regions of a page: its two-column stretches column by column, and the rest as one."""
    said = [item for item in items if item.text.strip()]
    gutter = _gutter(said, width)
    whole = Region(tuple(said), -inf, inf, -inf, inf)
    if gutter is None:
        return [whole]
    columns: list[Region] = []
    for top, bottom in _stretches(said, gutter):
        inside = [item for item in said if top < item.y + item.height / 2 < bottom]
        right = [item for item in inside if item.x >= gutter - LEFT_EDGE_TOLERANCE]
        left = [item for item in inside if item.x < gutter - LEFT_EDGE_TOLERANCE]
        if _begins(right, gutter) >= LEAST and len(left) >= LEAST:
            columns += [
                Region(tuple(left), -inf, gutter, top, bottom),
                Region(tuple(right), gutter, inf, top, bottom),
            ]
    taken = {id(item) for region in columns for item in region.items}
    rest = tuple(item for item in said if id(item) not in taken)
    return [Region(rest, -inf, inf, -inf, inf), *columns] if columns else [whole]


def _gutter(items: Sequence[TextItem], width: float) -> float | None:
    """Return the edge in the middle of a page at which most lines of words begin; None where there are too few."""
    least, most = MIDDLE
    edges = [item.x for item in items if least * width < item.x < most * width and WORDS.search(item.text)]
    usual = Counter(round(edge / STEP) for edge in edges).most_common(1)
    if not usual or usual[0][1] < LEAST:
        return None
    near = sorted(edge for edge in edges if round(edge / STEP) == usual[0][0])
    return near[len(near) // 2]


def _stretches(items: Sequence[TextItem], gutter: float) -> list[tuple[float, float]]:
    """Return the stretches, from the top, in which no text goes over a gutter."""
    middles = sorted(
        item.y + item.height / 2 for item in items if item.x < gutter - OVER and item.x + item.width > gutter + OVER
    )
    return list(zip([-inf, *middles], [*middles, inf], strict=True))


def _begins(items: Sequence[TextItem], gutter: float) -> int:
    return sum(abs(item.x - gutter) <= LEFT_EDGE_TOLERANCE and WORDS.search(item.text) is not None for item in items)
