"""A ruler over one text in the model's own tokens, for which the tokenizer is asked once for every part of it."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence

from workbench.ingestion.chunking.span import Tokenize

# A tokenizer may call a whole base64 line one unknown token. Such a token counts as one per STEP characters, so that
# no passage grows without bound (Postgres refuses to index words and texts beyond a size).
LONG_TOKEN = 64  # characters
STEP = 8  # characters
PART = 16_000  # characters the tokenizer is given at once: its answer takes thirty times the memory of the text


class Ruler:
    """Token counts over one text by bisection: ``count(start, end)`` costs no call of the tokenizer."""

    def __init__(self, text: str, tokens: Tokenize) -> None:
        """Take ``tokens``, which gives the (start, end) of each token of a text, without special tokens.

        The text is given to it in parts that end between words; its errors come out here.
        """
        self.text = text
        self.tokens = tokens
        self.starts = _starts(text, tokens)

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

    def boundaries(self, start: int, end: int) -> Sequence[int]:
        """Return the token starts within ``text[start:end]``."""
        return self.starts[bisect_left(self.starts, start) : bisect_right(self.starts, end - 1)]


def _joins(character: str) -> bool:
    """Tell whether a character runs on into one word: letters and digits do, Chinese characters and kana do not."""
    return character.isalnum() and not ("\u3040" <= character <= "\u30ff" or "\u3400" <= character <= "\u9fff")


def _starts(text: str, tokens: Tokenize) -> array[int]:
    """Return where tokens begin, in order: four bytes each, for a book has millions of them."""
    starts = array("I")
    for first, last in _parts(text):
        for start, end in tokens(text[first:last]):
            begin, stop = first + start, first + end
            if stop <= begin or (starts and begin < starts[-1]):
                continue
            if stop - begin > LONG_TOKEN:
                starts.extend(range(begin, stop, STEP))
            else:
                starts.append(begin)
    return starts


def _parts(text: str) -> Iterator[tuple[int, int]]:
    """Yield the text in stretches of at most PART characters.

    Each ends before a single space between two words, where every tokenizer begins a token anyway, or else before a
    blank, or anywhere in a text without one.
    """
    start = 0
    while len(text) - start > PART:
        stop = _between_words(text, start + PART // 2, start + PART)
        yield start, stop
        start = stop
    if start < len(text):
        yield start, len(text)


def _between_words(text: str, low: int, high: int) -> int:
    space = text.rfind(" ", low, high)
    while space > low and not (text[space - 1].isalnum() and text[space + 1].isalnum()):
        space = text.rfind(" ", low, space)
    if space > low:
        return space
    return next((place for place in range(high - 1, low, -1) if text[place].isspace()), high)
