"""Workspaces: sources of type "workspace", whose documents are whole conversations."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime

from workbench.storage.database import Database, statement
from workbench.types import JsonObject


@dataclass(frozen=True, slots=True)
class SimilarConversation:
    """A similar conversation; ``score`` is a cosine (-1..1), ``text`` at most its first 2,000 characters."""

    id: str
    key: str
    title: str
    metadata: JsonObject
    document_date: date | None
    score: float
    text: str | None


class Workspaces:
    """The contents of a workspace, by its source's id."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def conversations(self, source_id: str, conversation_type: str | None = None) -> dict[str, str]:
        """Return the ids of a workspace's conversations by key (their path), optionally of one type."""
        values = {"source_id": source_id, "conversation_type": conversation_type}
        return {row["key"]: row["id"] for row in self._database.rows(statement("conversation_ids"), values)}

    def types(self, source_id: str) -> list[str]:
        """Return the types of conversation in a workspace."""
        return [row["type"] for row in self._database.rows(statement("conversation_types"), {"source_id": source_id})]

    def similar(self, index: str, source_id: str, document_id: str, limit: int) -> list[SimilarConversation]:
        """Return other conversations, best first.

        The score is the cosine between the means of the conversations' passage vectors.
        """
        values = {"source_id": source_id, "document_id": document_id, "limit": limit}
        rows = self._database.rows(statement("conversations_like", index), values)
        return [SimilarConversation(**row) for row in rows]

    def counts(self, source_id: str, index: str) -> tuple[int, int]:
        """Return the numbers of conversations and of passages in an index."""
        row = self._database.row(statement("workspace_counts"), {"source_id": source_id, "index": index}) or {}
        return int(row.get("documents", 0)), int(row.get("passages", 0))

    def recent(self, source_id: str, limit: int) -> list[tuple[str, datetime]]:
        """Return (key, time) of the last embedded conversations, newest first."""
        values = {"source_id": source_id, "limit": limit}
        return [(row["key"], row["updated_at"]) for row in self._database.rows(statement("workspace_recent"), values)]
