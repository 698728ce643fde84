"""Packing of atoms, and the last step of every chunker: spans with heading, page and context header."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from math import ceil

from workbench.ingestion.chunking.blocks import Atom, Block, heading_text
from workbench.ingestion.chunking.spans import BlockKind, CutPassage, LazySequence, Piece, TokenCounter, strip_span
from workbench.ingestion.chunking.task import CuttingTask

# --- Packing atoms into passages ---

WITHIN_COST = 0.15  # ending inside a block costs as much as missing the even length by 15%
LEAD_IN_COST = 1.0  # ending with a heading or a lead-in line


def pack_evenly(atoms: Sequence[Atom], ruler: TokenCounter, size: int) -> list[Piece]:
    """Return pieces of consecutive atoms, each of at most ``size`` tokens unless a single atom has more.

    Tokens are spread evenly (220 tokens at size 200 give two halves, not 200 and 20), preferably ending at block
    boundaries.
    """
    pieces: list[Piece] = []
    first = 0
    while first < len(atoms):
        last = _last_atom(atoms, ruler, first, size)
        pieces.append(Piece(atoms[first].start, atoms[last].end, metadata=atoms[first].metadata))
        first = last + 1
    return pieces


def pack_full(atoms: Sequence[Atom], ruler: TokenCounter, size: int) -> list[Piece]:
    """Return pieces filled with up to ``size`` tokens; the last one takes the rest."""
    pieces: list[Piece] = []
    first = 0
    while first < len(atoms):
        last = first
        while last + 1 < len(atoms) and ruler.count(atoms[first].start, atoms[last + 1].end) <= size:
            last += 1
        pieces.append(Piece(atoms[first].start, atoms[last].end, metadata=atoms[first].metadata))
        first = last + 1
    return pieces


def _last_atom(atoms: Sequence[Atom], ruler: TokenCounter, first: int, size: int) -> int:
    """Return the last atom of a piece: the one nearest to an even share of the rest, with a penalty inside blocks."""
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


# --- Joining pieces without words ---


def has_words(text: str, start: int, end: int) -> bool:
    """Return whether ``text[start:end]`` has a letter or digit."""
    return any(text[position].isalnum() for position in range(start, end))


def join_wordless(task: CuttingTask, pieces: Sequence[Piece]) -> list[Piece]:
    """Return stripped pieces that each have a letter or digit, unless none has.

    A piece without words joins a neighbour; if both are full, it takes the last word of the one before. If it is too
    long for that (a screen of dashes), it is left out of the passages.
    """
    worded = [has_words(task.text, piece.start, piece.end) for piece in pieces]
    if all(worded) or not any(worded):
        return list(pieces)
    joined: list[Piece] = []
    waiting: Piece | None = None  # a piece without words that the next one may take
    for piece, good in zip(pieces, worded, strict=True):
        if good:
            joined.append(_extend_piece(task, piece, waiting) or piece if waiting else piece)
            waiting = None
        elif joined and waiting is None and (longer := _extend_piece(task, joined[-1], piece)):
            joined[-1] = longer
        elif joined and waiting is None and (parted := _move_last_word(task, joined, piece)):
            joined[-1:] = parted
        else:
            waiting = (waiting and _extend_piece(task, piece, waiting)) or piece
    return joined


def _extend_piece(task: CuttingTask, piece: Piece, more: Piece) -> Piece | None:
    """Return a piece extended by a neighbour without words, or None if there is no room or the section ends there."""
    start, end = min(piece.start, more.start), max(piece.end, more.end)
    if piece.parent is not None and not (piece.parent[0] <= start and end <= piece.parent[1]):
        return None
    own = len(task.tokens(task.text[piece.start : piece.end]))
    if len(task.tokens(task.text[start:end])) > (task.size if own <= task.size else task.room):
        return None
    metadata = dict(piece.metadata)
    if "window" in metadata:
        first, last = metadata["window"]
        metadata["window"] = (min(first, start), max(last, end))
    return replace(piece, start=start, end=end, metadata=metadata)


def _move_last_word(task: CuttingTask, pieces: Sequence[Piece], piece: Piece) -> list[Piece] | None:
    """Return the last piece without its last word, and that word with ``piece``, or None if either does not fit."""
    before = pieces[-1]
    covered = pieces[-2].end if len(pieces) > 1 else before.start
    word = _last_word_start(task, before)
    start, end = strip_span(task.text, before.start, word)
    if end <= max(start, covered) or not has_words(task.text, start, end):
        return None
    longer = _extend_piece(task, replace(before, start=word), piece)
    return [replace(before, start=start, end=end), longer] if longer else None


def _last_word_start(task: CuttingTask, piece: Piece) -> int:
    position = piece.end - 1
    while position > piece.start and not task.text[position].isalnum():
        position -= 1
    while position > piece.start and task.ruler.inside_word(position):
        position -= 1
    return position


def finish_pieces(task: CuttingTask, pieces: Iterable[Piece]) -> Spans:
    """Return the spans of pieces that have words, in order."""
    return Spans(
        task, _drop_nested(join_wordless(task, [piece for rough in pieces for piece in _fit_piece(task, rough)]))
    )


def _drop_nested(pieces: Iterable[Piece]) -> list[Piece]:
    """Return the pieces that are not contained in a neighbour, as half of an overlapping piece can be."""
    apart: list[Piece] = []
    for piece in pieces:
        if apart and piece.end <= apart[-1].end:
            continue
        while apart and piece.start <= apart[-1].start:
            apart.pop()
        apart.append(piece)
    return apart


def _fit_piece(task: CuttingTask, piece: Piece) -> Iterator[Piece]:
    """Yield the stripped piece, or its halves if words cut at its ends pushed it over the limit."""
    start, end = strip_span(task.text, piece.start, piece.end)
    if start == end:
        return
    halves_word = task.ruler.inside_word(start) or task.ruler.inside_word(end)
    if halves_word and end - start > 1 and len(task.tokens(task.text[start:end])) > task.room:
        middle = (start + end) // 2
        yield from _fit_piece(task, replace(piece, start=start, end=middle))
        yield from _fit_piece(task, replace(piece, start=middle, end=end))
        return
    yield replace(piece, start=start, end=end)


class Spans(LazySequence[CutPassage]):
    """The spans of one document, of which only the positions of the cuts are in memory."""

    def __init__(self, task: CuttingTask, pieces: Sequence[Piece]) -> None:
        """Args:
        task: The task.
        pieces: Stripped pieces.
        """
        self.task = task
        self._pieces = pieces
        self._block_starts = array("I", (block.start for block in task.blocks)) if pieces else array("I")

    def __len__(self) -> int:
        return len(self._pieces)

    def _make_item(self, place: int) -> CutPassage:
        piece = self._pieces[place]
        blocks = self._blocks(piece.start, piece.end)
        path = _common_path(blocks)
        table = self._table(blocks, piece)
        return CutPassage(
            piece.start,
            piece.end,
            path,
            _common_kind(blocks),
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
        return telling or blocks  # a rule before a heading leaves the passage in the heading's section

    def _table(self, blocks: list[Block], piece: Piece) -> str:
        """Return the name of the table that a passage continues, or ""."""
        if blocks and blocks[0].kind == "table" and piece.start >= blocks[0].start:
            return self.task.captions[blocks[0].start]
        return ""

    def _page(self, position: int) -> int | None:
        page = self.task.page_index(position)
        return None if page is None else self.task.document.pages[page][0]

    def _shows(self, blocks: list[Block], piece: Piece, path: tuple[str, ...]) -> bool:
        """Return whether the passage starts with the last heading of its path, so the header can omit it."""
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


def _common_kind(blocks: list[Block]) -> BlockKind:
    """Return the kind shared by all blocks except headings, or "text" if they are mixed."""
    kinds: set[BlockKind] = {block.kind for block in blocks if block.kind != "heading"}
    if not kinds:
        return "heading" if blocks else "text"
    return kinds.pop() if len(kinds) == 1 else "text"
