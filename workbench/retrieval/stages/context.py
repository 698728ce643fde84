"""Wider context: auto-merging returns the whole section or page around found passages; a window adds neighbours.

With the chunker "hierarchical", every passage has a section. With other chunkers, a section is a run of passages under
the same heading. In a document with neither headings nor pages, consecutive found passages are merged. The idea is from
LlamaIndex's AutoMergingRetriever, whose parents are determined by size alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from llama_index.core.schema import NodeWithScore

from workbench.retrieval.nodes import EXTRA, node_passage
from workbench.retrieval.parameters import NEIGHBOURS, PAGE, SHARE, UNIT
from workbench.retrieval.query import Query, Request
from workbench.retrieval.stages.stage import Stage, put_preferred_first
from workbench.storage.database import Connection
from workbench.storage.ranking import (
    fetch_document_slices,
    fetch_neighbour_spans,
    fetch_page_spans,
    fetch_section_spans,
)
from workbench.types import Span, TimedStep, as_integer, as_items

# Widening nodes


@dataclass(frozen=True, slots=True)
class Widening:
    """A node that is widened to ``[start:end]`` of its document; ``merged`` are the other nodes it replaces."""

    node: NodeWithScore
    start: int
    end: int
    merged: tuple[NodeWithScore, ...] = ()


def passage_span(node: NodeWithScore) -> tuple[int, int]:
    return node_passage(node).span


def widen_nodes(request: Request, connection: Connection, widenings: Sequence[Widening]) -> list[NodeWithScore]:
    """Return the nodes with the wider text, in order; unchanged if the index is older than the document."""
    places = [(node_passage(w.node).document_id, w.start, w.end) for w in widenings]
    with request.trace.stage(TimedStep.WIDEN):
        texts = fetch_document_slices(connection, request.index.name, places)
    nodes: list[NodeWithScore] = []
    for widening, text in zip(widenings, texts, strict=True):
        if text is None:
            request.trace.note("The index has older versions of some documents; their passages are unchanged.")
            nodes += [widening.node, *widening.merged]
        else:
            nodes.append(_replace_text(widening, text))
    return nodes


def _replace_text(widening: Widening, text: str) -> NodeWithScore:
    node = widening.node
    extra: dict[str, object] = {"matched": list(passage_span(node))}
    if widening.merged:
        extra["merged"] = [node.node.node_id, *(other.node.node_id for other in widening.merged)]
    metadata = {**node.node.metadata, "start": widening.start, "end": widening.end, EXTRA: extra}
    return NodeWithScore(node=node.node.model_copy(update={"text": text, "metadata": metadata}), score=node.score)


MAX_MERGED_PASSAGES = 20  # only the best passages merge, so weak neighbours do not dilute strong ones
MAX_SECTION_NEIGHBOURS = 8  # passages on either side of the found one; a longer section is cut to them


class AutoMerge(Stage):
    """A stage that replaces passages with their section or page, at the rank of its best passage."""

    widens = True

    def apply(self, query: Query, nodes: list[NodeWithScore]) -> list[NodeWithScore]:
        request = self._request
        nodes = put_preferred_first(request, nodes)
        with request.store.reading() as connection:
            units = self._units(connection, nodes)
            if any(units):
                widenings = merge_units(nodes, units, request.float_param(SHARE))
            else:
                request.trace.note(
                    "auto-merge: these documents have neither headings nor pages, so consecutive passages "
                    "were merged; an index made with the chunker 'hierarchical' has sections for any text."
                )
                widenings = merge_runs(nodes[:MAX_MERGED_PASSAGES]) + [
                    Widening(node, *passage_span(node)) for node in nodes[MAX_MERGED_PASSAGES:]
                ]
            return widen_nodes(request, connection, widenings[: request.rank_limit])

    def _units(self, connection: Connection, nodes: Sequence[NodeWithScore]) -> list[Span | None]:
        """Return the span of each node's section, or of its page if the unit is "page" and the document has pages."""
        index, passages = self._request.index, [node_passage(node) for node in nodes]
        parents = [as_items(passage.metadata.get("parent")) for passage in passages]
        if any(parents):
            sections = [(as_integer(parent[0]), as_integer(parent[1])) if parent else None for parent in parents]
        else:
            places = [(passage.document_id, passage.ordinal) for passage in passages]
            sections = fetch_section_spans(connection, index, places, MAX_SECTION_NEIGHBOURS)
        if self._request.parameters[UNIT.name] != PAGE:
            return sections
        pages = fetch_page_spans(connection, [(passage.document_id, *passage.span) for passage in passages])
        return [page or section for page, section in zip(pages, sections, strict=True)]


