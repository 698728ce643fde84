"""Runs and experiments: the strategies' answers, kept as long as nothing they depend on changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypedDict

from psycopg.types.json import Jsonb

from workbench.errors import NotFound
from workbench.storage.database import Database, Row, clean_parameters, new_id, statement
from workbench.types import JsonObject, JsonValue, ParameterValue


class NewRun(TypedDict):
    """A run before it is stored, with hashes of all that its answers depend on; ``key`` combines them."""

    key: str
    corpus_hash: str
    index_hash: str
    strategy_hash: str
    questions_hash: str
    depth: int
    strategy: str
    parameters: dict[str, ParameterValue]
    index_name: str
    index_settings: JsonObject
    questions: int


class RunTables:
    """The tables ``eval_runs`` and ``eval_answers``."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def begin(self, run: NewRun) -> Row:
        """Return the run with that key, creating it if there is none; ``status`` is "done" if it is finished."""
        values = {"id": new_id("run"), **run}
        values |= {name: Jsonb(run[name]) for name in ("parameters", "index_settings")}
        row = self._database.row(statement("run_begin"), values)
        assert row is not None
        return row

    def get(self, run_id: str) -> Row:
        """Return a run.

        Raises:
            NotFound: There is no such run.
        """
        row = self._database.row(statement("run_get"), {"id": run_id})
        if row is None:
            raise NotFound("run", run_id)
        return row

    def set_status(self, run_id: str, status: str, error: str | None = None) -> None:
        """Mark a run as running, done or failed."""
        self._database.rows(statement("run_status"), {"id": run_id, "status": status, "error": error})

    def delete(self, run_id: str) -> None:
        """Delete a run and its answers."""
        self._database.rows(statement("run_delete"), {"id": run_id})

    def forget_unused(self, run_ids: Sequence[str]) -> None:
        """Delete those of the runs that are unfinished and in no experiment."""
        self._database.rows(statement("run_delete_unused"), {"ids": list(run_ids)})

    def add_answers(self, run_id: str, answers: Sequence[JsonObject]) -> None:
        """Store answers in one transaction; existing ones are kept."""
        rows = [
            clean_parameters({**answer, "run_id": run_id})
            | {"passages": Jsonb(answer["passages"]), "within": Jsonb(answer.get("within", []))}
            for answer in answers
        ]
        with self._database.transaction() as connection, connection.cursor() as cursor:
            cursor.executemany(statement("answer_insert"), rows)

    def complete(self, run_id: str) -> None:
        """Mark a run as done if all its questions are answered, by whichever process."""
        self._database.rows(statement("run_complete"), {"id": run_id})

    def list_answered(self, run_id: str) -> set[str]:
        """Return the ids of the questions that a run has answered."""
        return {row["question_id"] for row in self._database.rows(statement("answer_questions"), {"run_id": run_id})}

    def answers(self, run_id: str) -> list[Row]:
        """Return a run's answers so far."""
        return self._database.rows(statement("answer_list"), {"run_id": run_id})


class ExperimentTables:
    """The tables ``experiments`` and ``experiment_runs``."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def create(self, experiment: JsonObject) -> Row:
        """Create an experiment without runs; ``id`` is optional."""
        experiment_id = str(experiment.get("id") or new_id("experiment"))
        values = {**experiment, "id": experiment_id, "plan": Jsonb(experiment["plan"])}
        self._database.rows(statement("experiment_insert"), values)
        return self.get(experiment_id)

    def get(self, experiment_id: str) -> Row:
        """Return an experiment.

        Raises:
            NotFound: There is no such experiment.
        """
        row = self._database.row(statement("experiment_list"), {"id": experiment_id, "dataset_id": None})
        if row is None:
            raise NotFound("experiment", experiment_id, "List the experiments to see the valid ids.")
        return row

    def list(self, test_set_id: str | None = None) -> list[Row]:
        """Return experiments, newest first."""
        return self._database.rows(statement("experiment_list"), {"id": None, "dataset_id": test_set_id})

    def set_status(self, experiment_id: str, status: str, message: str = "") -> None:
        """Mark an experiment as running, done, stopped or failed."""
        values = {"id": experiment_id, "status": status, "message": message}
        self._database.rows(statement("experiment_status"), values)

    def set_cells(self, experiment_id: str, cells: Sequence[JsonValue]) -> None:
        """Replace the cells of an experiment's plan, and forget its winner."""
        values = {"id": experiment_id, "cells": Jsonb(list(cells))}
        self._database.rows(statement("experiment_cells"), values)

    def winners(self) -> dict[str, JsonObject]:
        """Return the stored winners of finished experiments, by experiment id."""
        return {row["id"]: row["winner"] for row in self._database.rows(statement("experiment_winners"), {})}

    def keep_winner(self, experiment_id: str, winner: JsonObject) -> None:
        """Store the winner of a finished experiment; it is removed when the experiment runs again."""
        self._database.rows(statement("experiment_keep_winner"), {"id": experiment_id, "winner": Jsonb(winner)})

    def delete(self, experiment_id: str) -> None:
        """Delete an experiment; its runs are kept for others."""
        self._database.rows(statement("experiment_delete"), {"id": experiment_id})

    def add_run(self, experiment_id: str, position: int, run_id: str, label: str, extra: Mapping[str, object]) -> None:
        """Add a run at its position in the matrix."""
        values = {"experiment_id": experiment_id, "position": position, "run_id": run_id, "label": label}
        self._database.rows(statement("experiment_add_run"), values | {"extra": Jsonb(dict(extra))})

    def runs(self, experiment_id: str) -> list[Row]:
        """Return an experiment's runs in the order of the matrix."""
        return self._database.rows(statement("experiment_runs"), {"experiment_id": experiment_id})
