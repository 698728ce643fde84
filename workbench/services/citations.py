"""Citations between documents: what a document cites, what cites it, the graph, and the links that lead nowhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from workbench.errors import InvalidInput
from workbench.services.corpus import Corpus
from workbench.storage.citations import CitedDocument, StoredCitation
from workbench.types import OnProgress, Progress, Value

LEAST_DEPTH, MOST_DEPTH = 1, 3
MOST_NODES = 300  # what one picture can show and a person can read
WIDEST = 150  # documents of one step that are followed further: more than any answer can show
ENOUGH = 50  # citations of one document in one direction, after which they are not followed further
MENTION_CONFIDENCE = 0.6  # a title written out in words, without a link
BATCH = 200


@dataclass(frozen=True, slots=True)
class DocumentCitation(Value):
    """One document citing another; ``depth`` counts the steps from the document that was asked about, from 1.

    ``confidence`` is 1.0 for a link, 0.9 for a bare path, 0.6 for a title in words.
    """

    source_id: str
    target_id: str
    target_url: str
    context: str
    confidence: float
    kind: str
    depth: int = 1


@dataclass(frozen=True, slots=True)
class DocumentCitations(Value):
    """The documents that a document cites (``citing``) and that cite it (``cited``), nearest first."""

    citing: tuple[DocumentCitation, ...] = ()
    cited: tuple[DocumentCitation, ...] = ()


@dataclass(frozen=True, slots=True)
class GraphNode(Value):
    """A document in a graph: ``cites`` and ``cited_by`` count documents within the graph's sources."""

    id: str
    title: str
    source_id: str
    source_title: str
    cites: int = 0
    cited_by: int = 0
    document_type: str = ""


@dataclass(frozen=True, slots=True)
class Edge(Value):
    """One document citing another, ``links`` times; ``context`` is the first sentence that does."""

    source: str
    target: str
    confidence: float
    links: int
    context: str


