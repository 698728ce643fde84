"""The last stage of every strategy: a project's own sources first among equals, then as many as were asked for, less
what falls below the cutoff."""

from __future__ import annotations

from llama_index.core.schema import NodeWithScore

from workbench.retrieval.stage import Stage

EQUAL = 4  # scores that agree to this many decimals count as equally good


class FinalOrder(Stage):
    """Prefer the scope's preferred sources between equal scores, cut to the limit and at the cutoff."""

    def apply(self, query: str, nodes: list[NodeWithScore]) -> list[NodeWithScore]:
        """Return as many of the nodes as are asked for."""
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
        if cutoff:
            floor = cutoff * (kept[0].score or 0.0)
            worthy = [node for node in kept if (node.score or 0.0) >= floor]
            self._request.trace.cut = len(kept) - len(worthy)
            return worthy
        return kept
