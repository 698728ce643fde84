"""Test sets with their history, and runs and experiments of the strategies over them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypedDict

from psycopg.types.json import Jsonb

from workbench.errors import NotFound
from workbench.storage.database import Row, Table, bind_json, clean_parameters, new_id, statement
from workbench.types import JsonObject, ParameterValue

# --- Test sets with their history: every edit makes a version, and every version stays readable ---


class TestSetTables(Table):
    """The tables ``datasets``, ``dataset_questions`` and ``judgments``."""

    def list(self) -> list[Row]:
        """Return all test sets with the number of their questions and judgments, oldest first."""
        return self._rows("dataset_list", {"key": None})

    def get(self, key: str) -> Row:
        """Return a test set by id or title. Raises NotFound."""
        missing = NotFound("test set", key, "List the test sets to see the valid ids and titles.")
        return self._get("dataset_list", {"key": key}, missing)

    def create(
        self,
        title: str,
        description: str,
        source_id: str | None,
        corpus_hash: str,
        scope: JsonObject | None = None,
        grades: int = 3,
    ) -> Row:
        """Create an empty test set.

        Args:
            source_id: Source of its own corpus; None if it covers the user's documents.
            corpus_hash: Hash of that corpus.
            scope: The part of the user's documents that it measures, as written by ``MeasuredScope.to_stored``.
            grades: Number of grades of its raters.

        Raises:
            Conflict: The title is taken.
        """
        test_set_id = new_id("dataset")
        values: Row = {"id": test_set_id, "title": title, "description": description}
        values |= {
            "source_id": source_id,
            "corpus_hash": corpus_hash,
            "scope": bind_json(scope or {}),
            "grades": grades,
        }
        self._rows("dataset_insert", values)
        return self.get(test_set_id)

    def update(self, test_set_id: str, title: str | None, description: str | None, grades: int | None = None) -> Row:
        """Change the title, description or number of grades of a test set; None leaves a field unchanged.

        Raises:
            Conflict: The title is taken.
        """
        values: Row = {"id": test_set_id, "title": title, "description": description, "grades": grades}
        self._rows("dataset_update", values)
        return self.get(test_set_id)

    def set_corpus(self, test_set_id: str, source_id: str | None, corpus_hash: str) -> None:
        """Give a test set another corpus; None means the user's documents. This makes a new version."""
        self._rows("dataset_corpus", {"id": test_set_id, "source_id": source_id, "corpus_hash": corpus_hash})

    def delete(self, test_set_id: str) -> None:
        self._rows("dataset_delete", {"id": test_set_id})

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

        A question replaces the one with the same id, a judgment replaces the one on the same span of the same document
        by the same rater. Dropping a question drops its judgments.
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
                everything = {"document": None, "start": None, "end": None, "rater": ""}
                cursor.executemany(statement("judgment_close"), [row | everything for row in dropped])
                cursor.executemany(statement("question_close"), dropped)
                cursor.executemany(statement("question_close"), [at | {"question_id": key} for key in added])
                cursor.executemany(statement("question_insert"), [_question(at, row) for row in added.values()])
                closing = [*judged.values(), *drop_judgments]
                cursor.executemany(statement("judgment_close"), [_judgment(at, row) for row in closing])
                cursor.executemany(statement("judgment_insert"), [_judgment(at, row) for row in judged.values()])
        return version

    def questions(self, test_set_id: str, version: int) -> list[Row]:
        return self._rows("question_list", {"dataset_id": test_set_id, "version": version})

    def judgments(self, test_set_id: str, version: int) -> list[Row]:
        """Return the judgments of one version by all raters, including LLMs."""
        return self._rows("judgment_list", {"dataset_id": test_set_id, "version": version})


def _place(row: Row) -> tuple[object, ...]:
    return row["question_id"], row["document"], row.get("start"), row.get("end"), row.get("rater", "")


def _question(at: JsonObject, row: Row) -> Row:
    values = {"reference_answer": "", "origin": "person", **at, **row}
    return clean_parameters(values) | {"metadata": bind_json(row.get("metadata") or {})}


def _judgment(at: JsonObject, row: Row) -> Row:
    given = {"grade": 0, "start": None, "end": None, "quote": "", "judge": "person", "rater": "", "reason": ""}
    values = clean_parameters({**given, **at, **row})
    return values | {"pages": list(row.get("pages") or ())}


def _bind_reply(answer: JsonObject) -> Jsonb | None:
    reply = answer.get("reply") or answer.get("verdict")
    return bind_json(reply) if isinstance(reply, Mapping) else None


# --- Runs and experiments: the strategies' answers, kept as long as nothing they depend on changes ---


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