@dataclass(frozen=True, slots=True)
class Graph(Value):
    """Documents and their citations of each other; ``left_out`` ones with fewer links than the others are not in it."""

    nodes: tuple[GraphNode, ...]
    edges: tuple[Edge, ...]
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class Overview(Value):
    """The links of a source in counts, of which ``links`` is the sum.

    Attributes:
        resolved: Links to another document.
        within: Links to a place in the same document.
        external: Links to the web.
        broken: Links that should lead to a document of the source and do not.
        unjudged: Bare paths and empty targets, which may never have been meant as links to a document.
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
    """A link that should lead to a document of its source and does not."""

    document_id: str
    title: str
    target: str
    context: str


class CitationService:
    """The verbs over citations."""

    def __init__(self, corpus: Corpus) -> None:
        self._corpus, self._citations = corpus, corpus.citations

    def of(self, document_ids: Sequence[str], depth: int = 1, *, mentions: bool = True) -> dict[str, DocumentCitations]:
        """Return what given documents cite and what cites them, ``depth`` (1..3) steps outward, each edge once.

        Nearest first; from a document with 50 citations or more in a direction no further step is taken, and
        titles mentioned in words count for the first step only.

        Raises:
            InvalidInput: a depth outside 1..3.
        """
        check_depth(depth)
        outward = self._follow(document_ids, depth, forward=True, mentions=mentions)
        inward = self._follow(document_ids, depth, forward=False, mentions=mentions)
        return {key: DocumentCitations(tuple(outward[key]), tuple(inward[key])) for key in document_ids}

    def documents(self, ids: Iterable[str]) -> dict[str, CitedDocument]:
        """Return given documents as a graph shows them."""
        return self._citations.documents(list(dict.fromkeys(ids)))

    def graph(
        self,
        source_ids: Sequence[str] | None = None,
        document_ids: Sequence[str] | None = None,
        limit: int = MOST_NODES,
    ) -> Graph:
        """Return the graph of sources (None: everything a person has), or of given documents and what they touch.

        Of more than ``limit`` documents the best linked are kept.
        """
        pairs = self._pairs(source_ids)
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

    def overview(self, source_ids: Sequence[str] | None = None, limit: int = 20) -> Overview:
        """Return the counts of links, the most cited documents and those without any link to or from another."""
        pairs = self._pairs(source_ids)
        linked = {end for edge in pairs for end in (edge.source, edge.target)}
        cited = Counter(edge.target for edge in pairs)
        alone = [key for key in self._citations.document_ids(source_ids) if key not in linked]
        return Overview(
            **self._citations.counts(source_ids),
            most_cited=self._nodes([key for key, _ in cited.most_common(limit)], pairs),
            orphans=self._nodes(alone[:limit], pairs),
        )

    def broken(self, source_ids: Sequence[str] | None = None, limit: int = 200) -> list[BrokenLink]:
        """Return links that should lead to a document of their source and do not."""
        links = self._citations.broken(source_ids, limit)
        return [BrokenLink(link.document_id, link.title, link.target, link.context) for link in links]

    def catch_up(self, on_progress: OnProgress | None = None) -> int:
        """Read the links of documents that were stored before links were read this way; returns how many."""
        from workbench.ingestion.citations import reread

        corpus, done = self._corpus, 0
        while unread := self._citations.unread(BATCH):
            reread(corpus.database, corpus.documents, self._citations, unread)
            done += len(unread)
            if on_progress is not None:
                on_progress(Progress(done, 0, f"links of {done:,} documents read"))
        return done

    def _follow(
        self, document_ids: Sequence[str], depth: int, *, forward: bool, mentions: bool
    ) -> dict[str, list[DocumentCitation]]:
        """Walk from each document; a document is entered once from each start, so that loops end."""
        citations: dict[str, list[DocumentCitation]] = {key: [] for key in document_ids}
        entered = {key: {key} for key in document_ids}
        frontier = {key: [key] for key in document_ids}
        for step in range(1, depth + 1):
            level = list(dict.fromkeys(end for ends in frontier.values() for end in ends))[:WIDEST]
            if not level:
                break
            by_end: dict[str, list[StoredCitation]] = {}
            for edge in self._edges(level, forward=forward, mentions=mentions and step == 1):
                by_end.setdefault(edge.document_id if forward else edge.to_document, []).append(edge)
            for start, ends in frontier.items():
                fresh: list[str] = []
                for edge in (edge for end in ends for edge in by_end.get(end, ())):
                    citations[start].append(_citation(edge, step))
                    other = edge.to_document if forward else edge.document_id
                    if other not in entered[start]:
                        entered[start].add(other)
                        fresh.append(other)
                frontier[start] = fresh if len(citations[start]) < ENOUGH else []
        return citations

    def _edges(self, ids: Sequence[str], *, forward: bool, mentions: bool) -> list[StoredCitation]:
        """Return one edge a pair of documents: the surest, then the first."""
        links = self._citations.leading_from(ids) if forward else self._citations.leading_to(ids)
        best: dict[tuple[str, str], StoredCitation] = {}
        for edge in links:
            pair = (edge.document_id, edge.to_document)
            if pair not in best or edge.confidence > best[pair].confidence:
                best[pair] = edge
        if mentions:
            rows = self._citations.mentioned_by(ids) if forward else self._citations.mentioning(ids)
            spoken = {(a, b): key.removeprefix("title:") for a, b, key in rows if (a, b) not in best}
            best |= self._mentions(spoken)
        return list(best.values())

    def _mentions(self, spoken: Mapping[tuple[str, str], str]) -> dict[tuple[str, str], StoredCitation]:
        from workbench.ingestion.links import Link, context_of

        around = self._citations.mention_contexts([(citing, title) for (citing, _), title in spoken.items()])
        edges = {}
        for (citing, cited), title in spoken.items():
            text, start = around.get((citing, title), ("", 0))
            context = context_of(text, Link("mention", title, title, start, start + len(title))) if text else ""
            edges[citing, cited] = StoredCitation(citing, cited, "mention", title, None, context, MENTION_CONFIDENCE)
        return edges

    def _pairs(self, source_ids: Sequence[str] | None) -> list[Edge]:
        return [
            Edge(pair.document_id, pair.to_document, pair.confidence, pair.links, pair.context)
            for pair in self._citations.pairs(source_ids)
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
    """Refuse a depth outside 1..3. Raises InvalidInput."""
    if not LEAST_DEPTH <= depth <= MOST_DEPTH:
        raise InvalidInput(f"The depth of citations cannot be {depth}; use a whole number from 1 to 3.")


def _citation(edge: StoredCitation, depth: int) -> DocumentCitation:
    return DocumentCitation(
        edge.document_id,
        edge.to_document,
        edge.url or edge.target,
        edge.context,
        round(float(edge.confidence), 3),
        edge.kind,
        depth,
    )
