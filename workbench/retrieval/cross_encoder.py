"""Cross-encoder rerank: a model that reads question and passage together scores each candidate."""

from __future__ import annotations

from llama_index.core.schema import NodeWithScore

from workbench.errors import ModelError
from workbench.retrieval.fusion import min_max
from workbench.retrieval.mixing import mixed
from workbench.retrieval.nodes import hit_of
from workbench.retrieval.stage import Stage


class CrossEncoderRerank(Stage):
    """Mix the model's scores, scaled to 0..1 over the candidates, into the order."""

    def apply(self, query: str, nodes: list[NodeWithScore]) -> list[NodeWithScore]:
        """Score all candidates; the order as it was, and a note, where the model fails."""
        request = self._request
        assert request.cross_encoder is not None  # build_engine saw to it
        try:
            with request.trace.stage("cross-encoder"):
                scores = request.cross_encoder.scores(query, [node.node.get_content() for node in nodes])
        except ModelError as error:
            request.trace.note(f"cross-encoder: {error} The order is that of hybrid.")
            return nodes
        raw = {hit_of(node).id: score for node, score in zip(nodes, scores, strict=True)}
        return mixed(nodes, "cross-encoder", raw, min_max(raw), float(request.parameters["cross_weight"]))
