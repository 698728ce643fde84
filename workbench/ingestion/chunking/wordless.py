"""Pieces without a letter or digit (a full stop, a rule, a row of dots), joined to neighbours: nobody seeks them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from workbench.ingestion.chunking.cutting_task import CuttingTask
from workbench.ingestion.chunking.span import Piece, strip


def has_words(text: str, start: int, end: int) -> bool:
    """Tell whether there is a letter or digit in ``text[start:end]``."""
    return any(text[position].isalnum() for position in range(start, end))


def joined(task: CuttingTask, pieces: Sequence[Piece]) -> list[Piece]:
    """Return stripped pieces such that each has a letter or digit, unless none has.

    A wordless one joins the piece before it or after it; where both are full it takes the last word of the one
    before. One too long for that (a screen of dashes) is left out: it is in the document, and in no passage.
    """
    worded = [has_words(task.text, piece.start, piece.end) for piece in pieces]
    if all(worded) or not any(worded):
        return list(pieces)
    joined: list[Piece] = []
    waiting: Piece | None = None  # a wordless piece that the next one may take
    for piece, good in zip(pieces, worded, strict=True):
        if good:
            joined.append(_together(task, piece, waiting) or piece if waiting else piece)
            waiting = None
        elif joined and (longer := _together(task, joined[-1], piece)):
            joined[-1] = longer
        elif joined and (parted := _parted(task, joined, piece)):
            joined[-1:] = parted
        else:
            waiting = (waiting and _together(task, piece, waiting)) or piece
    return joined


def _together(task: CuttingTask, piece: Piece, more: Piece) -> Piece | None:
    """Return a piece that takes a wordless neighbour in; None where it has no room, or its section ends before."""
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


def _parted(task: CuttingTask, pieces: Sequence[Piece], piece: Piece) -> list[Piece] | None:
    """Return the last piece without its last word, and that word with the wordless piece; None where neither suits."""
    before = pieces[-1]
    covered = pieces[-2].end if len(pieces) > 1 else before.start
    word = _last_word(task, before)
    start, end = strip(task.text, before.start, word)
    if end <= max(start, covered) or not has_words(task.text, start, end):
        return None
    longer = _together(task, replace(before, start=word), piece)
    return [replace(before, start=start, end=end), longer] if longer else None


def _last_word(task: CuttingTask, piece: Piece) -> int:
    position = piece.end - 1
    while position > piece.start and not task.text[position].isalnum():
        position -= 1
    while position > piece.start and task.ruler.inside_word(position):
        position -= 1
    return position
