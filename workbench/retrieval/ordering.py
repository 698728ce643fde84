"""The last stage of every strategy: a project's own sources first among equals, then as many as were asked for, less
what falls below the cutoff."""

from __future__ import annotations

from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeWithScore, QueryBundle
from pydantic import PrivateAttr

from workbench.retrieval.request import Request

EQUAL = 4  # scores that agree to this many decimals count as equally good


class FinalOrder(BaseNodePostprocessor):
    """Prefer the scope's preferred sources between equal scores, cut to the limit and at the cutoff."""

    _request: Request = PrivateAttr()

    def __init__(self, request: Request) -> None:
        super().__init__()
        self._request = request

    @classmethod
    def class_name(cls) -> str:
        """Name the stage as LlamaIndex wants it."""
        return "FinalOrder"

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        preferred = set(self._request.scope.preferred_source_ids)
        if preferred:
            nodes = sorted(
                nodes,
                key=lambda node: (
                    -round(node.score or 0.0, EQUAL),
                    node.node.metadata["source_id"] not in preferred,
                    -(node.score or 0.0),
                ),
            )
        kept = nodes[: self._request.limit]
        cutoff = float(self._request.parameters.get("cutoff", 0.0))
        if cutoff and kept:
            floor = cutoff * (kept[0].score or 0.0)
            worthy = [node for node in kept if (node.score or 0.0) >= floor]
            self._request.trace.cut = len(kept) - len(worthy)
            return worthy
        return kept
