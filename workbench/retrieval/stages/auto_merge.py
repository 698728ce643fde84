"""Auto-merging: small passages are found, because they are precise, and their section or page is returned whole.

On an index of the chunker "hierarchical" every passage knows its section. On any other index a section is the passages
in a row under the same heading. A document that has neither headings nor pages is merged where passages that follow
one another were found. The idea is LlamaIndex's AutoMergingRetriever, whose parents are made by size alone.
"""

from __future__ import annotations

from collections.abc import Sequence

from llama_index.core.schema import NodeWithScore

from workbench.retrieval.nodes import stored
from workbench.retrieval.parameters import PAGE, SHARE, UNIT
from workbench.retrieval.stages.final_order import preferred_first
from workbench.retrieval.stages.stage import Stage
from workbench.retrieval.stages.widening import Widening, span, widened
from workbench.storage.database import Connection
from workbench.storage.ranking import spans_of_pages, spans_of_sections
from workbench.types import as_items, as_whole
from workbench.types.results import Span

REACH = 20  # only so many of the best passages merge, so that no weak neighbour swells a strong one
FARTHEST = 8  # passages on either side of the one found: a longer section is returned as the part around it


class AutoMerge(Stage):
    """A stage that puts sections or pages in the place of their passages, each at the rank of its best one."""

    widens = True

    def apply(self, query: str, nodes: list[NodeWithScore]) -> list[NodeWithScore]:
        """Merge and widen."""
        request = self._request
        nodes = preferred_first(request, nodes)
        with request.store.reading() as connection:
            units = self._units(connection, nodes)
            if any(units):
                widenings = merged(nodes, units, request.number(SHARE))
            else:
                request.trace.note(
                    "auto-merge: these documents have neither headings nor pages, so passages that follow one another "
                    "were merged; an index of the chunker 'hierarchical' makes sections of any text."
                )
                widenings = runs(nodes[:REACH]) + [Widening(node, *span(node)) for node in nodes[REACH:]]
            return widened(request, connection, widenings[: request.limit])

    def _units(self, connection: Connection, nodes: Sequence[NodeWithScore]) -> list[Span | None]:
        """Return the span of each node's section, or of its page where pages are asked for and there are any."""
        index, passages = self._request.index, [stored(node) for node in nodes]
        parents = [as_items(passage.metadata.get("parent")) for passage in passages]
        if any(parents):
            sections = [(as_whole(parent[0]), as_whole(parent[1])) if parent else None for parent in parents]
        else:
            places = [(passage.document_id, passage.ordinal) for passage in passages]
            sections = spans_of_sections(connection, index, places, FARTHEST)
        if self._request.parameters[UNIT.name] != PAGE:
            return sections
        pages = spans_of_pages(connection, [(passage.document_id, *passage.span) for passage in passages])
        return [page or section for page, section in zip(pages, sections, strict=True)]


def merged(nodes: Sequence[NodeWithScore], units: Sequence[Span | None], share: float) -> list[Widening]:
    """Group passages by their unit; a group that is less than ``share`` of it stays as its passages are.

    A passage that a better one's unit shows already joins it.
    """
    groups: dict[tuple[str, int, int], list[NodeWithScore]] = {}
    for node, unit in zip(nodes, units, strict=True):
        document, (start, end) = stored(node).document_id, span(node)
        showing = (key for key in groups if key[0] == document and key[1] <= start and end <= key[2])
        groups.setdefault(next(showing, (document, *(unit or (start, end)))), []).append(node)
    widenings: dict[str, Widening] = {}
    for (_, start, end), members in groups.items():
        covered = sum(last - first for first, last in map(span, members))
        if covered >= share * (end - start):
            widenings[members[0].node.node_id] = Widening(members[0], start, end, tuple(members[1:]))
        else:
            widenings |= {node.node.node_id: Widening(node, *span(node)) for node in members}
    return [widenings[node.node.node_id] for node in nodes if node.node.node_id in widenings]


def runs(nodes: Sequence[NodeWithScore]) -> list[Widening]:
    """Group passages that follow one another under the same heading; each group at the rank of its best one."""
    rank = {node.node.node_id: place for place, node in enumerate(nodes)}
    in_order = sorted(nodes, key=lambda node: (stored(node).document_id, stored(node).ordinal))
    groups: list[list[NodeWithScore]] = []
    for node in in_order:
        if groups and _follows(groups[-1][-1], node):
            groups[-1].append(node)
        else:
            groups.append([node])
    merged = []
    for group in groups:
        best, *others = sorted(group, key=lambda node: rank[node.node.node_id])
        spans = [span(node) for node in group]
        merged.append(Widening(best, min(s for s, _ in spans), max(e for _, e in spans), tuple(others)))
    return sorted(merged, key=lambda widening: rank[widening.node.node.node_id])


def _follows(before: NodeWithScore, node: NodeWithScore) -> bool:
    first, second = stored(before), stored(node)
    return (
        first.document_id == second.document_id
        and second.ordinal == first.ordinal + 1
        and first.metadata.get("heading_path") == second.metadata.get("heading_path")
    )
