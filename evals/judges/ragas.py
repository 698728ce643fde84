"""ragas: context metrics without an LLM, and metrics with a judge.

An unmeasurable value is None with a reason, and is counted; means are over the others and come with their number.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import threading
import warnings
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from statistics import fmean
from typing import Protocol, TypeVar

from evals.judges.endpoint import Endpoint
from evals.measures.metrics import RagasSummary
from workbench.errors import Cancelled, InvalidInput, ModelError, list_choices
from workbench.models.encoder import Encoder
from workbench.models.llm import SETUP_HINT
from workbench.types import JsonObject, JsonValue, OnProgress, Progress, ShouldStop, Value

# Import of ragas and its LLM

SCHEMA_MARKER = "specified in JSON Schema:"  # the end of ragas' sentence before the schema
MAX_TEXT_CHARS, MAX_LIST_ITEMS = 240, 8  # maximum length of texts and lists written by grammar


@dataclass(frozen=True, slots=True)
class Ragas:
    """The parts of ragas that are used in addition to its metrics."""

    SingleTurnSample: Callable[..., object]
    RagasOutputParserException: type[Exception]


class Scorer(Protocol):
    """One of ragas' metrics."""

    async def single_turn_ascore(self, sample: object) -> float:
        """Return the metric of one question, 0..1 or NaN; errors from ragas pass through."""
        ...


@cache
def ragas() -> Ragas:
    """Import ragas once, without its warnings and usage reports."""
    os.environ["RAGAS_DO_NOT_TRACK"] = "true"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from ragas import SingleTurnSample
        from ragas.exceptions import RagasOutputParserException
    return Ragas(SingleTurnSample, RagasOutputParserException)


def extract_schema(prompt: str) -> JsonObject | None:
    """Return the JSON schema in a prompt of ragas; None if there is none."""
    _, announced, rest = prompt.partition(SCHEMA_MARKER)
    start = rest.find("{")
    if not announced or start < 0:
        return None
    try:
        return _bound_schema(json.JSONDecoder().raw_decode(rest[start:])[0])
    except ValueError:
        return None


def _bound_schema(schema: JsonObject) -> JsonObject:
    """Return a schema with bounded texts and lists: a small model might never stop writing."""
    bounds: dict[JsonValue, JsonObject] = {
        "string": {"maxLength": MAX_TEXT_CHARS},
        "array": {"maxItems": MAX_LIST_ITEMS},
    }
    inner = {key: _bound_value(value) for key, value in schema.items()}
    kind = schema.get("type")
    return {**bounds.get(kind, {}), **inner} if isinstance(kind, str) else inner


def _bound_value(value: JsonValue) -> JsonValue:
    if isinstance(value, dict):
        return _bound_schema(value)
    return [_bound_value(part) for part in value] if isinstance(value, list) else value


def judge_llm(endpoint: Endpoint) -> object:
    """Return the endpoint as ragas' LLM; ragas does not retry, because the endpoint does."""
    ragas()
    from langchain_core.outputs import Generation, LLMResult
    from langchain_core.prompt_values import PromptValue
    from ragas.llms import BaseRagasLLM
    from ragas.run_config import RunConfig

    class JudgeLlm(BaseRagasLLM):
        """The endpoint as a ragas LLM."""

        def generate_text(self, prompt: PromptValue, n: int = 1, *args: object, **more: object) -> LLMResult:
            raise NotImplementedError("ragas' metrics ask asynchronously")

        async def agenerate_text(
            self,
            prompt: PromptValue,
            n: int = 1,
            temperature: float | None = 0.0,
            stop: list[str] | None = None,
            callbacks: object = None,
        ) -> LLMResult:
            warmth, text = 0.0 if n == 1 else 0.3, prompt.to_string()
            schema = extract_schema(text)
            texts = await asyncio.gather(*(endpoint.complete(text, warmth, schema) for _ in range(n)))
            return LLMResult(generations=[[Generation(text=text) for text in texts]])

        def is_finished(self, response: LLMResult) -> bool:
            return True

    return JudgeLlm(run_config=RunConfig(max_retries=1, timeout=int(endpoint.limits.seconds)))


# Cancellable judging

POLL_INTERVAL_S = 0.2  # seconds between checks of a stop
CLOSE_TIMEOUT_S = 1.0  # seconds for calls in flight to close their connections

Result = TypeVar("Result")


def run_judging(work: Callable[[], Coroutine[object, object, Result]], should_stop: ShouldStop | None = None) -> Result:
    """Run a coroutine in its own event loop, even if the caller (a notebook) has one, and return its result.

    Raises:
        Cancelled: ``should_stop`` returned True; calls in flight are abandoned.
    """
    load_ragas(should_stop)
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, _watch(work, should_stop)).result()


