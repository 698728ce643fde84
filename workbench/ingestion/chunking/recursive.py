"""Recursive character splitting, measured in tokens: the baseline most people know."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from itertools import pairwise

from workbench.ingestion.chunking.job import Job
from workbench.ingestion.chunking.ruler import Ruler
from workbench.ingestion.chunking.span import Piece

SEPARATORS = ("\n\n", "\n", ".", "?", "!", " ", "")
Bounds = tuple[int, int]


def recursive(job: Job) -> list[Piece]:
    """Split at the coarsest separator that occurs, again at finer ones what is too long, and merge up to the size.

    Follows LangChain's RecursiveCharacterTextSplitter with ``keep_separator=True``: a separator begins the piece after
    it. At the last separator, "", it parts tokens where the original parts characters.
    """
    overlap = min(int(job.options["overlap"]), job.size - 1)
    return [Piece(*bounds) for bounds in _cut(job.ruler, (0, len(job.text)), SEPARATORS, job.size, overlap)]


def _cut(ruler: Ruler, bounds: Bounds, separators: Sequence[str], size: int, overlap: int) -> Iterator[Bounds]:
    """Yield pieces of a stretch, each at most ``size`` tokens."""
    text = ruler.text
    index = next(i for i, separator in enumerate(separators) if text.find(separator, *bounds) >= 0)
    finer = separators[index + 1 :]
    fitting: list[Bounds] = []
    for split in _splits(ruler, bounds, separators[index]):
        if ruler.count(*split) < size or not finer:
            fitting.append(split)
            continue
        yield from _merged(ruler, fitting, size, overlap)
        fitting = []
        yield from _cut(ruler, split, finer, size, overlap)
    yield from _merged(ruler, fitting, size, overlap)


def _splits(ruler: Ruler, bounds: Bounds, separator: str) -> list[Bounds]:
    """Return consecutive stretches, each but the first beginning with the separator."""
    start, end = bounds
    if separator:
        cuts = []
        found = ruler.text.find(separator, start, end)
        while found >= 0:
            cuts.append(found)
            found = ruler.text.find(separator, found + len(separator), end)
    else:
        cuts = ruler.boundaries(start, end)
    edges = [start, *(cut for cut in cuts if cut > start), end]
    return list(pairwise(edges))


def _merged(ruler: Ruler, splits: Sequence[Bounds], size: int, overlap: int) -> Iterator[Bounds]:
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
