"""Small test sets in BEIR format."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from evals.experiments.catalogue import Experiment, Experiments
from evals.judges.endpoint import Endpoint, Limits
from evals.judges.judging import FREE, resume_experiment
from workbench import Workbench

TEXTS = {
    "cats": ("Cats", "Cats purr when they are content. A cat sleeps most of the day."),
    "dogs": ("Dogs", "Dogs bark at strangers. A dog guards the house."),
    "fish": ("Fish", "Fish swim in schools and breathe through gills."),
    "bees": ("Bees", "Bees gather nectar and make honey in hives."),
    "owls": ("Owls", "Owls hunt at night and turn their heads far around."),
}
ASKED = {
    "q1": ("Why do cats purr?", {"cats": 2}),
    "q2": ("Who guards the house?", {"dogs": 2, "cats": 0}),
    "q3": ("How do fish breathe?", {"fish": 1}),
    "q4": ("What makes honey?", {"bees": 1}),
    "q5": ("Which animals hunt at night?", {"owls": 2, "cats": 1}),
}

WriteTestSet = Callable[..., Path]


@pytest.fixture
def beir(folder: Callable[..., Path]) -> WriteTestSet:
    """Write a test set: ``beir()``, or with other texts, questions and file names."""

    def write(
        texts: Mapping[str, tuple[str, str]] = TEXTS,
        asked: Mapping[str, tuple[str, Mapping[str, int]]] = ASKED,
        name: str = "animals",
        qrels: str = "qrels.tsv",
        header: str = "",
    ) -> Path:
        corpus = [{"_id": key, "title": title, "text": text} for key, (title, text) in texts.items()]
        queries = [{"id": key, "text": text, "reference_answer": ""} for key, (text, _) in asked.items()]
        rows = [f"{key}\t{doc}\t{grade}" for key, (_, grades) in asked.items() for doc, grade in grades.items()]
        files = {"corpus.jsonl": lines(corpus), "queries.jsonl": lines(queries)}
        return folder(files | {qrels: "\n".join([header, *rows] if header else rows)}, name)

    return write


def lines(rows: list[dict[str, Any]]) -> str:
    """Write rows as JSON lines."""
    return "\n".join(json.dumps(row) for row in rows)


StartJudge = Callable[..., Endpoint]


@pytest.fixture
def start_judge() -> Iterator[StartJudge]:
    """Start a judge's server in a separate process: ``start_judge("nonsense", calls=5)``."""
    started: list[subprocess.Popen[str]] = []

    def start(mode: str, **limits: float) -> Endpoint:
        module = [sys.executable, "-m", "tests.evals.judge_server", mode]
        process = subprocess.Popen(module, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2])
        started.append(process)
        assert process.stdout is not None
        port = int(process.stdout.readline())
        return Endpoint(f"http://127.0.0.1:{port}/v1", "small", limits=Limits(**limits))  # pyright: ignore

    yield start
    for process in started:
        process.kill()
        process.communicate()


def judge_experiment(
    wb: Workbench, made: Experiment, endpoint: Endpoint | None = None, judge: str = "built-in"
) -> None:
    """Run the rest of an experiment, and score the texts of every run; without an endpoint without an LLM."""
    Experiments(wb).prepare(made.id, judge=FREE if endpoint is None else judge)
    resume_experiment(wb, made.id, endpoint=endpoint)
