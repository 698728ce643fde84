"""Learned ranking: reorders the candidates of rerank by weights trained on judged questions."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np
from llama_index.core.schema import NodeWithScore

from workbench.models.language_identifier import rank_configurations
from workbench.retrieval.highlight import QueryWord, compute_coverage, compute_coverage_and_closeness, query_words
from workbench.retrieval.hits import Hit, hit_from_legs
from workbench.retrieval.legs import leg_confidences
from workbench.retrieval.nodes import node_hit, node_passage, replace_hits
from workbench.retrieval.query import Query, TokenSimilarities
from workbench.retrieval.ranker import (
    FEATURES,
    NAMES,
    RERANK_SCORE,
    FeatureArray,
    FeatureSheet,
    compute_shares,
    make_weight_row,
    scale_features,
    stretch_scores,
)
from workbench.retrieval.stages.stage import Stage
from workbench.storage.passages import StoredPassage
from workbench.types import DOCUMENT, KEYWORD, LATE, LEARNED, VECTOR, Leg, TimedStep, as_items

# Features of a question's candidates

FOUND_BY = (VECTOR, KEYWORD, LATE)  # whose ranks are combined
RANK_OFFSET = 10  # rank 1 counts 1 / 11, rank 11 half of that
WEAKEST_SHARE = 0.5  # share of the question, by weight, that matches worst


def measure_features(query: Query, nodes: Sequence[NodeWithScore]) -> FeatureSheet:
    """Compute the features of a request's candidates, once words and similarities are read; rows follow the nodes."""
    hits, passages = [node_hit(node) for node in nodes], [node_passage(node) for node in nodes]
    asked = query_words(query.text, query.words)
    least = _weakest_token_similarities(query.token_similarities)
    around = _neighbour_scores(hits, passages)
    likely = _language_probabilities(query.text, passages)
    coverage = _TextCoverage(asked)
    rows = [
        _measure(hit, passage, coverage, likely, least, around) for hit, passage in zip(hits, passages, strict=True)
    ]
    raw = np.array([[row[name] for name in NAMES] for row in rows])
    by_leg = leg_confidences(query)
    return FeatureSheet(
        ids=tuple(hit.id for hit in hits),
        documents=tuple(passage.document_id for passage in passages),
        spans=tuple(passage.span for passage in passages),
        raw=raw,
        scaled=scale_features(raw, [by_leg.get(feature.leg, 1.0) for feature in FEATURES]),
    )


class _TextCoverage:
    """The share of a question's words in titles and headings, cached as many candidates share them."""

    def __init__(self, asked: Sequence[QueryWord]) -> None:
        self.asked = asked
        self._shares: dict[str, float] = {}

    def share(self, text: str) -> float:
        if text not in self._shares:
            self._shares[text] = compute_coverage(text.lower(), self.asked)
        return self._shares[text]


def _measure(
    hit: Hit,
    passage: StoredPassage,
    coverage: _TextCoverage,
    likely: Mapping[str, float],
    least: Mapping[int, float],
    around: Mapping[int, tuple[float, float]],
) -> dict[str, float]:
    covered, together = compute_coverage_and_closeness(passage.text.lower(), coverage.asked)
    nearby, elsewhere = around[hit.id]
    ranks = [hit.legs[leg].rank for leg in FOUND_BY if leg in hit.legs]
    headings = " / ".join(map(str, as_items(passage.metadata.get("heading_path"))))
    return {
        "before": hit.score,
        "meaning": _leg_score(hit, VECTOR),
        "words": _leg_score(hit, KEYWORD),
        "coverage": covered,
        "closeness": together,
        "late": _leg_score(hit, LATE),
        "least": least.get(hit.id, 0.0),
        "document": _leg_score(hit, DOCUMENT),
        "title": coverage.share(passage.title),
        "headings": coverage.share(headings),
        "start": 1 / (1 + passage.ordinal),
        "length": math.log(1 + len(passage.text)),
        "agreement": sum(1 / (RANK_OFFSET + rank) for rank in ranks if rank is not None),
        "neighbours": nearby,
        "elsewhere": elsewhere,
        "language": likely.get(str(passage.metadata.get("language", "")), 0.0),
    }


def _leg_score(hit: Hit, leg: str) -> float:
    return hit.legs[leg].score if leg in hit.legs else 0.0


