"""Archives: a folder of dated research notes and saved pages, searchable by words (with typos) and by meaning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.errors import ConfigurationError, ModelError
from workbench.retrieval.options import Ask
from workbench.retrieval.parameters import TYPO_TOLERANCE
from workbench.retrieval.strategies import TYPO_TOLERANT_STRATEGY
from workbench.services.checks import check_limit, check_query
from workbench.services.citations import CitationService, DocumentCitation, DocumentCitations, check_depth
from workbench.services.corpus import Corpus, import_framework, retry_read
from workbench.services.documents import DocumentService
from workbench.services.folders import FolderMirror, MirroredFolder
from workbench.services.search import Requests
from workbench.services.sources import SourceService
from workbench.types import CLOSE_EVIDENCE, Evidence, OnProgress, ResolvedScope, ShouldStop, Value, weak_match_text

if TYPE_CHECKING:
    from llama_index.core.schema import NodeWithScore

    from workbench.retrieval.highlight import MarkableText
    from workbench.retrieval.query import Words
    from workbench.storage.database import Connection
    from workbench.storage.passages import StoredPassage

MAX_RESULTS = 50
RANKING_DEPTH = 200  # passages to rank: several for each document shown
PASSAGES_PER_DOCUMENT = 3  # of one document, for its snippets
MAX_TITLE_CHARS = 200  # characters


@dataclass(frozen=True, slots=True)
class Highlight(Value):
    """Matches in one field."""

    field: str  # "title" or "content"
    snippets: tuple[str, ...]  # HTML-escaped; ``<mark>`` around the matches is the only markup


@dataclass(frozen=True, slots=True)
class ArchiveHit(Value):
    """A document found in the archives."""

    id: str
    title: str
    path: str
    source: str  # "research" or "url"
    date: str | None  # ISO; that of its folder, or its own
    score: float  # 0..1
    highlights: tuple[Highlight, ...]
    citations: DocumentCitations | None = None


@dataclass(frozen=True, slots=True)
class ArchiveResult(Value):
    """Documents found for a query."""

    query: str
    results: tuple[ArchiveHit, ...]  # best first
    guesses: tuple[tuple[str, str], ...] = ()  # (typed word, word searched instead)
    evidence: Evidence = CLOSE_EVIDENCE  # whether any result is close to the query
    degraded: tuple[str, ...] = ()  # a note for each part that was unavailable

    @property
    def nothing_close(self) -> str:
        """A sentence on why no result is close to the query; "" if one is, or if there are no results."""
        return weak_match_text(self.results, self.evidence)

    def edges(self) -> list[DocumentCitation]:
        """Return every citation of the results once, nearest first."""
        best: dict[tuple[str, str], DocumentCitation] = {}
        for hit in self.results:
            for citation in (*hit.citations.citing, *hit.citations.cited) if hit.citations else ():
                pair = (citation.source_id, citation.target_id)
                if pair not in best or citation.depth < best[pair].depth:
                    best[pair] = citation
        return sorted(best.values(), key=lambda citation: citation.depth)


class ArchiveService:
    """Operations on one folder of archives."""

    def __init__(
        self,
        corpus: Corpus,
        sources: SourceService,
        documents: DocumentService,
        requests: Requests,
        citations: CitationService,
        folder: Path | None,
    ) -> None:
        self._corpus, self._requests, self._citations, self._folder = corpus, requests, citations, folder
        self._mirror = FolderMirror(corpus, sources, documents, "archive")

    def refresh(self, on_progress: OnProgress | None = None, should_stop: ShouldStop | None = None) -> str:
        """Ingest the folder's changes and return the id of its source.

        Raises:
            ConfigurationError: No folder is set, or it does not exist.
        """
        return self.open_mirror().refresh(on_progress, should_stop)

    def open_mirror(self, folder: Path | None = None) -> MirroredFolder:
        """Return the configured folder, or the given one, paired with its source.

        Raises:
            ConfigurationError: No folder is set, or it does not exist.
        """
        from workbench.ingestion.incoming import list_archive_items

        place = folder or self.resolve_folder()
        return MirroredFolder(self._mirror, place, lambda: list_archive_items(place))

    def resolve_folder(self) -> Path:
        """Return the absolute path of the archives.

        Raises:
            ConfigurationError: No folder is set, or it does not exist.
        """
        if self._folder is None:
            raise ConfigurationError("No archives folder is set; set WORKBENCH_ARCHIVES_DIR.")
        folder = self._folder.expanduser().resolve()
        if not folder.is_dir():
            raise ConfigurationError(f"There is no folder {folder}; correct WORKBENCH_ARCHIVES_DIR.")
        return folder

    def search(
        self,
        query: str,
        *,
        fuzzy: bool = True,
        citations: bool = False,
        depth: int = 1,
        limit: int = 10,
        should_stop: ShouldStop | None = None,
        bring_in: bool = True,
    ) -> ArchiveResult:
        """Return the best documents, one result each.

        Args:
            query: Question or keywords.
            fuzzy: Also match typos and meaning; if False, a document must contain one of the words.
            citations: Also return the citations of each document.
            depth: Steps of citations, 1 to 3.
            limit: Maximum number of documents, 1 to 50.
            should_stop: Polled while changes are ingested.
            bring_in: Ingest new and changed files first; if False, that is left to a job.

        Raises:
            InvalidInput: The query is empty, or the limit or the depth is out of range.
            ConfigurationError: No folder is set, or it does not exist.
        """
        check_query(query)
        check_depth(depth)
        check_limit(limit, MAX_RESULTS)
        source_id = self._fresh_source(should_stop) if bring_in else self.open_mirror().source()
        result = self._documents(query, ResolvedScope(source_ids=(source_id,)), fuzzy, limit)
        if not citations:
            return result
        around = self._citations.get([hit.id for hit in result.results], depth)
        return replace(result, results=tuple(replace(hit, citations=around[hit.id]) for hit in result.results))

    def _fresh_source(self, should_stop: ShouldStop | None) -> str:
        """Return the source's id after a refresh; if the model is missing, use what was ingested before."""
        try:
            return self.refresh(should_stop=should_stop)
        except ModelError:
            source_id = self._mirror.find_source(self._folder.expanduser().resolve()) if self._folder else None
            if source_id is None:
                raise
            return source_id

    @retry_read
    def _documents(self, query: str, scope: ResolvedScope, fuzzy: bool, limit: int) -> ArchiveResult:
        import_framework()
        from workbench.retrieval.evidence import judge_evidence
        from workbench.retrieval.pipeline import note_lost_replica, rank_nodes
        from workbench.retrieval.spelling import find_whole_words

        request = self._requests.make(
            Ask(
                TYPO_TOLERANT_STRATEGY, RANKING_DEPTH, scope, parameters={TYPO_TOLERANCE.name: fuzzy}, fold_copies=False
            )
        )
        asked = request.question(query)
        nodes = rank_nodes(asked)
        note_lost_replica(request)
        documents = _group_passages(nodes, limit)
        with request.store.reading() as connection:
            words = asked.read_words(connection)
            texts = [
                _to_markable(passage.title, passage) for document in documents for passage in document.passages[:1]
            ]
            texts += [_to_markable(passage.text, passage) for document in documents for passage in document.passages]
            whole = (
                find_whole_words(connection, {guess.meant for guess in words.guesses}, texts) if words.guesses else {}
            )
            marked = _make_highlights(connection, documents, words)
        results = tuple(_make_hit(document, highlights) for document, highlights in zip(documents, marked, strict=True))
        guesses = tuple(dict.fromkeys((guess.typed, whole.get(guess.meant, guess.meant)) for guess in words.guesses))
        evidence = judge_evidence(asked, nodes)
        return ArchiveResult(query, results, guesses, evidence, tuple(request.trace.degraded))


