"""Stages that compare the candidates with each other: MMR, cluster rerank and support within a page."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from llama_index.core.schema import NodeWithScore
from numpy.typing import NDArray

from workbench.models.encoder import FloatArray, normalise_rows
from workbench.retrieval.hits import Hit, add_leg, hit_from_legs, scale_contributions
from workbench.retrieval.legs import leg_confidences
from workbench.retrieval.nodes import node_hit, node_passage, replace_hits
from workbench.retrieval.parameters import CLUSTER_WEIGHT, LAMBDA
from workbench.retrieval.stages.late_interaction import find_protected_leg, prose_share
from workbench.retrieval.stages.stage import Query, Stage
from workbench.types import CLUSTER, DOCUMENT, NOVELTY, Leg, TimedStep

# Maximal marginal relevance: each next passage is relevant and differs from the ones before it.
#
# Carbonell & Goldstein, "The Use of MMR, Diversity-Based Reranking" (1998). With relevance r in 0..1 and the greatest
# cosine s (not below 0) to a passage chosen before,
#
#     score = lambda * r + (1 - lambda) * (1 - s)
#
# which is theirs plus the constant 1 - lambda, so that it is in 0..1. A later choice never scores higher: s only
# grows, so scores only fall.


class Mmr(Stage):
    """A stage that selects passages, up to the limit, by marginal relevance computed from the stored vectors."""

    leg = NOVELTY

    def apply(self, query: Query, nodes: list[NodeWithScore]) -> list[NodeWithScore]:
        request, share = self._request, self._request.float_param(LAMBDA)
        hits = [node_hit(node) for node in nodes]
        ids = [hit.id for hit in hits]
        with request.store.reading() as connection, request.trace.stage(TimedStep.MMR):
            vectors_by_id = request.store.fetch_vectors(connection, ids)
        hits = [hit for hit in hits if hit.id in vectors_by_id]
        rows = np.stack([vectors_by_id[hit.id] for hit in hits])
        wanted = len(hits) if request.scope.preferred_source_ids else request.rank_limit  # FinalOrder puts these first
        chosen = choose_by_mmr([hit.score for hit in hits], rows, share, wanted)
        rescored: list[Hit] = []
        for place, novelty in chosen:
            legs = scale_contributions(hits[place].legs, share)
            legs[self.leg] = Leg(novelty, None, (1 - share) * novelty)
            rescored.append(hit_from_legs(hits[place].id, legs))
        return replace_hits(nodes, rescored)


def choose_by_mmr(relevance: Sequence[float], vectors: FloatArray, share: float, limit: int) -> list[tuple[int, float]]:
    """Return (position, 1 - s) of the selected candidates in order; ties go to the earlier candidate."""
    rows, candidates = normalise_rows(vectors), np.ones(len(relevance), dtype=bool)
    closest = np.zeros(len(relevance), dtype=np.float64)
    chosen: list[tuple[int, float]] = []
    for _ in range(min(limit, len(relevance))):
        scores = share * np.asarray(relevance) + (1 - share) * (1 - closest)
        place = int(np.where(candidates, scores, -np.inf).argmax())
        chosen.append((place, float(1 - closest[place])))
        candidates[place] = False
        closest = np.maximum(closest, np.clip(rows @ rows[place], 0.0, 1.0))
    return chosen


# Cluster rerank: a candidate that is similar to the top passages is likely to be relevant too.
#
# The cluster hypothesis (van Rijsbergen, "Information Retrieval", 1979) as score regularization (Diaz, "Regularizing
# Ad Hoc Retrieval Scores", 2005), without a second search. With the scores s of the candidates, scaled to 0..1, and the
# cosines of their stored vectors, a candidate's nearness is the weighted mean
#
#     sum of w * cosine / sum of w,    w = exp((s - 1) / TEMPERATURE)
#
# over all the others, dominated by the first few. Tables of figures are similar to each other regardless of content, so
# the effect is reduced for them, as in late interaction.

# Chosen on scifact's train part, anthropic_docs and mtrag_un; .03 to .1 all gain on each (docs/benchmarks.md).
TEMPERATURE = 0.05
MIN_CANDIDATES = 3  # fewer candidates do not form a cluster


class ClusterRerank(Stage):
    """A stage that adds each candidate's similarity to the top ones, and re-sorts."""

    leg = CLUSTER

    def apply(self, query: Query, nodes: list[NodeWithScore]) -> list[NodeWithScore]:
        """Return the nodes by score and nearness; makes no database call if the weight is 0."""
        request = self._request
        weight = request.float_param(CLUSTER_WEIGHT) * leg_confidences(query)[self.leg]
        if not weight or len(nodes) < MIN_CANDIDATES:
            return nodes
        hits = [node_hit(node) for node in nodes]
        ids = [hit.id for hit in hits]
        with request.store.reading() as connection, request.trace.stage(TimedStep.CLUSTER):
            stored = request.store.fetch_vectors(connection, ids)
        known = [hit for hit in hits if hit.id in stored]
        if len(known) < MIN_CANDIDATES:
            return nodes
        near = compute_nearness([hit.score for hit in known], np.stack([stored[hit.id] for hit in known]))
        raw = {hit.id: float(cosine) for hit, cosine in zip(known, near, strict=True)}
        trust = {hit.id: prose_share(node.node.get_content()) for hit, node in zip(hits, nodes, strict=True)}
        return replace_hits(
            nodes, add_leg(hits, self.leg, raw, weight, trust=trust, untouched=find_protected_leg(request, hits))
        )


