"""Hybrid: both legs over the same scope; every candidate is scored by both and fused.

A passage found by only one leg also gets the other leg's true score, which is looked up for all candidates. So it loses
nothing by being outside a leg's top n.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import overload

from llama_index.core.schema import NodeWithScore

from workbench.retrieval.hits import Contributions, Hit, fuse_convex, fuse_reciprocal_rank, scale_min_max
from workbench.retrieval.legs import compute_spread, keyword_confidence, leg_confidences
from workbench.retrieval.name_matching import compute_name_confidences, name_confidence
from workbench.retrieval.parameters import (
    CANDIDATES,
    DOCUMENT_WEIGHT,
    FUSION,
    MIN_SIMILARITY,
    RRF,
    TYPO_TOLERANCE,
    VECTOR_WEIGHT,
)
from workbench.retrieval.query import Query, Request
from workbench.retrieval.retrievers.keyword import rank_by_keywords
from workbench.retrieval.retrievers.retriever import Retriever
from workbench.retrieval.retrievers.vector import rank_by_vector
from workbench.storage.database import Connection
from workbench.storage.passages import hubness
from workbench.storage.postings import score_others
from workbench.storage.ranking import LegRanking
from workbench.types import DOCUMENT, KEYWORD, VECTOR, Leg, ParameterValue, TimedStep

# For questions in another language than the index's. A multilingual model puts some passages near everything, and
# across languages similarities are so close that these come first: half of a passage's mean similarity to all others
# is subtracted. nDCG@10 of 150 of XQuAD's questions each on the English paragraphs: Chinese .803 to .850, Arabic .806
# to .830, German .956 to .948; subtracting all of it, or the mean over candidates only, was worse.
CROSS_LANGUAGE_POOL = 200
HUBNESS_SHARE = 0.5


class HybridRetriever(Retriever):
    """The vector and the keyword leg, fused."""

    def find(self, query: Query) -> list[NodeWithScore]:
        """Return the fused candidates of both legs."""
        request = self._request
        with request.store.reading() as connection:
            hits = find_hybrid_hits(query, connection, leg_depth(request))
            return self._fetch(connection, hits)


def leg_depth(request: Request) -> int:
    """Return the number of passages per leg: the request's depth, or half of the candidates if that is more.

    It does not depend on the limit, so that all pages of results come from the same ranking.
    """
    candidates = int(request.float_param(CANDIDATES, otherwise=0))
    return max(request.depth, (candidates + 1) // 2)


class Candidates(Sequence[Hit]):
    """Hits, best first; each is made when it is read, because most searches show the first ten of a hundred."""

    def __init__(self, order: Sequence[int], make: Callable[[int], Hit]) -> None:
        self.order, self._make = order, make

    def __len__(self) -> int:
        return len(self.order)

    @overload
    def __getitem__(self, item: int) -> Hit: ...
    @overload
    def __getitem__(self, item: slice) -> list[Hit]: ...
    def __getitem__(self, item: int | slice) -> Hit | list[Hit]:
        return self._make(self.order[item]) if isinstance(item, int) else [self._make(key) for key in self.order[item]]


def find_hybrid_hits(query: Query, connection: Connection, pool: int) -> Candidates:
    """Return the candidates of both legs, fused, best first."""
    request = query.request
    query.read_words(connection)
    across = 1 - keyword_confidence(query)
    if across:
        pool = max(pool, CROSS_LANGUAGE_POOL)
        request.trace.note(
            "keyword: the question seems to be in a language that the index does not have, so its words count less; "
            "passages are found by its meaning"
        )
    nearest, worded, bm25_of_nearest = _search_both_legs(query, connection, pool)
    with request.trace.stage(TimedStep.FUSE):
        cosines, bm25 = merge_leg_scores(nearest, worded, bm25_of_nearest)
        query.spread = compute_spread(cosines.values())
        telling = _subtract_hubness(query, connection, cosines, across)
        contributions = fuse(telling, bm25, request.parameters, leg_confidences(query))
        weight = request.float_param(DOCUMENT_WEIGHT)
        name_shares = compute_name_confidences(query, connection, nearest.documents) if weight else {}
        contributions = add_document_leg(contributions, name_shares, weight)
        scores = {key: sum(parts.values()) for key, parts in contributions.items()}
        if request.min_similarity > 0:
            hidden = {key for key in scores if not query.is_similar_enough(cosines[key], has_words=key in bm25)}
            scores = {key: score for key, score in scores.items() if key not in hidden}
        # Among ties, more matching words win: the only passage with a rare word ties with the nearest
        # one if it is itself the farthest of all candidates.
        order = sorted(scores, key=lambda key: (-scores[key], -contributions[key].get(KEYWORD, 0.0), key))
        request.trace.has_more |= _has_more(query, nearest, worded, pool)
    vector_ranks = {key: rank for rank, key in enumerate(nearest.scores, start=1)}
    keyword_ranks = {key: rank for rank, key in enumerate(worded.scores, start=1)}

    def make(key: int) -> Hit:
        parts = contributions[key]
        legs = {VECTOR: Leg(cosines[key], vector_ranks.get(key), parts[VECTOR])}
        if key in bm25:
            legs[KEYWORD] = Leg(bm25[key], keyword_ranks.get(key), parts[KEYWORD])
        if DOCUMENT in parts and key in name_shares:
            legs[DOCUMENT] = Leg(name_shares[key], None, parts[DOCUMENT])
        return Hit(key, scores[key], legs)

    return Candidates(order, make)


def _has_more(query: Query, nearest: LegRanking, worded: LegRanking, pool: int) -> bool:
    """Return whether a deeper pool can contain more passages above the minimum similarity."""
    if len(worded.scores) >= pool and query.is_similar_enough(-1.0, has_words=True):
        return True
    return len(nearest.scores) >= pool and query.is_similar_enough(min(nearest.scores.values()))


def merge_leg_scores(
    nearest: LegRanking, worded: LegRanking, bm25_of_nearest: Mapping[int, float]
) -> tuple[dict[int, float], dict[int, float]]:
    """Return the cosine of every candidate, and the BM25 score of those that have one.

    A passage that was deleted after its words were read has no cosine, and is not a candidate.
    """
    cosines = {**nearest.others, **nearest.scores}
    bm25 = {**bm25_of_nearest, **worded.scores}
    return cosines, {key: score for key, score in bm25.items() if key in cosines}


def _search_both_legs(
    query: Query, connection: Connection, pool: int
) -> tuple[LegRanking, LegRanking, dict[int, float]]:
    """Return the rankings by similarity and by words, and the BM25 scores of the most similar passages."""
    request, _ = query.request, query.encoded  # before any leg is read, so that a failing model costs nothing
    worded = rank_by_keywords(query, connection, pool)
    nearest = rank_by_vector(query, connection, pool, worded.scores)
    ids = list(nearest.scores)
    return nearest, worded, score_others(connection, request.index.name, query.words.weights, worded, ids)


def _subtract_hubness(
    query: Query, connection: Connection, cosines: Mapping[int, float], across: float
) -> dict[int, float]:
    """Subtract hubness from cosines, scaled by ``across`` (0..1, the lack of keyword confidence)."""
    if not across:
        return dict(cosines)
    request, passages = query.request, query.read_words(connection).totals.passages
    likeness = hubness(connection, request.index.name, request.scope.place, list(cosines), passages)
    share = HUBNESS_SHARE * across
    return {key: cosine - share * likeness.get(key, 0.0) for key, cosine in cosines.items()}


def fuse(
    cosines: Mapping[int, float],
    bm25: Mapping[int, float],
    parameters: Mapping[str, ParameterValue],
    votes: Mapping[str, float] | None = None,
) -> Contributions:
    """Fuse according to the strategy's parameters: ``fusion`` ("convex" or "rrf") and ``vector_weight`` (0..1).

    ``votes`` are the confidences in the legs for this question (0..1, default 1).
    """
    weights = leg_weights(float(parameters[VECTOR_WEIGHT.name]), votes or {})
    if parameters[FUSION.name] == RRF:
        return fuse_reciprocal_rank({VECTOR: cosines, KEYWORD: bm25}, weights)
    return fuse_convex({VECTOR: scale_min_max(cosines), KEYWORD: scale_min_max(bm25, floor=0.0)}, weights)


def add_document_leg(contributions: Contributions, name_shares: Mapping[int, float], weight: float) -> Contributions:
    """Return the contributions with ``weight`` (0..1) assigned to the matched share of the document's name.

    ``name_shares`` are the matched shares, 0..1; they are ignored if they are the same for all candidates.
    """
    if len({name_shares.get(key, 0.0) for key in contributions}) < 2:
        return contributions
    return {
        key: {
            **{leg: (1 - weight) * part for leg, part in parts.items()},
            DOCUMENT: weight * name_confidence(name_shares.get(key, 0.0)),
        }
        for key, parts in contributions.items()
    }


def leg_weights(vector_weight: float, votes: Mapping[str, float]) -> dict[str, float]:
    """Return both legs' weights, which sum to 1: weight that one leg loses goes to the other."""
    vector, keyword = vector_weight, 1 - vector_weight
    trusted = {VECTOR: votes.get(VECTOR, 1.0), KEYWORD: votes.get(KEYWORD, 1.0)}
    return {
        VECTOR: vector * trusted[VECTOR] + keyword * (1 - trusted[KEYWORD]),
        KEYWORD: keyword * trusted[KEYWORD] + vector * (1 - trusted[VECTOR]),
    }


# Fuzzy: hybrid for questions with typos, without unrelated passages.
#
# Corrections are added to misspelled words, and similarity, which typos distort, counts less. A
# passage without any of the words needs a high similarity.

MIN_POOL = 100  # candidates per leg at least: several passages of each shown document


class FuzzyRetriever(Retriever):
    """Both legs, fused, with corrected words; with the typed words if ``forgive`` is off."""

    def find(self, query: Query) -> list[NodeWithScore]:
        """Return the fused candidates that contain one of the words or are similar to the question."""
        request = self._request
        with request.store.reading() as connection:
            hits = find_hybrid_hits(query, connection, max(MIN_POOL, request.depth))
            counted = [hit for hit in hits if self._counts(hit)]
            return self._fetch(connection, counted)

    def _counts(self, hit: Hit) -> bool:
        keyword = hit.legs.get(KEYWORD)
        if keyword is not None and keyword.score > 0:
            return True
        near = hit.legs[VECTOR].score >= self._request.float_param(MIN_SIMILARITY)
        return self._request.bool_param(TYPO_TOLERANCE) and near
