"""Tokenizing texts of any size in pieces, so that no call blocks the interpreter for more than a few milliseconds.

The tokenizer blocks all other threads of the process while it handles a text, which takes 38 s for 7 MB. Pieces end
before a space, so the tokens are the same as for the whole text. A piece without any space (unspaced scripts, a line of
base64) ends anywhere, which may split one token in two.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, islice
from threading import Lock
from typing import TYPE_CHECKING

from workbench.models.encoder import MAX_SAMPLE_CHARS, readable_share
from workbench.types import Span

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer

MAX_PIECE_CHARS = 16_000  # characters: about ten milliseconds
LONE_SURROGATE = re.compile("[\ud800-\udfff]")  # not text, and rejected by the tokenizer
SPACE = re.compile(r"\s")


@dataclass(frozen=True, slots=True)
class Special:
    """Ids of special tokens: before and after every text, and for unknown pieces."""

    begin: int
    end: int
    unknown: int


class Tokens:
    """A model's tokenizer, read at first use. Thread-safe."""

    def __init__(self, read: Callable[[], Tokenizer], special: Special, *, letters_are_words: bool) -> None:
        """Configure the tokenizer; ``letters_are_words`` is as in ``readable_share``."""
        self.special = special
        self._read = read
        self._letters_are_words = letters_are_words
        self._lock = Lock()

    def ids(self, texts: Sequence[str], most: int, ask: Callable[[], None] | None = None) -> list[list[int]]:
        """Return the first ``most`` tokens of each text, without special tokens.

        ``ask`` is called often and may raise to cancel.
        """
        rows: list[list[int]] = []
        for group in _group_texts(texts):
            if ask is not None:
                ask()
            first = [next(_split_pieces(replace_surrogates(text))) for text in group]
            for text, piece, encoding in zip(group, first, self._encode(first), strict=True):
                enough = len(piece) == len(text) or len(encoding.ids) >= most
                rows.append(encoding.ids[:most] if enough else self._first(text, most))
        return rows

    def spans(self, text: str, most: int | None = None) -> list[Span]:
        """Return the (start, end) characters of the first ``most`` tokens of the text, or of all."""
        return list(islice(self._spans(text), most))

    def reads(self, text: str) -> float:
        """Return the share (0..1) of the text's letters and digits that the model distinguishes."""
        part = replace_surrogates(text[:MAX_SAMPLE_CHARS])
        (encoding,) = self._encode([part])
        in_vocabulary = (number != self.special.unknown for number in encoding.ids)
        return readable_share(
            part, zip(encoding.offsets, in_vocabulary, strict=True), letters_are_words=self._letters_are_words
        )

    def _spans(self, text: str) -> Iterator[Span]:
        start = 0
        for piece in _split_pieces(replace_surrogates(text)):
            (encoding,) = self._encode([piece])
            for first, last in encoding.offsets:
                yield start + first, start + last
            start += len(piece)

    def _first(self, text: str, most: int) -> list[int]:
        ids: list[int] = []
        for piece in _split_pieces(replace_surrogates(text)):
            ids += self._encode([piece])[0].ids
            if len(ids) >= most:
                break
        return ids[:most]

    def _encode(self, texts: Sequence[str]) -> list[Encoding]:
        return self._tokenizer.encode_batch(texts, add_special_tokens=False)

    @property
    def _tokenizer(self) -> Tokenizer:
        with self._lock:
            return self._tokenizer_cache

    @cached_property
    def _tokenizer_cache(self) -> Tokenizer:
        tokenizer = self._read()
        tokenizer.no_truncation()
        tokenizer.no_padding()
        return tokenizer


def replace_surrogates(text: str) -> str:
    """Return the text with every lone surrogate replaced; positions do not change."""
    return LONE_SURROGATE.sub("\ufffd", text)


def _split_pieces(text: str) -> Iterator[str]:
    """Yield the text in pieces of at most PIECE characters, split before a space if possible; "" is one piece."""
    start = 0
    while len(text) - start > MAX_PIECE_CHARS:
        end = start + MAX_PIECE_CHARS
        spaces = [match.start() for match in SPACE.finditer(text, start + MAX_PIECE_CHARS // 2, end)]
        end = spaces[-1] if spaces else end
        yield text[start:end]
        start = end
    yield text[start:]


def _group_texts(texts: Sequence[str]) -> Iterator[list[str]]:
    """Yield groups of neighbouring texts of at most PIECE characters in total, with at least one text each."""
    sizes = accumulate(min(len(text), MAX_PIECE_CHARS) for text in texts)
    group: list[str] = []
    begun = 0
    for text, size in zip(texts, sizes, strict=True):
        if group and size - begun > MAX_PIECE_CHARS:
            yield group
            group, begun = [], size - min(len(text), MAX_PIECE_CHARS)
        group.append(text)
    if group:
        yield group
