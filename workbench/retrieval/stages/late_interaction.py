"""Late interaction: a passage is scored by its best match for each token of the question.

ColBERT's MaxSim (Khattab & Zaharia 2020, arXiv:2004.12832): for each query token the most similar passage token,
averaged over the query. Passage tokens store one bit per axis, so the similarity of query token q (length 1) and
passage token p is

    sim(q, p) = q . sign(p) / sqrt(128)        in -1..1

which is the cosine of q and sign(p). With bits b in {0, 1}, q . sign(p) = 2 q . b - sum(q): one matrix product.
"""

from __future__ import annotations

import math
import string
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from llama_index.core.schema import NodeWithScore
from numpy.typing import NDArray

from workbench.errors import InvalidInput
from workbench.models.encoder import TOKEN_AXES, TOKEN_BYTES, FloatArray
from workbench.retrieval.bm25 import term_idf
from workbench.retrieval.hits import Hit, add_leg
from workbench.retrieval.legs import keyword_confidence, leg_confidences
from workbench.retrieval.nodes import node_hit, replace_hits
from workbench.retrieval.parameters import DOCUMENT_WEIGHT, LATE_WEIGHT
from workbench.retrieval.query import Query, Request, TokenSimilarities, Words
from workbench.retrieval.stages.stage import Stage
from workbench.storage.passages import Connection, fetch_token_bits
from workbench.text import gram_weights, iter_spaced_words
from workbench.types import LATE, TimedStep

# Standard deviation of the similarity of unrelated tokens: 1 / sqrt(128) = .088 for independent bits, 1.5 times
# that in practice. scifact's train questions are flat from .09 to .25 (nDCG@10 .750), so theory decides.
CHANCE_SPREAD = 1.5 / math.sqrt(TOKEN_AXES)


@dataclass(frozen=True, slots=True)
class Match:
    """The passage token most similar to a query token, counted from 0, and their similarity (-1..1)."""

    token: int
    similarity: float


def compute_max_sim(
    query_axes: FloatArray, token_bits: Sequence[bytes], weights: FloatArray | None = None
) -> FloatArray:
    """Score passages by MaxSim, -1..1; 0 for a passage or a query without tokens.

    ``query_axes`` is (tokens, 128) with rows of length 1; ``token_bits`` has 16 bytes per token of each passage.
    ``weights`` (one per query token, not negative) weight the mean.

    Raises:
        InvalidInput: Bits or weights have the wrong length.
    """
    return compute_best_similarities(query_axes, token_bits) @ compute_token_shares(len(query_axes), weights)


def compute_best_similarities(query_axes: FloatArray, token_bits: Sequence[bytes]) -> FloatArray:
    """Return the best similarity in each passage for each query token, of shape (passages, query tokens).

    A passage without tokens has zeros. Raises InvalidInput if bits have the wrong length.
    """
    counts = _count_tokens(token_bits)
    best = np.zeros((len(token_bits), len(query_axes)), dtype=np.float32)
    filled = np.flatnonzero(counts)
    if len(filled) and len(query_axes):
        similarities = compute_token_similarities(query_axes, b"".join(token_bits))
        starts = np.concatenate(([0], np.cumsum(counts[filled])[:-1]))
        best[filled] = np.maximum.reduceat(similarities, starts, axis=0)
    return best


def subtract_chance(scores: FloatArray, token_bits: Sequence[bytes]) -> FloatArray:
    """Subtract from MaxSim the part that is due to a passage's length, so that long and short passages are comparable.

    The largest of n random similarities grows as spread * sqrt(2 ln n) (extreme value theory), which favours
    long passages. Without this, late interaction was worse than the first stage for passages of different lengths (.828
    against .839 on anthropic_docs); with it, it is better (.843).
    """
    counts = np.maximum(_count_tokens(token_bits), 2)
    return (scores - CHANCE_SPREAD * np.sqrt(2 * np.log(counts))).astype(np.float32)


def align_tokens(query_axes: FloatArray, token_bits: bytes) -> list[Match]:
    """Return the most similar passage token for each query token; empty for a passage without tokens."""
    if not _count_tokens([token_bits])[0]:
        return []
    similarities = compute_token_similarities(query_axes, token_bits)
    best = similarities.argmax(axis=0)
    return [Match(int(token), float(similarities[token, place])) for place, token in enumerate(best)]


def compute_token_similarities(query_axes: FloatArray, bits: bytes) -> FloatArray:
    """Return sim(q, p) of shape (passage tokens, query tokens)."""
    unpacked = np.unpackbits(np.frombuffer(bits, dtype=np.uint8)).reshape(-1, TOKEN_AXES).astype(np.float32)
    doubled = (query_axes * np.float32(2 / math.sqrt(TOKEN_AXES))).T
    return unpacked @ doubled - query_axes.sum(axis=1) / np.float32(math.sqrt(TOKEN_AXES))


def _count_tokens(token_bits: Sequence[bytes]) -> NDArray[np.int64]:
    sizes = np.array([len(bits) for bits in token_bits], dtype=np.int64)
    if (sizes % TOKEN_BYTES).any():
        raise InvalidInput(f"Token bits must have {TOKEN_BYTES} bytes per token; index the documents again.")
    return sizes // TOKEN_BYTES


