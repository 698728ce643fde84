"""The protocol of embedding models, and the values they return."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NoReturn, Protocol

import numpy as np
from numpy.typing import NDArray

from workbench.errors import ModelError
from workbench.types import Span

TOKEN_AXES = 128  # axes that a token vector is projected on; passages keep one bit per axis
TOKEN_BYTES = TOKEN_AXES // 8  # per token

FloatArray = NDArray[np.float32]
OnBatch = Callable[[int], None]  # receives the number of texts just encoded, 0 during a long batch


@dataclass(frozen=True, slots=True)
class EncodedTexts:
    """Texts as vectors, in the order of the texts."""

    vectors: FloatArray  # float32 of shape (texts, dimensions), each of length 1
    token_bits: list[bytes] | None = None  # per text 16 bytes for each token, concatenated; None without token vectors


@dataclass(frozen=True, slots=True)
class EncodedQuery:
    """A query as one vector and, if the model has token vectors, one vector per token."""

    vector: FloatArray  # of length 1
    token_axes: FloatArray | None = None  # float32 of shape (tokens, 128), each row of length 1
    token_spans: tuple[Span, ...] = ()  # characters of the query of each row
    alone: bool = False  # whether only the first of a model's two parts could read it


class Encoder(Protocol):
    """An embedding model. All methods are thread-safe."""

    @property
    def name(self) -> str:
        """The setting that loads this model."""
        ...

    @property
    def dimensions(self) -> int: ...

    @property
    def max_tokens(self) -> int:
        """Tokens of a text that are read, without special tokens; longer texts are truncated."""
        ...

    @property
    def has_token_vectors(self) -> bool:
        """True if late interaction can score this model's passages."""
        ...

    @property
    def languages(self) -> frozenset[str] | None:
        """ISO 639-1 codes of the model's training languages; None if unknown, or if it reads any language."""
        ...

    def encode(self, texts: Sequence[str], *, on_batch: OnBatch | None = None) -> EncodedTexts:
        """Encode passages; ``on_batch`` is called after each batch, with 0 during a long one, and may raise to stop."""
        ...

    def encode_query(self, text: str) -> EncodedQuery: ...

    def token_spans(self, text: str) -> list[Span]:
        """Return the (start, end) characters of every token of the text, whatever its length."""
        ...

    def reads(self, text: str) -> float:
        """Return the share (0..1) of the text's letters and digits that the model can distinguish.

        It is 1 if all words are known pieces, and near 0 if they are split into single letters or unknown pieces, so
        that similarities are meaningless. Only the first 4000 characters are examined; a query takes less than a
        millisecond. A model without an accessible tokenizer returns 1.
        """
        ...


def normalise_rows(rows: FloatArray) -> FloatArray:
    """Scale each row to length 1; zero rows are unchanged."""
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))[:, None]
    return rows / np.maximum(lengths, np.float32(1e-12))


def check_scores(name: str, scores: list[float], count: int) -> list[float]:
    """Return the scores if there is one finite number for each text.

    Raises:
        ModelError: The scores have another form.
    """
    if len(scores) != count or not all(math.isfinite(score) for score in scores):
        raise ModelError(f"The reranker {name!r} did not return one number for each passage.")
    return scores


# Training languages of the built-in models, as ISO 639-1 codes

ENGLISH_CODES = frozenset({"en"})

# Conneau et al. 2020, arXiv:1911.02116, appendix A: training languages of XLM-RoBERTa.
_XLM_ROBERTA = (
    "af am ar as az be bg bn br bs ca cs cy da de el en eo es et eu fa fi fr fy ga gd gl gu ha he hi hr hu hy id is it "
    "ja jv ka kk km kn ko ku ky la lo lt lv mg mk ml mn mr ms my nb ne nl nn no om or pa pl ps pt ro ru sa sd si sk sl "
    "so sq sr su sv sw ta te th tl tr ug uk ur uz vi xh yi zh"
)
XLM_ROBERTA = frozenset(_XLM_ROBERTA.split())

# Yang et al. 2020, arXiv:1907.04307, section 4: sixteen languages, two of which are Chinese.
_UNIVERSAL_CODES = "ar de en es fr it ja ko nl pl pt ru th tr zh"
UNIVERSAL_CODES = frozenset(_UNIVERSAL_CODES.split())


# Share of a text that a model can distinguish

MAX_UNREADABLE_SHARE = 0.5  # up to this share of a question the model is not used (see workbench.retrieval.legs)
MAX_SAMPLE_CHARS = 4000  # characters that are examined; this bounds the time for long texts


