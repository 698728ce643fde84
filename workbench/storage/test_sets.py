"""Test sets with their history: every edit makes a version, and every version can be read again."""

from __future__ import annotations

from collections.abc import Iterable

from workbench.errors import NotFound
from workbench.storage.database import Database, Row, as_json, clean, new_id
from workbench.storage.statements import statement
from workbench.types import JsonObject


class TestSetTables:
    """The tables ``datasets``, ``dataset_questions`` and ``judgments``."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def list(self) -> list[Row]:
        """Return all test sets with the number of their questions and judgments, oldest first."""
        return self._database.rows(statement("dataset_list"), {"key": None})

    def get(self, key: str) -> Row:
        """Return a test set by id or title. Raises NotFound."""
        row = self._database.row(statement("dataset_list"), {"key": key})
        if row is None:
            raise NotFound("test set", key, "List the test sets to see the valid ids and titles.")
        return row

    def create(
        self, title: str, description: str, source_id: str | None, corpus_hash: str, scope: JsonObject | None = None
    ) -> Row:
        """Create an empty test set. Raises Conflict if the title is taken.

        Args:
            scope: The part of the user's documents it measures, as ``MeasuredScope.to_stored`` writes it.
        """
        test_set_id = new_id("dataset")
        values: Row = {"id": test_set_id, "title": title, "description": description}
        values |= {"source_id": source_id, "corpus_hash": corpus_hash, "scope": as_json(scope or {})}
        self._database.rows(statement("dataset_insert"), values)
        return self.get(test_set_id)

    def update(self, test_set_id: str, title: str | None, description: str | None) -> Row:
        """Rename or describe a test set; None leaves a field as it is. Raises Conflict."""
        values = {"id": test_set_id, "title": title, "description": description}
        self._database.rows(statement("dataset_update"), values)
        return self.get(test_set_id)

    def delete(self, test_set_id: str) -> None:
        """Delete a test set with its history and its experiments."""
        self._database.rows(statement("dataset_delete"), {"id": test_set_id})

    def edit(
        self,
        test_set_id: str,
        *,
        questions: Iterable[JsonObject] = (),
        judgments: Iterable[JsonObject] = (),
        drop_questions: Iterable[str] = (),
        drop_judgments: Iterable[JsonObject] = (),
    ) -> int:
        """Change a test set in one transaction and return its new version.

        A question is replaced by one of the same id, a judgment by one on the same place of the same document (a
        person's and an LLM's stand side by side). A question that is dropped takes its judgments along.
        """
        added = {row["question_id"]: dict(row) for row in questions}
        judged = {_place(row): dict(row) for row in judgments}
        with self._database.transaction() as connection:
            row = connection.execute(statement("dataset_bump"), {"id": test_set_id}).fetchone()
            if row is None:
                raise NotFound("test set", test_set_id)
            version = int(row["version"])
            at: JsonObject = {"dataset_id": test_set_id, "version": version}
            with connection.cursor() as cursor:
                dropped = [at | {"question_id": key} for key in drop_questions]
                everything = {"document": None, "start": None, "end": None, "judge": "person"}
                cursor.executemany(statement("judgment_close"), [row | everything for row in dropped])
                cursor.executemany(statement("question_close"), dropped)
                cursor.executemany(statement("question_close"), [at | {"question_id": key} for key in added])
                cursor.executemany(statement("question_insert"), [_question(at, row) for row in added.values()])
                closing = [*judged.values(), *drop_judgments]
                cursor.executemany(statement("judgment_close"), [_judgment(at, row) for row in closing])
                cursor.executemany(statement("judgment_insert"), [_judgment(at, row) for row in judged.values()])
        return version

    def questions(self, test_set_id: str, version: int) -> list[Row]:
        """Return the questions of one version."""
        return self._database.rows(statement("question_list"), {"dataset_id": test_set_id, "version": version})

    def judgments(self, test_set_id: str, version: int) -> list[Row]:
        """Return the judgments of one version, those by an LLM too."""
        return self._database.rows(statement("judgment_list"), {"dataset_id": test_set_id, "version": version})


def _place(row: Row) -> tuple[object, ...]:
    place = (row["question_id"], row["document"], row.get("start"), row.get("end"))
    return (*place, row.get("judge", "person") == "llm")


def _question(at: JsonObject, row: Row) -> Row:
    values = {"reference_answer": "", "origin": "person", **at, **row}
    return clean(values) | {"metadata": as_json(row.get("metadata") or {})}


def _judgment(at: JsonObject, row: Row) -> Row:
    values = clean({"grade": 0, "start": None, "end": None, "quote": "", "judge": "person", **at, **row})
    return values | {"pages": list(row.get("pages") or ())}
