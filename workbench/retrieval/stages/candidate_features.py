"""The features of a question's candidates, from what the legs, late interaction and the passages say already.

Nothing is asked of the database. A leg that says nothing of a candidate counts 0.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np
from llama_index.core.schema import NodeWithScore

from workbench.models.language_identifier import likely_configurations
from workbench.retrieval.hit import Hit
from workbench.retrieval.legs import votes
from workbench.retrieval.nodes import hit_of, stored
from workbench.retrieval.ranker.feature_table import FEATURES, NAMES
from workbench.retrieval.ranker.scoring import FeatureSheet, scaled_by_question
from workbench.retrieval.request import Likenesses, Request
from workbench.retrieval.words.closeness import AskedWord, asked_words, coverage, coverage_and_closeness
from workbench.storage.passages import StoredPassage
from workbench.types import as_items
from workbench.types.parameter import DOCUMENT, KEYWORD, LATE, VECTOR

FOUND_BY = (VECTOR, KEYWORD, LATE)  # whose places agree or do not
TOP = 10  # places over which a place counts much: place 1 counts 1 / 11, place 11 half of it
HALF = 0.5  # the part of the question, by weight, that fits a passage worst


def feature_sheet(request: Request, query: str, nodes: Sequence[NodeWithScore]) -> FeatureSheet:
    """Measure the candidates of a request whose words and likenesses were read; rows in the nodes' order."""
    hits, passages = [hit_of(node) for node in nodes], [stored(node) for node in nodes]
    words = request.words.get(query)
    asked = asked_words(query, words) if words is not None else ()
    least = _least(request.likenesses.get(query))
    around = _around(hits, passages)
    likely = _likely(query, passages)
    said = _Said(asked)
    rows = [_measured(hit, passage, said, likely, least, around) for hit, passage in zip(hits, passages, strict=True)]
    raw = np.array([[row[name] for name in NAMES] for row in rows])
    by_leg = votes(request, query)
    return FeatureSheet(
        ids=tuple(hit.id for hit in hits),
        documents=tuple(passage.document_id for passage in passages),
        spans=tuple(passage.span for passage in passages),
        raw=raw,
        scaled=scaled_by_question(raw, [by_leg.get(feature.leg, 1.0) for feature in FEATURES]),
    )


class _Said:
    """How much of a question's words titles and headings say, which many candidates have in common."""

    def __init__(self, asked: Sequence[AskedWord]) -> None:
        self.asked = asked
        self._shares: dict[str, float] = {}

    def share(self, text: str) -> float:
        """Return the share 0..1 of the words' weight that a text holds."""
        if text not in self._shares:
            self._shares[text] = coverage(text.lower(), self.asked)
        return self._shares[text]


def _measured(
    hit: Hit,
    passage: StoredPassage,
    said: _Said,
    likely: Mapping[str, float],
    least: Mapping[int, float],
    around: Mapping[int, tuple[float, float]],
) -> dict[str, float]:
    covered, together = coverage_and_closeness(passage.text.lower(), said.asked)
    beside, elsewhere = around[hit.id]
    headings = " / ".join(map(str, as_items(passage.metadata.get("heading_path"))))
    return {
        "before": hit.score,
        "meaning": _score(hit, VECTOR),
        "words": _score(hit, KEYWORD),
        "coverage": covered,
        "closeness": together,
        "late": _score(hit, LATE),
        "least": least.get(hit.id, 0.0),
        "document": _score(hit, DOCUMENT),
        "title": said.share(passage.title),
        "headings": said.share(headings),
        "start": 1 / (1 + passage.ordinal),
        "length": math.log(1 + len(passage.text)),
        "agreement": _agreement(hit),
        "beside": beside,
        "elsewhere": elsewhere,
        "language": likely.get(str(passage.metadata.get("language", "")), 0.0),
    }


def _score(hit: Hit, leg: str) -> float:
    return hit.legs[leg].score if leg in hit.legs else 0.0


def _agreement(hit: Hit) -> float:
    ranks = [hit.legs[leg].rank for leg in FOUND_BY if leg in hit.legs]
    return sum(1 / (TOP + rank) for rank in ranks if rank is not None)


def _least(likenesses: Likenesses | None) -> dict[int, float]:
    """Return by passage the mean similarity of the query tokens that fit it worst, which make half of the weight."""
    if likenesses is None or not likenesses.shares.any():
        return {}
    order = np.argsort(likenesses.best, axis=1, kind="stable")
    weights = likenesses.shares[order]
    before = np.cumsum(weights, axis=1) - weights
    counted = np.clip(HALF - before, 0.0, weights)
    means = (np.take_along_axis(likenesses.best, order, axis=1) * counted).sum(axis=1) / HALF
    return dict(zip(likenesses.ids, map(float, means), strict=True))


def _around(hits: Sequence[Hit], passages: Sequence[StoredPassage]) -> dict[int, tuple[float, float]]:
    """Return by passage the better score of its neighbours, and the best one of its document's other passages."""
    places: dict[str, dict[int, float]] = defaultdict(dict)
    for hit, passage in zip(hits, passages, strict=True):
        places[passage.document_id][passage.ordinal] = hit.score
    around: dict[int, tuple[float, float]] = {}
    for hit, passage in zip(hits, passages, strict=True):
        own = places[passage.document_id]
        beside = max(own.get(passage.ordinal - 1, 0.0), own.get(passage.ordinal + 1, 0.0))
        others = [score for ordinal, score in own.items() if ordinal != passage.ordinal]
        around[hit.id] = (beside, max(others, default=0.0))
    return around


def _likely(query: str, passages: Sequence[StoredPassage]) -> Mapping[str, float]:
    """Return how likely the question is in each language; nothing where all candidates are in one."""
    languages = {str(passage.metadata.get("language", "")) for passage in passages}
    return likely_configurations(query) if len(languages) > 1 else {}
