"""Join pieces without a letter or digit (a full stop, a rule, a row of dots) to their neighbours: nobody seeks them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from workbench.ingestion.chunking.job import Job
from workbench.ingestion.chunking.span import Piece, strip


def has_words(text: str, start: int, end: int) -> bool:
    """Tell whether there is a letter or digit in ``text[start:end]``."""
    return any(text[position].isalnum() for position in range(start, end))


def joined(job: Job, pieces: Sequence[Piece]) -> list[Piece]:
    """Return stripped pieces such that each has a letter or digit, unless none has.

    A wordless one joins the piece before it or after it; where both are full it takes the last word of the one
    before. One too long for that (a screen of dashes) is left out: it is in the document, and in no passage.
    """
    worded = [has_words(job.text, piece.start, piece.end) for piece in pieces]
    if all(worded) or not any(worded):
        return list(pieces)
    kept: list[Piece] = []
    waiting: Piece | None = None  # a wordless piece that the next one may take
    for piece, good in zip(pieces, worded, strict=True):
        if good:
            kept.append(_together(job, piece, waiting) or piece if waiting else piece)
            waiting = None
        elif kept and (longer := _together(job, kept[-1], piece)):
            kept[-1] = longer
        elif kept and (parted := _parted(job, kept, piece)):
            kept[-1:] = parted
        else:
            waiting = (waiting and _together(job, piece, waiting)) or piece
    return kept


def _together(job: Job, piece: Piece, more: Piece) -> Piece | None:
    """Return a piece that takes a wordless neighbour in; None where it has no room, or its section ends before."""
    start, end = min(piece.start, more.start), max(piece.end, more.end)
    if piece.parent is not None and not (piece.parent[0] <= start and end <= piece.parent[1]):
        return None
    own = len(job.tokens(job.text[piece.start : piece.end]))
    if len(job.tokens(job.text[start:end])) > (job.size if own <= job.size else job.room):
        return None
    metadata = dict(piece.metadata)
    if "window" in metadata:
        first, last = metadata["window"]
        metadata["window"] = (min(first, start), max(last, end))
    return replace(piece, start=start, end=end, metadata=metadata)


def _parted(job: Job, kept: Sequence[Piece], piece: Piece) -> list[Piece] | None:
    """Return the last piece without its last word, and that word with the wordless piece; None where neither suits."""
    before = kept[-1]
    covered = kept[-2].end if len(kept) > 1 else before.start
    word = _last_word(job, before)
    start, end = strip(job.text, before.start, word)
    if end <= max(start, covered) or not has_words(job.text, start, end):
        return None
    taken = _together(job, replace(before, start=word), piece)
    return [replace(before, start=start, end=end), taken] if taken else None


def _last_word(job: Job, piece: Piece) -> int:
    position = piece.end - 1
    while position > piece.start and not job.text[position].isalnum():
        position -= 1
    while position > piece.start and job.ruler.inside_word(position):
        position -= 1
    return position