def load_ragas(should_stop: ShouldStop | None = None) -> None:
    """Import ragas, which takes seconds, in a thread, so that a stop need not wait. Raises Cancelled."""
    loading = threading.Thread(target=ragas, name="ragas", daemon=True)
    loading.start()
    while loading.is_alive():
        loading.join(POLL_INTERVAL_S)
        check_stop(should_stop)
    ragas()  # raises if the import failed in the thread


def check_stop(should_stop: ShouldStop | None) -> None:
    """Raise Cancelled if a stop was requested."""
    if should_stop is not None and should_stop():
        raise Cancelled("Stopped; the judgments so far are kept.")


async def _watch(work: Callable[[], Coroutine[object, object, Result]], should_stop: ShouldStop | None) -> Result:
    task = asyncio.ensure_future(work())
    try:
        while not task.done():
            await asyncio.wait({task}, timeout=POLL_INTERVAL_S)
            if not task.done():
                check_stop(should_stop)
    except Cancelled:
        task.cancel()
        await asyncio.wait({task}, timeout=CLOSE_TIMEOUT_S)
        raise
    return task.result()


FREE_METRICS = ("id_context_precision", "id_context_recall", "text_context_precision", "text_context_recall")
JUDGED_METRICS = ("faithfulness", "answer_relevancy", "context_precision", "context_recall", "factual_correctness")
INVALID_ANSWER_REASON = "The judge's answers did not have the requested form."
UNDEFINED_SCORE_REASON = "The score is not defined for this question (NaN)."


@dataclass(frozen=True, slots=True)
class Sample:
    """One question as a sample for ragas.

    With nothing retrieved, precision and recall are 0; metrics that need another empty field are unmeasurable.
    """

    question_id: str
    question: str
    passages: tuple[str, ...] = ()
    documents: tuple[str, ...] = ()
    reference_passages: tuple[str, ...] = ()
    reference_documents: tuple[str, ...] = ()
    answer: str = ""
    reference_answer: str = ""
    no_answer: str = ""  # reason for a missing answer


@dataclass(frozen=True, slots=True)
class JudgedMetric(Value):
    """One metric over all samples; ``values`` has None if unmeasurable; ``reasons`` has the reasons with counts."""

    metric: str
    values: Mapping[str, float | None]
    reasons: Mapping[str, int] = field(default_factory=dict)

    @property
    def measured(self) -> int:
        """Number of questions with a value."""
        return sum(value is not None for value in self.values.values())

    @property
    def mean(self) -> float | None:
        """The mean of the measured values; None if there are none."""
        values = [value for value in self.values.values() if value is not None]
        return round(fmean(values), 6) if values else None

    def summary(self) -> RagasSummary:
        """Return the mean, the numbers of measured and unmeasured questions, and the reasons."""
        failed = len(self.values) - self.measured
        return {"mean": self.mean, "measured": self.measured, "not_measured": failed, "reasons": dict(self.reasons)}


def measure_samples(
    samples: Sequence[Sample],
    metrics: Sequence[str] = FREE_METRICS,
    *,
    encoder: Encoder | None = None,
    endpoint: Endpoint | None = None,
    on_progress: OnProgress | None = None,
    should_stop: ShouldStop | None = None,
) -> dict[str, JudgedMetric]:
    """Score samples with ragas; failures of the judge do not end it.

    Raises:
        Cancelled: ``should_stop`` returned True.
        InvalidInput: An unknown metric, or one that needs a judge or an encoder without one.
    """
    unknown = [name for name in metrics if name not in (*FREE_METRICS, *JUDGED_METRICS)]
    if unknown:
        raise InvalidInput(
            f"Unknown ragas metric {unknown[0]!r}; use {list_choices((*FREE_METRICS, *JUDGED_METRICS))}."
        )
    if endpoint is None and set(metrics) & set(JUDGED_METRICS):
        raise InvalidInput(f"These metrics need an LLM; {SETUP_HINT}.")
    if encoder is None and "answer_relevancy" in metrics:
        raise InvalidInput("answer_relevancy needs an embedding model; pass the encoder.")
    return run_judging(lambda: _judge_all(samples, metrics, encoder, endpoint, on_progress), should_stop)


async def _judge_all(
    samples: Sequence[Sample],
    metrics: Sequence[str],
    encoder: Encoder | None,
    endpoint: Endpoint | None,
    on_progress: OnProgress | None,
) -> dict[str, JudgedMetric]:
    by_metric: dict[str, JudgedMetric] = {}
    for number, name in enumerate(metrics):
        if on_progress is not None:
            on_progress(Progress(number, len(metrics), name))
        if name in FREE_METRICS:
            scorer = _make_scorer(name, None, None)
            values: list[float | str] = []
            for sample in samples:
                await asyncio.sleep(0)  # comparing texts is slow, so check for a stop
                values.append(await _score(scorer, name, sample))
            by_metric[name] = _collect(name, samples, values)
            continue
        assert endpoint is not None
        async with endpoint:
            scorer = _make_scorer(name, judge_llm(endpoint), encoder)
            results = await asyncio.gather(*(_score(scorer, name, sample) for sample in samples))
        by_metric[name] = _collect(name, samples, results)
    return by_metric