@dataclass(frozen=True, slots=True)
class _Document:
    """A document with its best score (0..1) and its passages, best first."""

    score: float
    passages: tuple[StoredPassage, ...]


def _group_passages(nodes: Sequence[NodeWithScore], limit: int) -> list[_Document]:
    from workbench.retrieval.nodes import node_passage

    passages: dict[str, list[StoredPassage]] = {}
    scores: dict[str, float] = {}
    for node in nodes:
        passage = node_passage(node)
        if passage.document_id not in scores and len(scores) == limit:
            continue
        scores.setdefault(passage.document_id, node.score or 0.0)
        passages.setdefault(passage.document_id, []).append(passage)
    return [_Document(min(1.0, max(0.0, scores[key])), tuple(own)) for key, own in passages.items()]


def _make_highlights(
    connection: Connection, documents: Sequence[_Document], words: Words
) -> list[tuple[Highlight, ...]]:
    from workbench.retrieval.highlight import find_matched_spans, make_snippets, mark_spans

    terms = {term.term for term in words.terms if term.id is not None}
    texts: list[MarkableText] = []
    for document in documents:
        texts.append(_to_markable(document.passages[0].title[:MAX_TITLE_CHARS], document.passages[0]))
        texts += [_to_markable(passage.text, passage) for passage in document.passages[:PASSAGES_PER_DOCUMENT]]
    spans = iter(zip(texts, find_matched_spans(connection, texts, terms), strict=True))
    marked: list[tuple[Highlight, ...]] = []
    for document in documents:
        title, in_title = next(spans)
        pieces = [next(spans) for _ in document.passages[:PASSAGES_PER_DOCUMENT]]
        matching = [(text, places) for text, places in pieces if places] or pieces[:1]
        content = [snippet for text, places in matching for snippet in make_snippets(text.text, places)]
        highlights = [Highlight("title", (mark_spans(title.text, in_title),))] if in_title else []
        if content:
            highlights.append(Highlight("content", tuple(content[:PASSAGES_PER_DOCUMENT])))
        marked.append(tuple(highlights))
    return marked


def _to_markable(text: str, passage: StoredPassage) -> MarkableText:
    from workbench.retrieval.highlight import MarkableText

    return MarkableText(text, str(passage.metadata.get("language", "english")))


def _make_hit(document: _Document, highlights: tuple[Highlight, ...]) -> ArchiveHit:
    best = document.passages[0]
    path = best.path or ""
    return ArchiveHit(
        id=best.document_id,
        title=best.title,
        path=path,
        source="url" if path.startswith("url-content/") else "research",
        date=best.document_date.isoformat() if best.document_date else None,
        score=round(document.score, 4),
        highlights=highlights,
    )
