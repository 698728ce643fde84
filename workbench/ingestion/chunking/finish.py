"""The last step of every chunker: its pieces become spans, stripped, with heading, page and context header."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import overload

from workbench.ingestion.chunking.blocks import Block, heading_text
from workbench.ingestion.chunking.cutting_task import CuttingTask
from workbench.ingestion.chunking.span import BlockKind, CutPassage, Piece, strip
from workbench.ingestion.chunking.wordless import has_words, joined


def finished(task: CuttingTask, pieces: Iterable[Piece]) -> Spans:
    """Return the spans of pieces that say something, in order."""
    return Spans(task, _moving_on(joined(task, [piece for rough in pieces for piece in _fitting(task, rough)])))


def _moving_on(pieces: Iterable[Piece]) -> list[Piece]:
    """Return the pieces that do not lie within a neighbour, as a half of one that overlaps others may."""
    apart: list[Piece] = []
    for piece in pieces:
        if apart and piece.end <= apart[-1].end:
            continue
        while apart and piece.start <= apart[-1].start:
            apart.pop()
        apart.append(piece)
    return apart


def _fitting(task: CuttingTask, piece: Piece) -> Iterator[Piece]:
    """Yield the stripped piece, or its halves where a halved word at its ends counts for more than it did whole."""
    start, end = strip(task.text, piece.start, piece.end)
    if start == end:
        return
    halves_word = task.ruler.inside_word(start) or task.ruler.inside_word(end)
    if halves_word and end - start > 1 and len(task.tokens(task.text[start:end])) > task.room:
        middle = (start + end) // 2
        yield from _fitting(task, replace(piece, start=start, end=middle))
        yield from _fitting(task, replace(piece, start=middle, end=end))
        return
    yield replace(piece, start=start, end=end)


class Spans(Sequence[CutPassage]):
    """The spans of one document, each made when it is asked for: only the places of the cuts stay in memory."""

    def __init__(self, task: CuttingTask, pieces: Sequence[Piece]) -> None:
        """Take ``pieces``, which are stripped."""
        self.task = task
        self._pieces = pieces
        self._block_starts = array("I", (block.start for block in task.blocks)) if pieces else array("I")

    def __len__(self) -> int:
        return len(self._pieces)

    @overload
    def __getitem__(self, place: int) -> CutPassage: ...
    @overload
    def __getitem__(self, place: slice) -> list[CutPassage]: ...
    def __getitem__(self, place: int | slice) -> CutPassage | list[CutPassage]:
        if isinstance(place, slice):
            return [self._span(piece) for piece in self._pieces[place]]
        return self._span(self._pieces[place])

    def _span(self, piece: Piece) -> CutPassage:
        blocks = self._blocks(piece.start, piece.end)
        path = _common_path(blocks)
        table = self._table(blocks, piece)
        return CutPassage(
            piece.start,
            piece.end,
            path,
            _kind(blocks),
            self._page(piece.start),
            piece.parent,
            self.task.header(path[:-1] if self._shows(blocks, piece, path) else path, table),
            piece.metadata,
        )

    def _blocks(self, start: int, end: int) -> list[Block]:
        first = max(0, bisect_right(self._block_starts, start) - 1)
        last = bisect_right(self._block_starts, end - 1)
        blocks = self.task.blocks[first:last]
        telling = [block for block in blocks if has_words(self.task.text, block.start, block.end)]
        return telling or blocks  # a rule before a heading does not take the passage out of the heading's section

    def _table(self, blocks: list[Block], piece: Piece) -> str:
        """Return what names the table a passage goes on with, or the page of one it holds; "" where it holds none."""
        if not any(block.kind == "table" for block in blocks):
            return ""
        if blocks[0].kind == "table" and piece.start >= blocks[0].start:
            return self.task.captions[blocks[0].start]
        page = self.task.page_of(piece.start)
        end, head = (0, "") if page is None else self.task.page_heads[page]
        return head if piece.start >= end else ""

    def _page(self, position: int) -> int | None:
        page = self.task.page_of(position)
        return None if page is None else self.task.document.pages[page][0]

    def _shows(self, blocks: list[Block], piece: Piece, path: tuple[str, ...]) -> bool:
        """Tell whether the passage itself begins with the last heading of its path; the header then leaves it out."""
        if not blocks or not path or piece.start > blocks[0].start:
            return False
        own = self.task.text[blocks[0].start : blocks[0].end]
        return blocks[0].kind == "heading" and heading_text(own) == path[-1]


def _common_path(blocks: list[Block]) -> tuple[str, ...]:
    path = blocks[0].path if blocks else ()
    for block in blocks[1:]:
        while block.path[: len(path)] != path:
            path = path[:-1]
    return path


def _kind(blocks: list[Block]) -> BlockKind:
    """Return the one kind of all blocks but headings; "text" where they are mixed."""
    kinds: set[BlockKind] = {block.kind for block in blocks if block.kind != "heading"}
    if not kinds:
        return "heading" if blocks else "text"
    return kinds.pop() if len(kinds) == 1 else "text"
