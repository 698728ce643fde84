"""Search by document: one entry a document, with how its passages matched and where its source stands."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from workbench.errors import InvalidInput
from workbench.retrieval.options import Ask
from workbench.services.corpus import Corpus
from workbench.services.requests import Requests
from workbench.services.search import SearchService
from workbench.storage.documents import DocumentFacts, SourcePlace
from workbench.types import Passage, ResolvedScope, SearchResult, Value

PASSAGES_A_ROUND = 50  # looked at for documents, whatever the limit, so that all pages are of one ranking
MOST_DOCUMENTS = 100
AS_ASKED = Ask()  # the strategy promoted for everything, ten documents


@dataclass(frozen=True, slots=True)
class DocumentHit(Value):
    """A document that was found; ``passages`` are its matches, best first.

    ``score`` is the best passage's, and falls down the list; ``average_similarity`` is the matches' mean cosine.
    """

    document_id: str
    title: str
    score: float
    average_similarity: float
    word_count: int
    passages: tuple[Passage, ...]
    place: SourcePlace

    @property
    def best(self) -> Passage:
        """The passage that matches best."""
        return self.passages[0]


@dataclass(frozen=True, slots=True)
class DocumentResult(Value):
    """Documents for a query, best first; ``searched`` is the first round's result (scope, timings, degraded)."""

    documents: tuple[DocumentHit, ...]
    under_filled: bool
    searched: SearchResult


class DocumentSearch:
    """The verbs that answer by document."""

    def __init__(self, corpus: Corpus, requests: Requests, search: SearchService) -> None:
        self._requests, self._search, self._facts = requests, search, DocumentFacts(corpus.reader)

    def places(self, source_ids: Iterable[str]) -> dict[str, SourcePlace]:
        """Return where sources stand, by id."""
        return self._facts.places(source_ids)

    def search(self, query: str, ask: Ask = AS_ASKED) -> DocumentResult:
        """Return the best documents, as many as the limit where as many match; raises what a search raises."""
        limit = ask.limit
        if not 1 <= limit <= MOST_DOCUMENTS:
            raise InvalidInput(f"limit cannot be {limit}; use a whole number from 1 to {MOST_DOCUMENTS}.")
        scope = self._requests.resolve(ask.scope)
        rounds: list[SearchResult] = []
        matches: dict[str, list[Passage]] = {}
        while True:
            result = self._search.search(query, _round(ask, scope, matches))
            rounds.append(result)
            for passage in result:
                matches.setdefault(passage.document_id, []).append(passage)
            if len(matches) >= limit or result.under_filled:
                break
        chosen = dict(list(matches.items())[:limit])
        return DocumentResult(self._described(chosen), len(chosen) < limit, rounds[0])

    def _described(self, matches: Mapping[str, list[Passage]]) -> tuple[DocumentHit, ...]:
        places = self.places(passages[0].source_id for passages in matches.values())
        words = self._facts.word_counts(matches)
        documents: list[DocumentHit] = []
        for document_id, passages in matches.items():
            best = passages[0]
            if best.source_id not in places or document_id not in words:
                continue  # deleted between the search and now
            score = min(best.score, documents[-1].score) if documents else best.score  # rounds scale their scores apart
            similarities = [passage.similarity for passage in passages]
            documents.append(
                DocumentHit(
                    document_id,
                    best.document_title,
                    score,
                    sum(similarities) / len(similarities),
                    words[document_id],
                    tuple(passages),
                    places[best.source_id],
                )
            )
        return tuple(documents)


def _round(ask: Ask, scope: ResolvedScope, document_ids: Iterable[str]) -> Ask:
    """Return the ask for documents that no round before has found: many passages of a long one crowd out no other."""
    return replace(ask, scope=replace(scope, without_documents=tuple(document_ids)), limit=PASSAGES_A_ROUND)