def compute_token_shares(tokens: int, weights: FloatArray | None = None) -> FloatArray:
    """Return the weight of each query token; they sum to 1, or are all 0."""
    token_weights = np.ones(tokens, dtype=np.float32) if weights is None else np.asarray(weights, dtype=np.float32)
    if token_weights.shape != (tokens,):
        raise InvalidInput(f"Expected {tokens} weights, one per query token, not {token_weights.size}.")
    total = token_weights.sum()
    return token_weights / total if total > 0 else token_weights


# Late-interaction stage

# Shares of digits among a passage's characters: prose has less than the first; a table with more than the
# second is not scored. On annual reports (19 questions) a page of evidence is among five / ten for .63 / .74 instead
# of .53 / .68; anthropic_docs is unchanged, scifact within .0005.
PROSE_DIGIT_SHARE, TABLE_DIGIT_SHARE = 0.1, 0.3
DOCUMENT = "document"  # document names are not in the passages' words


class LateInteractionRerank(Stage):
    """A stage that adds the late-interaction score to the first stage's and re-sorts."""

    leg = LATE

    def apply(self, query: Query, nodes: list[NodeWithScore]) -> list[NodeWithScore]:
        request = self._request
        hits = [node_hit(node) for node in nodes]
        with request.store.reading() as connection:
            query.read_words(connection)
            with request.trace.stage(TimedStep.RERANK):
                late = compute_late_scores(query, connection, hits)
        if not late:
            return nodes
        weight = request.float_param(LATE_WEIGHT) * leg_confidences(query)[self.leg]
        trust = {hit.id: prose_share(node.node.get_content()) for hit, node in zip(hits, nodes, strict=True)}
        untouched = find_protected_leg(request, hits)
        return replace_hits(nodes, add_leg(hits, self.leg, late, weight, trust=trust, untouched=untouched))


def find_protected_leg(request: Request, hits: Sequence[Hit]) -> tuple[str, float]:
    """Return the document-name leg, which passage reranking does not affect, and its share of the score."""
    named = any(DOCUMENT in hit.legs for hit in hits)
    return DOCUMENT, request.float_param(DOCUMENT_WEIGHT) if named else 0.0


def prose_share(text: str) -> float:
    """Return how strongly late interaction applies to a passage: 1 for prose, 0 for a table of figures.

    To the model all figures are similar, so any table of figures would match any question that contains a number.
    """
    digits = sum(map(text.count, string.digits))
    share = digits / max(1, len(text) - text.count(" ") - text.count("\n"))
    return min(1.0, max(0.0, (TABLE_DIGIT_SHARE - share) / (TABLE_DIGIT_SHARE - PROSE_DIGIT_SHARE)))


def compute_late_scores(query: Query, connection: Connection, hits: Sequence[Hit]) -> dict[int, float]:
    """Return MaxSim above chance for each hit; if the index has no token vectors, return nothing and add a note."""
    request, encoded = query.request, query.encoded
    bits = fetch_token_bits(connection, request.index.name, [hit.id for hit in hits])
    if encoded.token_axes is None or not bits:
        request.trace.note("rerank: this index has no token vectors, so the order is that of the first stage")
        return {}
    weights = compute_token_weights(
        query.text, encoded.token_spans, query.read_words(connection), 1 - keyword_confidence(query)
    )
    ids = sorted(bits)
    token_rows = [bits[key] for key in ids]
    best, shares = (
        compute_best_similarities(encoded.token_axes, token_rows),
        compute_token_shares(len(weights), weights),
    )
    query.token_similarities = TokenSimilarities(tuple(ids), best, shares)
    scores = subtract_chance(best @ shares, token_rows)
    return {key: float(score) for key, score in zip(ids, scores, strict=True)}


def compute_token_weights(
    query: str, spans: Sequence[tuple[int, int]], words: Words, across: float = 0.0
) -> FloatArray:
    """Weight each query token by the square root of its word's idf; stop words get 0.

    Without any terms, all tokens have equal weight. The square root is used because BM25 already favours rare words. On
    scifact's training questions, uniform / root / plain idf gave late interaction alone .716 / .712 / .711 nDCG@10;
    combined with the other legs, the root was at least as good as either on every open set. In a language that the
    index lacks (``across``, 0..1), the lexicon is uninformative, so weights become equal.
    """
    by_position: dict[int, float] = {}
    by_term: dict[str, float] = {}
    for term in words.terms:  # a word may be a term in several languages
        by_term[term.term] = term_idf(term, words.totals.passages) ** 0.5
        by_position[term.position] = max(by_position.get(term.position, 0.0), by_term[term.term])
    starts = {
        place: by_position.get(position, 0.0)
        for position, match in enumerate(iter_spaced_words(query), start=1)
        for place in range(match.start(), match.end())
    } | gram_weights(query, by_term)
    weights = np.array([starts.get(start, 0.0) for start, _ in spans], dtype=np.float32)
    if not weights.any():
        return np.ones(len(spans), dtype=np.float32)
    if not across:
        return weights
    alike = np.array([any(map(str.isalnum, query[start:end])) for start, end in spans], dtype=np.float32)
    return (1 - across) * weights / weights.mean() + across * alike / (alike.mean() or 1.0)
