"""The last stage of every strategy: a project's own sources first among equals, cut to the limit and at the cutoff."""

from __future__ import annotations

from llama_index.core.schema import NodeWithScore

from workbench.retrieval.parameters import CUTOFF
from workbench.retrieval.request import Request
from workbench.retrieval.stages.stage import Stage

EQUAL = 4  # scores that agree to this many decimals count as equally good


class FinalOrder(Stage):
    """A stage that prefers the scope's preferred sources between equals, and cuts to the limit and at the cutoff."""

    def apply(self, query: str, nodes: list[NodeWithScore]) -> list[NodeWithScore]:
        """Return as many of the nodes as are asked for."""
        first = preferred_first(self._request, nodes)[: self._request.limit]
        cutoff = self._request.number(CUTOFF, otherwise=0.0)
        if cutoff:
            floor = cutoff * (first[0].score or 0.0)
            worthy = [node for node in first if (node.score or 0.0) >= floor]
            self._request.trace.cut = len(first) - len(worthy)
            return worthy
        return first


def preferred_first(request: Request, nodes: list[NodeWithScore]) -> list[NodeWithScore]:
    """Return the nodes by score, those of the scope's preferred sources first among equals."""
    preferred = set(request.scope.preferred_source_ids)
    if not preferred:
        return nodes
    return sorted(
        nodes,
        key=lambda node: (
            -round(node.score or 0.0, EQUAL),
            node.node.metadata["source_id"] not in preferred,
            -(node.score or 0.0),
        ),
    )
