"""Turn a chunker's pieces into spans: stripped, placed under their headings, on their page, with their header."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import replace

from workbench.ingestion.chunking.blocks import Block, heading_text
from workbench.ingestion.chunking.job import Job
from workbench.ingestion.chunking.span import Kind, Piece, Span, strip
from workbench.ingestion.chunking.wordless import has_words, joined


def finished(job: Job, pieces: list[Piece]) -> list[Span]:
    """Return the spans of pieces that say something, in order."""
    places = _Places(job)
    return [places.span(piece) for piece in joined(job, [piece for rough in pieces for piece in _fitting(job, rough)])]


def _fitting(job: Job, piece: Piece) -> Iterator[Piece]:
    """Yield the stripped piece, or its halves where a halved word at its ends counts for more than it did whole."""
    start, end = strip(job.text, piece.start, piece.end)
    if start == end:
        return
    halves_word = job.ruler.inside_word(start) or job.ruler.inside_word(end)
    if halves_word and end - start > 1 and len(job.tokens(job.text[start:end])) > job.room:
        middle = (start + end) // 2
        yield from _fitting(job, replace(piece, start=start, end=middle))
        yield from _fitting(job, replace(piece, start=middle, end=end))
        return
    yield replace(piece, start=start, end=end)


class _Places:
    """Looks up what lies around a position by bisection."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.block_starts = [block.start for block in job.blocks]
        self.page_starts = [start for _, start, _ in job.document.pages]

    def span(self, piece: Piece) -> Span:
        blocks = self._blocks(piece.start, piece.end)
        path = _common_path(blocks)
        return Span(
            piece.start,
            piece.end,
            path,
            _kind(blocks),
            self._page(piece.start),
            piece.parent,
            self.job.header(path[:-1] if self._shows(blocks, piece, path) else path),
            piece.metadata,
        )

    def _blocks(self, start: int, end: int) -> list[Block]:
        first = max(0, bisect_right(self.block_starts, start) - 1)
        last = bisect_right(self.block_starts, end - 1)
        found = self.job.blocks[first:last]
        telling = [block for block in found if has_words(self.job.text, block.start, block.end)]
        return telling or found  # a rule before a heading does not take the passage out of the heading's section

    def _page(self, position: int) -> int | None:
        if not self.page_starts:
            return None
        return self.job.document.pages[max(0, bisect_right(self.page_starts, position) - 1)][0]

    def _shows(self, blocks: list[Block], piece: Piece, path: tuple[str, ...]) -> bool:
        """Tell whether the passage itself begins with the last heading of its path; the header then leaves it out."""
        if not blocks or not path or piece.start > blocks[0].start:
            return False
        own = self.job.text[blocks[0].start : blocks[0].end]
        return blocks[0].kind == "heading" and heading_text(own) == path[-1]


def _common_path(blocks: list[Block]) -> tuple[str, ...]:
    path = blocks[0].path if blocks else ()
    for block in blocks[1:]:
        while block.path[: len(path)] != path:
            path = path[:-1]
    return path


def _kind(blocks: list[Block]) -> Kind:
    """The one kind of all blocks but headings; "text" where they are mixed."""
    kinds: set[Kind] = {block.kind for block in blocks if block.kind != "heading"}
    if not kinds:
        return "heading" if blocks else "text"
    return kinds.pop() if len(kinds) == 1 else "text"
