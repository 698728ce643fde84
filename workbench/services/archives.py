"""Archives: a folder of dated research notes and saved pages, searched by word, misspelt word and meaning."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.errors import ConfigurationError, InvalidInput, ModelError
from workbench.services.citations import Citation, CitationService, Cited, check_depth
from workbench.services.corpus import Corpus
from workbench.services.knowledge import KnowledgeService
from workbench.services.mirror import FolderMirror
from workbench.services.question import check_query
from workbench.services.search import SearchService
from workbench.types import Progress, ResolvedScope, Value

if TYPE_CHECKING:
    from workbench.retrieval.keyword import Words
    from workbench.retrieval.request import Hit, Request
    from workbench.storage.rows import StoredPassage

MOST_RESULTS = 50
POOL = 100  # candidates a leg brings at least: several passages of each of the documents that are shown
LEAST_MEANING = 0.3  # cosine below which a passage without any of the words has nothing to do with the question
PASSAGES_SHOWN = 3  # of one document, for its snippets
LONGEST_TITLE = 200  # characters


@dataclass(frozen=True, slots=True)
class Highlight(Value):
    """Where the question's words stand in one field: HTML-escaped snippets in which ``<mark>`` is the only markup."""

    field: str
    snippets: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ArchiveHit(Value):
    """A document that was found; ``source`` is "research" or "url", ``date`` is its folder's or its own."""

    id: str
    title: str
    path: str
    source: str
    date: str | None
    score: float
    highlights: tuple[Highlight, ...]
    citations: Cited | None = None


@dataclass(frozen=True, slots=True)
class ArchiveResult(Value):
    """Documents for a question, best first; ``guesses`` are (typed word, the word it was taken for)."""

    query: str
    results: tuple[ArchiveHit, ...]
    guesses: tuple[tuple[str, str], ...] = ()

    def edges(self) -> list[Citation]:
        """Return every citation of the results once, nearest first."""
        best: dict[tuple[str, str], Citation] = {}
        for hit in self.results:
            for one in (*hit.citations.citing, *hit.citations.cited) if hit.citations else ():
                pair = (one.source_id, one.target_id)
                if pair not in best or one.depth < best[pair].depth:
                    best[pair] = one
        return sorted(best.values(), key=lambda one: one.depth)


class ArchiveService:
    """The verbs over one folder of archives."""

    def __init__(
        self,
        corpus: Corpus,
        knowledge: KnowledgeService,
        search: SearchService,
        citations: CitationService,
        folder: Path | None,
    ) -> None:
        self._corpus, self._search, self._citations, self._folder = corpus, search, citations, folder
        self._mirror = FolderMirror(corpus, knowledge, "archive")
        self._caught_up = False

    def refresh(
        self,
        on_progress: Callable[[Progress], None] | None = None,
        should_stop: Callable[[], bool] | None = None,
    ) -> str:
        """Bring the folder's changes in and return the id of its source.

        Raises:
            ConfigurationError: no folder is set, or it is none.
        """
        from workbench.ingestion.archive_files import archive_items

        if self._folder is None:
            raise ConfigurationError("No folder of archives is set; name it in WORKBENCH_ARCHIVES_DIR.")
        folder = self._folder.expanduser().resolve()
        if not folder.is_dir():
            raise ConfigurationError(f"There is no folder {folder}; correct WORKBENCH_ARCHIVES_DIR.")
        return self._mirror.refresh(folder, lambda: archive_items(folder), on_progress, should_stop)

    def search(
        self,
        query: str,
        *,
        fuzzy: bool = True,
        citations: bool = False,
        depth: int = 1,
        limit: int = 10,
        should_stop: Callable[[], bool] | None = None,
    ) -> ArchiveResult:
        """Return the best documents, one result each, scores in 0..1.

        ``fuzzy`` also finds documents by misspelt words and by meaning; without it one of the words must stand there.

        Raises:
            InvalidInput: an empty query, a limit outside 1..50, a depth outside 1..3. ConfigurationError: no folder.
        """
        check_query(query)
        check_depth(depth)
        if not 1 <= limit <= MOST_RESULTS:
            raise InvalidInput(f"limit cannot be {limit}; use a whole number from 1 to {MOST_RESULTS}.")
        source_id = self._fresh_source(should_stop)
        result = self._found(query, ResolvedScope(source_ids=(source_id,)), fuzzy, limit)
        if not citations:
            return result
        if not self._caught_up:  # documents that came in before links were read this way; then there are none
            self._citations.catch_up()
            self._caught_up = True
        around = self._citations.of([hit.id for hit in result.results], depth)
        return replace(result, results=tuple(replace(hit, citations=around[hit.id]) for hit in result.results))

    def _fresh_source(self, should_stop: Callable[[], bool] | None) -> str:
        """Return the source's id after a refresh; where the model is missing, what came in before still answers."""
        try:
            return self.refresh(should_stop=should_stop)
        except ModelError:
            known = self._mirror.known_source(self._folder.expanduser().resolve()) if self._folder else None
            if known is None:
                raise
            return known

    def _found(self, query: str, scope: ResolvedScope, fuzzy: bool, limit: int) -> ArchiveResult:
        from workbench.retrieval.fuzzy import read_fuzzy_words, vector_weight
        from workbench.retrieval.hybrid import hybrid_hits
        from workbench.retrieval.keyword import read_words

        request: Request = self._search.request("hybrid", scope, limit, None, None)
        with request.store.reading() as connection:
            words = (read_fuzzy_words if fuzzy else read_words)(request, connection, query)
            weight = vector_weight(words, request.parameters["vector_weight"])
            request.parameters = {**request.parameters, "vector_weight": weight}
            pool = max(POOL, 3 * limit)
            try:
                hits = hybrid_hits(request, connection, query, pool)
            except ModelError:  # words alone, as every search does where the model is missing
                hits = _by_words_alone(request, connection, words, pool)
            hits = [hit for hit in hits if _counts(hit, fuzzy)]
            documents = _by_document(request, connection, hits, limit)
            marked = _highlights(connection, documents, words)
        results = tuple(_hit(found, highlights) for found, highlights in zip(documents, marked, strict=True))
        guesses = tuple(dict.fromkeys((one.typed, one.meant) for one in words.guesses))
        return ArchiveResult(query, results, guesses)


