"""The share of a text that a model can tell apart, from the pieces its tokenizer cuts the text into.

A tokenizer that knows a word keeps it whole or in a few pieces. Words that it does not know fall apart into single
letters, or become the one piece for "unknown": two different words then look alike, and so do their vectors.
"""

from __future__ import annotations

from collections.abc import Iterable

from workbench.types.results import Span

READS_NOTHING = 0.5  # share of a question, up to which a model says nothing of it (see workbench.retrieval.votes)
SAMPLE = 4000  # characters of a text that are looked at: enough to tell, and a question of any size costs the same


def share_read(text: str, pieces: Iterable[tuple[Span, bool]], *, letters_are_words: bool) -> float:
    """Return the share 0..1 of the text's letters and digits that stand in pieces the model tells apart.

    ``pieces`` are the (start, end) characters of each piece, and False where the model knows no such piece. A single
    letter within a longer word never counts as read. A letter that is a word of its own counts if it is ASCII, or if
    ``letters_are_words``: a model with ideographs in its vocabulary knows each as a word, a model of English has a few
    that mean nothing to it. A text without letters and digits is read: it has nothing that could be misread.
    """
    total = read = 0
    for (start, end), is_known in pieces:
        piece = text[start:end]
        size = sum(map(str.isalnum, piece))
        total += size
        if is_known and (size > 1 or (size == 1 and _is_word(text, start, end, letters_are_words))):
            read += size
    return read / total if total else 1.0


def _is_word(text: str, start: int, end: int, letters_are_words: bool) -> bool:
    if letters_are_words:
        return True
    alone = not text[start - 1 : start].isalnum() and not text[end : end + 1].isalnum()
    return alone and text[start:end].strip().isascii()
