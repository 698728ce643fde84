"""The metrics of ragas: context metrics without an LLM, and metrics with an LLM as judge.

They follow the definitions of ragas (Es and others, 2023) with prompts of our own that need fewer calls; ragas itself
can compute them too. An unmeasurable value is None with a reason, and is counted; means are over the others and come
with their number.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean

import numpy as np
from pydantic import BaseModel
from rapidfuzz.distance import Levenshtein

from evals.judges.endpoint import Endpoint, run_judging
from evals.measures.metrics import RagasSummary, StoredVerdict
from workbench.errors import SETUP_HINT, InvalidInput, ModelError, list_choices
from workbench.models.encoder import Encoder
from workbench.types import OnProgress, Progress, ShouldStop, Value

FREE_METRICS = ("id_context_precision", "id_context_recall", "text_context_precision", "text_context_recall")
JUDGED_METRICS = ("faithfulness", "answer_relevancy", "context_precision", "context_recall", "factual_correctness")
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

    outcomes: Mapping[str, float | str] = field(default_factory=dict)  # each question's value, or why it has none

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


# Metrics without an LLM

MIN_SIMILARITY = 0.5  # of two texts that count as the same, by edit distance, as in ragas


async def _id_context_precision(sample: Sample) -> float:
    found = set(sample.documents)
    return len(found & set(sample.reference_documents)) / len(found)


async def _id_context_recall(sample: Sample) -> float:
    relevant = set(sample.reference_documents)
    return len(relevant & set(sample.documents)) / len(relevant)


async def _text_context_precision(sample: Sample) -> float:
    alike = [max(_compare(text, other) for other in sample.reference_passages) for text in sample.passages]
    return average_precision([likeness >= MIN_SIMILARITY for likeness in alike])


async def _text_context_recall(sample: Sample) -> float:
    alike = [max(_compare(text, other) for other in sample.passages) for text in sample.reference_passages]
    return fmean(likeness > MIN_SIMILARITY for likeness in alike)


def _compare(first: str, second: str) -> float:
    return Levenshtein.normalized_similarity(first, second)


def average_precision(verdicts: Sequence[bool]) -> float:
    """Return the mean of precision@k over the ranks k of relevant passages; 0 if none is relevant."""
    precisions = [sum(verdicts[:k]) / k for k, relevant in enumerate(verdicts, start=1) if relevant]
    return fmean(precisions) if precisions else 0.0


# Metrics with an LLM

_STATEMENTS_PROMPT = """Split the text into statements, each a single fact that is clear without the rest of the text: \
use names instead of pronouns. Then decide for each statement whether the evidence supports it. It does if the \
statement follows from the evidence alone, without other knowledge.

Question: {question}

Text: {text}

Evidence:
{evidence}

Answer with JSON only: {{"statements": [{{"statement": "a fact of the text", "supported": true or false}}]}}"""
_QUESTIONS_PROMPT = """Write three different questions that the text answers. A text is evasive if it does not answer \
anything, as in "I do not know".

Text: {text}

Answer with JSON only: {{"questions": ["", "", ""], "evasive": true or false}}"""
_USEFUL_PROMPT = """Does the passage help to arrive at the answer to the question?

Question: {question}

Answer to the question: {answer}

Passage: {passage}

Answer with JSON only: {{"useful": true or false}}"""


class _Statement(BaseModel):
    statement: str
    supported: bool


class _Statements(BaseModel):
    statements: list[_Statement]


class _Questions(BaseModel):
    questions: list[str]
    evasive: bool


class _Useful(BaseModel):
    useful: bool


@dataclass(frozen=True)
class Judge:
    """An LLM with our prompts: five calls, and one for each passage, measure all metrics of a question."""

    endpoint: Endpoint
    encoder: Encoder | None

    async def faithfulness(self, sample: Sample) -> float:
        """Return the share of the answer's statements that the passages support."""
        return _mean(await self._check(sample.answer, "\n\n".join(sample.passages), sample.question))

    async def answer_relevancy(self, sample: Sample) -> float:
        """Return the mean cosine of the question and of questions that the answer answers; 0 if it is evasive."""
        assert self.encoder is not None
        reply = await self.endpoint.ask(_QUESTIONS_PROMPT.format(text=sample.answer), _Questions)
        written = [question for question in reply.questions if question.strip()]
        if reply.evasive or not written:
            return 0.0 if reply.evasive else math.nan
        asked = self.encoder.encode_query(sample.question).vector
        others = self.encoder.encode(written).vectors
        norms = np.linalg.norm(others, axis=1) * np.linalg.norm(asked)
        return float(np.mean(others @ asked / np.where(norms == 0, 1, norms)))

    async def context_precision(self, sample: Sample) -> float:
        """Return the average precision of the passages that help to arrive at the reference answer."""

        async def is_useful(passage: str) -> bool:
            prompt = _USEFUL_PROMPT.format(question=sample.question, answer=sample.reference_answer, passage=passage)
            return (await self.endpoint.ask(prompt, _Useful)).useful

        return average_precision(await asyncio.gather(*map(is_useful, sample.passages)))

    async def context_recall(self, sample: Sample) -> float:
        """Return the share of the reference answer's statements that the passages support."""
        return _mean(await self._check(sample.reference_answer, "\n\n".join(sample.passages), sample.question))

    async def factual_correctness(self, sample: Sample) -> float:
        """Return F1 of the answer's statements that the reference answer supports, and the reverse."""
        given, expected = await asyncio.gather(
            self._check(sample.answer, sample.reference_answer, sample.question),
            self._check(sample.reference_answer, sample.answer, sample.question),
        )
        right, wrong, missed = sum(given), len(given) - sum(given), len(expected) - sum(expected)
        return 2 * right / (2 * right + wrong + missed) if given or missed else math.nan

    async def _check(self, text: str, evidence: str, question: str) -> list[bool]:
        """Return for each statement of a text whether the evidence supports it."""
        prompt = _STATEMENTS_PROMPT.format(question=question, text=text, evidence=evidence)
        return [one.supported for one in (await self.endpoint.ask(prompt, _Statements)).statements]


