"""The archives tool: dated research notes and saved pages, with highlights and citations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mcp_app.arguments import Argument
from mcp_app.fitting import BUDGET, LONGEST_TITLE, cut, tokens
from mcp_app.tool import Call, Family, Tool, compact

if TYPE_CHECKING:
    from workbench.services.archives import ArchiveHit, ArchiveResult
    from workbench.services.citations import Citation


def _failure(error: str, suggestion: str, given: Mapping[str, Any]) -> str:
    del given
    text = f"Failed to search local archives: {error}"
    return f"{text.rstrip('.')}. {suggestion.rstrip('.')}." if suggestion else text


FAMILY = Family(render=compact, failure=_failure)


@dataclass(frozen=True, slots=True)
class Detail:
    """How much is said of citations: ``each`` document and direction, ``context`` characters, the graph's ``edges``."""

    each: int
    context: int
    edges: int


# From everything to the least that still answers; the first that fits the budget is taken.
DETAILS = (Detail(20, 300, 200), Detail(10, 200, 120), Detail(6, 120, 80), Detail(3, 80, 40), Detail(1, 40, 20))


def search_local_archives(
    call: Call, query: str, fuzzy: bool, includeCitations: bool, citationDepth: int, limit: int
) -> dict[str, Any]:
    """Search the archives; of too many citations the nearest are shown, and it is said how many were left out."""
    found = call.workbench.archives.search(
        query,
        fuzzy=fuzzy,
        citations=includeCitations,
        depth=citationDepth,
        limit=limit,
        should_stop=call.should_stop,
    )
    metadata: dict[str, Any] = {
        "totalResults": len(found.results),
        "query": cut(query, LONGEST_TITLE),
        "fuzzy": fuzzy,
        "includeCitations": includeCitations,
        "citationDepth": citationDepth,
        "limit": limit,
    }
    if found.guesses:
        metadata["guessedWords"] = [{"typed": typed, "meant": meant} for typed, meant in found.guesses]
    titles = titles_of(call, found) if includeCitations else {}
    for detail in DETAILS:
        answer = answer_json(found, titles, metadata, detail)
        if not includeCitations or tokens(compact(answer)) <= BUDGET:
            break
    return answer


def titles_of(call: Call, found: ArchiveResult) -> dict[str, str]:
    """Return the titles of every document in the results' citations."""
    ids = [end for one in found.edges() for end in (one.source_id, one.target_id)]
    return {key: document.title for key, document in call.workbench.citations.documents(ids).items()}


def answer_json(
    found: ArchiveResult, titles: Mapping[str, str], metadata: Mapping[str, Any], detail: Detail
) -> dict[str, Any]:
    """Return the answer with as much of the citations as ``detail`` says."""
    answer: dict[str, Any] = {"results": [hit_json(hit, detail) for hit in found.results]}
    if not metadata["includeCitations"] or not found.results:
        return answer | {"metadata": dict(metadata)}
    edges = found.edges()
    answer["citationGraph"] = graph_json(found.results, edges[: detail.edges], titles)
    shown = sum(len(hit["citations"]["citing"]) + len(hit["citations"]["cited"]) for hit in answer["results"])
    held = sum(len(hit.citations.citing) + len(hit.citations.cited) for hit in found.results if hit.citations)
    more: dict[str, Any] = {}
    if shown < held or len(edges) > detail.edges:
        more["citationsLeftOut"] = held - shown
        more["graphEdgesLeftOut"] = max(0, len(edges) - detail.edges)
        more["note"] = "The nearest citations are shown. Ask with a smaller citationDepth or limit for all of them."
    return answer | {"metadata": dict(metadata) | more}


def hit_json(hit: ArchiveHit, detail: Detail) -> dict[str, Any]:
    """Return one result as the specification shows it."""
    shown: dict[str, Any] = {
        "document": {
            "id": hit.id,
            "title": cut(hit.title, LONGEST_TITLE),
            "path": hit.path,
            "source": hit.source,
            "date": hit.date,
            "score": hit.score,
        },
        "highlights": [{"field": one.field, "snippets": list(one.snippets)} for one in hit.highlights],
    }
    if hit.citations is not None:
        shown["citations"] = {
            "citing": [citation_json(one, detail) for one in hit.citations.citing[: detail.each]],
            "cited": [citation_json(one, detail) for one in hit.citations.cited[: detail.each]],
        }
    return shown


def citation_json(one: Citation, detail: Detail) -> dict[str, Any]:
    """Return one citation."""
    return {
        "sourceId": one.source_id,
        "targetId": one.target_id,
        "targetUrl": cut(one.target_url, LONGEST_TITLE),
        "context": cut(one.context, detail.context),
        "confidence": one.confidence,
        "depth": one.depth,
    }


def graph_json(hits: Sequence[ArchiveHit], edges: Sequence[Citation], titles: Mapping[str, str]) -> dict[str, Any]:
    """Return the results ("source") and what they are linked with ("target"), and the links."""
    labels = {hit.id: hit.title for hit in hits}
    others = [end for one in edges for end in (one.source_id, one.target_id) if end not in labels]
    nodes = [{"id": key, "label": cut(title, 80), "type": "source"} for key, title in labels.items()]
    nodes += [{"id": key, "label": cut(titles.get(key, key), 80), "type": "target"} for key in dict.fromkeys(others)]
    return {
        "nodes": nodes,
        "edges": [{"from": one.source_id, "to": one.target_id, "confidence": one.confidence} for one in edges],
    }


SEARCH_LOCAL_ARCHIVES = Tool(
    name="searchLocalArchives",
    title="Search the local archives",
    description=(
        "Searches the local research and URL content archives by word, misspelt word and meaning; highlights mark the "
        "words that matched; citations link the documents (confidence 1.0: a link, 0.9: a bare path, 0.6: a title "
        "written out).\n"
        "Use it for archived research and who cites what; for the rest of the corpus use search_knowledge_base.\n"
        'Example: searchLocalArchives(query="machine learning", includeCitations=true, limit=5)'
    ),
    arguments=(
        Argument("query", "string", "The search query.", required=True),
        Argument("fuzzy", "boolean", "Also match misspelt words and meaning; false: the words must stand there.", True),
        Argument("includeCitations", "boolean", "Whether to include citation information.", False),
        Argument("citationDepth", "integer", "How many levels of citations to include.", 1, low=1, high=3),
        Argument("limit", "integer", "Maximum number of results to return.", 10, low=1, high=50),
    ),
    run=search_local_archives,
    family=FAMILY,
    rest="Ask with a smaller limit, or without citations.",
)

TOOLS = (SEARCH_LOCAL_ARCHIVES,)
