"""The two forms of a result: pages (one entry a document) and chunks (single passages)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mcp_app.fitting import LONGEST_TITLE, cut
from mcp_app.tool import Call
from mcp_app.tools.scoped.family import DEFAULT_COUNT
from mcp_app.worth import first_page
from workbench.retrieval.ask import Ask
from workbench.retrieval.legs import RERANKERS
from workbench.retrieval.parameters import DOCUMENTS_CUTOFF, MACHINES_CUTOFF
from workbench.types import Passage, Scope, SearchResult
from workbench.types.json import JsonObject, JsonValue

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
    said: JsonObject = field(default_factory=dict[str, JsonValue])  # of results below the cutoff


def pages_for(call: Call, query: str, scope: Scope, match_count: int, offset: int) -> ScopedResults:
    """Return documents and the search they come from; without a ``match_count`` (0) the default number."""
    deep = min(MOST_PAGES, offset + (match_count or DEFAULT_COUNT))
    result = call.workbench.document_search.search(query, Ask(limit=deep, scope=scope))
    hits = result.documents[offset:]
    items, said, searched = [page_json(hit) for hit in hits], {}, result.searched
    if not match_count and not offset:
        scores = [hit.score for hit in hits]
        items, said = first_page(items, scores, searched.strategy, DOCUMENTS_CUTOFF, close=searched.evidence.close)
    more = len(items) < len(hits) or (not result.under_filled and deep < MOST_PAGES)
    return ScopedResults(items, searched, len(hits) < deep - offset, more, said)


def chunks_for(call: Call, query: str, scope: Scope, match_count: int, offset: int) -> ScopedResults:
    """Return passages and the search they come from; without a ``match_count`` (0) the default number."""
    deep = min(MOST_CHUNKS, offset + (match_count or DEFAULT_COUNT))
    result = call.workbench.search_service.search(query, Ask(limit=deep, scope=scope))
    passages = list(result)[offset:]
    places = call.workbench.document_search.places(passage.source_id for passage in passages)
    items = [chunk_json(passage, places[passage.source_id]) for passage in passages if passage.source_id in places]
    found, said = len(items), {}
    if not match_count and not offset:
        scores = [passage.score for passage in passages if passage.source_id in places]
        items, said = first_page(items, scores, result.strategy, MACHINES_CUTOFF, close=result.evidence.close)
    more = len(items) < found or (not result.under_filled and deep < MOST_CHUNKS)
    return ScopedResults(items, result, found < deep - offset, more, said)


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
