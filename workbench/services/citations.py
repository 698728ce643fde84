"""Citations between documents: outgoing, incoming, as a graph, and broken links."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from workbench.errors import InvalidInput
from workbench.services.corpus import Corpus
from workbench.storage.citations import WHOLE_CORPUS, DocumentCitation, Edge, GraphNode
from workbench.types import ResolvedScope, Value

MIN_DEPTH, MAX_DEPTH = 1, 3
MAX_GRAPH_NODES = 300  # a larger graph is not readable as a picture
MAX_STEP_DOCUMENTS = 150  # documents followed per step: more than any result shows
MAX_FOLLOWED_CITATIONS = 50  # a document with more citations in one direction is not followed further
MENTION_CONFIDENCE = 0.6  # for a title in plain text, without a link


@dataclass(frozen=True, slots=True)
class DocumentCitations(Value):
    """The citations of one document, nearest first."""

    citing: tuple[DocumentCitation, ...] = ()  # documents that it cites
    cited: tuple[DocumentCitation, ...] = ()  # documents that cite it


@dataclass(frozen=True, slots=True)
class Graph(Value):
    """Documents and the citations among them."""

    nodes: tuple[GraphNode, ...]
    edges: tuple[Edge, ...]
    left_out: int = 0  # documents omitted because others have more citations


@dataclass(frozen=True, slots=True)
class Overview(Value):
    """Counts of the links in a scope; ``links`` is their sum."""

    links: int
    resolved: int  # links to another document
    within: int  # links within the same document
    external: int  # links to the web, or to documents outside the scope
    broken: int  # links to documents of the source that do not exist
    unjudged: int  # bare paths and empty targets, which may not be meant as links
    most_cited: tuple[GraphNode, ...]  # documents with the most citations, in descending order
    orphans: tuple[GraphNode, ...]  # documents without any citation in either direction


class CitationService:
    """Operations on citations."""

    def __init__(self, corpus: Corpus) -> None:
        self._citations = corpus.citations
        self.documents, self.broken = corpus.citations.documents, corpus.citations.broken

    def get(self, document_ids: Sequence[str], depth: int = 1) -> dict[str, DocumentCitations]:
        """Return the citations of documents in both directions, nearest first, without duplicates.

        They are followed for 1 to 3 steps, but not beyond documents with 50 or more of them in that direction. Titles
        in plain text count in the first step.

        Raises:
            InvalidInput: The depth is outside 1..3.
        """
        check_depth(depth)
        outward = self._follow(document_ids, depth, forward=True)
        inward = self._follow(document_ids, depth, forward=False)
        return {key: DocumentCitations(tuple(outward[key]), tuple(inward[key])) for key in document_ids}

    def graph(
        self,
        scope: ResolvedScope = WHOLE_CORPUS,
        document_ids: Sequence[str] | None = None,
        limit: int = MAX_GRAPH_NODES,
    ) -> Graph:
        """Return the graph of a scope, or of documents and their neighbours in it.

        If there are more than ``limit`` documents, those with the most citations are kept.
        """
        pairs = self._citations.pairs(scope)
        if document_ids is not None:
            wanted = set(document_ids)
            pairs = [edge for edge in pairs if edge.source in wanted or edge.target in wanted]
        degree = Counter(end for edge in pairs for end in (edge.source, edge.target))
        unlinked = [key for key in document_ids or () if key not in degree]
        keys = [key for key, _ in degree.most_common(limit)]
        keys += unlinked[: max(0, limit - len(keys))]
        inside = set(keys)
        edges = tuple(edge for edge in pairs if edge.source in inside and edge.target in inside)
        return Graph(self._nodes(keys, pairs), edges, left_out=len(degree) + len(unlinked) - len(keys))

    def overview(self, scope: ResolvedScope = WHOLE_CORPUS, limit: int = 20) -> Overview:
        """Return counts of links, the most cited documents and those without citations."""
        pairs = self._citations.pairs(scope)
        linked = {end for edge in pairs for end in (edge.source, edge.target)}
        cited = Counter(edge.target for edge in pairs)
        alone = [key for key in self._citations.document_ids(scope) if key not in linked]
        return Overview(
            **self._citations.counts(scope),
            most_cited=self._nodes([key for key, _ in cited.most_common(limit)], pairs),
            orphans=self._nodes(alone[:limit], pairs),
        )

    def _follow(self, document_ids: Sequence[str], depth: int, *, forward: bool) -> dict[str, list[DocumentCitation]]:
        """Follow citations from each document; each document is visited once per start, so that cycles end."""
        citations: dict[str, list[DocumentCitation]] = {key: [] for key in document_ids}
        entered = {key: {key} for key in document_ids}
        frontier = {key: [key] for key in document_ids}
        for step in range(1, depth + 1):
            level = list(dict.fromkeys(end for ends in frontier.values() for end in ends))[:MAX_STEP_DOCUMENTS]
            if not level:
                break
            by_end: dict[str, list[DocumentCitation]] = {}
            for edge in self._edges(level, forward=forward, mentions=step == 1):
                by_end.setdefault(edge.source_id if forward else edge.target_id, []).append(edge)
            for start, ends in frontier.items():
                fresh: list[str] = []
                for edge in (edge for end in ends for edge in by_end.get(end, ())):
                    citations[start].append(replace(edge, depth=step))
                    other = edge.target_id if forward else edge.source_id
                    if other not in entered[start]:
                        entered[start].add(other)
                        fresh.append(other)
                frontier[start] = fresh if len(citations[start]) < MAX_FOLLOWED_CITATIONS else []
        return citations

    def _edges(self, ids: Sequence[str], *, forward: bool, mentions: bool) -> list[DocumentCitation]:
        """Return one citation per pair of documents: the one with the highest confidence."""
        best: dict[tuple[str, str], DocumentCitation] = {}
        for edge in self._citations.list_links(ids, forward=forward):
            pair = (edge.source_id, edge.target_id)
            if pair not in best or edge.confidence > best[pair].confidence:
                best[pair] = edge
        if mentions:
            rows = self._citations.list_mentions(ids, forward=forward)
            spoken = {(a, b): key.removeprefix("title:") for a, b, key in rows if (a, b) not in best}
            best |= self._mentions(spoken)
        return list(best.values())

    def _mentions(self, spoken: Mapping[tuple[str, str], str]) -> dict[tuple[str, str], DocumentCitation]:
        from workbench.ingestion.links import Link, link_context

        around = self._citations.mention_contexts([(citing, title) for (citing, _), title in spoken.items()])
        edges = {}
        for (citing, cited), title in spoken.items():
            text, start = around.get((citing, title), ("", 0))
            context = link_context(text, Link("mention", title, title, start, start + len(title))) if text else ""
            edges[citing, cited] = DocumentCitation(citing, cited, title, context, MENTION_CONFIDENCE, "mention")
        return edges

    def _nodes(self, ids: Sequence[str], pairs: Sequence[Edge]) -> tuple[GraphNode, ...]:
        cites, cited = Counter(edge.source for edge in pairs), Counter(edge.target for edge in pairs)
        documents = self._citations.documents(ids)
        return tuple(replace(documents[key], cites=cites[key], cited_by=cited[key]) for key in ids if key in documents)


def check_depth(depth: int) -> None:
    """Check the depth of citations. Raises InvalidInput if it is outside 1..3."""
    if not MIN_DEPTH <= depth <= MAX_DEPTH:
        raise InvalidInput(f"Invalid depth {depth}: use a whole number from 1 to 3.")
