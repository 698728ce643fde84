"""The search for the pages of a file over which the process that reads it ends."""

from __future__ import annotations

from collections.abc import Callable

STEP = 16  # pages tried at once
FEW = 5  # lost pages from which on a file is given up of which more than half is lost
UNKNOWN = 1_000_000_000  # pages of a file whose number nobody has told yet


def lost_pages(try_pages: Callable[[int, int], int | None]) -> tuple[int, ...] | None:
    """Return the pages, from 1, over which the process ends; None where it ends over most of them.

    ``try_pages(first, last)`` reads some pages; it returns how many the file has, or None where the process ended.
    """
    lost: list[int] = []
    first, total, singly = 1, UNKNOWN, 0
    while first <= total:
        last = first if first <= singly else min(first + STEP - 1, total)
        count = try_pages(first, last)
        if count is not None:
            total, first = count, last + 1
        elif last > first:
            singly = last
        else:
            lost.append(first)
            if is_hopeless(len(lost), first):
                return None
            first += 1
    return tuple(lost)


def is_hopeless(lost: int, pages: int) -> bool:
    """Tell whether a file is given up of whose first ``pages`` so many are lost."""
    return lost >= FEW and 2 * lost > pages