class RunTables(Table):
    """The tables ``eval_runs`` and ``eval_answers``."""

    def begin(self, run: NewRun) -> Row:
        """Return the run with that key, creating it if there is none; ``status`` is "done" if it is finished."""
        values = {"id": new_id("run"), **run}
        values |= {name: Jsonb(run[name]) for name in ("parameters", "index_settings")}
        row = self._row("run_begin", values)
        assert row is not None
        return row

    def get(self, run_id: str) -> Row:
        """Return a run. Raises NotFound."""
        return self._get("run_get", {"id": run_id}, NotFound("run", run_id))

    def set_status(self, run_id: str, status: str, error: str | None = None) -> None:
        """Mark a run as running, done or failed."""
        self._rows("run_status", {"id": run_id, "status": status, "error": error})

    def delete(self, run_id: str) -> None:
        self._rows("run_delete", {"id": run_id})

    def forget_unused(self, run_ids: Sequence[str]) -> None:
        """Delete those of the runs that are unfinished and in no experiment."""
        self._rows("run_delete_unused", {"ids": list(run_ids)})

    def add_answers(self, run_id: str, answers: Sequence[JsonObject]) -> None:
        """Store answers in one transaction; existing ones are kept."""
        rows = [
            clean_parameters({**answer, "run_id": run_id})
            | {"passages": Jsonb(answer["passages"]), "within": Jsonb(answer.get("within", []))}
            | {"usage": Jsonb(answer.get("usage", {})), "reply": _bind_reply(answer)}
            for answer in answers
        ]
        with self._database.transaction() as connection, connection.cursor() as cursor:
            cursor.executemany(statement("answer_insert"), rows)

    def complete(self, run_id: str) -> None:
        """Mark a run as done if all its questions are answered, by whichever process."""
        self._rows("run_complete", {"id": run_id})

    def list_answered(self, run_id: str) -> set[str]:
        return set(self._column("answer_questions", {"run_id": run_id}))

    def mean_times(self, strategies: Sequence[str]) -> dict[tuple[str, ...], float]:
        """Return the mean ms of stored runs by strategy, embedding model, kind ("search", "answer" or "judge"), LLM and
        reranker."""
        rows = self._rows("run_times", {"strategies": list(strategies)})
        names = ("strategy", "embedding_model", "kind", "llm", "reranker")
        return {tuple(row[name] for name in names): row["mean"] for row in rows}

    def answers(self, run_id: str) -> list[Row]:
        """Return a run's answers so far."""
        return self._rows("answer_list", {"run_id": run_id})


class ExperimentTables(Table):
    def create(self, experiment: JsonObject) -> Row:
        """Create an experiment without runs; ``id`` is optional."""
        experiment_id = str(experiment.get("id") or new_id("experiment"))
        self._rows("experiment_insert", {**experiment, "id": experiment_id, "plan": Jsonb(experiment["plan"])})
        return self.get(experiment_id)

    def get(self, experiment_id: str) -> Row:
        """Return an experiment. Raises NotFound."""
        missing = NotFound("experiment", experiment_id, "List the experiments to see the valid ids.")
        return self._get("experiment_list", {"id": experiment_id, "dataset_id": None}, missing)

    def list(self, test_set_id: str | None = None) -> list[Row]:
        return self._rows("experiment_list", {"id": None, "dataset_id": test_set_id})

    def set_status(self, experiment_id: str, status: str, message: str = "") -> None:
        """Mark an experiment as running, done, stopped or failed."""
        self._rows("experiment_status", {"id": experiment_id, "status": status, "message": message})

    def change_plan(self, experiment_id: str, changes: JsonObject) -> None:
        """Replace parts of an experiment's plan, and forget its winner."""
        self._rows("experiment_plan", {"id": experiment_id, "changes": Jsonb(changes)})

    def winners(self) -> dict[str, JsonObject]:
        return {row["id"]: row["winner"] for row in self._rows("experiment_winners")}

    def keep_winner(self, experiment_id: str, winner: JsonObject) -> None:
        """Store the winner of a finished experiment; it is removed when the experiment runs again."""
        self._rows("experiment_keep_winner", {"id": experiment_id, "winner": Jsonb(winner)})

    def annotate(self, experiment_id: str, run: str | None, note: str | None, tags: Sequence[str] | None) -> None:
        """Set the note and tags of an experiment, or of the run with a label; None leaves them unchanged."""
        values = clean_parameters({"id": experiment_id, "run": run, "note": note})
        name = "experiment_annotate" if run is None else "experiment_annotate_run"
        self._rows(name, values | {"tags": None if tags is None else list(tags)})

    def save_view(self, experiment_id: str, view: JsonObject) -> None:
        self._rows("experiment_view", {"id": experiment_id, "view": bind_json(view)})

    def save_bars(self, experiment_id: str, bars: Sequence[Mapping[str, str]]) -> None:
        self._rows("experiment_bars", {"id": experiment_id, "bars": Jsonb(list(bars))})

    def delete(self, experiment_id: str) -> None:
        self._rows("experiment_delete", {"id": experiment_id})

    def add_run(self, experiment_id: str, position: int, run_id: str, label: str, extra: Mapping[str, object]) -> None:
        values = {"experiment_id": experiment_id, "position": position, "run_id": run_id, "label": label}
        self._rows("experiment_add_run", values | {"extra": Jsonb(dict(extra))})

    def usage(self, experiment_id: str) -> list[Row]:
        """Return what each stored ranking and answer of an experiment took."""
        return self._rows("experiment_usage", {"experiment_id": experiment_id})

    def runs(self, experiment_id: str) -> list[Row]:
        """Return an experiment's runs in the order of the matrix."""
        return self._rows("experiment_runs", {"experiment_id": experiment_id})
