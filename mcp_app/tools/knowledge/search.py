"""search_knowledge_base: passages by search type, with a minimum similarity."""

from __future__ import annotations

from typing import cast

from mcp_app.arguments import NAMES_ARGUMENT, Argument
from mcp_app.paging import MAX_TITLE_CHARS, Items, RankedPage, apply_cutoff, cut, explain_past_end
from mcp_app.tool import Call, Tool, make_schema
from mcp_app.tools.knowledge.family import FAMILY, find_source
from workbench.retrieval.legs import RERANKERS
from workbench.retrieval.options import Ask
from workbench.retrieval.parameters import AGENT_CUTOFF
from workbench.retrieval.strategies import STRATEGIES, UNPROMOTED_TOOL_STRATEGY
from workbench.types import JsonObject, NamesUse, Passage, Scope, copies_json

SEARCH_TYPES = ("vector", "hybrid", "rerank")
DEFAULT_SEARCH_TYPE = UNPROMOTED_TOOL_STRATEGY
UNSET_SEARCH_TYPE = ""
DEFAULT_COUNT, MIN_SIMILARITY = 10, 0.05
MAX_RANKED = 200  # passages that one search ranks, offset included


def search_knowledge_base(
    call: Call,
    query: str,
    source_id: str,
    match_count: int,
    search_type: str,
    similarity_threshold: float,
    offset: int,
    language: str = "",
    names: str = "prefer",
) -> JsonObject:
    """Return the passages that answer a query.

    Without a search type the strategy promoted for the scope is used. Without a count and a threshold, results that
    score far below the best are marked, and only a few are returned if nothing is close.
    """
    scope = Scope(
        sources=(find_source(call, source_id).id,) if source_id else None,
        languages=(language,) if language.strip() else (),
        names=cast(NamesUse, names),
    )
    page = RankedPage(offset, match_count or DEFAULT_COUNT, MAX_RANKED, "passages", "set source_id or language")
    ask = Ask(
        search_type or None,
        page.limit,
        scope,
        min_similarity=MIN_SIMILARITY if similarity_threshold < 0 else similarity_threshold,
        built_in=DEFAULT_SEARCH_TYPE,
    )
    result = call.wb.search_service.search(query, ask)
    passages = list(page.items(result.results))
    items, cutoff = [passage_json(passage) for passage in passages], {}
    if not match_count and similarity_threshold < 0 and not offset:
        scores = [hit.score for hit in passages]
        items, cutoff = apply_cutoff(items, scores, result.strategy, AGENT_CUTOFF, close=result.evidence.close)
    answer: JsonObject = {
        "success": True,
        "results": list(items),
        "count": len(items),
        "more": offset + len(items) < len(result),
        "search_type": infer_search_type(result.strategy),
        "strategy": result.strategy,
        "query": cut(query, MAX_TITLE_CHARS),
        **cutoff,
    }
    if passages and not result.evidence.close:
        answer["nothing_close"] = result.evidence.reason
        answer["suggestion"] = "Use other words" + (", or remove source_id to search all sources" if source_id else "")
    if result.preferring:
        answer["preferring"] = [name.text for name in result.preferring]
    if result.degraded:
        answer["degraded"] = list(result.degraded)
    answer |= page.end(result.results)
    if not passages:
        no_match = "Nothing matched. Lower similarity_threshold, remove source_id or use other words"
        answer["suggestion"] = explain_past_end(offset, result.results) or no_match
    return answer


def infer_search_type(strategy: str) -> str:
    """Return the search type closest to a promoted strategy, or the name of a strategy of the user's own."""
    if STRATEGIES[strategy].own is not None:
        return strategy
    legs = STRATEGIES[strategy].legs
    if not RERANKERS.isdisjoint(legs):
        return "rerank"
    return "hybrid" if STRATEGIES[strategy].uses_words else "vector"


def passage_json(passage: Passage) -> JsonObject:
    """Return a passage as specified."""
    metadata: JsonObject = {
        "source_id": passage.source_id,
        "chunk_index": passage.metadata.get("ordinal", 0),
        "url": passage.url,
        "similarity": round(max(0.0, passage.similarity), 4),
    }
    if passage.metadata.get("language"):
        metadata["language"] = passage.metadata["language"]
    if passage.path:
        metadata["path"] = cut(passage.path, MAX_TITLE_CHARS)
    if passage.headings:
        metadata["section"] = cut(" > ".join(passage.headings), MAX_TITLE_CHARS)
    if passage.metadata.get("page"):
        metadata["page"] = passage.metadata["page"]
    if passage.metadata.get("page_label"):
        metadata["page_label"] = passage.metadata["page_label"]
    return {
        "chunk_id": passage.passage_id,
        "document_id": passage.document_id,
        "document_title": cut(passage.document_title, MAX_TITLE_CHARS),
        "text": cut(passage.text),
        "score": round(passage.score, 4),
        "match_type": passage.match_type,
        "metadata": metadata,
        **copies_json(passage.copies),
    }


SEARCH_KNOWLEDGE_BASE = Tool(
    name="search_knowledge_base",
    title="Search the knowledge base",
    description=(
        "Find the passages that answer a question, best first.\n"
        "Use it for precise questions, in all sources or one: the best choice if you know no project; to find "
        "documents, use rag_search_knowledge_base; for a project, rag_search_project_knowledge; for general knowledge "
        "by tags, rag_search_global_knowledge; for code, rag_search_code_examples.\n"
        'Example: search_knowledge_base(query="database optimization", search_type="hybrid", match_count=5)'
    ),
    arguments=(
        Argument("query", "string", "Keywords or a question.", required=True),
        Argument("source_id", "string", "Only this source: id, URL or exact title.", ""),
        Argument("language", "string", "Only this language, e.g. de or german.", ""),
        NAMES_ARGUMENT,
        Argument(
            "match_count",
            "integer",
            "Maximum number of passages.",
            DEFAULT_COUNT,
            low=1,
            high=50,
            unset=0,
        ),
        Argument(
            "search_type",
            "string",
            "vector: by meaning. hybrid: by meaning and words. rerank: hybrid, then reranked by token similarity. "
            "Default: the strategy promoted for this scope, else hybrid; the answer names the one used.",
            DEFAULT_SEARCH_TYPE,
            choices=SEARCH_TYPES,
            unset=UNSET_SEARCH_TYPE,
        ),
        Argument(
            "similarity_threshold",
            "number",
            "Minimum cosine similarity; matches of words unknown to the model are never hidden.",
            MIN_SIMILARITY,
            low=0,
            high=1,
            unset=-1.0,
        ),
        Argument("offset", "integer", "Passages to skip.", 0, low=0),
    ),
    run=search_knowledge_base,
    family=FAMILY,
    parts=Items("results"),
    advice="Passages, with a choice of search type and similarity threshold: search_knowledge_base.",
    output=make_schema(results="array", more="boolean", search_type="string"),
)
