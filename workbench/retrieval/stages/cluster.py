"""Cluster rerank: a candidate that is similar to the top passages is likely to be relevant too.

The cluster hypothesis (van Rijsbergen, "Information Retrieval", 1979) as score regularization (Diaz, "Regularizing
Ad Hoc Retrieval Scores", 2005), without a second search. With the scores s of the candidates, scaled to 0..1, and the
cosines of their stored vectors, a candidate's nearness is the weighted mean

    sum of w * cosine / sum of w,    w = exp((s - 1) / TEMPERATURE)

over all the others, dominated by the first few. Tables of figures are similar to each other regardless of content, so
for them it is reduced as in late interaction.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from llama_index.core.schema import NodeWithScore
from numpy.typing import NDArray

from workbench.models.encoder import FloatArray, normalise_rows
from workbench.retrieval.hits import add_leg
from workbench.retrieval.legs import leg_confidences
from workbench.retrieval.nodes import node_hit, replace_hits
from workbench.retrieval.parameters import CLUSTER_WEIGHT
from workbench.retrieval.stages.late_interaction import find_protected_leg, prose_share
from workbench.retrieval.stages.stage import Query, Stage
from workbench.storage.passages import fetch_vectors
from workbench.types import CLUSTER, TimedStep

# Chosen on scifact's train part, anthropic_docs and mtrag_un; .03 to .1 all gain on each (docs/benchmarks.md).
TEMPERATURE = 0.05
MIN_CANDIDATES = 3  # fewer candidates do not form a cluster


class ClusterRerank(Stage):
    """A stage that adds each candidate's similarity to the top ones, and re-sorts."""

    leg = CLUSTER

    def apply(self, query: Query, nodes: list[NodeWithScore]) -> list[NodeWithScore]:
        """Return the nodes by score and nearness; without a database call if the weight is 0."""
        request = self._request
        weight = request.float_param(CLUSTER_WEIGHT) * leg_confidences(query)[self.leg]
        if not weight or len(nodes) < MIN_CANDIDATES:
            return nodes
        hits = [node_hit(node) for node in nodes]
        index, ids = request.index, [hit.id for hit in hits]
        with request.store.reading() as connection, request.trace.stage(TimedStep.CLUSTER):
            stored = fetch_vectors(connection, index.name, ids)
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