def compute_nearness(scores: Sequence[float], vectors: FloatArray) -> NDArray[np.float64]:
    """Return each candidate's mean cosine (-1..1) to the others, weighted towards the best.

    ``scores`` has at least two values of any range; ``vectors`` has shape (candidates, dimensions).
    """
    rows = normalise_rows(vectors).astype(np.float64)
    given = np.asarray(scores, dtype=np.float64)
    width = np.ptp(given)
    behind = (given.max() - given) / width if width > 0 else np.zeros_like(given)
    weights = np.tile(np.exp(-behind / TEMPERATURE), (len(given), 1))
    np.fill_diagonal(weights, 0.0)
    return ((rows @ rows.T) * weights).sum(axis=1) / weights.sum(axis=1)


# Support of a page

# Of 54 questions on annual reports, shares from .1 to .4 differ by at most two (docs/decisions/038-page-support.md).
SUPPORT_SHARE = 0.2

Place = tuple[str, object]  # document and page


class Pages(Stage):
    """A stage that prefers pages with several good passages.

    A page with a second good passage is more likely to be about the question. With the scores s1 >= s2 >= ... of a
    page's candidates, without what they have for their document's name, its best passage gets

        (1 - SUPPORT_SHARE) * s1 + SUPPORT_SHARE * s2

    (s2 is 0 if there is only one), and each other one (1 - SUPPORT_SHARE) * s. A passage without a page gets the mean
    support, so that documents with and without pages compete equally; if no candidate has a page, nothing changes.
    """

    def apply(self, query: Query, nodes: list[NodeWithScore]) -> list[NodeWithScore]:
        """Return the nodes by page support; unchanged if none has a page."""
        pages = [_find_page(node) for node in nodes]
        if not any(pages):
            return nodes
        hits = [node_hit(node) for node in nodes]
        scores = [sum(leg.contribution for name, leg in hit.legs.items() if name != DOCUMENT) for hit in hits]
        moved = [
            hit_from_legs(hit.id, scale_contributions(hit.legs, factor, DOCUMENT))
            for hit, factor in zip(hits, compute_page_factors(scores, pages), strict=True)
        ]
        return replace_hits(nodes, sorted(moved, key=lambda hit: (-hit.score, hit.id)))


def _find_page(node: NodeWithScore) -> Place | None:
    passage = node_passage(node)
    page = passage.metadata.get("page")
    return None if page is None else (passage.document_id, page)


def compute_page_factors(scores: Sequence[float], pages: Sequence[Place | None]) -> list[float]:
    """Return the factor (0..1) of each score. ``scores`` are in 0..1, best first; ``pages`` are None if unknown."""
    of_page: dict[Place, list[float]] = {}
    for score, page in zip(scores, pages, strict=True):
        if page is not None:
            of_page.setdefault(page, []).append(score)
    padded = ((page, (*inside, 0.0)) for page, inside in of_page.items())
    support = {page: second / first if first > 0 else 0.0 for page, (first, second, *_) in padded}
    mean = sum(support.values()) / max(1, len(support))
    # The best passage of a page comes first and takes its support.
    gains = [mean if page is None else support.pop(page, 0.0) for page in pages]
    return [1 - SUPPORT_SHARE + SUPPORT_SHARE * gain for gain in gains]
