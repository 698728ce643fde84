"""Auto-merging: small passages are found, because they are precise, and their section is returned, because it is whole.

On an index of the chunker "hierarchical" every passage knows its section. On any other index, neighbouring passages
under the same heading that were both found become one, and a note says so.
"""

from __future__ import annotations

from collections.abc import Sequence

from llama_index.core.schema import NodeWithScore

from workbench.retrieval.stage import Stage
from workbench.retrieval.widening import Widening, span, stored, widened

REACH = 2  # on other indexes: only the best 2 x limit passages merge, so that no weak neighbour swells a strong one


class AutoMerge(Stage):
    """Put sections in the place of their passages, each at the rank of its best one."""

    def apply(self, query: str, nodes: list[NodeWithScore]) -> list[NodeWithScore]:
        """Merge and widen."""
        request = self._request
        if any("parent" in stored(node).metadata for node in nodes):
            widenings = sections(nodes, float(request.parameters["share"]))
        else:
            request.trace.note(
                f"auto-merge: the index {request.store.index.name!r} knows no sections, so neighbouring passages under "
                "the same heading were merged; an index of the chunker 'hierarchical' knows them."
            )
            widenings = runs(nodes[: REACH * request.limit])
        with request.store.reading() as connection:
            return widened(request, connection, widenings[: request.limit])


def sections(nodes: Sequence[NodeWithScore], share: float) -> list[Widening]:
    """Group passages by their section; a group that is less than ``share`` of it stays as its passages are."""
    groups: dict[tuple[str, int, int], list[NodeWithScore]] = {}
    for node in nodes:
        start, end = stored(node).metadata.get("parent") or span(node)
        groups.setdefault((stored(node).document_id, int(start), int(end)), []).append(node)
    found: dict[str, Widening] = {}
    for (_, start, end), members in groups.items():
        covered = sum(last - first for first, last in map(span, members))
        if covered >= share * (end - start):
            found[members[0].node.node_id] = Widening(members[0], start, end, tuple(members[1:]))
        else:
            found |= {node.node.node_id: Widening(node, *span(node)) for node in members}
    return [found[node.node.node_id] for node in nodes if node.node.node_id in found]


def runs(nodes: Sequence[NodeWithScore]) -> list[Widening]:
    """Group passages that follow one another under the same heading; each group at the rank of its best one."""
    rank = {node.node.node_id: place for place, node in enumerate(nodes)}
    in_order = sorted(nodes, key=lambda node: (stored(node).document_id, int(stored(node).metadata["ordinal"])))
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
        and int(second.metadata["ordinal"]) == int(first.metadata["ordinal"]) + 1
        and first.metadata.get("heading_path") == second.metadata.get("heading_path")
    )
