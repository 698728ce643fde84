"""The archives tool: search in dated research notes and saved pages, with highlights and citations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from mcp_app.arguments import Argument
from mcp_app.paging import FEW_RESULTS, MAX_TITLE_CHARS, Items, RankedPage, cut, fits, format_next_call
from mcp_app.tool import Call, Tool, ToolFamily, delegate_to_job, dump_json, make_schema, pick
from workbench.types import JsonObject, as_integer

if TYPE_CHECKING:
    from workbench.services.archives import ArchiveHit, ArchiveResult
    from workbench.services.citations import DocumentCitation


def _failure(error: str, suggestion: str, given: Mapping[str, object]) -> str:
    text = f"Failed to search local archives: {error}"
    return f"{text.rstrip('.')}. {suggestion.rstrip('.')}." if suggestion else text


FAMILY = ToolFamily(render=dump_json, failure=_failure)


DEFAULT_COUNT = 10
MAX_RANKED = 50  # documents that one search ranks, offset included


@dataclass(frozen=True, slots=True)
class CitationDetail:
    """How much of the citations an answer shows."""

    each: int  # citations per document and direction
    context: int  # characters of context per citation
    edges: int  # edges of the graph


# From most to least; the first that fits the budget is used.
DETAIL_LEVELS = (
    CitationDetail(20, 300, 200),
    CitationDetail(10, 200, 120),
    CitationDetail(6, 120, 80),
    CitationDetail(3, 80, 40),
    CitationDetail(1, 40, 20),
)


@Tool(
    title="Search the local archives",
    arguments=(
        Argument("query", "string", "The search query.", required=True),
        Argument("fuzzy", "boolean", "Tolerate typos and match by meaning; false: exact words only.", True),
        Argument("includeCitations", "boolean", "Include citations.", False),
        Argument("citationDepth", "integer", "Levels of citations to follow.", 1, low=1, high=3),
        Argument("limit", "integer", "Maximum number of results.", DEFAULT_COUNT, low=1, high=50, unset=0),
        Argument("offset", "integer", "Results to skip.", 0, low=0),
        Argument("citationOffset", "integer", "Citations to skip.", 0, low=0),
    ),
    family=FAMILY,
    parts=Items("results"),
    advice="The research archive, with citations: searchLocalArchives.",
    output=make_schema({"citationGraph": "object"}, results="array", metadata="object"),
)
def searchLocalArchives(
    call: Call,
    query: str,
    fuzzy: bool,
    includeCitations: bool,
    citationDepth: int,
    limit: int,
    offset: int,
    citationOffset: int,
) -> JsonObject:
    """Search research notes and saved pages by words, tolerating typos, and by meaning, with citations between them
    (confidence 1.0: link, 0.9: path, 0.6: title).

    Use it for archived research: best for citations; for everything else, use search_knowledge_base.
    Example: searchLocalArchives(query="machine learning", includeCitations=true, limit=5)
    """
    wanted, limit = limit, limit or DEFAULT_COUNT
    left = delegate_to_job(call, call.wb.archives)
    page = RankedPage(offset, limit, MAX_RANKED, "documents", "use words specific to the document")
    result = call.wb.archives.search(
        query,
        fuzzy=fuzzy,
        citations=includeCitations,
        depth=citationDepth,
        limit=page.limit,
        should_stop=call.should_stop,
        bring_in=not left,
    )
    ranked = result.results
    result = replace(result, results=tuple(page.items(ranked)))
    if result.nothing_close and not wanted and not offset:
        result = replace(result, results=result.results[:FEW_RESULTS])
    metadata: JsonObject = {
        "totalResults": min(len(ranked), offset + len(result.results)),
        "query": cut(query, MAX_TITLE_CHARS),
        "fuzzy": fuzzy,
        "includeCitations": includeCitations,
        "citationDepth": citationDepth,
        "limit": limit,
    }
    if result.guesses:
        metadata["guessedWords"] = [{"typed": typed, "meant": meant} for typed, meant in result.guesses]
    if result.degraded:
        metadata["degraded"] = list(result.degraded)
    if result.nothing_close:
        metadata["nothingClose"] = result.nothing_close
        metadata["suggestion"] = "Use other words"
    given: JsonObject = {"query": query, "fuzzy": None if fuzzy else False, "includeCitations": True}
    given |= {"citationDepth": citationDepth, "limit": limit, "offset": offset or None}
    given["citationOffset"] = citationOffset
    titles = fetch_titles(call, result) if includeCitations else {}
    extra: JsonObject = {"more": offset + len(result.results) < len(ranked)}
    extra |= page.end(ranked) | left
    answers = [answer_json(result, titles, metadata, DETAIL_LEVELS[0], given) | extra]
    for detail in DETAIL_LEVELS[1:] if includeCitations else ():
        if fits(dump_json(answers[-1])):
            break
        answers.append(answer_json(result, titles, metadata, detail, given) | extra)
    return answers[-1]


def fetch_titles(call: Call, result: ArchiveResult) -> dict[str, str]:
    """Return the title of every document in the results' citations, by id."""
    ids = [end for edge in result.edges() for end in (edge.source_id, edge.target_id)]
    return {key: document.title for key, document in call.wb.citations.documents(ids).items()}