def _weakest_token_similarities(token_similarities: TokenSimilarities | None) -> dict[int, float]:
    """Return, for each passage, the mean similarity of the worst-matching query tokens (half of the weight)."""
    if token_similarities is None or not token_similarities.shares.any():
        return {}
    order = np.argsort(token_similarities.best, axis=1, kind="stable")
    weights = token_similarities.shares[order]
    before = np.cumsum(weights, axis=1) - weights
    counted = np.clip(WEAKEST_SHARE - before, 0.0, weights)
    means = (np.take_along_axis(token_similarities.best, order, axis=1) * counted).sum(axis=1) / WEAKEST_SHARE
    return dict(zip(token_similarities.ids, map(float, means), strict=True))


def _neighbour_scores(hits: Sequence[Hit], passages: Sequence[StoredPassage]) -> dict[int, tuple[float, float]]:
    """Return, for each passage, the best score of its neighbours and of its document's other passages."""
    places: dict[str, dict[int, float]] = defaultdict(dict)
    for hit, passage in zip(hits, passages, strict=True):
        places[passage.document_id][passage.ordinal] = hit.score
    around: dict[int, tuple[float, float]] = {}
    for hit, passage in zip(hits, passages, strict=True):
        own = places[passage.document_id]
        nearby = max(own.get(passage.ordinal - 1, 0.0), own.get(passage.ordinal + 1, 0.0))
        others = [score for ordinal, score in own.items() if ordinal != passage.ordinal]
        around[hit.id] = (nearby, max(others, default=0.0))
    return around


def _language_probabilities(query: str, passages: Sequence[StoredPassage]) -> Mapping[str, float]:
    """Return the probability of each language for the question; empty if all candidates have the same language."""
    languages = {str(passage.metadata.get("language", "")) for passage in passages}
    return rank_configurations(query) if len(languages) > 1 else {}


class LearnedRerank(Stage):
    """A stage that weights the features of the candidates; each contributes to its feature's leg.

    Its own leg gets the rest, including the effect of scaling to the range of rerank's scores.
    """

    leg = LEARNED

    def apply(self, query: Query, nodes: list[NodeWithScore]) -> list[NodeWithScore]:
        """Return the nodes by the ranker's scores."""
        request = self._request
        assert request.ranker is not None  # guaranteed by Requests
        with request.trace.stage(TimedStep.LEARNED):
            query.sheet = measure_features(query, nodes)
            parts = compute_shares(query.sheet.scaled, make_weight_row(request.ranker.weights))
            hits = score_hits([node_hit(node) for node in nodes], parts)
        return replace_hits(nodes, hits)


def score_hits(hits: list[Hit], parts: FeatureArray) -> list[Hit]:
    """Return the hits by the sum of their parts (candidates, features), best first; ties keep their order."""
    plain = parts.sum(axis=1)
    before = [hit.score for hit in hits]
    final = stretch_scores(plain, min(before), max(before))
    order = np.argsort(-final, kind="stable")
    ranks = {int(place): rank for rank, place in enumerate(order, start=1)}
    return [
        hit_from_legs(
            hits[place].id,
            _attribute_legs(hits[place], parts[place], float(final[place]), float(plain[place]), ranks[place]),
        )
        for place in map(int, order)
    ]


def _attribute_legs(hit: Hit, parts: FeatureArray, final: float, plain: float, rank: int) -> Mapping[str, Leg]:
    """Return the attribution: the parts by leg, in proportion, so that they sum to the final score."""
    unit = final / plain if plain > 0 else 0.0
    added = dict.fromkeys([*hit.legs, LEARNED], 0.0)
    for feature, name, part in zip(FEATURES, NAMES, parts, strict=True):
        if name == RERANK_SCORE and hit.score > 0:
            for leg, own in hit.legs.items():
                added[leg] += float(part) * own.contribution / hit.score
        else:
            added[feature.leg if feature.leg in added else LEARNED] += float(part)
    if plain <= 0:
        added[LEARNED] = final
        unit = 1.0
    legs = {leg: Leg(own.score, own.rank, added[leg] * unit) for leg, own in hit.legs.items()}
    return {**legs, LEARNED: Leg(plain, rank, added[LEARNED] * unit)}
