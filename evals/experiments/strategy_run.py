"""The run of a strategy over every question: its answers are kept, to be measured, compared and looked at."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from evals.gateway import IndexedCorpus, search
from evals.measures.families import DEFAULT_METRICS, FAMILIES
from evals.measures.metrics import check_metrics, depth, means, measure
from evals.measures.page_metrics import page_hit, pages_between
from evals.measures.span_metrics import span_measures
from evals.measures.verdicts import Verdicts
from evals.test_set import Question, TestSet
from workbench.errors import Cancelled, InvalidInput
from workbench.retrieval.options import Ask
from workbench.retrieval.strategies import STRATEGIES, check_parameters
from workbench.types import OnProgress, ParameterValue, Passage, Progress, ShouldStop, Value
from workbench.workbench import Workbench

ASKED = 10  # passages of the search that is timed, as many as a person asks for
PAGE_FAMILIES = ("page-hit", "page-hit-within")  # of the first passages everywhere, and within the right document
SPANS_AT = 5  # passages that span metrics look at, as chunking_evaluation does
DEEPER = (50, 200)  # passages of the searches that bring the remaining documents; 200 is the most a search gives


@dataclass(frozen=True, slots=True)
class RankedPassage(Value):
    """One passage of a ranking, as much as a drill-down needs."""

    document: str
    passage_id: str
    start: int
    end: int
    score: float
    pages: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Ranking(Value):
    """The ranking of one strategy for one question: documents best first, the first passages, and the time in ms.

    ``within`` are the first passages of the document that holds the answer, searched alone, where pages were judged.
    """

    question_id: str
    documents: tuple[str, ...]
    passages: tuple[RankedPassage, ...]
    latency_ms: float
    degraded: tuple[str, ...] = ()
    within: tuple[RankedPassage, ...] = ()


@dataclass(frozen=True)
class StrategyRun:
    """One strategy with its parameters over all questions; ``values`` is metric -> question id -> value."""

    strategy: str
    parameters: Mapping[str, ParameterValue]
    answers: Mapping[str, Ranking]
    values: Mapping[str, Mapping[str, float]]
    extra: Verdicts = field(default_factory=lambda: Verdicts())

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
    """Several strategies on the same questions of one test set."""

    test_set: TestSet
    corpus: IndexedCorpus
    strategies: Mapping[str, StrategyRun]


def default_strategies() -> tuple[str, ...]:
    """Return the strategies that need neither a scope nor a model that is not configured."""
    return tuple(name for name, strategy in STRATEGIES.items() if not (strategy.needs_scope or strategy.needs))


def run(
    wb: Workbench,
    test_set: TestSet,
    corpus: IndexedCorpus,
    strategies: Sequence[str] | None = None,
    metrics: Sequence[str] = DEFAULT_METRICS,
    *,
    parameters: Mapping[str, Mapping[str, object]] | None = None,
    on_progress: OnProgress | None = None,
    should_stop: ShouldStop | None = None,
) -> EvalRun:
    """Run strategies over a test set's answerable questions, one after the other.

    Raises:
        InvalidInput: an unknown strategy, parameter or metric, or no question that something is relevant to.
        Cancelled: ``should_stop`` said so.
    """
    names = list(dict.fromkeys(strategies or default_strategies()))
    checked = {name: check_parameters(name, (parameters or {}).get(name)) for name in names}
    metrics = check_metrics(metrics)
    if not test_set.answerable:
        raise InvalidInput(f"No question of {test_set.name!r} has a relevant document; judge some first.")
    total, done = len(names) * len(test_set.answerable), 0
    runs = {}
    for name in names:
        answers = {}
        warm(wb, corpus, test_set.answerable[0], name, checked[name])
        for question in test_set.answerable:
            if should_stop is not None and should_stop():
                raise Cancelled("Stopped; the answers stored before stay.")
            answers[question.id] = ask(wb, corpus, question, name, checked[name], depth(metrics), test_set.pages)
            done += 1
            if on_progress is not None:
                on_progress(Progress(done, total, name))
        runs[name] = scored(test_set, name, checked[name], answers, metrics)
    return EvalRun(test_set, corpus, runs)


def scored(
    test_set: TestSet,
    strategy: str,
    parameters: Mapping[str, ParameterValue],
    answers: Mapping[str, Ranking],
    metrics: Sequence[str] = DEFAULT_METRICS,
) -> StrategyRun:
    """Measure a strategy's answers."""
    qrels = {question.id: test_set.qrels[question.id] for question in test_set.answerable}
    rankings = {key: answer.documents for key, answer in answers.items()}
    values = measure(qrels, rankings, metrics) | _span_values(test_set, answers) | _page_values(test_set, answers)
    return StrategyRun(strategy, parameters, answers, values)


