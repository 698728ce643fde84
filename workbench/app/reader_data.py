"""A document cut into stretches for the reader: each says which passage it belongs to and how it is tinted."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any


def stretches(
    text: str, spans: Sequence[tuple[int, int]], found: tuple[int, int] | None = None
) -> list[dict[str, Any]]:
    """Cut ``text`` at every edge of the passages' spans; joined, the stretches are the text again.

    A stretch of the found span is "found", one that several passages share "overlap", others are "odd" and "even"
    in turn; what no passage holds is "bare". ``passage`` counts from 1.
    """
    edges = {0, len(text)}
    for start, end in (*spans, *([found] if found else [])):
        edges |= {min(max(start, 0), len(text)), min(max(end, 0), len(text))}
    ordered = sorted(edges)
    numbered = sorted(spans)
    cut = []
    for start, end in pairwise(ordered):
        holders = [number for number, span in enumerate(numbered, start=1) if span[0] <= start and end <= span[1]]
        cut.append(
            {
                "text": text[start:end],
                "passage": holders[0] if holders else None,
                "kind": _kind(start, end, holders, found),
            }
        )
    return cut


def _kind(start: int, end: int, holders: Sequence[int], found: tuple[int, int] | None) -> str:
    if found and found[0] <= start and end <= found[1]:
        return "found"
    if len(holders) > 1:
        return "overlap"
    if not holders:
        return "bare"
    return "odd" if holders[0] % 2 else "even"


def read_place(value: str) -> tuple[int, int] | None:
    """Read "120-480" of an address as a span; None where it is none."""
    first, _, last = value.partition("-")
    if not (first.isdecimal() and last.isdecimal()) or int(last) <= int(first):
        return None
    return int(first), int(last)
