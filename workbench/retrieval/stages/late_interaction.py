"""Late interaction: a passage matches as well as each word of the question finds its like in it.

ColBERT's MaxSim (Khattab & Zaharia 2020, arXiv:2004.12832): for each query token the most similar passage token,
averaged over the query. Passage tokens keep one bit an axis, so that the similarity of query token q (length 1) and
passage token p is

    sim(q, p) = q . sign(p) / sqrt(128)        in -1..1

which is the cosine of q and sign(p). With bits b in {0, 1}, q . sign(p) = 2 q . b - sum(q): one matrix product.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from workbench.errors import InvalidInput
from workbench.models.encoder import TOKEN_AXES, TOKEN_BYTES, FloatArray

# Spread of the similarity of unrelated tokens: 1 / sqrt(128) = .088 if all bits were independent, half as much again
# as they are. scifact's train questions are flat from .09 to .25 (nDCG@10 .750), so theory chose.
SPREAD = 1.5 / math.sqrt(TOKEN_AXES)


@dataclass(frozen=True, slots=True)
class Match:
    """The passage token that a query token is most like, counted from 0, and how alike they are (-1..1)."""

    token: int
    similarity: float


def max_sim(query_axes: FloatArray, token_bits: Sequence[bytes], weights: FloatArray | None = None) -> FloatArray:
    """Score passages by MaxSim, in their order; -1..1, and 0 for a passage or a query without tokens.

    ``query_axes`` is (tokens, 128) with rows of length 1; ``token_bits`` 16 bytes a token for each passage. ``weights``
    (one for each query token, not negative) make the mean a weighted one.

    Raises:
        InvalidInput: bits or weights have the wrong length.
    """
    return best_similarities(query_axes, token_bits) @ token_shares(len(query_axes), weights)


def best_similarities(query_axes: FloatArray, token_bits: Sequence[bytes]) -> FloatArray:
    """Return of each passage the similarity of the token that is most like each query token: (passages, query tokens).

    A passage without tokens has zeros. Raises InvalidInput where bits have the wrong length.
    """
    counts = _token_counts(token_bits)
    best = np.zeros((len(token_bits), len(query_axes)), dtype=np.float32)
    filled = np.flatnonzero(counts)
    if len(filled) and len(query_axes):
        similarities = token_similarities(query_axes, b"".join(token_bits))
        starts = np.concatenate(([0], np.cumsum(counts[filled])[:-1]))
        best[filled] = np.maximum.reduceat(similarities, starts, axis=0)
    return best


def beyond_chance(scores: FloatArray, token_bits: Sequence[bytes]) -> FloatArray:
    """Take from MaxSim what a passage's length gives it for nothing, so that long and short ones compare.

    The largest of n similarities that mean nothing grows as spread * sqrt(2 ln n) (extreme value theory): 200 tokens
    are ahead of 50 before a word was read. Without this, late interaction lost to the first stage where passages
    differ in length (anthropic_docs .828 against .839) and after it wins there too (.843).
    """
    counts = np.maximum(_token_counts(token_bits), 2)
    return (scores - SPREAD * np.sqrt(2 * np.log(counts))).astype(np.float32)


def align(query_axes: FloatArray, token_bits: bytes) -> list[Match]:
    """Return for each query token the passage token it is most like; empty for a passage without tokens."""
    if not _token_counts([token_bits])[0]:
        return []
    similarities = token_similarities(query_axes, token_bits)
    best = similarities.argmax(axis=0)
    return [Match(int(token), float(similarities[token, place])) for place, token in enumerate(best)]


def token_similarities(query_axes: FloatArray, bits: bytes) -> FloatArray:
    """Return sim(q, p) of shape (passage tokens, query tokens)."""
    unpacked = np.unpackbits(np.frombuffer(bits, dtype=np.uint8)).reshape(-1, TOKEN_AXES).astype(np.float32)
    doubled = (query_axes * np.float32(2 / math.sqrt(TOKEN_AXES))).T
    return unpacked @ doubled - query_axes.sum(axis=1) / np.float32(math.sqrt(TOKEN_AXES))


def _token_counts(token_bits: Sequence[bytes]) -> NDArray[np.int64]:
    sizes = np.array([len(bits) for bits in token_bits], dtype=np.int64)
    if (sizes % TOKEN_BYTES).any():
        raise InvalidInput(f"Token bits must be {TOKEN_BYTES} bytes a token; index the documents again.")
    return sizes // TOKEN_BYTES


def token_shares(tokens: int, weights: FloatArray | None = None) -> FloatArray:
    """Return what each query token counts for; they sum to 1, or are all 0 when nothing counts."""
    token_weights = np.ones(tokens, dtype=np.float32) if weights is None else np.asarray(weights, dtype=np.float32)
    if token_weights.shape != (tokens,):
        raise InvalidInput(f"There must be one weight for each of the {tokens} query tokens, not {token_weights.size}.")
    total = token_weights.sum()
    return token_weights / total if total > 0 else token_weights
