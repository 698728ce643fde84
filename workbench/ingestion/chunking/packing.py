"""The packing of atoms into passages of about equal length, none over the size."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

from workbench.ingestion.chunking.atoms import Atom
from workbench.ingestion.chunking.ruler import Ruler
from workbench.ingestion.chunking.span import Piece

WITHIN_COST = 0.15  # ending within a block costs as much as missing the even length by 15 %
LEAD_IN_COST = 1.0  # ending with a heading or a lead-in line, parted from what it leads to


def pack(atoms: Sequence[Atom], ruler: Ruler, size: int) -> list[Piece]:
    """Return pieces of consecutive atoms, each at most ``size`` tokens unless one atom alone is more.

    The rest is spread evenly (220 tokens at size 200 give two halves, not 200 and a stub of 20), and a piece
    rather ends with a block than within one.
    """
    pieces: list[Piece] = []
    first = 0
    while first < len(atoms):
        last = _last(atoms, ruler, first, size)
        pieces.append(Piece(atoms[first].start, atoms[last].end, metadata=atoms[first].metadata))
        first = last + 1
    return pieces


def pack_full(atoms: Sequence[Atom], ruler: Ruler, size: int) -> list[Piece]:
    """Return pieces filled up to ``size`` tokens one after the other; the last one takes the rest."""
    pieces: list[Piece] = []
    first = 0
    while first < len(atoms):
        last = first
        while last + 1 < len(atoms) and ruler.count(atoms[first].start, atoms[last + 1].end) <= size:
            last += 1
        pieces.append(Piece(atoms[first].start, atoms[last].end, metadata=atoms[first].metadata))
        first = last + 1
    return pieces


def _last(atoms: Sequence[Atom], ruler: Ruler, first: int, size: int) -> int:
    """Return the atom to end with: the nearest to an even share of what remains, at a small cost within a block."""
    start = atoms[first].start
    remaining = ruler.count(start, atoms[-1].end)
    target = remaining / max(1, ceil(remaining / size))
    best, best_cost = first, float("inf")
    for index in range(first, len(atoms)):
        length = ruler.count(start, atoms[index].end)
        if index > first and length > size:
            break
        cost = abs(length - target) / max(1.0, target)
        cost += LEAD_IN_COST if atoms[index].clings else 0.0 if atoms[index].ends else WITHIN_COST
        if cost <= best_cost:
            best, best_cost = index, cost
    return best
