"""Input and output of chunkers, and a counter of the model's tokens in one text."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, Literal, TypeVar, overload

from workbench.ingestion.metadata import About

# --- Cached property without a lock ---

Owner = TypeVar("Owner")
Computed = TypeVar("Computed")


class lock_free_cached_property(Generic[Owner, Computed]):
    """A cached property without a lock, so that documents chunked in parallel do not wait for each other."""

    def __init__(self, compute: Callable[[Owner], Computed]) -> None:
        self._compute, self._name = compute, compute.__name__
        self.__doc__ = compute.__doc__

    def __get__(self, owner: Owner, kind: type[Owner] | None = None) -> Computed:
        """Compute and store the value; two threads may both compute it."""
        computed = self._compute(owner)
        owner.__dict__[self._name] = computed
        return computed


# --- Sequence whose items are not in memory ---

Item = TypeVar("Item")


class LazySequence(Sequence[Item]):
    """A sequence that creates its items on access, because a book has tens of thousands of them."""

    __slots__ = ()

    def _make_item(self, place: int) -> Item:
        raise NotImplementedError

    @overload
    def __getitem__(self, place: int) -> Item: ...
    @overload
    def __getitem__(self, place: slice) -> list[Item]: ...
    def __getitem__(self, place: int | slice) -> Item | list[Item]:
        if isinstance(place, slice):
            return [self._make_item(index) for index in range(len(self))[place]]
        return self._make_item(range(len(self))[place])


# --- Input and output of a chunker ---

Tokenize = Callable[[str], list[tuple[int, int]]]
BlockKind = Literal["text", "table", "code", "heading", "list"]


@dataclass(frozen=True, slots=True)
class ChunkInput:
    """The parts of a document that chunkers need."""

    title: str  # its title
    text: str  # its text
    document_type: str = "markdown"  # its type
    pages: tuple[tuple[int, int, int], ...] = ()  # (number, start, end) of its pages in ``text``
    about: About = field(default=About())  # description of the document; part of every passage's context


@dataclass(frozen=True, slots=True)
class CutPassage:
    """A passage: ``document.text[start:end]``, without white space at its ends."""

    start: int  # first character
    end: int  # character after the last
    heading_path: tuple[str, ...] = ()  # headings above it
    kind: BlockKind = "text"  # kind of its blocks
    page: int | None = None  # page on which it starts
    parent: tuple[int, int] | None = None  # (start, end) of the section to return instead, if the chunker has one
    header: str = ""  # context to embed before it (see ``storage.text_to_embed``), cut so that both fit the encoder
    # May have "table_header" (a span) and "window" (a span around a single sentence).
    metadata: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    text: str = ""  # its text, if it is not in the document; then it has no span
    added: Mapping[str, object] = field(default_factory=dict)  # further metadata to store


@dataclass(frozen=True, slots=True)
class Piece:
    """A result of a chunker before stripping."""

    start: int  # first character
    end: int  # character after the last
    parent: tuple[int, int] | None = None  # (start, end) of its section
    metadata: Mapping[str, tuple[int, int]] = field(default_factory=dict)  # spans to record in its passage


def strip_span(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the bounds of ``text[start:end]`` without surrounding white space; equal bounds if nothing is left."""
    while start < end and text[end - 1].isspace():
        end -= 1
    while start < end and text[start].isspace():
        start += 1
    return start, end


# A tokenizer may return a whole base64 line as one unknown token. It counts as one token per STEP characters, so that
# passages stay bounded (Postgres limits the size of indexed words and texts).
LONG_TOKEN_CHARS = 64  # characters
LONG_TOKEN_STEP_CHARS = 8  # characters
MAX_TOKENIZED_CHARS = 16_000  # characters tokenized at once; the result takes thirty times the memory of the text


class TokenCounter:
    """Token counts in one text, found by bisection; ``count`` does not call the tokenizer."""

    def __init__(self, text: str, tokens: Tokenize) -> None:
        """Tokenize the text in parts that end between words; the tokenizer's errors are raised here.

        Args:
            text: The text.
            tokens: Returns the (start, end) of each token of a text, without special tokens.
        """
        self.text = text
        self.tokens = tokens
        self.starts = _token_starts(text, tokens)

    def count(self, start: int, end: int) -> int:
        """Return how many tokens start in ``text[start:end]``."""
        return bisect_left(self.starts, end) - bisect_left(self.starts, start)

    def reach(self, start: int, budget: int, end: int) -> int:
        """Return the last position up to ``end`` such that ``text[start:position]`` has at most ``budget`` tokens.

        The position is the start of a word if possible, else the start of a token.
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
        """Return whether a cut here divides a word, so that its halves may have different token counts."""
        text = self.text
        return 0 < position < len(text) and _joins_word(text[position - 1]) and _joins_word(text[position])

    def boundaries(self, start: int, end: int) -> Sequence[int]:
        """Return the token starts in ``text[start:end]``."""
        return self.starts[bisect_left(self.starts, start) : bisect_right(self.starts, end - 1)]


def _joins_word(character: str) -> bool:
    """Return whether a character forms words with its neighbours: letters and digits do, CJK characters do not."""
    return character.isalnum() and not ("\u3040" <= character <= "\u30ff" or "\u3400" <= character <= "\u9fff")


def _token_starts(text: str, tokens: Tokenize) -> array[int]:
    """Return token starts in order, as four-byte integers because a book has millions of them."""
    starts = array("I")
    for first, last in _split_parts(text):
        for start, end in tokens(text[first:last]):
            begin, stop = first + start, first + end
            if stop <= begin or (starts and begin < starts[-1]):
                continue
            if stop - begin > LONG_TOKEN_CHARS:
                starts.extend(range(begin, stop, LONG_TOKEN_STEP_CHARS))
            else:
                starts.append(begin)
    return starts


def _split_parts(text: str) -> Iterator[tuple[int, int]]:
    """Yield parts of at most PART characters.

    Each ends before a single space between words, where every tokenizer starts a token, or else before white space, or
    anywhere if there is none.
    """
    start = 0
    while len(text) - start > MAX_TOKENIZED_CHARS:
        stop = _find_word_boundary(text, start + MAX_TOKENIZED_CHARS // 2, start + MAX_TOKENIZED_CHARS)
        yield start, stop
        start = stop
    if start < len(text):
        yield start, len(text)


def _find_word_boundary(text: str, low: int, high: int) -> int:
    space = text.rfind(" ", low, high)
    while space > low and not (text[space - 1].isalnum() and text[space + 1].isalnum()):
        space = text.rfind(" ", low, space)
    if space > low:
        return space
    return next((place for place in range(high - 1, low, -1) if text[place].isspace()), high)