def answer_json(
    result: ArchiveResult, titles: Mapping[str, str], metadata: JsonObject, detail: CitationDetail, given: JsonObject
) -> JsonObject:
    """Return the answer with as many citations as ``detail`` allows; the graph has only those shown.

    ``given`` are the arguments that the next call repeats.
    """
    first = as_integer(given["citationOffset"])
    last = first + detail.each
    shown = replace(result, results=tuple(_slice_citations(hit, first, last) for hit in result.results))
    answer: JsonObject = {
        "results": [hit_json(part, whole, detail) for part, whole in zip(shown.results, result.results, strict=True)]
    }
    if not metadata["includeCitations"] or not result.results:
        return answer | {"metadata": dict(metadata)}
    edges = shown.edges()
    answer["citationGraph"] = graph_json(result.results, edges[: detail.edges], titles)
    sides = [side for hit in result.results if hit.citations for side in (hit.citations.citing, hit.citations.cited)]
    omitted = sum(max(0, len(side) - last) for side in sides)
    more: JsonObject = {}
    if omitted or len(edges) > detail.edges:
        more["citationsLeftOut"] = omitted
        more["graphEdgesLeftOut"] = max(0, len(edges) - detail.edges)
    if omitted:
        following = format_next_call("searchLocalArchives", given, citationOffset=last)
        most = max(len(side) for side in sides)
        more["note"] = f"Citations {first + 1} to {last} of at most {most} per document. Next: {following}"
    return answer | {"metadata": dict(metadata) | more}


def _slice_citations(hit: ArchiveHit, first: int, last: int) -> ArchiveHit:
    """Return a result with a slice of its citations in each direction."""
    if hit.citations is None:
        return hit
    part = replace(hit.citations, citing=hit.citations.citing[first:last], cited=hit.citations.cited[first:last])
    return replace(hit, citations=part)


def hit_json(hit: ArchiveHit, whole: ArchiveHit, detail: CitationDetail) -> JsonObject:
    """Return a result as specified, with the citations to show; ``whole`` has all citations, which are counted."""
    answer: JsonObject = {
        "document": pick(hit, "id", "title", "path", "source", "date", "score"),
        "highlights": [
            {"field": highlight.field, "snippets": list(highlight.snippets)} for highlight in hit.highlights
        ],
    }
    if hit.citations is not None and whole.citations is not None:
        answer["citations"] = {
            "citing": [citation_json(citation, detail) for citation in hit.citations.citing],
            "cited": [citation_json(citation, detail) for citation in hit.citations.cited],
            "totalCiting": len(whole.citations.citing),
            "totalCited": len(whole.citations.cited),
        }
    return answer


def citation_json(citation: DocumentCitation, detail: CitationDetail) -> JsonObject:
    """Return a citation as specified."""
    return {
        "sourceId": citation.source_id,
        "targetId": citation.target_id,
        "targetUrl": cut(citation.target_url, MAX_TITLE_CHARS),
        "context": cut(citation.context, detail.context),
        "confidence": citation.confidence,
        "depth": citation.depth,
    }


def graph_json(hits: Sequence[ArchiveHit], edges: Sequence[DocumentCitation], titles: Mapping[str, str]) -> JsonObject:
    """Return the citation graph: results have type "source", documents linked with them "target"."""
    labels = {hit.id: hit.title for hit in hits}
    others = [end for edge in edges for end in (edge.source_id, edge.target_id) if end not in labels]
    nodes = [{"id": key, "label": cut(title, 80), "type": "source"} for key, title in labels.items()]
    nodes += [{"id": key, "label": cut(titles.get(key, key), 80), "type": "target"} for key in dict.fromkeys(others)]
    return {
        "nodes": nodes,
        "edges": [{"from": edge.source_id, "to": edge.target_id, "confidence": edge.confidence} for edge in edges],
    }


TOOLS = (searchLocalArchives,)
