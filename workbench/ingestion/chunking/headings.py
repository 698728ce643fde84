"""Pieces that only lead to others, joined to these: alone they answer nothing, and rank high.

Such are headings, and the lines that name a table ("The following table shows sales in millions:").
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import replace

from workbench.ingestion.chunking.captions import is_naming, leads_to_table
from workbench.ingestion.chunking.cutting_task import CuttingTask
from workbench.ingestion.chunking.span import Piece, strip
from workbench.ingestion.chunking.wordless import has_words


def headed(task: CuttingTask, pieces: Sequence[Piece], most: int | None = None, *, parts: bool = True) -> list[Piece]:
    """Return the pieces, in order, such that none only leads to others where that can be had.

    A heading or a line that names a table joins the piece after it, the last heading the piece before it. Where both
    together are more than there is room for, or than ``most`` tokens, the other piece is cut in two, at the end of a
    line or between words; of pieces that overlap (without ``parts``) it stays whole, and its first half is repeated.
    """
    bare = [_only_leads(task, piece) for piece in pieces]
    if not any(bare) or all(bare):
        return list(pieces)

    def fits(piece: Piece) -> bool:
        return _fits(task, piece) if most is None else _within(task, piece, most)

    def join(piece: Piece, start: int, end: int) -> list[Piece]:
        made = _joined(task, piece, start, end, fits)
        if parts or len(made) < 2:
            return made
        repeated = [made[0], piece] if start < piece.start else [piece, made[1]]
        return repeated if repeated[1].start <= repeated[0].end else made  # else what lies between them would be lost

    joined: list[Piece] = []
    waiting: list[Piece] = []
    for piece, alone in zip(pieces, bare, strict=True):
        if alone:
            waiting.append(piece)
        else:
            joined += join(piece, waiting[0].start, piece.end) or [*waiting, piece] if waiting else [piece]
            waiting = []
    if waiting:
        joined[-1:] = join(joined[-1], joined[-1].start, waiting[-1].end) or [joined[-1], *waiting]
    return joined


def _only_leads(task: CuttingTask, piece: Piece) -> bool:
    """Tell whether a piece is headings, or headings and the short lines that name a table after them."""
    start, end = strip(task.text, piece.start, piece.end)  # a piece may begin with the blank lines before it
    first = max(0, bisect_right(task.blocks, start, key=lambda block: block.start) - 1)
    last = bisect_left(task.blocks, end, key=lambda block: block.start)
    inside = task.blocks[first:last]
    if not inside:
        return False
    before_table = leads_to_table(task.text, task.blocks, last)
    return all(
        block.kind == "heading"
        or (before_table and is_naming(block, task.text[max(block.start, piece.start) : min(block.end, piece.end)]))
        for block in inside
    )


def _joined(task: CuttingTask, piece: Piece, start: int, end: int, fits: Callable[[Piece], bool]) -> list[Piece]:
    """Return a piece that grows to ``text[start:end]``, cut in two where it must; nothing where no cut fits."""
    parent = piece.parent and (min(piece.parent[0], start), max(piece.parent[1], end))
    whole = replace(piece, start=start, end=end, parent=parent)
    if fits(whole):
        return [whole]
    middle = task.ruler.reach(start, task.ruler.count(start, end) // 2, end)
    line = task.text.rfind("\n", max(start, piece.start) + 1, middle)
    middle = line if line > piece.start else middle
    spans = [strip(task.text, start, middle), strip(task.text, middle, end)]
    halves = [_noted(task, replace(whole, start=first, end=last)) for first, last in spans if first < last]
    halves_word = task.ruler.inside_word(middle)
    return halves if not halves_word and all(fits(half) and not _only_leads(task, half) for half in halves) else []


def _noted(task: CuttingTask, piece: Piece) -> Piece:
    """Return a piece that begins among the rows of a table with the place of the table's header."""
    block = task.blocks[max(0, bisect_right(task.blocks, piece.start, key=lambda block: block.start) - 1)]
    if block.kind != "table" or not block.body <= piece.start < block.end:
        return piece
    return replace(piece, metadata={**piece.metadata, "table_header": strip(task.text, block.start, block.body)})


def _within(task: CuttingTask, piece: Piece, most: int) -> bool:
    """Tell whether a piece says something in at most so many tokens."""
    start, end = strip(task.text, piece.start, piece.end)
    return has_words(task.text, start, end) and task.ruler.count(start, end) <= most


def _fits(task: CuttingTask, piece: Piece) -> bool:
    """Tell whether a piece says something and is no longer than the model reads beside any header."""
    start, end = strip(task.text, piece.start, piece.end)
    return has_words(task.text, start, end) and len(task.tokens(task.text[start:end])) <= task.room
