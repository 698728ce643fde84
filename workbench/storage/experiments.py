"""Runs and experiments: what strategies answered, kept as long as nothing it depends on changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from psycopg.types.json import Jsonb

from workbench.errors import NotFound
from workbench.storage.database import Database, clean
from workbench.storage.ids import new_id
from workbench.storage.statements import statement

Row = dict[str, Any]


class RunTables:
    """The tables ``eval_runs`` and ``eval_answers``."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def begin(self, run: Mapping[str, Any]) -> Row:
        """Return the run with that key, made where there is none; ``status`` says whether it is done."""
        values = {"id": new_id("run"), **run}
        values |= {name: Jsonb(dict(run[name])) for name in ("parameters", "index_settings")}
        row = self._database.row(statement("run_begin"), values)
        assert row is not None
        return row

    def get(self, run_id: str) -> Row:
        """Return a run. Raises NotFound."""
        row = self._database.row(statement("run_get"), {"id": run_id})
        if row is None:
            raise NotFound("run", run_id)
        return row

    def set_status(self, run_id: str, status: str, error: str | None = None) -> None:
        """Mark a run as running, done or failed."""
        self._database.rows(statement("run_status"), {"id": run_id, "status": status, "error": error})

    def delete(self, run_id: str) -> None:
        """Forget what a run found."""
        self._database.rows(statement("run_delete"), {"id": run_id})

    def add_answers(self, run_id: str, answers: Sequence[Mapping[str, Any]]) -> None:
        """Store answers in one transaction; one that is there already stays."""
        rows = [
            clean({**answer, "run_id": run_id, "documents": list(answer["documents"])})
            | {"passages": Jsonb(list(answer["passages"])), "degraded": list(answer["degraded"])}
            for answer in answers
        ]
        with self._database.transaction() as connection, connection.cursor() as cursor:
            cursor.executemany(statement("answer_insert"), rows)

    def answers(self, run_id: str) -> list[Row]:
        """Return what a run found so far."""
        return self._database.rows(statement("answer_list"), {"run_id": run_id})


class ExperimentTables:
    """The tables ``experiments`` and ``experiment_runs``."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def create(self, experiment: Mapping[str, Any]) -> Row:
        """Create an experiment without runs."""
        experiment_id = new_id("experiment")
        values = {**experiment, "id": experiment_id, "plan": Jsonb(dict(experiment["plan"]))}
        self._database.rows(statement("experiment_insert"), values)
        return self.get(experiment_id)

    def get(self, experiment_id: str) -> Row:
        """Return an experiment. Raises NotFound."""
        found = self._database.row(statement("experiment_list"), {"id": experiment_id, "dataset_id": None})
        if found is None:
            raise NotFound("experiment", experiment_id, "List the experiments to see the valid ids.")
        return found

    def list(self, dataset_id: str | None = None) -> list[Row]:
        """Return experiments, newest first."""
        return self._database.rows(statement("experiment_list"), {"id": None, "dataset_id": dataset_id})

    def set_status(self, experiment_id: str, status: str, message: str = "") -> None:
        """Mark an experiment as running, done, stopped or failed."""
        values = {"id": experiment_id, "status": status, "message": message}
        self._database.rows(statement("experiment_status"), values)

    def delete(self, experiment_id: str) -> None:
        """Delete an experiment; its runs stay, so that another one may use them."""
        self._database.rows(statement("experiment_delete"), {"id": experiment_id})

    def add_run(self, experiment_id: str, position: int, run_id: str, label: str, extra: Mapping[str, Any]) -> None:
        """Put a run at its place in the matrix."""
        values = {"experiment_id": experiment_id, "position": position, "run_id": run_id, "label": label}
        self._database.rows(statement("experiment_add_run"), values | {"extra": Jsonb(dict(extra))})

    def runs(self, experiment_id: str) -> list[Row]:
        """Return an experiment's runs in the order of the matrix."""
        return self._database.rows(statement("experiment_runs"), {"experiment_id": experiment_id})
