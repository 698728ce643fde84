"""An embedding model as the rest of the house sees it: one protocol and the values it gives."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NoReturn, Protocol

import numpy as np
from numpy.typing import NDArray

from workbench.errors import ModelError
from workbench.types.results import Span

TOKEN_AXES = 128  # axes a token vector is projected on; one bit each is kept of a passage's tokens
TOKEN_BYTES = TOKEN_AXES // 8  # so 16 bytes a token

FloatArray = NDArray[np.float32]
OnBatch = Callable[[int], None]  # receives the number of texts just encoded, 0 while a batch takes long


@dataclass(frozen=True, slots=True)
class EncodedTexts:
    """Texts as vectors, in the order of the texts.

    ``vectors`` is float32 of shape (texts, dimensions), each of length 1. ``token_bits`` holds 16 bytes a token for
    every text, one after the other (scored by ``retrieval.stages.late_interaction``); None without token vectors.
    """

    vectors: FloatArray
    token_bits: list[bytes] | None = None


@dataclass(frozen=True, slots=True)
class EncodedQuery:
    """A query as one vector of length 1 and, where the model has token vectors, one per token.

    ``token_axes`` is float32 of shape (tokens, 128), each row of length 1; ``token_spans`` are the characters of the
    query that each row stands for, so that a row can be weighted or shown by its word. ``alone``: of a model made of
    two only the first could read it.
    """

    vector: FloatArray
    token_axes: FloatArray | None = None
    token_spans: tuple[Span, ...] = ()
    alone: bool = False


class Encoder(Protocol):
    """An embedding model; every method may be called from several threads at once.

    ``max_tokens`` is how many of the model's own tokens of text fit (special ones not counted): longer texts are cut.
    """

    @property
    def name(self) -> str:
        """The setting that loads this model again."""
        ...

    @property
    def dimensions(self) -> int:
        """Length of a vector."""
        ...

    @property
    def max_tokens(self) -> int:
        """Tokens of a text that are read."""
        ...

    @property
    def has_token_vectors(self) -> bool:
        """True when late interaction can score this model's passages."""
        ...

    @property
    def languages(self) -> frozenset[str] | None:
        """Codes (ISO 639-1) of the languages the model was trained to search in; None: not known, or any."""
        ...

    def encode(self, texts: Sequence[str], *, on_batch: OnBatch | None = None) -> EncodedTexts:
        """Encode passages; ``on_batch`` is called after each batch, with 0 within a long one, and may raise to stop."""
        ...

    def encode_query(self, text: str) -> EncodedQuery:
        """Encode a question."""
        ...

    def token_spans(self, text: str) -> list[Span]:
        """Return the (start, end) characters of every token of the text, however long it is."""
        ...

    def reads(self, text: str) -> float:
        """Return the share 0..1 of the text's letters and digits that the model can tell apart.

        1: its words are known pieces; near 0: they fall into single letters or unknown pieces, so that similarities
        say nothing (``workbench.models.encoder``). Looks at the first 4000 characters; takes below a millisecond for a
        question. A model whose tokenizer is not at hand says 1.
        """
        ...


def unit_rows(rows: FloatArray) -> FloatArray:
    """Scale each row to length 1; a row of zeros stays."""
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))[:, None]
    return rows / np.maximum(lengths, np.float32(1e-12))


# --- The languages that the built-in models were trained on, as ISO 639-1 codes ---

ENGLISH = frozenset({"en"})

# Conneau et al. 2020, arXiv:1911.02116, appendix A: the languages of XLM-RoBERTa's training text.
_XLM_ROBERTA = (
    "af am ar as az be bg bn br bs ca cs cy da de el en eo es et eu fa fi fr fy ga gd gl gu ha he hi hr hu hy id is it "
    "ja jv ka kk km kn ko ku ky la lo lt lv mg mk ml mn mr ms my nb ne nl nn no om or pa pl ps pt ro ru sa sd si sk sl "
    "so sq sr su sv sw ta te th tl tr ug uk ur uz vi xh yi zh"
)
XLM_ROBERTA = frozenset(_XLM_ROBERTA.split())

# Yang et al. 2020, arXiv:1907.04307, section 4: the sixteen languages, of which two are Chinese.
_UNIVERSAL = "ar de en es fr it ja ko nl pl pt ru th tr zh"
UNIVERSAL = frozenset(_UNIVERSAL.split())


# --- The share of a text that a model can tell apart, from the pieces its tokenizer cuts the text into ---

READS_NOTHING = 0.5  # share of a question, up to which a model says nothing of it (see workbench.retrieval.legs)
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


# --- The place of a model that cannot be loaded: a call to it says why, and searches that need no model are served ---


class UnavailableEncoder:
    """An encoder that raises the reason it was given, as ModelError."""

    dimensions = 0
    max_tokens = 0
    has_token_vectors = False
    languages: frozenset[str] | None = None

    def __init__(self, name: str, reason: str) -> None:
        self.name = name
        self._reason = reason

    def encode(self, texts: Sequence[str], *, on_batch: OnBatch | None = None) -> NoReturn:
        """Raise ModelError."""
        raise ModelError(self._reason)

    def encode_query(self, text: str) -> NoReturn:
        """Raise ModelError."""
        raise ModelError(self._reason)

    def token_spans(self, text: str) -> NoReturn:
        """Raise ModelError."""
        raise ModelError(self._reason)

    def reads(self, text: str) -> NoReturn:
        """Raise ModelError."""
        raise ModelError(self._reason)
