"""Sentence window: a small passage is found, and shown with the text around it."""

from __future__ import annotations

from llama_index.core.schema import NodeWithScore

from workbench.retrieval.nodes import stored
from workbench.retrieval.parameters import NEIGHBOURS
from workbench.retrieval.stages.final_order import preferred_first
from workbench.retrieval.stages.stage import Stage
from workbench.retrieval.stages.widening import Widening, span, widened
from workbench.storage.ranking import spans_around
from workbench.types import as_items, as_whole


class Window(Stage):
    """A stage that shows each passage with its neighbours; one that a better one's window shows already is left out.

    ``neighbours`` passages on either side, and at least the sentences that the chunker "window" noted.
    """

    widens = True

    def apply(self, query: str, nodes: list[NodeWithScore]) -> list[NodeWithScore]:
        """Widen the first nodes to the limit."""
        request = self._request
        nodes = preferred_first(request, nodes)
        places = [(stored(node).document_id, stored(node).ordinal) for node in nodes]
        with request.store.reading() as connection:
            around = spans_around(connection, request.index, places, int(request.number(NEIGHBOURS)))
            widenings: list[Widening] = []
            for node, surroundings in zip(nodes, around, strict=True):
                if len(widenings) == request.limit:
                    break
                if not any(_shows(other, node) for other in widenings):
                    start, end = _union(node, surroundings)
                    widenings.append(Widening(node, start, end))
            return widened(request, connection, widenings)


def _union(node: NodeWithScore, around: tuple[int, int] | None) -> tuple[int, int]:
    spans = [span(node), *([around] if around else [])]
    noted = as_items(stored(node).metadata.get("window"))
    if noted:
        spans.append((as_whole(noted[0]), as_whole(noted[1])))
    return min(start for start, _ in spans), max(end for _, end in spans)


def _shows(other: Widening, node: NodeWithScore) -> bool:
    start, end = span(node)
    return stored(other.node).document_id == stored(node).document_id and other.start <= start and end <= other.end
