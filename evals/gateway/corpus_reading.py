"""The corpus as evaluation needs it: documents with texts and passages, searches, the queries of agents."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.retrieval.ask import Ask
from workbench.services.answers import Answer
from workbench.storage.passages import StoredPassage
from workbench.types import Document, SearchResult, Source
from workbench.workbench import Workbench


def documents_of(wb: Workbench, source_id: str | None = None) -> list[Document]:
    """Return the documents of a source without their texts; of None those of the person's own sources."""
    return wb.documents.list(source_id=source_id)


def document_of(wb: Workbench, document_id: str) -> Document:
    """Return a document with its text. Raises NotFound."""
    return wb.documents.get(document_id)


def passages_of(wb: Workbench, document_id: str, index: str | None = None) -> Sequence[StoredPassage]:
    """Return a document's passages in an index (None: the default one), in reading order. Raises NotFound."""
    return wb.documents.passages(document_id, index=index)


def source_named(wb: Workbench, key: str) -> Source:
    """Return a source by id, title or URL. Raises NotFound."""
    return wb.sources.get(key)


def search(wb: Workbench, question: str, ask: Ask) -> SearchResult:
    """Search as the faces do; raises what a search raises."""
    return wb.search_service.search(question, ask)


def answer(wb: Workbench, question: str, ask: Ask) -> Answer:
    """Answer as the faces do; raises what an answer raises."""
    return wb.answers.ask(question, ask).answer()


def agent_queries(wb: Workbench, limit: int, *, zero_only: bool = False) -> list[str]:
    """Return what agents asked in their last ``limit`` queries, each once; ``zero_only``: those that found nothing."""
    calls = wb.tool_calls.list(queries_only=True, zero_only=zero_only, limit=limit)
    return list(dict.fromkeys(" ".join(call.query.split()) for call in calls if call.query and call.query.strip()))
