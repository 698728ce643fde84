"""Ask every question by every strategy and keep what came, so that it can be measured, compared and looked at."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from evals.corpus import IndexedCorpus
from evals.dataset import Dataset, Question
from evals.metrics import DEFAULT_METRICS, check_metrics, depth, means, measure
from evals.spans import span_measures
from workbench.errors import Cancelled, InvalidInput
from workbench.retrieval.strategies import STRATEGIES, check_parameters
from workbench.types import Passage, Progress, Value
from workbench.workbench import Workbench

OnProgress = Callable[[Progress], None]
ASKED = 10  # passages of the search that is timed: what a person asks for
SPANS_AT = 5  # passages that span metrics look at, as chunking_evaluation does
DEEPER = (50, 200)  # passages of the searches that bring the remaining documents; 200 is the most a search gives


@dataclass(frozen=True, slots=True)
class Hit(Value):
    """One passage of a ranking, as much as a drill-down needs."""

    document: str
    passage_id: str
    start: int
    end: int
    score: float


@dataclass(frozen=True, slots=True)
class Answer(Value):
    """What one strategy found for one question: documents best first, the first passages, and the time in ms."""

    question_id: str
    documents: tuple[str, ...]
    passages: tuple[Hit, ...]
    latency_ms: float
    degraded: tuple[str, ...] = ()


@dataclass(frozen=True)
class StrategyRun:
    """One strategy with its parameters over all questions; ``values`` is metric -> question id -> value."""

    strategy: str
    parameters: Mapping[str, Any]
    answers: Mapping[str, Answer]
    values: Mapping[str, Mapping[str, float]]
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def means(self) -> dict[str, float]:
        """Each metric's mean."""
        return means(self.values)

    @property
    def latency_ms(self) -> dict[str, float]:
        """The median and the 95th percentile of the searches' times."""
        times = [answer.latency_ms for answer in self.answers.values()] or [0.0]
        return {name: round(float(np.percentile(times, at)), 3) for name, at in (("p50", 50), ("p95", 95))}


@dataclass(frozen=True)
class EvalRun:
    """Several strategies on the same questions of one dataset."""

    dataset: Dataset
    corpus: IndexedCorpus
    strategies: Mapping[str, StrategyRun]


def default_strategies() -> tuple[str, ...]:
    """Return the strategies that need neither a scope nor a model that is not configured."""
    return tuple(name for name, strategy in STRATEGIES.items() if not (strategy.needs_scope or strategy.needs))


def run(
    wb: Workbench,
    dataset: Dataset,
    corpus: IndexedCorpus,
    strategies: Sequence[str] | None = None,
    metrics: Sequence[str] = DEFAULT_METRICS,
    *,
    parameters: Mapping[str, Mapping[str, Any]] | None = None,
    on_progress: OnProgress | None = None,
    should_stop: Callable[[], bool] | None = None,
) -> EvalRun:
    """Run strategies over a dataset's answerable questions, one after the other.

    Raises:
        InvalidInput: an unknown strategy, parameter or metric, or no question that something is relevant to.
        Cancelled: ``should_stop`` said so.
    """
    names = list(dict.fromkeys(strategies or default_strategies()))
    checked = {name: check_parameters(name, (parameters or {}).get(name)) for name in names}
    metrics = check_metrics(metrics)
    if not dataset.answerable:
        raise InvalidInput(f"No question of {dataset.name!r} has a relevant document; judge some first.")
    total, done = len(names) * len(dataset.answerable), 0
    runs = {}
    for name in names:
        answers = {}
        warm(wb, corpus, dataset.answerable[0], name, checked[name])
        for question in dataset.answerable:
            if should_stop is not None and should_stop():
                raise Cancelled("Stopped; what was stored before stays.")
            answers[question.id] = ask(wb, corpus, question, name, checked[name], depth(metrics))
            done += 1
            if on_progress is not None:
                on_progress(Progress(done, total, name))
        runs[name] = scored(dataset, name, checked[name], answers, metrics)
    return EvalRun(dataset, corpus, runs)


def scored(
    dataset: Dataset,
    strategy: str,
    parameters: Mapping[str, Any],
    answers: Mapping[str, Answer],
    metrics: Sequence[str] = DEFAULT_METRICS,
) -> StrategyRun:
    """Measure what a strategy answered."""
    qrels = {question.id: dataset.qrels[question.id] for question in dataset.answerable}
    rankings = {key: answer.documents for key, answer in answers.items()}
    values = measure(qrels, rankings, metrics) | _span_values(dataset, answers)
    return StrategyRun(strategy, parameters, answers, values)


def _span_values(dataset: Dataset, answers: Mapping[str, Answer]) -> dict[str, dict[str, float]]:
    """Measure the first passages by characters, for the questions whose answers were judged as spans."""
    values: dict[str, dict[str, float]] = {}
    for question in dataset.answerable:
        key, spans = question.id, dataset.spans.get(question.id, ())
        if not spans:
            continue
        first = answers[key].passages[:SPANS_AT] if key in answers else ()
        relevant = [(span.document, span.start or 0, span.end or 0) for span in spans]
        for name, value in span_measures(relevant, [(hit.document, hit.start, hit.end) for hit in first]).items():
            values.setdefault(f"{name}@{SPANS_AT}", {})[key] = value
    return values


def warm(
    wb: Workbench, corpus: IndexedCorpus, question: Question, strategy: str, parameters: Mapping[str, Any]
) -> None:
    """Search once without timing it, so that what a process loads at first is in no question's latency."""
    if not STRATEGIES[strategy].needs_llm:  # such a search costs money, and its latency is the LLM's
        wb.search_service.search(
            question.text, limit=ASKED, strategy=strategy, index=corpus.index.name, parameters=parameters
        )


def ask(
    wb: Workbench,
    corpus: IndexedCorpus,
    question: Question,
    strategy: str,
    parameters: Mapping[str, Any],
    documents: int,
) -> Answer:
    """Ask one question and return at least ``documents`` documents where there are as many.

    The first search is the one a person makes, and the one that is timed. Where its passages come from too few
    documents, deeper searches add theirs below, so that what a person sees first stays first.
    """
    options = {"strategy": strategy, "index": corpus.index.name, "parameters": parameters}
    first = wb.search_service.search(question.text, limit=ASKED, **options)
    found = _documents(corpus, first)
    result = first
    for limit in DEEPER:
        if len(found) >= documents or result.under_filled:
            break
        if limit < min(documents, DEEPER[-1]):  # so many documents do not lie in so few passages
            continue
        result = wb.search_service.search(question.text, limit=limit, **options)
        found = list(dict.fromkeys([*found, *_documents(corpus, result)]))
    passages = tuple(
        Hit(corpus.key(hit.document_id), hit.passage_id, hit.start, hit.end, round(hit.score, 6)) for hit in first
    )
    return Answer(question.id, tuple(found[:documents]), passages, first.timings_ms["total"], first.degraded)


def _documents(corpus: IndexedCorpus, passages: Sequence[Passage]) -> list[str]:
    return list(dict.fromkeys(corpus.key(passage.document_id) for passage in passages))
