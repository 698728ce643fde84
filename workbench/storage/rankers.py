"""Trained and imported rankers, by name."""

from __future__ import annotations

from workbench.errors import NotFound
from workbench.storage.database import Database, Row, bind_json, clean_parameters, statement
from workbench.types import Ranker


class Rankers:
    """The table ``rankers``, without the built-in ranker."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def list(self) -> list[Ranker]:
        """Return all rankers by name."""
        return [_ranker(row) for row in self._database.rows(statement("ranker_list"), {"name": None})]

    def get(self, name: str) -> Ranker:
        """Return a ranker.

        Raises:
            NotFound: There is no such ranker.
        """
        row = self._database.row(statement("ranker_list"), {"name": clean_parameters(name)})
        if row is None:
            raise NotFound("ranker", name, "List the rankers with 'workbench rankers list'.")
        return _ranker(row)

    def add(self, ranker: Ranker) -> bool:
        """Store a new ranker; False if the name is taken."""
        texts = clean_parameters({"name": ranker.name, "trained_on": ranker.trained_on, "index": ranker.index})
        values: dict[str, object] = {**texts, "note": clean_parameters(ranker.note)}
        values |= {"version": ranker.version, "questions": ranker.questions}
        values |= {"weights": bind_json(ranker.weights), "figures": bind_json(ranker.figures)}
        return self._database.row(statement("ranker_insert"), values) is not None

    def list_scopes(self, name: str) -> list[str]:
        """Return the keys of the scopes that this ranker serves."""
        return [row["scope_key"] for row in self._database.rows(statement("ranker_serving"), {"name": name})]

    def delete(self, name: str) -> bool:
        """Delete a ranker; False if there is none.

        Its runs are deleted too, and its promotions can no longer be restored by undo.
        """
        with self._database.transaction() as connection:
            connection.execute(statement("ranker_forget_runs"), {"name": name})
            connection.execute(statement("ranker_withdraw"), {"name": name})
            return connection.execute(statement("ranker_delete"), {"name": name}).fetchone() is not None


def _ranker(row: Row) -> Ranker:
    values = {key: value for key, value in row.items() if key != "index_name"}
    return Ranker(**values, index=row["index_name"])
