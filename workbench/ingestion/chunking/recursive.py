"""Recursive character splitting, measured in tokens: the baseline most people know."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, pairwise

from workbench.ingestion.chunking.cutting_task import CuttingTask
from workbench.ingestion.chunking.headings import headed
from workbench.ingestion.chunking.ruler import Ruler
from workbench.ingestion.chunking.span import Piece

SEPARATORS = ("\n\n", "\n", ".", "?", "!", " ", "")
Bounds = tuple[int, int]


def recursive(task: CuttingTask) -> list[Piece]:
    """Split at the coarsest separator that occurs, again at finer ones what is too long, and merge up to the size.

    Follows LangChain's RecursiveCharacterTextSplitter with ``keep_separator=True``: a separator begins the piece after
    it. At the last separator, "", it parts tokens where the original parts characters. A piece that is only headings
    joins the next one, or takes half of it where both are over the size; the original leaves it alone.
    """
    overlap = min(int(task.options["overlap"]), task.size - 1)
    bounds = _cut(task.ruler, (0, len(task.text)), SEPARATORS, task.size, overlap)
    return headed(task, [Piece(*piece) for piece in bounds], task.size, parts=not overlap)


def _cut(ruler: Ruler, bounds: Bounds, separators: Sequence[str], size: int, overlap: int) -> Iterator[Bounds]:
    """Yield pieces of a stretch, each at most ``size`` tokens."""
    text = ruler.text
    index = next(i for i, separator in enumerate(separators) if text.find(separator, *bounds) >= 0)
    finer = separators[index + 1 :]

    def fits(split: Bounds) -> bool:
        return ruler.count(*split) < size or not finer

    for merge, splits in groupby(_splits(ruler, bounds, separators[index]), key=fits):
        if merge:
            yield from _merged(ruler, splits, size, overlap)
            continue
        for split in splits:
            yield from _cut(ruler, split, finer, size, overlap)


def _splits(ruler: Ruler, bounds: Bounds, separator: str) -> Iterator[Bounds]:
    """Return consecutive stretches, each but the first beginning with the separator."""
    return pairwise(_edges(ruler, *bounds, separator))


def _edges(ruler: Ruler, start: int, end: int, separator: str) -> Iterator[int]:
    yield start
    if separator:
        place = ruler.text.find(separator, start, end)
        while place >= 0:
            if place > start:
                yield place
            place = ruler.text.find(separator, place + len(separator), end)
    else:
        yield from (cut for cut in ruler.boundaries(start, end) if cut > start)
    yield end


def _merged(ruler: Ruler, splits: Iterable[Bounds], size: int, overlap: int) -> Iterator[Bounds]:
    """Yield runs of neighbouring splits of at most ``size`` tokens, each run starting up to ``overlap`` back."""
    window: deque[Bounds] = deque()
    for split in splits:
        if window and ruler.count(window[0][0], split[1]) > size:
            yield window[0][0], window[-1][1]
            while window and (
                ruler.count(window[0][0], window[-1][1]) > overlap or ruler.count(window[0][0], split[1]) > size
            ):
                window.popleft()
        window.append(split)
    if window:
        yield window[0][0], window[-1][1]