def _mean(verdicts: Sequence[bool]) -> float:
    return fmean(verdicts) if verdicts else math.nan


# Measuring

Scorer = Callable[[Sample], Awaitable[float]]  # raises ModelError
ScorerFactory = Callable[[str, Endpoint, Encoder | None], Scorer]


def make_scorer(name: str, endpoint: Endpoint, encoder: Encoder | None) -> Scorer:
    """Return the function that measures a sample with an LLM and our prompts."""
    return getattr(Judge(endpoint, encoder), name)


def measure_samples(
    samples: Sequence[Sample],
    metrics: Sequence[str] = FREE_METRICS,
    *,
    judge: ScorerFactory = make_scorer,
    encoder: Encoder | None = None,
    endpoint: Endpoint | None = None,
    on_progress: OnProgress | None = None,
    should_stop: ShouldStop | None = None,
) -> dict[str, JudgedMetric]:
    """Score samples; failures of the LLM do not end it.

    Args:
        judge: Makes the measuring function of each metric with an LLM: ``make_scorer`` of this module or of
            ``evals.judges.ragas``, which needs the extra ``ragas``.

    Raises:
        Cancelled: ``should_stop`` returned True.
        InvalidInput: An unknown metric, or one that needs an LLM or an encoder without one.
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
    return run_judging(lambda: _judge_all(samples, metrics, judge, encoder, endpoint, on_progress), should_stop)


async def _judge_all(
    samples: Sequence[Sample],
    metrics: Sequence[str],
    judge: ScorerFactory,
    encoder: Encoder | None,
    endpoint: Endpoint | None,
    on_progress: OnProgress | None,
) -> dict[str, JudgedMetric]:
    by_metric: dict[str, JudgedMetric] = {}
    for number, name in enumerate(metrics):
        if on_progress is not None:
            on_progress(Progress(number, len(metrics), name))
        values: list[float | str] = []
        if name in FREE_METRICS:
            for sample in samples:
                await asyncio.sleep(0)  # comparing texts is slow, so check for a stop
                values.append(await _score(_FREE_SCORERS[name], name, sample))
        else:
            assert endpoint is not None
            async with endpoint:
                scorer = judge(name, endpoint, encoder)
                values = await asyncio.gather(*(_score(scorer, name, sample) for sample in samples))
        outcomes = zip((sample.question_id for sample in samples), values, strict=True)
        by_metric[name] = _make_metric(name, dict(outcomes))
    return by_metric


_FREE_SCORERS = {
    "id_context_precision": _id_context_precision,
    "id_context_recall": _id_context_recall,
    "text_context_precision": _text_context_precision,
    "text_context_recall": _text_context_recall,
}


async def _score(scorer: Scorer, name: str, sample: Sample) -> float | str:
    """Return a value, or the reason for a missing one."""
    missing = _describe_missing(name, sample)
    if missing:
        return missing
    if name in _RETRIEVED_FIELDS and not getattr(sample, _RETRIEVED_FIELDS[name]):
        return 0.0  # finding nothing scores 0; ragas returns 0 or NaN or fails, depending on the metric
    try:
        value = float(await scorer(sample))
    except ModelError as error:
        return str(error)
    return UNDEFINED_SCORE_REASON if math.isnan(value) else min(1.0, max(0.0, value))


def _make_metric(name: str, outcomes: Mapping[str, float | str]) -> JudgedMetric:
    values = {key: None if isinstance(result, str) else result for key, result in outcomes.items()}
    return JudgedMetric(name, values, dict(Counter(one for one in outcomes.values() if isinstance(one, str))), outcomes)


def summarise_scores(rows: Sequence[StoredVerdict]) -> dict[str, RagasSummary]:
    """Return the summary of each metric of a judge's stored verdicts."""
    names = dict.fromkeys(name for row in rows for name in row["scores"])
    return {
        name: _make_metric(name, {row["question_id"]: row["scores"][name] for row in rows}).summary() for name in names
    }


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
