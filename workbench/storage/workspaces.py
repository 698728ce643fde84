"""Workspaces: sources of type "workspace", whose documents are whole conversations."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from workbench.storage.database import Database
from workbench.storage.statements import statement


class Workspaces:
    """What a workspace holds, by its source's id."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def conversations(self, source_id: str, conversation_type: str | None = None) -> dict[str, str]:
        """Return the ids of a workspace's conversations by key (their path), of one type where one is given."""
        values = {"source_id": source_id, "conversation_type": conversation_type}
        return {row["key"]: row["id"] for row in self._database.rows(statement("conversation_ids"), values)}

    def types(self, source_id: str) -> list[str]:
        """Return the types of conversation a workspace holds."""
        return [row["type"] for row in self._database.rows(statement("conversation_types"), {"source_id": source_id})]

    def similar(self, index: str, source_id: str, document_id: str, limit: int) -> list[Mapping[str, Any]]:
        """Return other conversations (id, key, title, metadata, document_date, text) with their score, best first.

        The score is the cosine between the means of the conversations' passage vectors, -1 to 1.
        """
        values = {"source_id": source_id, "document_id": document_id, "limit": limit}
        return list(self._database.rows(statement("conversations_like", index), values))

    def counts(self, source_id: str, index: str) -> tuple[int, int]:
        """Return the numbers of conversations and of passages in an index."""
        row = self._database.row(statement("workspace_counts"), {"source_id": source_id, "index": index}) or {}
        return int(row.get("documents", 0)), int(row.get("passages", 0))

    def recent(self, source_id: str, limit: int) -> list[tuple[str, datetime]]:
        """Return (key, when) of the conversations embedded last, newest first."""
        values = {"source_id": source_id, "limit": limit}
        return [(row["key"], row["updated_at"]) for row in self._database.rows(statement("workspace_recent"), values)]
