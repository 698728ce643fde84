"""Pack atoms into passages of about equal length, none over the size."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

from workbench.ingestion.chunking.atoms import Atom
from workbench.ingestion.chunking.ruler import Ruler
from workbench.ingestion.chunking.span import Piece


def pack(atoms: Sequence[Atom], ruler: Ruler, size: int) -> list[Piece]:
    """Return pieces of consecutive atoms, each at most ``size`` tokens unless one atom alone is more.

    What remains is spread evenly: 220 tokens at size 200 give two halves, not 200 and a stub of 20.
    """
    pieces: list[Piece] = []
    first = 0
    while first < len(atoms):
        remaining = ruler.count(atoms[first].start, atoms[-1].end)
        target = remaining / max(1, ceil(remaining / size))
        last = first
        while last + 1 < len(atoms) and _takes(atoms, ruler, first, last + 1, size, target):
            last += 1
        pieces.append(Piece(atoms[first].start, atoms[last].end, metadata=atoms[first].metadata))
        first = last + 1
    return pieces


def pack_full(atoms: Sequence[Atom], ruler: Ruler, size: int) -> list[Piece]:
    """Return pieces filled up one after the other, the last one taking what is left."""
    pieces: list[Piece] = []
    first = 0
    while first < len(atoms):
        last = first
        while last + 1 < len(atoms) and ruler.count(atoms[first].start, atoms[last + 1].end) <= size:
            last += 1
        pieces.append(Piece(atoms[first].start, atoms[last].end, metadata=atoms[first].metadata))
        first = last + 1
    return pieces


def _takes(atoms: Sequence[Atom], ruler: Ruler, first: int, candidate: int, size: int, target: float) -> bool:
    """Take one more atom while it fits and brings the piece nearer to the target."""
    after = ruler.count(atoms[first].start, atoms[candidate].end)
    before = ruler.count(atoms[first].start, atoms[candidate - 1].end)
    return after <= size and (after <= target or after - target <= target - before)
