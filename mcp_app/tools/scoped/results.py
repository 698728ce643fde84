"""The two forms of a result: pages (one entry a document) and chunks (single passages)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mcp_app.fitting import LONGEST_TITLE, cut
from mcp_app.parts import RankedPage, past_the_end
from mcp_app.tool import Call
from mcp_app.tools.scoped.family import DEFAULT_COUNT
from mcp_app.worth import first_page
from workbench.retrieval.legs import RERANKERS
from workbench.retrieval.options import Ask
from workbench.retrieval.parameters import DOCUMENTS_CUTOFF, MACHINES_CUTOFF
from workbench.types import Passage, Scope, SearchResult
from workbench.types.json import JsonObject, JsonValue

if TYPE_CHECKING:
    from workbench.services.search import DocumentHit, SourcePlace

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
    said: JsonObject = field(default_factory=dict[str, JsonValue])  # of results below the cutoff


def pages_for(call: Call, query: str, scope: Scope, match_count: int, offset: int) -> ScopedResults:
    """Return documents and the search they come from; without a ``match_count`` (0) the default number."""
    page = RankedPage(offset, match_count or DEFAULT_COUNT, MOST_PAGES)
    result = call.workbench.document_search.search(query, Ask(limit=page.asked, scope=scope))
    hits = page.of(result.documents)
    items, said, searched = [page_json(hit) for hit in hits], {}, result.searched
    if not match_count and not offset:
        scores = [hit.score for hit in hits]
        items, said = first_page(items, scores, searched.strategy, DOCUMENTS_CUTOFF, close=searched.evidence.close)
    return _results(items, searched, page, result.documents, "documents", said)


def chunks_for(call: Call, query: str, scope: Scope, match_count: int, offset: int) -> ScopedResults:
    """Return passages and the search they come from; without a ``match_count`` (0) the default number."""
    page = RankedPage(offset, match_count or DEFAULT_COUNT, MOST_CHUNKS)
    result = call.workbench.search_service.search(query, Ask(limit=page.asked, scope=scope))
    places = call.workbench.document_search.places(passage.source_id for passage in result)
    ranked = [passage for passage in result if passage.source_id in places]
    items, said = [chunk_json(passage, places[passage.source_id]) for passage in page.of(ranked)], {}
    if not match_count and not offset:
        scores = [passage.score for passage in page.of(ranked)]
        items, said = first_page(items, scores, result.strategy, MACHINES_CUTOFF, close=result.evidence.close)
    return _results(items, result, page, ranked, "passages", said)


def _results(
    items: list[JsonObject],
    searched: SearchResult,
    page: RankedPage,
    ranked: Sequence[object],
    kind: str,
    said: JsonObject,
) -> ScopedResults:
    more = page.offset + len(items) < len(ranked)
    under_filled = page.is_under_filled(ranked) and not more
    end = page.end(ranked, kind, "name a project, a folder, tags or a source")
    return ScopedResults(items, searched, under_filled, more, end, past_the_end(page.offset, ranked), said)


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
