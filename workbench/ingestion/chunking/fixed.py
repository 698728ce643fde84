"""Windows of a fixed number of tokens, blind to what they cut through."""

from __future__ import annotations

from bisect import bisect_left

from workbench.ingestion.chunking.cutting_task import CuttingTask
from workbench.ingestion.chunking.headings import headed
from workbench.ingestion.chunking.ruler import Ruler
from workbench.ingestion.chunking.span import Piece


def fixed(task: CuttingTask) -> list[Piece]:
    """Slide a window over the tokens; each begins ``overlap`` tokens before the end of the one before.

    A window that is only headings, such as the last one, joins its neighbour; where both are more than a window they
    are parted evenly.
    """
    overlap = min(int(task.options["overlap"]), task.size - 1)
    end = len(task.text)
    pieces: list[Piece] = []
    start = 0
    while start < end:
        stop = task.ruler.reach(start, task.size, end)
        pieces.append(Piece(start, stop))
        if stop >= end:
            break
        start = _back(task.ruler, start, stop, overlap)
        if task.ruler.reach(start, task.size, end) <= stop:
            start = stop  # the repeated tokens leave no room for the long word after them
    return headed(task, pieces, task.size, parts=not overlap)


def _back(ruler: Ruler, start: int, stop: int, overlap: int) -> int:
    """Return where the next window begins: ``overlap`` tokens before ``stop``, at a word's start, after ``start``."""
    if overlap == 0:
        return stop
    after = bisect_left(ruler.starts, stop)
    for position in ruler.starts[max(0, after - overlap) : after]:
        if position > start and not ruler.inside_word(position):
            return position
    return stop
