"""Windows of a fixed number of tokens, blind to what they cut through."""

from __future__ import annotations

from bisect import bisect_left

from workbench.ingestion.chunking.job import Job
from workbench.ingestion.chunking.ruler import Ruler
from workbench.ingestion.chunking.span import Piece


def fixed(job: Job) -> list[Piece]:
    """Slide a window over the tokens; each begins ``overlap`` tokens before the end of the one before."""
    overlap = min(int(job.options["overlap"]), job.size - 1)
    end = len(job.text)
    pieces: list[Piece] = []
    start = 0
    while start < end:
        stop = job.ruler.reach(start, job.size, end)
        pieces.append(Piece(start, stop))
        if stop >= end:
            break
        start = _back(job.ruler, start, stop, overlap)
        if job.ruler.reach(start, job.size, end) <= stop:
            start = stop  # what was repeated leaves no room for the long word after it
    return pieces


def _back(ruler: Ruler, start: int, stop: int, overlap: int) -> int:
    """Return where the next window begins: ``overlap`` tokens before ``stop``, at a word's start, after ``start``."""
    if overlap == 0:
        return stop
    for position in ruler.starts[max(0, bisect_left(ruler.starts, stop) - overlap) :]:
        if position >= stop:
            break
        if position > start and not ruler.inside_word(position):
            return position
    return stop
