"""search_knowledge_base: passages by a chosen search type, down to a minimum similarity."""

from __future__ import annotations

from typing import Any

from mcp_app.arguments import Argument
from mcp_app.fitting import LONGEST_TITLE, cut
from mcp_app.tool import Call, Tool
from mcp_app.tools.knowledge.family import FAMILY, source_named
from workbench.types import Passage, Scope

SEARCH_TYPES = ("vector", "hybrid", "rerank")
DEFAULT_SEARCH_TYPE = "hybrid"
NOT_GIVEN = ""


def search_knowledge_base(
    call: Call, query: str, source_id: str, match_count: int, search_type: str, similarity_threshold: float
) -> dict[str, Any]:
    """Return the passages that answer a query; the source is a filter in the search, not after it.

    Where no search type was given, what is promoted for the scope serves.
    """
    scope = Scope(sources=(source_named(call, source_id).id,)) if source_id else Scope()
    found = call.workbench.search_service.search(
        query,
        strategy=search_type or None,
        built_in=DEFAULT_SEARCH_TYPE,
        limit=match_count,
        scope=scope,
        min_similarity=similarity_threshold,
    )
    answer: dict[str, Any] = {
        "success": True,
        "results": [passage_json(passage) for passage in found],
        "count": len(found),
        "search_type": found.strategy,
        "query": cut(query, LONGEST_TITLE),
    }
    if found.degraded:
        answer["degraded"] = list(found.degraded)
    if not found:
        answer["suggestion"] = "Nothing matched; lower similarity_threshold, drop source_id or use other words"
    return answer


def passage_json(passage: Passage) -> dict[str, Any]:
    """Return a passage as the specification shows it."""
    metadata: dict[str, Any] = {
        "source_id": passage.source_id,
        "chunk_index": passage.metadata.get("ordinal", 0),
        "url": passage.url,
        "similarity": round(max(0.0, passage.similarity), 4),
    }
    if passage.path:
        metadata["path"] = cut(passage.path, LONGEST_TITLE)
    if passage.metadata.get("heading_path"):
        metadata["section"] = cut(" > ".join(passage.metadata["heading_path"]), LONGEST_TITLE)
    if passage.metadata.get("page"):
        metadata["page"] = passage.metadata["page"]
    return {
        "chunk_id": passage.passage_id,
        "document_id": passage.document_id,
        "document_title": cut(passage.document_title, LONGEST_TITLE),
        "text": cut(passage.text),
        "score": round(passage.score, 4),
        "match_type": passage.match_type,
        "metadata": metadata,
    }


SEARCH_KNOWLEDGE_BASE = Tool(
    name="search_knowledge_base",
    title="Search the knowledge base",
    description=(
        "Find the passages of the stored documents that answer a question, best first, with their documents.\n"
        "Use it for any look-up across all sources or in one source (source_id). For a project's knowledge, "
        "folders or "
        "tags use rag_search_project_knowledge or rag_search_global_knowledge; for a list of documents use "
        "manage_document(action='list').\n"
        'Example: search_knowledge_base(query="database optimization", search_type="hybrid", match_count=5)'
    ),
    arguments=(
        Argument("query", "string", "What to look for, in words or as a question.", required=True),
        Argument("source_id", "string", "Only this source: its id, URL or exact title.", ""),
        Argument("match_count", "integer", "Passages wanted.", 10, low=1, high=50),
        Argument(
            "search_type",
            "string",
            "vector: by meaning, fast. hybrid: by meaning and words. rerank: hybrid, then compared word by word. "
            "Left out, what was promoted for this scope serves, else hybrid.",
            DEFAULT_SEARCH_TYPE,
            choices=SEARCH_TYPES,
            unset=NOT_GIVEN,
        ),
        Argument(
            "similarity_threshold",
            "number",
            "Minimum cosine similarity between query and passage; higher is stricter.",
            0.05,
            low=0,
            high=1,
        ),
    ),
    run=search_knowledge_base,
    family=FAMILY,
    rest="Ask for fewer (match_count), narrow by source_id, or read a whole text at document://DOCUMENT_ID.",
)