@dataclass(frozen=True, slots=True)
class _Found:
    """A document with its passages, best first, and its best passage's score."""

    score: float
    passages: tuple[StoredPassage, ...]


def _counts(hit: Hit, fuzzy: bool) -> bool:
    """Tell whether a candidate may be shown: it has one of the words, or, fuzzily, nearly the question's meaning."""
    keyword = hit.legs.get("keyword")
    if keyword is not None and keyword.score > 0:
        return True
    vector = hit.legs.get("vector")
    return fuzzy and vector is not None and vector.score >= LEAST_MEANING


def _by_words_alone(request: Request, connection: Any, words: Words, limit: int) -> list[Hit]:
    from workbench.retrieval.bm25 import ceiling
    from workbench.retrieval.keyword import keyword_candidates
    from workbench.retrieval.request import Hit
    from workbench.types import Leg

    highest = ceiling(words.weights) or 1.0
    found = keyword_candidates(request, connection, words, limit)
    return [
        Hit(key, score / highest, {"keyword": Leg(score, rank, score / highest)})
        for rank, (key, score, _) in enumerate(found, start=1)
    ]


def _by_document(request: Request, connection: Any, hits: Sequence[Hit], limit: int) -> list[_Found]:
    stored = request.store.passages(connection, [hit.id for hit in hits])
    passages: dict[str, list[StoredPassage]] = {}
    scores: dict[str, float] = {}
    for hit in hits:
        if hit.id not in stored:
            continue
        passage = stored[hit.id]
        if passage.document_id not in scores and len(scores) == limit:
            continue
        scores.setdefault(passage.document_id, hit.score)
        passages.setdefault(passage.document_id, []).append(passage)
    return [_Found(min(1.0, max(0.0, scores[key])), tuple(found)) for key, found in passages.items()]


def _highlights(connection: Any, documents: Sequence[_Found], words: Words) -> list[tuple[Highlight, ...]]:
    from workbench.retrieval.highlight import Text, mark, matched_spans, snippets

    terms = {term.term for term in words.terms if term.id is not None}
    texts: list[Text] = []
    for found in documents:
        language = str(found.passages[0].metadata.get("language", "english"))
        texts.append(Text(found.passages[0].title[:LONGEST_TITLE], language))
        shown = found.passages[:PASSAGES_SHOWN]
        texts += [Text(passage.text, str(passage.metadata.get("language", "english"))) for passage in shown]
    spans = iter(zip(texts, matched_spans(connection, texts, terms), strict=True))
    marked: list[tuple[Highlight, ...]] = []
    for found in documents:
        title, in_title = next(spans)
        pieces = [next(spans) for _ in found.passages[:PASSAGES_SHOWN]]
        held = [(text, places) for text, places in pieces if places] or pieces[:1]
        content = [snippet for text, places in held for snippet in snippets(text.text, places)]
        highlights = [Highlight("title", (mark(title.text, in_title),))] if in_title else []
        if content:
            highlights.append(Highlight("content", tuple(content[:PASSAGES_SHOWN])))
        marked.append(tuple(highlights))
    return marked


def _hit(found: _Found, highlights: tuple[Highlight, ...]) -> ArchiveHit:
    best = found.passages[0]
    path = best.path or ""
    return ArchiveHit(
        id=best.document_id,
        title=best.title,
        path=path,
        source="url" if path.startswith("url-content/") else "research",
        date=best.document_date.isoformat() if best.document_date else None,
        score=round(found.score, 4),
        highlights=highlights,
    )
