"""rag_search_code_examples: the code blocks around the passages that answer a question."""

from __future__ import annotations

from collections.abc import Iterable

from mcp_app.arguments import Argument
from mcp_app.fitting import LONGEST_TEXT, LONGEST_TITLE, cut
from mcp_app.forms import form
from mcp_app.parts import Items
from mcp_app.tool import Call, Tool
from mcp_app.tools.reading.family import FAMILY, SKIP
from mcp_app.worth import FEW
from workbench.retrieval.options import Ask
from workbench.types import Passage, Scope
from workbench.types.json import JsonObject

DEFAULT_COUNT = 5
PROSE = ("rag_search_knowledge_base", "search_knowledge_base")
DEEPEST = 100  # passages that are looked at for code


def search_code(call: Call, query: str, language: str, source_id: str, match_count: int, offset: int) -> JsonObject:
    """Return code blocks, those of the best passages first."""
    from workbench.services.code_examples import code_near

    scope = Scope(sources=(source_id,)) if source_id else Scope()
    result = call.workbench.search_service.search(query, Ask(limit=DEEPEST, scope=scope))
    examples: list[JsonObject] = []
    for example in code_near(call.workbench.documents.get, _by_document(result), language):
        entry: JsonObject = {
            "page_id": example.passage.document_id,
            "chunk_id": example.passage.passage_id,
            "title": cut(example.passage.document_title, LONGEST_TITLE),
            "url": example.passage.url,
            "heading": cut(example.heading, LONGEST_TITLE),
            "language": example.language,
            "code": cut(example.code, LONGEST_TEXT),
            "start": example.start,
            "similarity_score": round(max(0.0, example.passage.similarity), 4),
        }
        examples.append(entry)
    few = FEW if not result.evidence.close and not offset else DEFAULT_COUNT
    chosen = examples[offset : offset + (match_count or few)]
    answer: JsonObject = {"success": True, "results": chosen, "count": len(chosen), "total": len(examples)}
    if chosen and not result.evidence.close:
        answer["nothing_close"] = result.evidence.reason
        answer["suggestion"] = "Use other words" + (", or drop source_id to search every source" if source_id else "")
    if result.degraded:
        answer["degraded"] = list(result.degraded)
    if len(result) == DEEPEST and offset + len(chosen) >= len(examples):
        answer["note"] = (
            f"Code is looked for near the first {DEEPEST} passages. For other code, name a source_id or ask a more "
            "specific question."
        )
    if not examples:
        wanted = f" in {language}" if language else ""
        prose = next((name for name in PROSE if call.offers(name)), "")
        answer["suggestion"] = f"No code{wanted} near the best passages; use other words{prose and f', or {prose}'}."
    return answer


def _by_document(passages: Iterable[Passage]) -> dict[str, list[Passage]]:
    groups: dict[str, list[Passage]] = {}
    for passage in passages:
        groups.setdefault(passage.document_id, []).append(passage)
    return groups


SEARCH_CODE = Tool(
    name="rag_search_code_examples",
    title="Search code examples",
    description=(
        "Find code blocks with their headings, best first; 'start' is where to read on with "
        "rag_read_full_page(offset).\n"
        "Use it for how something is written in code: best for that alone; for prose use rag_search_knowledge_base.\n"
        'Example: rag_search_code_examples(query="vector index", language="sql")'
    ),
    arguments=(
        Argument("query", "string", "What the code does.", required=True),
        Argument("language", "string", "Only this language, such as python.", ""),
        Argument("source_id", "string", "Only this source: its id, URL or exact title.", ""),
        Argument("match_count", "integer", "How many at most.", DEFAULT_COUNT, low=1, high=20, unset=0),
        SKIP,
    ),
    run=search_code,
    family=FAMILY,
    parts=Items("results", total="total"),
    advice="Code, not prose: rag_search_code_examples(query, language).",
    output=form(results="array", total="integer"),
)
