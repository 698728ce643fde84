"""A ruler over one text in the model's own tokens, for which the tokenizer is asked once for every part of it."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, Literal, TypeVar

from workbench.ingestion.metadata import About

# --- A property that is computed once, without a lock: documents that are cut beside each other do not wait ---

Owner = TypeVar("Owner")
Computed = TypeVar("Computed")


class computed_once(Generic[Owner, Computed]):
    """Keep what a method returns in the object's ``__dict__``, where it is found before the method the next time."""

    def __init__(self, compute: Callable[[Owner], Computed]) -> None:
        self._compute, self._name = compute, compute.__name__
        self.__doc__ = compute.__doc__

    def __get__(self, owner: Owner, kind: type[Owner] | None = None) -> Computed:
        """Compute it; two threads that ask at once may both do so."""
        computed = self._compute(owner)
        owner.__dict__[self._name] = computed
        return computed


# --- Input and output of a chunker: a document's text, and where it is cut ---

Tokenize = Callable[[str], list[tuple[int, int]]]
BlockKind = Literal["text", "table", "code", "heading", "list"]


@dataclass(frozen=True, slots=True)
class ChunkInput:
    """The parts of a document that cutting needs; ``pages`` are (number, start, end) in ``text``.

    ``about`` holds what the document says of itself beside its title; it goes into every passage's context.
    """

    title: str
    text: str
    document_type: str = "markdown"
    pages: tuple[tuple[int, int, int], ...] = ()
    about: About = field(default=About())


@dataclass(frozen=True, slots=True)
class CutPassage:
    """One passage: ``document.text[start:end]``, without blanks at its ends.

    ``header`` is the context to embed before it (see ``storage.embedded_text``), cut so that both fit the encoder.
    ``parent`` is the (start, end) of the section to return in its place, where the chunker knows one. ``metadata``
    may hold "table_header" (a span), "window" (a span around a single sentence).
    """

    start: int
    end: int
    heading_path: tuple[str, ...] = ()
    kind: BlockKind = "text"
    page: int | None = None
    parent: tuple[int, int] | None = None
    header: str = ""
    metadata: Mapping[str, tuple[int, int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Piece:
    """The result of a chunker: bounds (not yet stripped) and facts that only it can know."""

    start: int
    end: int
    parent: tuple[int, int] | None = None
    metadata: Mapping[str, tuple[int, int]] = field(default_factory=dict)


def strip(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the bounds of ``text[start:end]`` without surrounding blanks; equal bounds when nothing is left."""
    while start < end and text[end - 1].isspace():
        end -= 1
    while start < end and text[start].isspace():
        start += 1
    return start, end


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
