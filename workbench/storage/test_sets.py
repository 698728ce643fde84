"""Test sets with their history: every edit makes a version, and every version stays readable."""

from __future__ import annotations

from collections.abc import Iterable

from workbench.errors import NotFound
from workbench.storage.database import Database, Row, bind_json, clean_parameters, new_id, statement
from workbench.types import JsonObject


class TestSetTables:
    """The tables ``datasets``, ``dataset_questions`` and ``judgments``."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def list(self) -> list[Row]:
        """Return all test sets with the number of their questions and judgments, oldest first."""
        return self._database.rows(statement("dataset_list"), {"key": None})

    def get(self, key: str) -> Row:
        """Return a test set by id or title.

        Raises:
            NotFound: There is no such test set.
        """
        row = self._database.row(statement("dataset_list"), {"key": key})
        if row is None:
            raise NotFound("test set", key, "List the test sets to see the valid ids and titles.")
        return row

    def create(
        self, title: str, description: str, source_id: str | None, corpus_hash: str, scope: JsonObject | None = None
    ) -> Row:
        """Create an empty test set.

        Args:
            title: Its title.
            description: Its description.
            source_id: Source of its own corpus; None if it is about the user's documents.
            corpus_hash: Hash of that corpus.
            scope: The part of the user's documents that it measures, as written by ``MeasuredScope.to_stored``.

        Raises:
            Conflict: The title is taken.
        """
        test_set_id = new_id("dataset")
        values: Row = {"id": test_set_id, "title": title, "description": description}
        values |= {"source_id": source_id, "corpus_hash": corpus_hash, "scope": bind_json(scope or {})}
        self._database.rows(statement("dataset_insert"), values)
        return self.get(test_set_id)

    def update(self, test_set_id: str, title: str | None, description: str | None) -> Row:
        """Change title or description of a test set; None leaves a field as it is.

        Raises:
            Conflict: The title is taken.
        """
        values = {"id": test_set_id, "title": title, "description": description}
        self._database.rows(statement("dataset_update"), values)
        return self.get(test_set_id)

    def set_corpus(self, test_set_id: str, source_id: str | None, corpus_hash: str) -> None:
        """Give a test set another corpus; None means the user's documents. This makes a new version."""
        values = {"id": test_set_id, "source_id": source_id, "corpus_hash": corpus_hash}
        self._database.rows(statement("dataset_corpus"), values)

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

        A question replaces the one with the same id, a judgment the one on the same place of the same document (a
        person's and an LLM's judgments are independent). Dropping a question drops its judgments.
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
        """Return the judgments of one version, including those by an LLM."""
        return self._database.rows(statement("judgment_list"), {"dataset_id": test_set_id, "version": version})


def _place(row: Row) -> tuple[object, ...]:
    place = (row["question_id"], row["document"], row.get("start"), row.get("end"))
    return (*place, row.get("judge", "person") == "llm")


def _question(at: JsonObject, row: Row) -> Row:
    values = {"reference_answer": "", "origin": "person", **at, **row}
    return clean_parameters(values) | {"metadata": bind_json(row.get("metadata") or {})}


def _judgment(at: JsonObject, row: Row) -> Row:
    values = clean_parameters({"grade": 0, "start": None, "end": None, "quote": "", "judge": "person", **at, **row})
    return values | {"pages": list(row.get("pages") or ())}
