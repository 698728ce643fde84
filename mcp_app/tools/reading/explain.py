"""explain: the reasons for the rank of a passage or a page in a search, or the step where it fell out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp_app.arguments import Argument, Refused, missing
from mcp_app.fitting import LONGEST_TITLE, cut
from mcp_app.forms import form
from mcp_app.tool import Call, Tool
from mcp_app.tools.reading.family import FAMILY
from workbench.errors import NotFound
from workbench.marking import own_word
from workbench.retrieval.legs import leg_kind
from workbench.retrieval.options import Ask
from workbench.retrieval.strategies import STRATEGIES
from workbench.types import preference

if TYPE_CHECKING:
    from workbench.retrieval.explain.explanation import Explanation
    from workbench.types.json import JsonObject

MOST_WORDS = 50  # of a question; the most telling first
_FIND_PASSAGE_ID = "Searches name it as chunk_id or page_id"


def explain(call: Call, query: str, chunk_id: str, page_id: str, strategy: str) -> JsonObject:
    """Explain one passage, or one page by its best passage."""
    if bool(chunk_id) == bool(page_id):
        if chunk_id:
            raise Refused("Give either chunk_id or page_id, not both", "Leave one of them out")
        raise missing("chunk_id", f"chunk_id (a passage) or page_id (a document). {_FIND_PASSAGE_ID}.")
    try:
        why = call.workbench.explaining.explain(
            query, Ask(strategy or None), passage_id=chunk_id or None, document_id=page_id or None, elsewhere=False
        )
    except NotFound:
        raise Refused(f"Not found: {chunk_id or page_id}", _FIND_PASSAGE_ID) from None
    around = call.workbench.documents.around(why.passage_id, 0, 0) if why.passage_id else []
    language = str(around[0].metadata.get("language", "english")) if around else "english"
    return {"success": True, **why_json(why, language)}


def why_json(why: Explanation, language: str) -> JsonObject:
    """Return an explanation: scores and ranks by leg, matched words with their shares of the words' score, a note.

    A learned ranker's features have their shares of the score, 0..1.
    """
    words: JsonObject = {
        own_word(why.query, term.term, language): {"times": term.frequency, "share": round(term.share, 2)}
        for term in why.terms[:MOST_WORDS]
    }
    weighed: JsonObject = {view.name: round(view.share, 4) for view in why.features if view.weight}
    return {
        "strategy": why.strategy,
        "page_id": why.document_id,
        "chunk_id": why.passage_id,
        "title": cut(why.document_title, LONGEST_TITLE),
        "rank": why.rank,
        "score": None if why.score is None else round(why.score, 4),
        "fate": why.fate,
        "legs": legs_json(why),
        "words": words,
        "missing_words": [own_word(why.query, term, language) for term in why.missing_terms[:MOST_WORDS]],
        **({"features": weighed} if weighed else {}),
        "note": " ".join(filter(None, [why.reason, preference(why.preferring), *why.notes])),
    }


def legs_json(why: Explanation) -> JsonObject:
    """Return the legs that the strategy counts; ``adds`` is a leg's part of the score, ``rank`` that in the scope."""
    counted = STRATEGIES[why.strategy].legs
    legs: JsonObject = {}
    for name, leg in why.legs.items():
        if name not in counted:
            continue
        legs[name] = {
            "score": round(leg.score, 4),
            "unit": leg_kind(name).unit,
            "rank": leg.rank,
            "adds": None if leg.contribution is None else round(leg.contribution, 4),
            "vote": round(leg.vote, 2),
        }
    return legs


EXPLAIN = Tool(
    name="explain",
    title="Explain a hit",
    description=(
        "Say why a passage or page has its rank, or where it fell out.\n"
        "Use it when a search misses something; to search use rag_search_knowledge_base.\n"
        'Example: explain(query="vector index", page_id="doc_123")'
    ),
    arguments=(
        Argument("query", "string", "The search's query.", required=True),
        Argument("chunk_id", "string", "The passage.", ""),
        Argument("page_id", "string", "Or the document.", ""),
        Argument("strategy", "string", "Such as vector; by default the promoted one.", ""),
    ),
    run=explain,
    family=FAMILY,
    output=form(legs="object", words="object", note="string"),
)
