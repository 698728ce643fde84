"""Cross-encoder rerank: a model scores question and candidate together."""

from __future__ import annotations

from llama_index.core.schema import NodeWithScore

from workbench.errors import ModelError
from workbench.retrieval.hits import add_leg
from workbench.retrieval.nodes import node_hit, replace_hits
from workbench.retrieval.parameters import CROSS_WEIGHT
from workbench.retrieval.stages.stage import Query, Stage
from workbench.types import CROSS_ENCODER, TimedStep


class CrossEncoderRerank(Stage):
    """A stage that adds the model's scores, scaled to 0..1 over the candidates."""

    leg = CROSS_ENCODER

    def apply(self, query: Query, nodes: list[NodeWithScore]) -> list[NodeWithScore]:
        """Score all candidates; unchanged, with a note, if the model fails."""
        request = self._request
        assert request.cross_encoder is not None  # guaranteed by build_engine
        try:
            with request.trace.stage(TimedStep.CROSS_ENCODER):
                scores = request.cross_encoder.scores(query.text, [node.node.get_content() for node in nodes])
        except ModelError as error:
            request.trace.note(f"cross-encoder: {error} The order is that of hybrid.")
            return nodes
        hits = [node_hit(node) for node in nodes]
        raw = {hit.id: score for hit, score in zip(hits, scores, strict=True)}
        return replace_hits(nodes, add_leg(hits, self.leg, raw, request.float_param(CROSS_WEIGHT)))
