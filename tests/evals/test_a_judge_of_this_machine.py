"""Every ragas metric with a language model, and grading, once with a real small local model."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from evals.judges.endpoint import Endpoint, Limits
from evals.judges.judging import grade_judgments
from evals.judges.ragas import extract_schema
from evals.judges.scores import JUDGED_METRICS, Sample, measure_samples
from evals.test_set import Judgment
from tests.conftest import cloned_database
from workbench import Settings, Workbench
from workbench.models.encoder import Encoder

PASSAGE = "Espresso needs nine bars of pressure."
QUESTION = "How much pressure does espresso need?"
SAMPLE = Sample("q1", QUESTION, (PASSAGE,), answer="It needs nine bars.", reference_answer="Nine bars.")


@pytest.fixture(scope="module")
def judging(server_url: str, template_database: str, test_home: Path, gguf: Path) -> Iterator[tuple[Endpoint, Encoder]]:
    """The judge of a workbench whose language model is a file, and its embedding model."""
    with cloned_database(server_url, template_database) as url:
        values = {"home": test_home, "database_url": url, "embedding_model": "hash", "llm_model": str(gguf)}
        settings = Settings(**values, _env_file=None)  # pyright: ignore
        with Workbench.open(settings=settings) as workbench:
            yield Endpoint.from_workbench(workbench, Limits(timeout=240.0, at_once=2)), workbench.corpus.encoder()


@pytest.mark.parametrize("metric", JUDGED_METRICS)
def test_every_metric_is_measured(judging: tuple[Endpoint, Encoder], metric: str) -> None:
    endpoint, encoder = judging
    figure = measure_samples([SAMPLE], [metric], encoder=encoder, endpoint=endpoint)[metric]
    assert figure.measured == 1, figure.summary()
    assert 0 <= (figure.mean or 0.0) <= 1
    assert endpoint.spent.calls > 0 and endpoint.spent.tokens > 100


def test_it_grades(judging: tuple[Endpoint, Encoder]) -> None:
    endpoint, _ = judging
    graded = grade_judgments(endpoint, [Judgment("q1", "d1", 2)], {"q1": QUESTION}, lambda _: PASSAGE)
    assert len(graded) == 1 and isinstance(graded[0], int)


def test_the_schema_of_a_prompt_of_ragas_is_read() -> None:
    schema = {"properties": {"verdicts": {"items": {"type": "string"}, "type": "array"}}, "type": "object"}
    prompt = f"Judge.\nas specified in JSON Schema:\n{json.dumps(schema)}Do not use single quotes."
    assert extract_schema(prompt) == schema
    assert extract_schema("Judge, and answer with {}.") is None
