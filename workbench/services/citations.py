"""Citations between documents: outgoing, incoming, as a graph, and broken links."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from workbench.errors import InvalidInput
from workbench.services.corpus import Corpus
from workbench.storage.citations import CitedDocument, StoredCitation
from workbench.types import ResolvedScope, Value

MIN_DEPTH, MAX_DEPTH = 1, 3
MAX_GRAPH_NODES = 300  # a larger graph is not readable as a picture
MAX_STEP_DOCUMENTS = 150  # documents followed per step: more than any result shows
MAX_FOLLOWED_CITATIONS = 50  # a document with more citations in one direction is not followed further
WHOLE_CORPUS = ResolvedScope()
MENTION_CONFIDENCE = 0.6  # for a title in plain text, without a link


@dataclass(frozen=True, slots=True)
class DocumentCitation(Value):
    """One document that cites another."""

    source_id: str
    target_id: str
    target_url: str
    context: str  # the sentence with the citation
    confidence: float  # 1.0 for a link, 0.9 for a bare path, 0.6 for a title in plain text
    kind: str
    depth: int = 1  # steps from the requested document


@dataclass(frozen=True, slots=True)
class DocumentCitations(Value):
    """The citations of one document, nearest first."""

    citing: tuple[DocumentCitation, ...] = ()  # documents that it cites
    cited: tuple[DocumentCitation, ...] = ()  # documents that cite it


@dataclass(frozen=True, slots=True)
class GraphNode(Value):
    """A document in a citation graph."""

    id: str
    title: str
    source_id: str
    source_title: str
    cites: int = 0  # documents in the scope
    cited_by: int = 0
    document_type: str = ""


@dataclass(frozen=True, slots=True)
class Edge(Value):
    """All citations of one document by another."""

    source: str  # id of the citing document
    target: str  # id of the cited document
    confidence: float  # the highest of them, 0..1
    links: int  # number of citations
    context: str  # the sentence with the first one


@dataclass(frozen=True, slots=True)
class Graph(Value):
    """Documents and the citations among them."""

    nodes: tuple[GraphNode, ...]
    edges: tuple[Edge, ...]
    left_out: int = 0  # documents omitted because others have more citations


@dataclass(frozen=True, slots=True)
class Overview(Value):
    """Counts of the links in a scope; ``links`` is their sum.

    Attributes:
        resolved: Links to another document.
        within: Links within the same document.
        external: Links to the web, or to documents outside the scope.
        broken: Links to documents of the source that do not exist.
        unjudged: Bare paths and empty targets, which may not be meant as links.
        most_cited: Documents with the most citations, in descending order.
        orphans: Documents without any citation in either direction.
    """

    links: int
    resolved: int
    within: int
    external: int
    broken: int
    unjudged: int
    most_cited: tuple[GraphNode, ...]
    orphans: tuple[GraphNode, ...]


@dataclass(frozen=True, slots=True)
class BrokenLink(Value):
    """A link to a document of its source that does not exist."""

    document_id: str
    title: str
    target: str
    context: str


class CitationService:
    """Operations on citations."""

    def __init__(self, corpus: Corpus) -> None:
        self._corpus, self._citations = corpus, corpus.citations

    def get(
        self, document_ids: Sequence[str], depth: int = 1, *, mentions: bool = True
    ) -> dict[str, DocumentCitations]:
        """Return the citations of documents in both directions, nearest first, without duplicates.

        Documents with 50 or more citations in one direction are not followed further in that direction.

        Args:
            document_ids: Documents to start from.
            depth: Number of steps, 1 to 3.
            mentions: Also count titles in plain text, in the first step.

        Raises:
            InvalidInput: The depth is outside 1..3.
        """
        check_depth(depth)
        outward = self._follow(document_ids, depth, forward=True, mentions=mentions)
        inward = self._follow(document_ids, depth, forward=False, mentions=mentions)
        return {key: DocumentCitations(tuple(outward[key]), tuple(inward[key])) for key in document_ids}

    def documents(self, ids: Iterable[str]) -> dict[str, CitedDocument]:
        """Return documents by id, with title and source."""
        return self._citations.documents(list(dict.fromkeys(ids)))

    def graph(
        self,
        scope: ResolvedScope = WHOLE_CORPUS,
        document_ids: Sequence[str] | None = None,
        limit: int = MAX_GRAPH_NODES,
    ) -> Graph:
        """Return the graph of a scope, or of documents and their neighbours in it.

        If there are more than ``limit`` documents, those with the most citations are kept.
        """
        pairs = self._pairs(scope)
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
        pairs = self._pairs(scope)
        linked = {end for edge in pairs for end in (edge.source, edge.target)}
        cited = Counter(edge.target for edge in pairs)
        alone = [key for key in self._citations.document_ids(scope) if key not in linked]
        return Overview(
            **self._citations.counts(scope),
            most_cited=self._nodes([key for key, _ in cited.most_common(limit)], pairs),
            orphans=self._nodes(alone[:limit], pairs),
        )

    def broken(self, scope: ResolvedScope = WHOLE_CORPUS, limit: int = 200) -> list[BrokenLink]:
        """Return links to documents of their source that do not exist."""
        links = self._citations.broken(scope, limit)
        return [BrokenLink(link.document_id, link.title, link.target, link.context) for link in links]

    def _follow(
        self, document_ids: Sequence[str], depth: int, *, forward: bool, mentions: bool
    ) -> dict[str, list[DocumentCitation]]:
        """Follow citations from each document; each document is visited once per start, so that cycles end."""
        citations: dict[str, list[DocumentCitation]] = {key: [] for key in document_ids}
        entered = {key: {key} for key in document_ids}
        frontier = {key: [key] for key in document_ids}
        for step in range(1, depth + 1):
            level = list(dict.fromkeys(end for ends in frontier.values() for end in ends))[:MAX_STEP_DOCUMENTS]
            if not level:
                break
            by_end: dict[str, list[StoredCitation]] = {}
            for edge in self._edges(level, forward=forward, mentions=mentions and step == 1):
                by_end.setdefault(edge.document_id if forward else edge.to_document, []).append(edge)
            for start, ends in frontier.items():
                fresh: list[str] = []
                for edge in (edge for end in ends for edge in by_end.get(end, ())):
                    citations[start].append(_make_citation(edge, step))
                    other = edge.to_document if forward else edge.document_id
                    if other not in entered[start]:
                        entered[start].add(other)
                        fresh.append(other)
                frontier[start] = fresh if len(citations[start]) < MAX_FOLLOWED_CITATIONS else []
        return citations

    def _edges(self, ids: Sequence[str], *, forward: bool, mentions: bool) -> list[StoredCitation]:
        """Return one citation per pair of documents: the one with the highest confidence."""
        links = self._citations.list_outgoing(ids) if forward else self._citations.list_incoming(ids)
        best: dict[tuple[str, str], StoredCitation] = {}
        for edge in links:
            pair = (edge.document_id, edge.to_document)
            if pair not in best or edge.confidence > best[pair].confidence:
                best[pair] = edge
        if mentions:
            rows = (
                self._citations.list_outgoing_mentions(ids) if forward else self._citations.list_incoming_mentions(ids)
            )
            spoken = {(a, b): key.removeprefix("title:") for a, b, key in rows if (a, b) not in best}
            best |= self._mentions(spoken)
        return list(best.values())

    def _mentions(self, spoken: Mapping[tuple[str, str], str]) -> dict[tuple[str, str], StoredCitation]:
        from workbench.ingestion.links import Link, link_context

        around = self._citations.mention_contexts([(citing, title) for (citing, _), title in spoken.items()])
        edges = {}
        for (citing, cited), title in spoken.items():
            text, start = around.get((citing, title), ("", 0))
            context = link_context(text, Link("mention", title, title, start, start + len(title))) if text else ""
            edges[citing, cited] = StoredCitation(citing, cited, "mention", title, None, context, MENTION_CONFIDENCE)
        return edges

    def _pairs(self, scope: ResolvedScope) -> list[Edge]:
        return [
            Edge(pair.document_id, pair.to_document, pair.confidence, pair.links, pair.context)
            for pair in self._citations.pairs(scope)
        ]

    def _nodes(self, ids: Sequence[str], pairs: Sequence[Edge]) -> tuple[GraphNode, ...]:
        cites, cited = Counter(edge.source for edge in pairs), Counter(edge.target for edge in pairs)
        documents = self._citations.documents(ids)
        return tuple(
            GraphNode(
                key,
                document.title,
                document.source_id,
                document.source_title,
                cites[key],
                cited[key],
                document.document_type,
            )
            for key in ids
            if (document := documents.get(key)) is not None
        )


def check_depth(depth: int) -> None:
    """Check the depth of citations.

    Raises:
        InvalidInput: It is outside 1..3.
    """
    if not MIN_DEPTH <= depth <= MAX_DEPTH:
        raise InvalidInput(f"Invalid depth {depth}: use a whole number from 1 to 3.")


def _make_citation(edge: StoredCitation, depth: int) -> DocumentCitation:
    return DocumentCitation(
        edge.document_id,
        edge.to_document,
        edge.url or edge.target,
        edge.context,
        round(float(edge.confidence), 3),
        edge.kind,
        depth,
    )