async def _score(scorer: Scorer, name: str, sample: Sample) -> float | str:
    """Return a value, or the reason for a missing one."""
    missing = _describe_missing(name, sample)
    if missing:
        return missing
    if name in _RETRIEVED_FIELDS and not getattr(sample, _RETRIEVED_FIELDS[name]):
        return 0.0  # finding nothing scores 0; ragas returns 0 or NaN or fails, depending on the metric
    try:
        value = float(await scorer.single_turn_ascore(_to_ragas_sample(sample)))
    except ModelError as error:
        return str(error)
    except (ragas().RagasOutputParserException, ValueError, TypeError, KeyError, IndexError, AttributeError):
        return INVALID_ANSWER_REASON  # the exception depends on the invalid answer
    return UNDEFINED_SCORE_REASON if math.isnan(value) else min(1.0, max(0.0, value))


def _collect(name: str, samples: Sequence[Sample], results: Sequence[float | str]) -> JudgedMetric:
    values = {
        sample.question_id: None if isinstance(result, str) else result
        for sample, result in zip(samples, results, strict=True)
    }
    return JudgedMetric(name, values, dict(Counter(result for result in results if isinstance(result, str))))


_REQUIRED_FIELDS: dict[str, tuple[str, ...]] = {
    "id_context_precision": ("reference_documents",),
    "id_context_recall": ("reference_documents",),
    "text_context_precision": ("reference_passages",),
    "text_context_recall": ("reference_passages",),
    "faithfulness": ("answer", "passages"),
    "answer_relevancy": ("answer",),
    "context_precision": ("reference_answer",),
    "context_recall": ("reference_answer",),
    "factual_correctness": ("answer", "reference_answer"),
}
_RETRIEVED_FIELDS = {  # the field read by a context metric; if it is empty the metric is 0, not unmeasured
    "id_context_precision": "documents",
    "id_context_recall": "documents",
    "text_context_precision": "passages",
    "text_context_recall": "passages",
    "context_precision": "passages",
    "context_recall": "passages",
}
_FIELD_TITLES = {
    "passages": "retrieved passage",
    "reference_documents": "relevant document",
    "reference_passages": "relevant passage",
    "answer": "answer",
    "reference_answer": "reference answer",
}


def _describe_missing(name: str, sample: Sample) -> str:
    lacking = [_FIELD_TITLES[part] for part in _REQUIRED_FIELDS[name] if not getattr(sample, part)]
    if lacking and lacking[0] == _FIELD_TITLES["answer"] and sample.no_answer:
        return f"There is no answer: {sample.no_answer}"
    return f"There is no {lacking[0]}." if lacking else ""


def _to_ragas_sample(sample: Sample) -> object:
    return ragas().SingleTurnSample(
        user_input=sample.question,
        retrieved_contexts=list(sample.passages),
        reference_contexts=list(sample.reference_passages),
        retrieved_context_ids=list(sample.documents),
        reference_context_ids=list(sample.reference_documents),
        response=sample.answer,
        reference=sample.reference_answer,
    )


_METRIC_CLASSES = {
    "id_context_precision": "IDBasedContextPrecision",
    "id_context_recall": "IDBasedContextRecall",
    "text_context_precision": "NonLLMContextPrecisionWithReference",
    "text_context_recall": "NonLLMContextRecall",
    "faithfulness": "Faithfulness",
    "answer_relevancy": "ResponseRelevancy",
    "context_precision": "LLMContextPrecisionWithReference",
    "context_recall": "LLMContextRecall",
    "factual_correctness": "FactualCorrectness",
}


def _make_scorer(name: str, llm: object, encoder: Encoder | None) -> Scorer:
    ragas()
    needs: dict[str, object] = {} if name in FREE_METRICS else {"llm": llm}
    if name == "answer_relevancy":
        needs["embeddings"] = _Embeddings(encoder)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # ragas deprecates its own classes in favour of ones that need OpenAI's client
        from ragas import metrics

        return getattr(metrics, _METRIC_CLASSES[name])(**needs)


class _Embeddings:
    """The encoder as ragas needs it."""

    def __init__(self, encoder: Encoder | None) -> None:
        self._encoder = encoder

    def embed_query(self, text: str) -> list[float]:
        assert self._encoder is not None
        return self._encoder.encode_query(text).vector.tolist()

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        assert self._encoder is not None
        return self._encoder.encode(texts).vectors.tolist()
