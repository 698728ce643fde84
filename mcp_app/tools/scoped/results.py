"""The two forms of a result: pages (one entry a document) and chunks (single passages)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from mcp_app.fitting import LONGEST_TITLE, cut
from mcp_app.tool import Call
from workbench.types import Passage, Scope, SearchResult

if TYPE_CHECKING:  # importing it brings the database driver along, which nothing before the first reply may do
    from workbench.services.pages import Page, Place


RERANKERS = frozenset({"late", "cross-encoder", "llm"})  # the legs that the reranking stages leave


def found_pages(call: Call, query: str, scope: Scope, match_count: int) -> tuple[list[dict[str, Any]], SearchResult]:
    """Return documents and the search they come from."""
    result = call.workbench.pages.search(query, limit=match_count, scope=scope)
    return [page_json(page) for page in result.pages], result.searched


def found_chunks(call: Call, query: str, scope: Scope, match_count: int) -> tuple[list[dict[str, Any]], SearchResult]:
    """Return passages and the search they come from."""
    found = call.workbench.search_service.search(query, limit=match_count, scope=scope)
    places = call.workbench.pages.places(passage.source_id for passage in found)
    return [chunk_json(hit, places[hit.source_id]) for hit in found if hit.source_id in places], found


def reranked(found: Iterable[Passage]) -> bool:
    """Tell whether the order is the reranker's: it leaves its leg at every passage it has seen."""
    return any(not RERANKERS.isdisjoint(passage.attribution) for passage in found)


def page_json(page: Page) -> dict[str, Any]:
    """Return a document that was found; aggregate_similarity falls down the list and lies in 0..1."""
    return {
        "page_id": page.document_id,
        "url": page.best.url,
        "title": cut(page.title, LONGEST_TITLE),
        "section_title": _section(page.best),
        "word_count": page.word_count,
        "chunk_matches": len(page.passages),
        "aggregate_similarity": round(page.score, 4),
        "average_similarity": round(max(0.0, page.average_similarity), 4),
        **place_json(page.place),
        "preview": cut(page.best.text),
    }


def chunk_json(passage: Passage, place: Place) -> dict[str, Any]:
    """Return a passage that was found."""
    shown = {
        "id": passage.passage_id,
        "content": cut(passage.text),
        "metadata": {
            "document_id": passage.document_id,
            "title": cut(passage.document_title, LONGEST_TITLE),
            "section_title": _section(passage),
            "url": passage.url,
            "chunk_index": passage.metadata.get("ordinal", 0),
        },
        "similarity_score": round(max(0.0, passage.similarity), 4),
        **place_json(place),
    }
    return shown | ({"rerank_score": round(passage.score, 4)} if reranked([passage]) else {})


def place_json(place: Place) -> dict[str, Any]:
    """Return where a result stands."""
    return {
        "source_id": place.source_id,
        "scope": place.scope,
        "project_id": place.project_id,
        "folder_name": place.folder_name,
        "tags": list(place.tags),
    }


def _section(passage: Passage) -> str | None:
    headings = passage.metadata.get("heading_path") or ()
    return cut(str(headings[-1]), LONGEST_TITLE) if headings else None
