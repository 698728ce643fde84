"""Measure stretches of one text in the model's own tokens, having asked the tokenizer once."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable

from workbench.ingestion.chunking.span import Tokens

# A tokenizer may call a whole base64 line one unknown token. Such a token counts as one per STEP characters, so that
# no passage grows without bound (Postgres refuses to index words and texts beyond a size).
LONG_TOKEN = 64
STEP = 8


class Ruler:
    """Token counts over one text by bisection: ``count(start, end)`` costs no call of the tokenizer."""

    def __init__(self, text: str, tokens: Tokens) -> None:
        """``tokens`` gives the (start, end) of each token of a whole text, without special tokens."""
        self.text = text
        self.tokens = tokens
        self.starts = _starts(tokens(text)) if text else []

    def count(self, start: int, end: int) -> int:
        """Return how many tokens begin in ``text[start:end]``."""
        return bisect_left(self.starts, end) - bisect_left(self.starts, start)

    def reach(self, start: int, budget: int, end: int) -> int:
        """Return the furthest position up to ``end`` such that ``text[start:position]`` has at most ``budget`` tokens.

        The position is the start of a word where there is one to choose, else the start of a token.
        """
        first = bisect_left(self.starts, start)
        if first + budget >= len(self.starts) or self.starts[first + budget] >= end:
            return end
        position = self.starts[first + budget]
        for index in range(first + budget, first, -1):
            if not self.inside_word(self.starts[index]):
                return self.starts[index]
        return max(position, start + 1)

    def inside_word(self, position: int) -> bool:
        """Tell whether a cut here halves a word (then its halves may count differently than the whole did)."""
        text = self.text
        return 0 < position < len(text) and _joins(text[position - 1]) and _joins(text[position])

    def boundaries(self, start: int, end: int) -> list[int]:
        """Return the token starts within ``text[start:end]``."""
        return self.starts[bisect_left(self.starts, start) : bisect_right(self.starts, end - 1)]


def _joins(character: str) -> bool:
    """Letters and digits run on into one word, except Chinese characters and kana, which stand alone."""
    return character.isalnum() and not ("\u3040" <= character <= "\u30ff" or "\u3400" <= character <= "\u9fff")


def _starts(spans: Iterable[tuple[int, int]]) -> list[int]:
    starts: list[int] = []
    for start, end in spans:
        if end <= start or (starts and start < starts[-1]):
            continue
        if end - start > LONG_TOKEN:
            starts.extend(range(start, end, STEP))
        else:
            starts.append(start)
    return starts