def readable_share(text: str, pieces: Iterable[tuple[Span, bool]], *, letters_are_words: bool) -> float:
    """Return the share (0..1) of the text's letters and digits in pieces that the model distinguishes.

    A single letter inside a longer word never counts. A text without letters and digits has share 1.

    Args:
        text: The text.
        pieces: The (start, end) characters of each piece, and False for a piece that is not in the vocabulary.
        letters_are_words: Whether words of one non-ASCII letter count. True for a vocabulary with ideographs; an
            English model contains a few ideographs that are meaningless to it.
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


# Models whose tokenizer is not accessible

_TOKEN = re.compile(r"\w{1,6}|[^\w\s]")


class PlainEncoder:
    """A model without token vectors, whose tokenizer is not accessible, and whose dimensions are found by encoding.

    A subclass encodes the passages of one batch.
    """

    has_token_vectors = False
    languages: frozenset[str] | None = None
    batch_size = 32  # texts

    @property
    def dimensions(self) -> int:
        return self._vector_length

    @cached_property
    def _vector_length(self) -> int:
        return self.encode(["dimensions"]).vectors.shape[1]

    def encode(self, texts: Sequence[str], *, on_batch: OnBatch | None = None) -> EncodedTexts:
        """Encode passages in batches."""
        batches = [texts[start : start + self.batch_size] for start in range(0, len(texts), self.batch_size)]
        rows: list[FloatArray] = []
        for batch, vectors in zip(batches, self.encode_batches(batches), strict=True):
            rows.append(vectors)
            if on_batch is not None:
                on_batch(len(batch))
        return EncodedTexts(np.concatenate(rows) if rows else np.zeros((0, self.dimensions), dtype=np.float32))

    def encode_batches(self, batches: Sequence[Sequence[str]]) -> Iterator[FloatArray]:
        """Yield the vectors of each batch, in order."""
        return map(self.encode_batch, batches)

    def encode_batch(self, texts: Sequence[str]) -> FloatArray:
        """Return vectors of length 1, of shape (texts, dimensions)."""
        raise NotImplementedError

    def token_spans(self, text: str) -> list[Span]:
        """Return pieces of at most six letters: an upper estimate of the model's own tokens."""
        return [match.span() for match in _TOKEN.finditer(text)]

    def reads(self, text: str) -> float:
        """Return 1, because what the model can distinguish is unknown."""
        return 1.0


# A dense model with the token vectors of another one


class CompanionEncoder:
    """An external dense model combined with a built-in model that adds token vectors for late interaction.

    The built-in model also splits texts into tokens, so that token vectors and spans agree.
    """

    has_token_vectors = True

    def __init__(self, dense: Encoder, tokens: Encoder) -> None:
        self._dense, self.tokens = dense, tokens
        self.name = dense.name

    @property
    def dimensions(self) -> int:
        """Length of the dense model's vectors."""
        return self._dense.dimensions

    @property
    def max_tokens(self) -> int:
        """The smaller limit of the two."""
        return min(self._dense.max_tokens, self.tokens.max_tokens)

    @property
    def languages(self) -> frozenset[str] | None:
        return self._dense.languages

    def encode(self, texts: Sequence[str], *, on_batch: OnBatch | None = None) -> EncodedTexts:
        """Encode passages with both models; ``on_batch`` counts those of the dense one."""
        vectors = self._dense.encode(texts, on_batch=on_batch).vectors
        pause = (lambda _: on_batch(0)) if on_batch is not None else None
        return EncodedTexts(vectors, self.tokens.encode(texts, on_batch=pause).token_bits)

    def encode_query(self, text: str) -> EncodedQuery:
        """Encode a question; it has token vectors if the built-in model can read it."""
        vector = self._dense.encode_query(text).vector
        if self.tokens.reads(text) <= MAX_UNREADABLE_SHARE:
            return EncodedQuery(vector)
        own = self.tokens.encode_query(text)
        return EncodedQuery(vector, own.token_axes, own.token_spans)

    def token_spans(self, text: str) -> list[Span]:
        """Return the (start, end) characters of every token of the built-in model."""
        return self.tokens.token_spans(text)

    def reads(self, text: str) -> float:
        """Return the share of the text's letters and digits that the dense model can distinguish."""
        return self._dense.reads(text)


# Placeholder for a model that is not available


class UnavailableEncoder:
    """An encoder whose methods raise the given reason as ModelError; searches without a model still work."""

    dimensions = 0
    max_tokens = 0
    has_token_vectors = False
    languages: frozenset[str] | None = None

    def __init__(self, name: str, reason: str) -> None:
        self.name = name
        self._reason = reason

    def encode_query(self, text: str) -> NoReturn:
        raise ModelError(self._reason)

    token_spans = reads = encode_query

    def encode(self, texts: Sequence[str], *, on_batch: OnBatch | None = None) -> NoReturn:
        raise ModelError(self._reason)
