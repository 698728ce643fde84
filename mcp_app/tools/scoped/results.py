"""The two forms of a result: pages (one entry a document) and chunks (single passages)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mcp_app.fitting import LONGEST_TITLE, cut
from mcp_app.parts import RankedPage, past_the_end
from mcp_app.tool import Call
from mcp_app.tools.scoped.family import DEFAULT_COUNT
from mcp_app.worth import worth_reading
from workbench.retrieval.ask import Ask
from workbench.retrieval.legs import RERANKERS
from workbench.retrieval.parameters import DOCUMENTS_CUTOFF, MACHINES_CUTOFF
from workbench.types import Passage, Scope, SearchResult
from workbench.types.json import JsonObject

if TYPE_CHECKING:  # importing it brings the database driver along, which nothing before the first reply may do
    from workbench.services.document_search import DocumentHit, SourcePlace


MOST_PAGES, MOST_CHUNKS = 100, 200  # how deep one search ranks


@dataclass(frozen=True, slots=True)
class ScopedResults:
    """Results as a client sees them, from ``offset`` on; ``more`` tells that further ones match."""

    items: list[JsonObject]
    searched: SearchResult
    under_filled: bool
    more: bool
    end: JsonObject  # a note if the page ends where the ranking has to
    past_the_end: str  # a sentence if the page begins after everything that was found


def pages_for(call: Call, query: str, scope: Scope, match_count: int, offset: int) -> ScopedResults:
    """Return documents and the search they come from; without a ``match_count`` (0) those worth reading."""
    page = RankedPage(offset, match_count or DEFAULT_COUNT, MOST_PAGES)
    result = call.workbench.document_search.search(query, Ask(limit=page.asked, scope=scope))
    hits = page.of(result.documents)
    scores = [hit.score for hit in hits]
    all_of_them = match_count or offset
    shown = len(hits) if all_of_them else worth_reading(scores, result.searched.strategy, DOCUMENTS_CUTOFF)
    items = [page_json(hit) for hit in hits[:shown]]
    return _results(items, result.searched, page, result.documents, "documents")


def chunks_for(call: Call, query: str, scope: Scope, match_count: int, offset: int) -> ScopedResults:
    """Return passages and the search they come from; without a ``match_count`` (0) those worth reading."""
    page = RankedPage(offset, match_count or DEFAULT_COUNT, MOST_CHUNKS)
    result = call.workbench.search_service.search(query, Ask(limit=page.asked, scope=scope))
    places = call.workbench.document_search.places(passage.source_id for passage in result)
    ranked = [passage for passage in result if passage.source_id in places]
    items = [chunk_json(passage, places[passage.source_id]) for passage in page.of(ranked)]
    scores = [passage.score for passage in page.of(ranked)]
    all_of_them = match_count or offset
    shown = len(items) if all_of_them else worth_reading(scores, result.strategy, MACHINES_CUTOFF)
    return _results(items[:shown], result, page, ranked, "passages")


def _results(
    items: list[JsonObject], searched: SearchResult, page: RankedPage, ranked: Sequence[object], kind: str
) -> ScopedResults:
    more = page.offset + len(items) < len(ranked)
    under_filled = page.is_under_filled(ranked) and not more
    end = page.end(ranked, kind, "name a project, a folder, tags or a source")
    return ScopedResults(items, searched, under_filled, more, end, past_the_end(page.offset, ranked))


def reranked(passages: Iterable[Passage]) -> bool:
    """Tell whether the order is the reranker's: it leaves its leg at every passage it has seen."""
    return any(not RERANKERS.isdisjoint(passage.attribution) for passage in passages)


def page_json(hit: DocumentHit) -> JsonObject:
    """Return a document that was found; aggregate_similarity falls down the list and lies in 0..1."""
    return {
        "page_id": hit.document_id,
        "url": hit.best.url,
        "title": cut(hit.title, LONGEST_TITLE),
        "section_title": _section(hit.best),
        "word_count": hit.word_count,
        "chunk_matches": len(hit.passages),
        "aggregate_similarity": round(hit.score, 4),
        "average_similarity": round(max(0.0, hit.average_similarity), 4),
        **place_json(hit.place),
        "preview": cut(hit.best.text),
    }


def chunk_json(passage: Passage, place: SourcePlace) -> JsonObject:
    """Return a passage that was found."""
    answer: JsonObject = {
        "id": passage.passage_id,
        "content": cut(passage.text),
        "metadata": {
            "document_id": passage.document_id,
            "title": cut(passage.document_title, LONGEST_TITLE),
            "section_title": _section(passage),
            "url": passage.url,
            "chunk_index": passage.metadata.get("ordinal", 0),
            "language": passage.metadata.get("language"),
        },
        "similarity_score": round(max(0.0, passage.similarity), 4),
        **place_json(place),
    }
    return answer | ({"rerank_score": round(passage.score, 4)} if reranked([passage]) else {})


def place_json(place: SourcePlace) -> JsonObject:
    """Return where a result stands."""
    return {
        "source_id": place.source_id,
        "scope": place.scope,
        "project_id": place.project_id,
        "folder_name": place.folder_name,
        "tags": list(place.tags),
    }


def _section(passage: Passage) -> str | None:
    return cut(passage.headings[-1], LONGEST_TITLE) if passage.headings else None