def merge_units(nodes: Sequence[NodeWithScore], units: Sequence[Span | None], share: float) -> list[Widening]:
    """Group passages by unit; passages that cover less than ``share`` of their unit are not merged.

    A passage inside the unit of a better one joins it.
    """
    groups: dict[tuple[str, int, int], list[NodeWithScore]] = {}
    for node, unit in zip(nodes, units, strict=True):
        document, (start, end) = node_passage(node).document_id, passage_span(node)
        showing = (key for key in groups if key[0] == document and key[1] <= start and end <= key[2])
        groups.setdefault(next(showing, (document, *(unit or (start, end)))), []).append(node)
    widenings: dict[str, Widening] = {}
    for (_, start, end), members in groups.items():
        covered = sum(last - first for first, last in map(passage_span, members))
        if covered >= share * (end - start):
            widenings[members[0].node.node_id] = Widening(members[0], start, end, tuple(members[1:]))
        else:
            widenings |= {node.node.node_id: Widening(node, *passage_span(node)) for node in members}
    return [widenings[node.node.node_id] for node in nodes if node.node.node_id in widenings]


def merge_runs(nodes: Sequence[NodeWithScore]) -> list[Widening]:
    """Group consecutive passages under the same heading; each group has the rank of its best one."""
    rank = {node.node.node_id: place for place, node in enumerate(nodes)}
    in_order = sorted(nodes, key=lambda node: (node_passage(node).document_id, node_passage(node).ordinal))
    groups: list[list[NodeWithScore]] = []
    for node in in_order:
        if groups and _is_next(groups[-1][-1], node):
            groups[-1].append(node)
        else:
            groups.append([node])
    merged = []
    for group in groups:
        best, *others = sorted(group, key=lambda node: rank[node.node.node_id])
        spans = [passage_span(node) for node in group]
        merged.append(Widening(best, min(s for s, _ in spans), max(e for _, e in spans), tuple(others)))
    return sorted(merged, key=lambda widening: rank[widening.node.node.node_id])


def _is_next(before: NodeWithScore, node: NodeWithScore) -> bool:
    first, second = node_passage(before), node_passage(node)
    return (
        first.document_id == second.document_id
        and second.ordinal == first.ordinal + 1
        and first.metadata.get("heading_path") == second.metadata.get("heading_path")
    )


# Windows: passages with their neighbours


class Window(Stage):
    """A stage that shows each passage with its neighbours, without passages inside a better one's window.

    The window has ``neighbours`` passages on either side, and at least the sentences of the chunker "window".
    """

    widens = True

    def apply(self, query: Query, nodes: list[NodeWithScore]) -> list[NodeWithScore]:
        """Widen the first nodes, up to the limit."""
        request = self._request
        nodes = put_preferred_first(request, nodes)
        places = [(node_passage(node).document_id, node_passage(node).ordinal) for node in nodes]
        with request.store.reading() as connection:
            around = fetch_neighbour_spans(connection, request.index, places, int(request.float_param(NEIGHBOURS)))
            widenings: list[Widening] = []
            for node, surroundings in zip(nodes, around, strict=True):
                if len(widenings) == request.rank_limit:
                    break
                if not any(_covers(other, node) for other in widenings):
                    start, end = _window_span(node, surroundings)
                    widenings.append(Widening(node, start, end))
            return widen_nodes(request, connection, widenings)


def _window_span(node: NodeWithScore, around: tuple[int, int] | None) -> tuple[int, int]:
    spans = [passage_span(node), *([around] if around else [])]
    noted = as_items(node_passage(node).metadata.get("window"))
    if noted:
        spans.append((as_integer(noted[0]), as_integer(noted[1])))
    return min(start for start, _ in spans), max(end for _, end in spans)


def _covers(other: Widening, node: NodeWithScore) -> bool:
    start, end = passage_span(node)
    return (
        node_passage(other.node).document_id == node_passage(node).document_id
        and other.start <= start
        and end <= other.end
    )
