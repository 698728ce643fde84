"""An embedding model as the rest of the house sees it: one protocol and the values it gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

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
        say nothing (``workbench.models.reading``). Looks at the first 4000 characters; takes below a millisecond for a
        question. A model whose tokenizer is not at hand says 1.
        """
        ...


def unit_rows(rows: FloatArray) -> FloatArray:
    """Scale each row to length 1; a row of zeros stays."""
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))[:, None]
    return rows / np.maximum(lengths, np.float32(1e-12))
