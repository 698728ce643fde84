"""Promotions: the strategy that serves a scope if a search names none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from psycopg.types.json import Jsonb

from workbench.storage.database import Database, Row, clean_parameters, statement
from workbench.types import ParameterValue, Promotion

EVERYWHERE_KEY = "everywhere"


class Promotions:
    """The table ``promotions``; a scope's key is "everywhere", "project:ID", "folder:ID" or "source:ID"."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(
        self, scope_key: str, strategy: str, parameters: Mapping[str, ParameterValue], index: str | None, note: str
    ) -> Promotion:
        """Store a scope's next version and return it."""
        kind, _, key = scope_key.partition(":")
        values: dict[str, object] = {"project_id": None, "folder_id": None, "source_id": None, "scope_key": scope_key}
        values |= {
            "strategy": strategy,
            "parameters": Jsonb(dict(parameters)),
            "index": index,
            "note": clean_parameters(note),
        }
        if key:
            values[f"{kind}_id"] = key
        with self._database.transaction() as connection:
            connection.execute(statement("promotion_lock"))
            connection.execute(statement("promotion_insert"), values)
        return self.list([scope_key])[0]

    def list(self, scope_keys: Sequence[str] | None = None) -> list[Promotion]:
        """Return every version for the given scopes, or for all, the newest of each scope first."""
        keys = None if scope_keys is None else list(scope_keys)
        return [_promotion(row) for row in self._database.rows(statement("promotion_list"), {"keys": keys})]

    def find_active(self, scope_keys: Sequence[str]) -> Promotion | None:
        """Return the promotion of the first scope that has one; keys are ordered from specific to general."""
        row = self._database.row(statement("promotion_serving"), {"keys": list(scope_keys)})
        return _promotion(row) if row else None

    def indexes(self) -> Sequence[str]:
        """Return the names of the finished indexes that serve some scope."""
        return [row["name"] for row in self._database.rows(statement("promotion_indexes"))]

    def undo(self, scope_key: str) -> bool:
        """Undo a scope's newest promotion; False if it has none."""
        return self._database.row(statement("promotion_undo"), {"scope_key": scope_key}) is not None


def _promotion(row: Row) -> Promotion:
    title = row.get("scope_title", "")
    return Promotion(
        scope=row["scope_key"],
        version=row["version"],
        strategy=row["strategy"],
        parameters=row["parameters"],
        index=row["index_name"],
        note=row["note"],
        serves=bool(row.get("serves", True)),
        scope_title=f"{row['folder_project']} / {title}" if row.get("folder_project") else title,
        promoted_at=row["promoted_at"],
        undone_at=row["undone_at"],
    )