def _span_values(test_set: TestSet, answers: Mapping[str, Ranking]) -> dict[str, dict[str, float]]:
    """Measure the first passages by characters, for the questions whose answers were judged as spans."""
    values: dict[str, dict[str, float]] = {}
    for question in test_set.answerable:
        key, spans = question.id, test_set.spans.get(question.id, ())
        if not spans:
            continue
        first = answers[key].passages[:SPANS_AT] if key in answers else ()
        relevant = [(span.document, span.start or 0, span.end or 0) for span in spans]
        for name, value in span_measures(relevant, [(hit.document, hit.start, hit.end) for hit in first]).items():
            values.setdefault(f"{name}@{SPANS_AT}", {})[key] = value
    return values


def _page_values(test_set: TestSet, answers: Mapping[str, Ranking]) -> dict[str, dict[str, float]]:
    """Measure the first passages by pages, for the questions whose answers were judged as pages."""
    values: dict[str, dict[str, float]] = {}
    for question_id, truth in test_set.pages.items():
        answer = answers.get(question_id)
        found = (answer and answer.passages, answer and answer.within)
        for family, hits in zip(PAGE_FAMILIES, found, strict=True):
            places = [[(hit.document, page) for page in hit.pages] for hit in hits or ()]
            for cutoff in FAMILIES[family].cutoffs:
                values.setdefault(f"{family}@{cutoff}", {})[question_id] = page_hit(places, truth, cutoff)
    return values


def warm(
    wb: Workbench, corpus: IndexedCorpus, question: Question, strategy: str, parameters: Mapping[str, ParameterValue]
) -> None:
    """Search once without timing it, so that the first load of a process is in no question's latency."""
    if not STRATEGIES[strategy].needs_llm:  # such a search costs money, and its latency is the LLM's
        search(wb, question.text, Ask(strategy, ASKED, corpus.scope, corpus.index.name, parameters))


def ask(
    wb: Workbench,
    corpus: IndexedCorpus,
    question: Question,
    strategy: str,
    parameters: Mapping[str, ParameterValue],
    documents: int,
    pages: Mapping[str, Sequence[tuple[str, int]]] | None = None,
) -> Ranking:
    """Ask one question and return at least ``documents`` documents where there are as many.

    ``pages`` (question id -> (document, page)) asks a second time within the documents that hold the answer.

    The first search is the one a person makes, and the one that is timed. Where its passages come from too few
    documents, deeper searches add theirs below, so that a person's first passages stay first.
    """
    first_ask = Ask(strategy, ASKED, corpus.scope, corpus.index.name, parameters)
    first = search(wb, question.text, first_ask)
    ranked = _documents(corpus, first)
    result = first
    for limit in DEEPER:
        if len(ranked) >= documents or result.under_filled:
            break
        if limit < min(documents, DEEPER[-1]):  # so many documents do not lie in so few passages
            continue
        result = search(wb, question.text, replace(first_ask, limit=limit))
        ranked = list(dict.fromkeys([*ranked, *_documents(corpus, result)]))
    within: tuple[RankedPassage, ...] = ()
    if pages and question.id in pages:
        right = corpus.document_ids(dict.fromkeys(document for document, _ in pages[question.id]))
        alone = replace(first_ask, scope=replace(corpus.scope, document_ids=right))
        within = _hits(corpus, search(wb, question.text, alone), paged=True)
    passages = _hits(corpus, first, paged=bool(pages))
    time = first.timings_ms["total"]
    return Ranking(question.id, tuple(ranked[:documents]), passages, time, first.degraded, within)


def _hits(corpus: IndexedCorpus, passages: Iterable[Passage], paged: bool) -> tuple[RankedPassage, ...]:
    return tuple(
        RankedPassage(
            corpus.key(passage.document_id),
            passage.passage_id,
            passage.start,
            passage.end,
            round(passage.score, 6),
            pages_between(corpus.pages(passage.document_id), passage.start, passage.end) if paged else (),
        )
        for passage in passages
    )


def _documents(corpus: IndexedCorpus, passages: Sequence[Passage]) -> list[str]:
    return list(dict.fromkeys(corpus.key(passage.document_id) for passage in passages))
