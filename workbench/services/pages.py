"""Search by document: one entry a document, with how its passages matched and where its source stands."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from workbench.errors import InvalidInput
from workbench.services.corpus import Corpus
from workbench.services.question import MOST_RESULTS
from workbench.services.search import SearchService
from workbench.storage.pages import Pages, Place
from workbench.types import Passage, ResolvedScope, Scope, SearchResult, Value

PASSAGES_A_DOCUMENT = 4  # fetched for each document asked for; a further round follows where that was not enough
MOST_DOCUMENTS = 100


@dataclass(frozen=True, slots=True)
class Page(Value):
    """A document that was found; ``passages`` are its matches, best first.

    ``score`` is the best passage's, and falls down the list; ``average_similarity`` is the matches' mean cosine.
    """

    document_id: str
    title: str
    score: float
    average_similarity: float
    word_count: int
    passages: tuple[Passage, ...]
    place: Place

    @property
    def best(self) -> Passage:
        """The passage that matches best."""
        return self.passages[0]


@dataclass(frozen=True, slots=True)
class PageResult(Value):
    """Documents for a query, best first; ``searched`` is the first round's result (scope, timings, degraded)."""

    pages: tuple[Page, ...]
    under_filled: bool
    searched: SearchResult


class PageService:
    """The verbs that answer by document."""

    def __init__(self, corpus: Corpus, search: SearchService) -> None:
        self._search, self._pages = search, Pages(corpus.reader)

    def places(self, source_ids: Iterable[str]) -> dict[str, Place]:
        """Return where sources stand, by id."""
        return self._pages.places(source_ids)

    def search(
        self,
        query: str,
        *,
        limit: int = 10,
        strategy: str | None = None,
        scope: Scope | None = None,
        index: str | None = None,
        parameters: Mapping[str, Any] | None = None,
        min_similarity: float = 0.0,
    ) -> PageResult:
        """Return the best documents, as many as asked where as many match; raises what a search raises."""
        if not 1 <= limit <= MOST_DOCUMENTS:
            raise InvalidInput(f"limit cannot be {limit}; use a whole number from 1 to {MOST_DOCUMENTS}.")
        resolved = self._search.resolve(scope)
        asked = {"strategy": strategy, "index": index, "parameters": parameters, "min_similarity": min_similarity}
        rounds: list[SearchResult] = []
        matches: dict[str, list[Passage]] = {}
        while True:
            found = self._round(query, resolved, matches, limit, asked)
            rounds.append(found)
            for passage in found:
                matches.setdefault(passage.document_id, []).append(passage)
            if len(matches) >= limit or found.under_filled:
                break
        chosen = dict(list(matches.items())[:limit])
        return PageResult(self._described(chosen), len(chosen) < limit, rounds[0])

    def _round(
        self, query: str, scope: ResolvedScope, known: Mapping[str, Any], limit: int, asked: dict[str, Any]
    ) -> SearchResult:
        """Search what no round before has found: a long document's many passages never crowd out the others."""
        depth = min(MOST_RESULTS, limit * PASSAGES_A_DOCUMENT)
        return self._search.search_within(query, replace(scope, without_documents=tuple(known)), limit=depth, **asked)

    def _described(self, matches: Mapping[str, list[Passage]]) -> tuple[Page, ...]:
        places = self.places(passages[0].source_id for passages in matches.values())
        words = self._pages.word_counts(matches)
        pages: list[Page] = []
        for document_id, passages in matches.items():
            best = passages[0]
            if best.source_id not in places or document_id not in words:
                continue  # deleted between the search and now
            score = min(best.score, pages[-1].score) if pages else best.score  # rounds scale their scores apart
            similarities = [passage.similarity for passage in passages]
            pages.append(
                Page(
                    document_id,
                    best.document_title,
                    score,
                    sum(similarities) / len(similarities),
                    words[document_id],
                    tuple(passages),
                    places[best.source_id],
                )
            )
        return tuple(pages)
