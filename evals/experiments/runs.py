"""Runs of strategies over all questions, stored so that they can be measured, compared and inspected."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from contextvars import copy_context
from dataclasses import astuple, dataclass, field, replace
from datetime import datetime
from functools import cache, cached_property, partial
from itertools import product
from pathlib import Path
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any, TypeVar, cast
from urllib.parse import parse_qsl

import numpy as np

import workbench
from evals.gateway import (
    ExperimentTables,
    IndexedCorpus,
    NewRun,
    Row,
    RunTables,
    index_corpus,
    list_documents,
    measure_passage_bytes,
    resolve_scope,
)
from evals.measures.metrics import (
    DEFAULT_METRICS,
    FAMILIES,
    PROVIDER_NAMES,
    Qrels,
    Verdicts,
    check_metrics,
    find_pages,
    max_ranking_depth,
    mean_values,
    measure_bounds,
    measure_page_hit,
    measure_rankings,
    measure_spans,
    measure_unjudged,
)
from evals.test_set import OWN_CORPUS_TEXT, MeasuredScope, Question, TestSet, fold_text, read_number, read_plain_or_gzip
from workbench.errors import Cancelled, Conflict, InvalidInput, ModelError, WorkbenchError, list_choices
from workbench.formatting import count_text, format_dollars
from workbench.models.llm import count_llm_usage
from workbench.models.model_names import BYTES_PER_TOKEN, find_price, parse_llm_price
from workbench.retrieval.options import Ask
from workbench.retrieval.parameters import ASK_LLM, HISTORY, LLM_NAME, RERANKER
from workbench.retrieval.strategies import (
    STRATEGIES,
    asks_llm,
    check_parameters,
    describe_unregistered,
    split_strategy,
)
from workbench.types import (
    TOTAL,
    VECTOR,
    Index,
    JsonObject,
    JsonValue,
    OnProgress,
    ParameterValue,
    Passage,
    Progress,
    ShouldStop,
    Value,
)
from workbench.workbench import Workbench

if TYPE_CHECKING:
    from workbench.settings import Settings

T = TypeVar("T")

# Hashes of the ranking code

# Everything that affects a ranking: legs, fusion, stages, models and SQL.
RANKING_FILES = (
    "retrieval/**/*.py",
    "retrieval/*.json",
    "models/**/*.py",
    "services/search.py",
    *(
        f"storage/{name}.py"
        for name in ("attached", "documents", "graph", "llamaindex", "passages", "postings", "ranking", "store")
    ),
    *(f"storage/sql/{name}.sql" for name in ("search", "spelling", "surroundings")),
)


@cache
def hash_code() -> str:
    """Return the hash of the ranking code, since another version may rank differently."""
    root = Path(workbench.__file__).parent
    digest = hashlib.sha256()
    for path in list_ranking_files():
        digest.update(f"{path.relative_to(root).as_posix()}\n".encode() + path.read_bytes())
    return digest.hexdigest()


def list_ranking_files() -> list[Path]:
    """Return the files that make stored runs stale if they change."""
    root = Path(workbench.__file__).parent
    return [path for pattern in RANKING_FILES for path in sorted(root.glob(pattern))]


def hash_strategy(strategy: str, parameters: Mapping[str, ParameterValue]) -> str:
    """Hash a strategy with its parameters and code; a user's own strategy is hashed with its version."""
    own = STRATEGIES[strategy].own
    return hash_json([strategy, sorted(parameters.items()), hash_code(), *([own.version] if own else [])])


def name_models(settings: Settings, parameters: Mapping[str, ParameterValue]) -> dict[str, ParameterValue]:
    """Return a strategy's parameters with the configured models that it uses, since others give other answers."""
    configured = {RERANKER.name: settings.reranker, LLM_NAME.name: settings.llm_model}
    return {name: value or configured.get(name, value) for name, value in parameters.items()}


def hash_json(value: object) -> str:
    """Hash a JSON value."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


MAX_REPEATS = 20  # of a strategy that calls an LLM
PASSAGES_READ = 6  # passages per answer, as in the app
SEARCH_LIMIT = 10  # passages of the timed search, as many as the app shows
PAGE_FAMILIES = ("page-hit", "page-hit-within")  # in all documents, and within the right one
SPAN_CUTOFF = 5  # passages used by span metrics, as in chunking_evaluation
DEEPER_LIMITS = (50, 200)  # passages of the deeper searches; 200 is the maximum of a search


@dataclass(frozen=True, slots=True)
class RankedPassage(Value):
    """One passage of a ranking, with the fields that the drill-down shows."""

    document: str
    passage_id: str
    start: int
    end: int
    score: float
    pages: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Usage(Value):
    """What a search or an answer takes: tokens of the text found (estimated), calls of the LLM, and their tokens."""

    context_tokens: int = 0
    llm_calls: int = 0
    llm_input_tokens: int = 0
    llm_output_tokens: int = 0
    elapsed_ms: float = 0.0  # of all searches for a question, also the deeper ones and those within its documents


@dataclass(frozen=True, slots=True)
class Reply(Value):
    """The text that answers a question; ``cited`` has the document, start and end of each cited passage."""

    text: str
    refused: bool
    cited: tuple[tuple[str, int, int], ...]
    threshold: float | None  # of the index, up to which it is answered; None if an earlier version did not store it


@dataclass(frozen=True, slots=True)
class Ranking(Value):
    """The ranking of one strategy for one question: documents best first, the first passages, and the time in ms.

    ``within`` holds the first passages of a search within the answer's document, if pages were judged.
    """

    question_id: str
    documents: tuple[str, ...]
    passages: tuple[RankedPassage, ...]
    latency_ms: float
    degraded: tuple[str, ...] = ()
    within: tuple[RankedPassage, ...] = ()
    usage: Usage = Usage()  # of the timed search, or of the whole answer
    reply: Reply | None = None  # if the question was answered, not only searched for
    verdict: JsonObject | None = None  # of a judge, whose run has the scores of a question instead of a ranking
    has_lost_itself: bool = False  # whether the question is a document, which was left out of its own ranking
    no_answer: str = ""  # why the question has no answer that a judge could judge

    def without_itself(self) -> Ranking:
        """Return the ranking without the document that is the question, following BEIR's rule for equal ids."""
        if self.question_id not in self.documents:
            return self
        return replace(
            self,
            documents=tuple(key for key in self.documents if key != self.question_id),
            passages=tuple(hit for hit in self.passages if hit.document != self.question_id),
            has_lost_itself=True,
        )


def mean_cost(costs: Iterable[float | None]) -> float | None:
    """Return the mean of the known costs; None if none is known."""
    known = [cost for cost in costs if cost is not None]
    return fmean(known) if known else None


def mean_usage(answers: Sequence[Ranking]) -> dict[str, float]:
    """Return the mean of each figure of ``Usage``."""
    rows = np.array([astuple(answer.usage) for answer in answers], dtype=np.float64)
    return dict(zip(Usage().to_dict(), rows.mean(axis=0).round(3).tolist(), strict=True))


@dataclass(frozen=True)
class StrategyRun:
    """One strategy with its parameters over all questions; ``values`` is {metric: {question id: value}}."""

    strategy: str
    parameters: Mapping[str, ParameterValue]
    answers: Mapping[str, Ranking]
    values: Mapping[str, Mapping[str, float]]
    extra: Verdicts = field(default_factory=lambda: Verdicts())
    qrels: Qrels = field(default_factory=dict, compare=False)  # the judgments of the questions
    judged_not: int = field(default=0, compare=False)  # documents judged not relevant, also for unmeasured questions
    dollars: float | None = None  # mean cost of a question; None if no price is known
    # Standard deviation of each metric's mean over the repetitions of an LLM; {} without repetitions.
    spread: Mapping[str, float] = field(default_factory=dict)

    @cached_property
    def share_unjudged(self) -> dict[str, float]:
        """The share (0..1) of unjudged documents among the first K, by metric with that K."""
        rankings = {key: answer.documents for key, answer in self.answers.items()}
        depths = {name: max_ranking_depth([name]) for name in self._document_metrics}
        shares = {depth: measure_unjudged(self.qrels, rankings, depth) for depth in set(depths.values())}
        return {name: shares[depth] for name, depth in depths.items()}

    @cached_property
    def bounds(self) -> dict[str, tuple[float, float]]:
        """The bounds of each mean, if none or all of the unjudged documents among the first K were relevant."""
        rankings = {key: answer.documents for key, answer in self.answers.items()}
        return {name: measure_bounds(self.qrels, rankings, name) for name in self._document_metrics if "@" in name}

    @property
    def _document_metrics(self) -> list[str]:
        """The measured metrics of document rankings, without those of spans and pages."""
        return [name for name in self.values if name.partition("@")[0] in PROVIDER_NAMES]

    @property
    def means(self) -> dict[str, float]:
        """The mean of each metric."""
        return mean_values(self.values)

    @property
    def usage(self) -> dict[str, float]:
        """The mean of each figure of ``Usage`` per question; empty for a run file."""
        return mean_usage(list(self.answers.values())) if self.latency_ms else {}

    @property
    def latency_ms(self) -> dict[str, float]:
        """The median and 95th percentile of search times as ``p50`` and ``p95``; empty for a run file."""
        times = [answer.latency_ms for answer in self.answers.values()]
        if not any(times):
            return {}
        return {name: round(float(np.percentile(times, at)), 3) for name, at in (("p50", 50), ("p95", 95))}


@dataclass(frozen=True)
class EvalRun:
    """Several strategies on the same questions of one test set."""

    test_set: TestSet
    corpus: IndexedCorpus
    strategies: Mapping[str, StrategyRun]

    @property
    def without_files(self) -> EvalRun:
        """The run without run files, which have no texts."""
        names = {name: run for name, run in self.strategies.items() if name.partition("@")[0] in STRATEGIES}
        return replace(self, strategies=names)


def default_strategies(index: Index | None = None) -> tuple[str, ...]:
    """Return the strategies that work without a scope, with the configured models and over an index."""
    usable = (strategy for strategy in STRATEGIES.values() if not (strategy.needs_scope or strategy.needs))
    is_attached = index is not None and index.is_attached
    return tuple(strategy.name for strategy in usable if strategy.reads_attached or not is_attached)


def choose_strategies(names: Sequence[str], index: Index) -> Sequence[str]:
    """Return the named strategies, each NAME or NAME@INDEX, or the default ones of an index. Raises InvalidInput."""
    for name in names:
        split_strategy(name, None)
    return names or default_strategies(index)


@dataclass(frozen=True, slots=True)
class Prices(Value):
    """The prices that are known, in dollars; 0 if unknown. Models with a price in their name have it there."""

    llm_input: float = 0.0  # per million tokens
    llm_output: float = 0.0  # per million tokens
    machine: float = 0.0  # per hour
    llm: str = ""  # the LLM of these prices; others have theirs in their names

    @classmethod
    def from_settings(cls, settings: Settings) -> Prices:
        """Read the prices. Raises ConfigurationError for an invalid one."""
        prices = parse_llm_price(settings.llm_price, "WORKBENCH_LLM_PRICE")
        return cls(*prices, settings.machine_price, settings.llm_model)

    def rates(self, strategy: str, parameters: Mapping[str, ParameterValue], model: str) -> tuple[float, float]:
        """Return the dollars per token of a question for its embedding, and per search for its reranking."""
        embedding = find_price(model) / 1e6 if VECTOR in STRATEGIES[strategy].legs else 0.0
        return embedding, find_price(str(dict(parameters).get(RERANKER.name, ""))) / 1000

    def llm_rates(self, parameters: Mapping[str, ParameterValue]) -> tuple[float, float]:
        """Return the dollars per million tokens that the LLM of a run reads and writes."""
        name = dict(parameters).get(LLM_NAME.name)
        if name is None:
            return (self.llm_input, self.llm_output) if parameters.get(HISTORY.name) == ASK_LLM else (0.0, 0.0)
        if name in ("", self.llm) and (self.llm_input or self.llm_output):
            return self.llm_input, self.llm_output
        return parse_llm_price(dict(parse_qsl(str(name).partition("?")[2])).get("price", ""))

    def knows(self, strategy: str, parameters: Mapping[str, ParameterValue], model: str) -> bool:
        """Return whether a part of the cost of a search is known."""
        return bool(self.machine or any(self.llm_rates(parameters)) or any(self.rates(strategy, parameters, model)))

    def mean_cost(
        self,
        questions: Sequence[Question],
        answers: Mapping[str, Ranking],
        strategy: str,
        parameters: Mapping[str, ParameterValue],
        model: str,
    ) -> float | None:
        """Return the mean cost of the answered questions in dollars; None if no price or no strategy is known."""
        asked = [question for question in questions if question.id in answers]
        if not asked or strategy not in STRATEGIES or not self.knows(strategy, parameters, model):
            return None
        return fmean(self.cost(one.text, answers[one.id], strategy, parameters, model) for one in asked)

    def cost(
        self, question: str, answer: Ranking, strategy: str, parameters: Mapping[str, ParameterValue], model: str
    ) -> float:
        """Return the dollars that a search cost; ``model`` embeds the question."""
        embedding, reranking = self.rates(strategy, parameters, model)
        usage = answer.usage
        read, written = self.llm_rates(parameters)
        llm = (usage.llm_input_tokens * read + usage.llm_output_tokens * written) / 1e6
        machine = answer.latency_ms / 3_600_000 * self.machine
        return len(question.encode()) / BYTES_PER_TOKEN * embedding + reranking + llm + machine


@dataclass
class Budget:
    """The dollars that a run may cost (None for no limit), what it has cost, and what it left out."""

    dollars: float | None = None
    spent: float = 0.0
    notes: list[str] = field(default_factory=list)

    @property
    def left(self) -> float:
        """The dollars that are left; infinity without a limit."""
        return math.inf if self.dollars is None else self.dollars - self.spent


def run_strategies(
    wb: Workbench,
    test_set: TestSet,
    corpus: IndexedCorpus,
    strategies: Sequence[str] | None = None,
    metrics: Sequence[str] = DEFAULT_METRICS,
    *,
    parameters: Mapping[str, Mapping[str, object]] | None = None,
    budget: Budget | None = None,
    repeats: int = 1,
    on_progress: OnProgress | None = None,
    should_stop: ShouldStop | None = None,
) -> EvalRun:
    """Run strategies over a test set's answerable questions, one after another.

    NAME@INDEX runs a strategy over another index than that of ``corpus``. When the ``budget`` is used up,
    the strategies that were not asked every question are left out. A strategy that calls an LLM is run ``repeats``
    times: its values are means, with their spread.

    Raises:
        InvalidInput: An unknown strategy, parameter or metric, no question with a relevant document, or the budget did
            not suffice for the first strategy.
        Cancelled: ``should_stop`` returned True.
    """
    names = list(dict.fromkeys(strategies or default_strategies(corpus.index)))
    plan = {name: _plan_run(wb.settings, test_set, name, parameters or {}, repeats) for name in names}
    metrics = check_metrics(metrics)
    if not test_set.answerable:
        raise InvalidInput(f"No question of {test_set.name!r} has a relevant document; judge some first.")
    prices = Prices.from_settings(wb.settings)
    asked, done, budget = len(test_set.answerable), 0, budget or Budget()
    total = sum(times for *_, times in plan.values()) * asked
    runs = {}
    for name, (strategy, index, checked, times) in plan.items():
        over = index_corpus(wb, test_set, index, should_stop=should_stop) if index else corpus
        priced = (strategy, checked, over.index.embedding_model)
        rounds: list[dict[str, Ranking]] = [{} for _ in range(times)]
        warm_up(wb, over, test_set.answerable[0], strategy, checked)
        for answers, question in product(rounds, test_set.answerable):
            _check_stop(should_stop)
            answer = ask_question(wb, over, question, strategy, checked, max_ranking_depth(metrics), test_set.pages)
            answers[question.id] = answer
            done += 1
            budget.spent += prices.cost(question.text, answer, *priced)
            if budget.left <= 0:
                break
            if on_progress is not None:
                on_progress(Progress(done, total, name))
        if len(rounds[-1]) < asked:  # the budget is used up
            break
        costs = [prices.mean_cost(test_set.answerable, answers, *priced) for answers in rounds]
        scored = [score_answers(test_set, name, checked, answers, metrics) for answers in rounds]
        runs[name] = replace(average_rounds(scored), dollars=mean_cost(costs))
    if not runs:
        raise InvalidInput(
            f"The budget was used up after {done:,} of {total:,} searches; raise it, or ask fewer questions."
        )
    return EvalRun(test_set, corpus, runs)


def _check_stop(should_stop: ShouldStop | None) -> None:
    """Raise Cancelled if a stop was requested."""
    if should_stop is not None and should_stop():
        raise Cancelled("Stopped; stored answers are kept.")


POLL_INTERVAL_S = 0.2  # seconds between checks of a stop


def run_stoppable(work: Callable[[], T], should_stop: ShouldStop | None) -> T:
    """Return the result of work in a thread, which is abandoned if a stop is requested. Raises Cancelled."""
    outcome: Future[T] = Future()
    context = copy_context()  # of its telemetry

    def run() -> None:
        try:
            outcome.set_result(context.run(work))
        except BaseException as error:  # noqa: BLE001 - raised by the caller
            outcome.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    while not wait([outcome], POLL_INTERVAL_S).done:
        _check_stop(should_stop)
    return outcome.result()


def _plan_run(
    settings: Settings, test_set: TestSet, name: str, parameters: Mapping[str, Mapping[str, object]], repeats: int
) -> tuple[str, str | None, dict[str, ParameterValue], int]:
    """Return the strategy and index of a name, its parameters, and how often it is run. Raises InvalidInput."""
    check_repeats(repeats)
    strategy, index = split_strategy(name, None)
    checked = name_models(settings, check_parameters(strategy, parameters.get(name) or parameters.get(strategy)))
    return strategy, index, checked, repeats if _calls_llm(test_set, strategy, checked) else 1


def check_repeats(repeats: int) -> None:
    """Raise InvalidInput unless the number of repetitions is 1 to 20."""
    if not 1 <= repeats <= MAX_REPEATS:
        raise InvalidInput(f"Invalid number of repetitions {repeats}; use a whole number from 1 to {MAX_REPEATS}.")


def list_changed(strategy: str, parameters: Mapping[str, ParameterValue]) -> dict[str, ParameterValue]:
    """Return the parameters that differ from the strategy's defaults; an answer has other defaults than a search."""
    defaults = check_parameters(strategy, None)
    return {name: value for name, value in parameters.items() if name in defaults and value != defaults[name]}


def _calls_llm(test_set: TestSet, strategy: str, parameters: Mapping[str, ParameterValue]) -> bool:
    return asks_llm(strategy, parameters, has_turns=any(question.turns for question in test_set.answerable))


def average_rounds(rounds: Sequence[StrategyRun]) -> StrategyRun:
    """Return the first of a strategy's repetitions with the mean values of all, and their spread."""
    values = average_values([one.values for one in rounds])
    return replace(rounds[0], values=values, spread=measure_spread([one.values for one in rounds]))


def average_values(rounds: Sequence[Mapping[str, Mapping[str, float]]]) -> dict[str, dict[str, float]]:
    """Return {measure: {question id: mean over the rounds that have a value}}."""
    values: dict[str, dict[str, list[float]]] = {}
    for measured in rounds:
        for name, own in measured.items():
            for key, value in own.items():
                values.setdefault(name, {}).setdefault(key, []).append(value)
    return {name: {key: fmean(each) for key, each in own.items()} for name, own in values.items()}


def measure_spread(rounds: Sequence[Mapping[str, Mapping[str, float]]]) -> dict[str, float]:
    """Return the standard deviation of each measure's mean over the rounds; {} for one round."""
    means: dict[str, list[float]] = {}
    for measured in rounds:
        for name, mean in mean_values(measured).items():
            means.setdefault(name, []).append(mean)
    return {name: round(stdev(each), 6) for name, each in means.items() if len(each) > 1}


def score_answers(
    test_set: TestSet,
    strategy: str,
    parameters: Mapping[str, ParameterValue],
    answers: Mapping[str, Ranking],
    metrics: Sequence[str] = DEFAULT_METRICS,
) -> StrategyRun:
    """Measure a strategy's answers.

    A question that is itself a document is left out of its ranking unless relevant.
    """
    qrels = {question.id: test_set.qrels[question.id] for question in test_set.answerable}
    answers = {
        key: answer if qrels.get(key, {}).get(key, 0) > 0 else answer.without_itself()
        for key, answer in answers.items()
    }
    rankings = {key: answer.documents for key, answer in answers.items()}
    values = (
        measure_rankings(qrels, rankings, metrics)
        | _measure_spans(test_set, answers)
        | _measure_pages(test_set, answers)
    )
    judged_not = sum(grade == 0 for grades in test_set.qrels.values() for grade in grades.values())
    return StrategyRun(strategy, parameters, answers, values, qrels=qrels, judged_not=judged_not)


def _measure_spans(test_set: TestSet, answers: Mapping[str, Ranking]) -> dict[str, dict[str, float]]:
    """Compute span metrics for the questions with judged spans."""
    values: dict[str, dict[str, float]] = {}
    for question in test_set.answerable:
        key, spans = question.id, test_set.spans.get(question.id, ())
        if not spans:
            continue
        first = answers[key].passages[:SPAN_CUTOFF] if key in answers else ()
        relevant = [(span.document, span.start or 0, span.end or 0) for span in spans]
        for name, value in measure_spans(relevant, [(hit.document, hit.start, hit.end) for hit in first]).items():
            values.setdefault(f"{name}@{SPAN_CUTOFF}", {})[key] = value
    return values


def _measure_pages(test_set: TestSet, answers: Mapping[str, Ranking]) -> dict[str, dict[str, float]]:
    """Compute page metrics for the questions with judged pages."""
    values: dict[str, dict[str, float]] = {}
    for question_id, truth in test_set.pages.items():
        answer = answers.get(question_id)
        found = (answer and answer.passages, answer and answer.within)
        for family, hits in zip(PAGE_FAMILIES, found, strict=True):
            places = [[(hit.document, page) for page in hit.pages] for hit in hits or ()]
            for cutoff in FAMILIES[family].cutoffs:
                values.setdefault(f"{family}@{cutoff}", {})[question_id] = measure_page_hit(places, truth, cutoff)
    return values


def warm_up(
    wb: Workbench, corpus: IndexedCorpus, question: Question, strategy: str, parameters: Mapping[str, ParameterValue]
) -> None:
    """Search once untimed, so that no question's latency includes loading models."""
    if asks_llm(strategy, parameters, has_turns=bool(question.turns)):  # a search would cost money
        if llm := wb.corpus.find_llm(str(parameters.get(LLM_NAME.name, ""))):
            _ = llm.framework
    else:
        wb.search_service.search(question.text, _make_ask(corpus, question, strategy, parameters))


def _make_ask(
    corpus: IndexedCorpus, question: Question, strategy: str, parameters: Mapping[str, ParameterValue]
) -> Ask:
    """Return the timed search; a folded copy could be the judged document, so copies are ranked one by one."""
    return Ask(
        strategy, SEARCH_LIMIT, corpus.scope, corpus.index.name, parameters, fold_copies=False, history=question.turns
    )


def ask_question(
    wb: Workbench,
    corpus: IndexedCorpus,
    question: Question,
    strategy: str,
    parameters: Mapping[str, ParameterValue],
    documents: int,
    pages: Mapping[str, Sequence[tuple[str, int]]] | None = None,
) -> Ranking:
    """Ask one question and return at least ``documents`` documents if available.

    With ``pages`` ({question id: (document, page)}), also search within the documents that contain the answer.

    The first search has the app's limit and is timed. If its passages come from too few documents,
    deeper searches add more below them.
    """
    first_ask, began = _make_ask(corpus, question, strategy, parameters), time.perf_counter()
    with count_llm_usage() as llm:
        first = wb.search_service.search(question.text, first_ask)
    size = sum(len(passage.text.encode()) for passage in first)
    ranked = _document_keys(corpus, first)
    result = first
    for limit in DEEPER_LIMITS:
        if len(ranked) >= documents + (question.id in ranked) or result.under_filled:
            break
        if limit < min(documents, DEEPER_LIMITS[-1]):  # the passages cannot contain that many documents
            continue
        result = wb.search_service.search(question.text, replace(first_ask, limit=limit))
        ranked = list(dict.fromkeys([*ranked, *_document_keys(corpus, result)]))
    within: tuple[RankedPassage, ...] = ()
    if pages and question.id in pages:
        right = corpus.document_ids(dict.fromkeys(document for document, _ in pages[question.id]))
        alone = replace(first_ask, scope=replace(corpus.scope, document_ids=right))
        within = _rank_passages(corpus, wb.search_service.search(question.text, alone), paged=True)
    passages = _rank_passages(corpus, first, paged=bool(pages))
    took = round((time.perf_counter() - began) * 1000, 3)
    usage = Usage(size // BYTES_PER_TOKEN, llm.calls, llm.input_tokens, llm.output_tokens, took)
    kept = tuple(ranked[: documents + (question.id in ranked)])
    return Ranking(question.id, kept, passages, first.timings_ms[TOTAL], first.degraded, within, usage)


def answer_question(
    wb: Workbench,
    corpus: IndexedCorpus,
    question: Question,
    strategy: str,
    parameters: Mapping[str, ParameterValue],
) -> Ranking:
    """Answer one question with the LLM that is configured, else with extracts; the cost of both steps is counted.

    The ranking has the passages from which the answer was written.

    Raises:
        ModelError: The LLM did not answer; extracts in its place would be measured as its answer.
    """
    own = list_changed(strategy, parameters)
    ask = Ask(strategy, PASSAGES_READ, corpus.scope, corpus.index.name, own, history=question.turns)
    with count_llm_usage() as llm:
        stream = wb.answers.ask(question.text, ask)
        answer = stream.answer()
    if answer.kind == "extracts" and wb.corpus.llm is not None:
        note = next((note for note in answer.degraded if note.startswith("answer: ")), "The LLM failed.")
        raise ModelError(note.removeprefix("answer: ").removesuffix(" These are extracts instead."))
    passages = [answer.passages[citation.number - 1] for citation in answer.citations]
    cited = tuple((corpus.key(one.document_id), one.start, one.end) for one in passages)
    reply = Reply(answer.text, answer.refused, cited, stream.find_threshold())
    size = sum(len(passage.text.encode()) for passage in answer.passages)
    usage = Usage(size // BYTES_PER_TOKEN, llm.calls, llm.input_tokens, llm.output_tokens)
    documents = tuple(_document_keys(corpus, answer.passages))
    read, took = _rank_passages(corpus, answer.passages, paged=False), answer.timings_ms[TOTAL]
    return Ranking(question.id, documents, read, took, answer.degraded, usage=usage, reply=reply)


def name_writer(settings: Settings, parameters: Mapping[str, ParameterValue]) -> dict[str, ParameterValue]:
    """Return the parameters of a strategy with the LLM that writes its answers; "" for extracts."""
    return {LLM_NAME.name: settings.llm_model, **name_models(settings, parameters)}


def _rank_passages(corpus: IndexedCorpus, passages: Iterable[Passage], paged: bool) -> tuple[RankedPassage, ...]:
    return tuple(
        RankedPassage(
            corpus.key(passage.document_id),
            passage.passage_id,
            passage.start,
            passage.end,
            round(passage.score, 6),
            find_pages(corpus.pages(passage.document_id), passage.start, passage.end) if paged else (),
        )
        for passage in passages
    )


def _document_keys(corpus: IndexedCorpus, passages: Sequence[Passage]) -> list[str]:
    return list(dict.fromkeys(corpus.key(passage.document_id) for passage in passages))


# Experiments, cells and results

MAX_CELLS = 500
FREE = "free"  # the judge without an LLM
JUDGES = ("built-in", "ragas")  # those with an LLM, by their prompts; ragas needs the extra ``ragas``


@dataclass(frozen=True, slots=True)
class Cell(Value):
    """One cell of the matrix."""

    strategy: str  # name of a strategy, or of a run file
    parameters: Mapping[str, ParameterValue] = field(default_factory=dict)  # parameters of the strategy, by name
    index: str | None = None  # name of the index with the chunker and model to use; None for the default one
    file_hash: str = ""  # hash of a run file, whose answers are stored without asking; "" for a strategy
    repetition: int = 0  # of a strategy that calls an LLM; 0 for the first time
    answers: bool = False  # whether it answers the questions instead of only searching
    judge: str = ""  # scores what the run found, or its answers: ``FREE``, "built-in" or "ragas"; "" for a run

    @property
    def run(self) -> Cell:
        """The cell whose line on the leaderboard has this one's values."""
        return replace(self, repetition=0, answers=False, judge="")

    @property
    def label(self) -> str:
        """The label: strategy, index, and the parameters that were set."""
        parts = [
            self.strategy,
            *([f"on {self.index}"] if self.index else []),
            *(["(run file)"] if self.file_hash else []),
            *(f"{name}={value}" for name, value in self.parameters.items()),
            *(["(answers)"] if self.answers else []),
            *([f"({self.judge} judge)"] if self.judge else []),
        ]
        return " ".join([*parts, *([f"(repetition {self.repetition + 1})"] if self.repetition else [])])


@dataclass(frozen=True, slots=True)
class SavedView(Value):
    """What an experiment shows when it is opened; the default is everything by its first metric."""

    metric: str = ""  # the metric of the leaderboard; "" for the first one
    runs: tuple[str, ...] = ()  # labels of the runs A and B; () for the best two
    tag: str = ""  # only the runs with this tag; "" for all


@dataclass(frozen=True, slots=True)
class Bar(Value):
    """What a run of an experiment must reach: a minimum, a tolerated drop, or a gain that matters."""

    run: str  # the strategy, as the experiment names it
    metric: str
    min: float | None = None  # lowest mean that passes
    max_drop: float | None = None  # largest drop of the mean that passes; a larger one also passes if it may be noise
    against: str = ""  # another run of the experiment; "" for the baseline of a configuration file
    min_gain: float | None = None  # smallest gain of the mean that matters; not decidable with too few questions

    @property
    def is_compared(self) -> bool:
        """True if it compares the run with another one or with the baseline."""
        return self.max_drop is not None or self.min_gain is not None

    @property
    def allowance(self) -> str:
        """The wanted gain or the tolerated drop, as text."""
        if self.min_gain is not None:
            return f"at least {self.min_gain:g} above {self.against or 'the baseline'}"
        return f"at most {self.max_drop:g} below {self.against or 'the baseline'}"

    def describe(self) -> str:
        """Return it as text."""
        parts = ([f"at least {self.min:g}"] if self.min is not None else []) + [self.allowance] * self.is_compared
        return f"{self.run}: {self.metric} {' and '.join(parts)}"


@dataclass(frozen=True, slots=True)
class Experiment(Value):
    """A stored experiment; ``status`` is running, done, stopped or failed."""

    id: str
    title: str
    test_set_id: str
    test_set_title: str
    test_set_version: int
    test_set_hash: str
    corpus_hash: str
    status: str
    message: str
    cells: tuple[Cell, ...]
    metrics: tuple[str, ...]
    limit_queries: int | None
    created_at: datetime | None = None
    scope: MeasuredScope | None = None  # of the user's own documents; None if the test set has its own corpus
    hypothesis: str = ""  # what is expected, in words
    planned_bars: tuple[Bar, ...] = ()  # what its runs must reach, set before they ran
    bars_hash: str = ""  # hash of the hypothesis, the runs and the bars; "" without them
    note: str = ""
    tags: tuple[str, ...] = ()
    view: SavedView = field(default_factory=SavedView)
    answers: bool = False  # whether its runs also answer the questions
    repeats: int = 1  # how often a strategy that calls an LLM runs, and a configured LLM answers
    budget: float | None = None  # dollars, of all that its runs have stored; None for no limit
    bars: tuple[Mapping[str, str], ...] = ()  # run, metric, bar, state and detail of each bar, once they were judged

    @property
    def runs(self) -> int:
        """The number of runs on the leaderboard: repetitions and answers are part of their run."""
        return sum(cell == cell.run for cell in self.cells)

    @property
    def expectations(self) -> list[str]:
        """The hypothesis and the bars that are not judged yet, as text."""
        bars = [f"Bar: {bar.describe()}." for bar in self.planned_bars] if not self.bars else []
        return [*([f"Hypothesis: {self.hypothesis}"] if self.hypothesis and not self.note else []), *bars]

    @property
    def brief(self) -> str:
        """The first line of the note, for lists."""
        return self.note.partition("\n")[0]

    @property
    def over(self) -> str:
        """The searched documents, as text."""
        return OWN_CORPUS_TEXT if self.scope is None else self.scope.text


@dataclass(frozen=True)
class CellResult:
    """The outcome of a cell: its measured run, or the reason for a missing one; ``extra`` has the ragas verdicts."""

    cell: Cell
    run_id: str
    status: str
    run: StrategyRun | None
    index_name: str
    index_bytes: int = 0
    error: str | None = None
    position: int = 0
    extra: Verdicts = field(default_factory=lambda: Verdicts())
    note: str = ""
    tags: tuple[str, ...] = ()


def make_cells(
    strategies: Sequence[str],
    indexes: Sequence[str | None] = (None,),
    parameters: Mapping[str, Sequence[Mapping[str, ParameterValue]]] | None = None,
) -> list[Cell]:
    """Return every combination of strategy, its parameter sets (default: the defaults) and index.

    Raises:
        InvalidInput: An unknown strategy or parameter, parameters that are no sets, no cells, or more than 500.
    """
    for strategy, sets in (parameters or {}).items():
        if not isinstance(sets, list | tuple) or not all(isinstance(one, Mapping) for one in sets):
            raise InvalidInput(f"Invalid parameters {sets!r} of {strategy!r}; use a list of objects, each for one run.")
    cells = [
        Cell(strategy, values, index)
        for index in indexes
        for strategy in strategies
        for values in (parameters or {}).get(strategy, ({},))
    ]
    for cell in cells:
        check_parameters(cell.strategy, cell.parameters)
    if not 1 <= len(cells) <= MAX_CELLS:
        raise InvalidInput(f"Invalid number of runs {len(cells)}; an experiment has 1 to {MAX_CELLS}.")
    return cells


def list_variants(parameters: Mapping[str, object]) -> list[dict[str, ParameterValue]]:
    """Return every combination of the values of parameters; a list has several values."""
    given = cast("Mapping[str, ParameterValue | list[ParameterValue]]", parameters)
    lists = [value if isinstance(value, list) else [value] for value in given.values()]
    return [dict(zip(parameters, chosen, strict=True)) for chosen in product(*lists)]


def plan_cells(
    given: Sequence[Cell | str], parameters: Mapping[str, Sequence[Mapping[str, ParameterValue]]] | None = None
) -> list[Cell]:
    """Return cells as they are, and those of strategies (NAME or NAME@INDEX) with each of their parameter sets.

    Raises:
        InvalidInput: Parameters of a strategy that is not given, an unknown one, no cells, or more than 500.
    """
    named = [split_strategy(one, None)[0] for one in given if isinstance(one, str)]
    if others := (parameters or {}).keys() - named:
        raise InvalidInput(
            f"Parameters of {list_choices(sorted(others))}, which is not run; use {list_choices(named)}."
        )
    cells: list[Cell] = []
    for one in given:
        if isinstance(one, Cell):
            cells.append(one)
        else:
            strategy, index = split_strategy(one, None)
            cells += make_cells([strategy], [index], parameters)
    return cells


def repeat_cells(
    test_set: TestSet, cells: Sequence[Cell], repeats: int, *, answers: bool = False, has_llm: bool = False
) -> list[Cell]:
    """Return the cells, then those of their ``answers``; what calls an LLM is repeated. Raises InvalidInput."""
    check_repeats(repeats)
    searches = [
        replace(cell, repetition=repetition)
        for cell in cells
        for repetition in range(
            repeats if _calls_llm(test_set, cell.strategy, check_parameters(cell.strategy, cell.parameters)) else 1
        )
    ]
    rounds = range(repeats if has_llm else 1) if answers else ()
    return searches + [replace(cell, repetition=repetition, answers=True) for cell in cells for repetition in rounds]


def merge_repetitions(results: Sequence[CellResult]) -> list[CellResult]:
    """Return one result for each cell with its repetitions: the mean values with their spread once all are done."""
    groups: list[list[CellResult]] = []
    for result in results:
        if result.cell.repetition and groups:
            groups[-1].append(result)
        else:
            groups.append([result])
    merged: list[CellResult] = []
    for rounds in groups:
        runs = [result.run for result in rounds if result.run is not None]
        if len(rounds) == 1:
            merged += rounds
        elif len(runs) == len(rounds):
            mean = replace(average_rounds(runs), dollars=mean_cost(run.dollars for run in runs))
            merged.append(replace(rounds[0], run=mean))
        else:
            waiting = next(result for result in rounds if result.run is None)
            merged.append(replace(rounds[0], status=waiting.status, run=None, error=waiting.error))
    return merged


def parse_cells(cells: JsonValue) -> list[Cell]:
    """Return cells from JSON, a list of objects with the fields of ``Cell``."""
    return [Cell(**cell) for cell in cast("list[dict[str, Any]]", cells)]


def parse_experiment(row: Row) -> Experiment:
    """Return an experiment from its stored row."""
    plan = row["plan"]
    fields: dict[str, Any] = {name: row[name] for name in Experiment.__dataclass_fields__ if name in row}
    view: dict[str, Any] = row["view"]
    fields["view"] = SavedView(view.get("metric", ""), tuple(view.get("runs", ())), view.get("tag", ""))
    fields["tags"], fields["bars"] = tuple(row["tags"]), tuple(row["bars"])
    return Experiment(
        **fields,
        cells=tuple(parse_cells(plan["cells"])),
        metrics=tuple(plan["metrics"]),
        limit_queries=plan["limit_queries"],
        hypothesis=plan.get("hypothesis", ""),
        planned_bars=tuple(Bar(**bar) for bar in plan.get("bars", ())),
        bars_hash=plan.get("bars_hash", ""),
        answers=plan.get("answers", False),
        repeats=plan.get("repeats", 1),
        budget=plan.get("budget"),
        scope=None if row["test_set_source_id"] else MeasuredScope.from_stored(row["test_set_scope"]),
    )


# What a run costs at least


JUDGE_CALLS = 5 + PASSAGES_READ  # calls of an LLM that judges an answer


def estimate_cost(
    wb: Workbench,
    test_set: TestSet,
    cells: Sequence[Cell],
    *,
    judges: bool = False,
    budget: float | None = None,
) -> str:
    """Return a sentence on what a run will take and cost at least, before it; "" if neither is known.

    The text that the LLM reads for an answer is estimated from the passages of the index, if there are any; ``judges``
    if an LLM judges the answers afterwards. The time is that of stored runs.

    Raises:
        InvalidInput: A budget that is 0 or less, or that cannot stop anything because no price is known.
    """
    if budget is not None and budget <= 0:
        raise InvalidInput(f"Invalid budget {budget:g}; use a number of dollars above 0.")
    cells = [cell for cell in cells if not cell.file_hash]  # run files cost nothing
    prices, total, parts = Prices.from_settings(wb.settings), 0.0, dict[str, None]()
    has_llm, measure_size = wb.corpus.llm is not None, cache(partial(measure_passage_bytes, wb, test_set))
    calls, tokens = 0, 0.0  # of LLMs
    searches = [cell for cell in cells if not cell.judge and not cell.answers]
    cells, scorable = _plan_judging(test_set, cells) if judges else (cells, test_set.scorable)
    judged = sum(cell.judge not in ("", FREE) for cell in cells)
    for cell in (one for one in cells if not one.judge):
        model, parameters = wb.corpus.index(cell.index).embedding_model, find_parameters(wb.settings, cell)
        questions = scorable if cell.answers else test_set.answerable
        embedding, reranking = prices.rates(cell.strategy, parameters, model)
        asked = sum(len(question.text.encode()) for question in questions) / BYTES_PER_TOKEN
        total += asked * embedding + len(questions) * reranking
        read, written = prices.llm_rates(parameters)
        part = f"the LLM of {cell.strategy}"
        if cell.answers and has_llm:
            size = measure_size(cell.index) or 0.0
            reading = min(len(scorable), len(test_set.answerable)) * PASSAGES_READ * size / BYTES_PER_TOKEN
            tokens, total = tokens + reading, total + reading * read / 1e6
            part = "what the LLM writes" if size else "the answers of the LLM"
        elif cell.answers or not _calls_llm(test_set, cell.strategy, parameters):
            continue
        calls += len(questions)
        if read or written:
            parts[part] = None
    calls += judged * JUDGE_CALLS * min(MAX_JUDGED, len(test_set.answerable))
    if judged and any(prices.llm_rates({LLM_NAME.name: ""})):
        parts["the LLM that judges"] = None
    if prices.machine:
        parts[f"the machine at {format_dollars(prices.machine)} per hour"] = None
    answers = sum(cell.answers for cell in cells)
    count = f"{len(test_set.answerable) * len(searches):,} searches"
    count += f" and {len(scorable) * answers:,} answers" if answers else ""
    count += f" with about {calls:,} calls of an LLM" if calls else ""
    count += f", which reads about {tokens:,.0f} tokens," if tokens else ""
    took, unknown = _estimate_time(wb, test_set, cells, scorable)
    costs = _describe_estimate(count, total, parts, budget, is_wanted=calls > 0 or took > 0)
    if took:
        more = f" and more, as no stored run measured {list_choices(unknown, 3)}" if unknown else ""
        return f"{costs} It takes about {took:,.1f} s{more}, by stored runs with the same models, without indexing."
    return costs and f"{costs} How long it takes is unknown: experiments have not measured it."


def _plan_judging(test_set: TestSet, cells: list[Cell]) -> tuple[list[Cell], Sequence[Question]]:
    """Return the cells with those of an LLM that judges, and the questions to answer: if only for it, those judged."""
    searches = [cell for cell in cells if cell == cell.run]
    judged = [replace(cell, judge=JUDGES[0]) for cell in searches]
    if any(cell.answers for cell in cells):
        return [*cells, *judged], test_set.scorable
    return [*cells, *(replace(cell, answers=True) for cell in searches), *judged], test_set.answerable[:MAX_JUDGED]


def _estimate_time(
    wb: Workbench, test_set: TestSet, cells: Sequence[Cell], scorable: Sequence[Question]
) -> tuple[float, list[str]]:
    """Return the seconds that cells take by stored runs of their strategies, with the same embedding model, LLM and
    reranker, and the strategies and kinds of cells of which there are none; ``scorable`` are those to answer."""
    known = RunTables(wb.corpus.database).mean_times([cell.strategy for cell in cells])
    took, unknown = 0.0, list[str]()
    for cell in cells:
        kind = "judge" if cell.judge else "answer" if cell.answers else "search"
        parameters = find_parameters(wb.settings, cell)
        models = (str(parameters.get(one.name) or "") for one in (LLM_NAME, RERANKER))
        one = known.get((cell.strategy, wb.corpus.index(cell.index).embedding_model, kind, *models))
        asked = scorable if cell.answers else list_asked(test_set, answers=False, judge=bool(cell.judge))
        took += (one or 0.0) * len(asked) / 1000
        unknown += [f"{cell.strategy} ({kind})"] if one is None else []
    return took, unknown


def find_parameters(settings: Settings, cell: Cell) -> dict[str, ParameterValue]:
    """Return all parameters of a cell, with the names of the models that it uses."""
    name = name_writer if cell.answers else name_models
    parameters = name(settings, check_parameters(cell.strategy, cell.parameters))
    return parameters | ({LLM_NAME.name: "" if cell.judge == FREE else settings.llm_model} if cell.judge else {})


NO_PRICE = "no price is known"  # the end of an estimate in which a budget could not stop anything


def _describe_estimate(count: str, total: float, parts: Iterable[str], budget: float | None, *, is_wanted: bool) -> str:
    """Return what ``count`` costs, in dollars, and what is known later. Raises InvalidInput as ``estimate_cost``."""
    if not total and not parts:
        if budget is not None:
            raise InvalidInput(
                "The budget cannot stop anything, as no price is known; set WORKBENCH_LLM_PRICE or "
                "WORKBENCH_MACHINE_PRICE, or add price= to the name of a model."
            )
        return f"{count.rstrip(',')}; {NO_PRICE}." if is_wanted else ""
    if not parts:
        return f"{count} cost about {format_dollars(total)}."
    known = f"{count} cost {format_dollars(total)} and more" if total else f"The cost of {count} is not known before"
    return f"{known}: it depends on {' and '.join(parts)}; a pilot measures it on a few questions."


# Stored runs


def make_run_row(
    test_set: TestSet,
    corpus: IndexedCorpus,
    strategy: str,
    parameters: Mapping[str, ParameterValue],
    depth: int,
    file_hash: str = "",
    repetition: int = 0,
    answers: bool = False,
    judge: Sequence[object] = (),
) -> NewRun:
    """Return the row, with its key, of a run that ranks ``depth`` documents for every answerable question.

    ``file_hash`` is the hash of a run file, which has no strategy. A run of ``answers`` also asks the questions marked
    as without an answer, and depends on the threshold that was chosen for refusals. A run of a ``judge`` also depends
    on its prompts, its model, the judgments and the passages of an answer, in this order.
    """
    place: list[object] = [depth, *([repetition] if repetition else [])]
    if answers:
        unanswerable = [[one.id, one.text, *one.turns] for one in test_set.unanswerable]
        place += ["answers", unanswerable, _list_threshold(corpus.index)]
    if judge:
        place += ["judge", *judge]
    hashes = {
        "corpus_hash": corpus.corpus_hash,
        "index_hash": corpus.index_hash,
        "strategy_hash": file_hash or hash_strategy(strategy, parameters),
        "questions_hash": test_set.answerable_hash,
    }
    settings: JsonObject = {
        name: getattr(corpus.index, name) for name in ("chunker", "chunker_options", "embedding_model")
    }
    if corpus.index.transformations:
        settings["transformations"] = list(corpus.index.transformations)
    return {
        "corpus_hash": hashes["corpus_hash"],
        "index_hash": hashes["index_hash"],
        "strategy_hash": hashes["strategy_hash"],
        "questions_hash": hashes["questions_hash"],
        "key": hash_json([hashes, *place]),
        "depth": depth,
        "strategy": strategy,
        "parameters": dict(parameters),
        "index_name": corpus.index.name,
        "index_settings": settings,
        "questions": len(list_asked(test_set, answers=answers, judge=bool(judge))),
    }


def _list_threshold(index: Index) -> list[tuple[str, float]]:
    """Return the similarities of an index that count as evidence, if its threshold was chosen."""
    near = index.nearness or {}
    return sorted(near.items()) if "chosen" in near else []


def list_asked(test_set: TestSet, *, answers: bool, judge: bool) -> tuple[Question, ...]:
    """Return the questions of a run: those with relevant documents, for a judge the first ones of them."""
    asked = test_set.scorable if answers else test_set.answerable
    return asked[:MAX_JUDGED] if judge else asked


def parse_answer(row: Row) -> Ranking:
    """Return an answer from its stored row."""
    hits, within = (tuple(_parse_passage(hit) for hit in row[name]) for name in ("passages", "within"))
    place = (row["question_id"], tuple(row["documents"]), hits, row["latency_ms"], tuple(row["degraded"]), within)
    usage = dict(row["usage"])
    stored = usage.pop("reply", None) or row["reply"] or {}  # earlier exports have it there
    if "scores" in stored:
        return Ranking(*place, Usage(**usage), verdict=stored)
    if not stored:
        return Ranking(*place, Usage(**usage))
    cited = tuple((document, start, end) for document, start, end in stored["cited"])
    reply = Reply(stored["text"], stored["refused"], cited, stored.get("threshold"))
    return Ranking(*place, Usage(**usage), reply)


def _parse_passage(row: Row) -> RankedPassage:
    values: Row = {**row, "pages": tuple(row.get("pages", ()))}
    return RankedPassage(**values)


# Running cells in shares

SHARE_QUESTIONS = 100  # questions
SHARE_ANSWERS = 20  # questions that are also answered or judged: an LLM takes seconds for each
MAX_JUDGED = 50  # questions judged per run: comparing texts is slow, and a judge costs money
JUDGED_AT_ONCE = 4  # questions, whose calls of an LLM are sent together; a kill loses them
Judging = Callable[["TestSet", IndexedCorpus, "Experiment", Cell, Sequence[Ranking]], Sequence[Ranking]]
STORE_BATCH_ANSWERS = 8  # rankings per transaction: at most this many are lost by a kill, but no answer
SPENT_STALENESS = 20  # what other processes spent is read again after this multiple of the time that reading takes


@dataclass(frozen=True, slots=True)
class Share(Value):
    """Some of a cell's questions, from ``first`` up to but excluding ``last``."""

    cell: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class ShareOutcome(Value):
    """The outcome of a share: numbers of new and stored questions, and ``failed`` if the cell failed."""

    cell: int
    asked: int
    stored: int
    failed: bool = False
    left_out: int = 0  # questions that were not asked, because the budget was used up


@dataclass(frozen=True, slots=True)
class _OpenRun:
    """A cell with an indexed corpus and a started run."""

    cell: Cell
    run_id: str
    corpus: IndexedCorpus
    parameters: dict[str, ParameterValue]
    priced: Row  # strategy, parameters and embedding model, which its costs depend on


class CellRuns:
    """The runs of an experiment in this process; a cell is opened when its first share starts."""

    def __init__(
        self,
        wb: Workbench,
        experiment: Experiment,
        test_set: TestSet,
        on_progress: OnProgress | None = None,
        should_stop: ShouldStop | None = None,
        judge: Judging | None = None,
    ) -> None:
        """``on_progress`` counts the questions of all cells, as if this process ran all; without ``judge`` none of its
        cells run."""
        self._wb, self._experiment, self._test_set = wb, experiment, test_set
        self._on_progress, self._should_stop = on_progress, should_stop
        self._experiments, self._runs = ExperimentTables(wb.corpus.database), RunTables(wb.corpus.database)
        self._judge, self._found = judge, dict[int, dict[str, Ranking]]()  # rankings to judge, by cell
        self._open: dict[int, _OpenRun] = {}
        self._done, self._part = 0, 0.0  # finished questions, including those of the current share
        self._prices = Prices.from_settings(wb.settings)
        self._texts = {question.id: question.text for question in test_set.questions}
        self._spent, self._read_spent_at = 0.0, 0.0  # dollars, and when to read them again

    def shares(self) -> Iterator[Share]:
        """Yield the shares of the experiment, cell by cell."""
        for cell in self.list_asked_cells():
            questions, own = len(self._list_questions(cell)), self._experiment.cells[cell]
            size = SHARE_ANSWERS if own.answers or own.judge else SHARE_QUESTIONS
            for first in range(0, questions, size):
                yield Share(cell, first, min(first + size, questions))

    def list_asked_cells(self) -> list[int]:
        """Return the positions of the cells to ask: no run files, and no answers that only a judge needs."""
        planned = self._experiment
        own = [at for at, cell in enumerate(planned.cells) if not cell.file_hash and cell.answers <= planned.answers]
        return [at for at in own if self._judge is not None or not self._experiment.cells[at].judge]

    def open(self, position: int) -> _OpenRun:
        """Index a cell's corpus and start its run, unless that has already been done.

        Raises:
            Conflict: The user's documents changed since the experiment started. Cancelled.
        """
        if position not in self._open:
            self._open[position] = self._open_cell(position)
        return self._open[position]

    def answer(self, share: Share) -> ShareOutcome:
        """Ask the unanswered questions of a share; if a search fails, the cell fails and its run records the reason.

        Raises:
            Conflict: The user's documents changed since the experiment started.
            Cancelled: A stop was requested; the answers so far are stored.
        """
        self._begin(share, share.first, self._experiment.cells[share.cell].label)
        run = self.open(share.cell)
        answered = self._runs.list_answered(run.run_id)
        questions = self._list_questions(share.cell)[share.first : share.last]
        open_questions = [question for question in questions if question.id not in answered]
        try:
            if (
                open_questions
                and run.cell == replace(run.cell, answers=False, judge="")
                and not self._is_budget_used_up()
            ):
                warm_up(self._wb, run.corpus, questions[0], run.cell.strategy, run.parameters)
            asked = self._ask(run, share, open_questions)
        except Cancelled:
            raise
        except WorkbenchError as error:
            self._runs.set_status(run.run_id, "failed", str(error))
            return ShareOutcome(share.cell, 0, 0, failed=True)
        self._runs.complete(run.run_id)
        stored = len(questions) - len(open_questions)
        return ShareOutcome(share.cell, asked, stored, left_out=len(open_questions) - asked)

    def end(self) -> None:
        """Report that all work is done; it is too late to stop."""
        self._done = self._count_questions(len(self._experiment.cells))
        self._tell("done")

    def look(self) -> None:
        """Raise Cancelled if a stop was requested."""
        _check_stop(self._should_stop)

    def _list_questions(self, cell: int) -> tuple[Question, ...]:
        own = self._experiment.cells[cell]
        return list_asked(self._test_set, answers=own.answers, judge=bool(own.judge))

    def _count_questions(self, cells: int) -> int:
        """Return the number of questions of the first cells."""
        asked = self.list_asked_cells()
        return sum(len(self._list_questions(cell)) for cell in range(cells) if cell in asked)

    def _is_budget_used_up(self) -> bool:
        """Return whether what is stored of the experiment, by whichever process, has cost its budget."""
        budget, began = self._experiment.budget, time.monotonic()
        if budget is not None and began >= self._read_spent_at:
            self._spent = sum(self._measure_cost(row) for row in self._experiments.usage(self._experiment.id))
            now = time.monotonic()
            self._read_spent_at = now + SPENT_STALENESS * (now - began)
        return budget is not None and self._spent >= budget

    def _measure_cost(self, row: Row) -> float:
        """Return the dollars of a stored ranking or answer, by the known prices."""
        if row["strategy"] not in STRATEGIES:
            return 0.0
        took = Ranking(row["question_id"], (), (), row["latency_ms"], usage=Usage(**row["usage"]))
        search = (row["strategy"], row["parameters"], row["embedding_model"])
        return self._prices.cost(self._texts.get(row["question_id"], ""), took, *search)

    def _store(self, run: _OpenRun, answers: Sequence[JsonObject]) -> None:
        self._runs.add_answers(run.run_id, answers)
        self._spent += sum(self._measure_cost({**run.priced, **answer}) for answer in answers)

    def _ask(self, run: _OpenRun, share: Share, questions: list[Question]) -> int:
        """Ask questions until the budget is used up, and return how many were asked."""
        if run.cell.judge:
            return self._ask_judge(run, share, questions)
        batch = 1 if run.cell.answers or self._experiment.budget is not None else STORE_BATCH_ANSWERS
        waiting: list[JsonObject] = []
        try:
            for number, question in enumerate(questions):
                self._begin(share, share.last - len(questions) + number, run.cell.label)
                if self._is_budget_used_up():
                    return number
                if run.cell.answers and question.id in self._runs.list_answered(run.run_id):
                    continue  # a judge needed it
                waiting.append(self._ask_one(run, question).to_dict())
                if len(waiting) >= batch:
                    self._store(run, waiting)
                    waiting = []
        finally:
            self._store(run, waiting)
        return len(questions)

    def _ask_one(self, run: _OpenRun, question: Question) -> Ranking:
        """Search for a question, or answer it."""
        asked = (self._wb, run.corpus, question, run.cell.strategy, run.parameters)
        if run.cell.answers:
            return run_stoppable(lambda: answer_question(*asked), self._should_stop)
        return ask_question(*asked, max_ranking_depth(self._experiment.metrics), self._test_set.pages)

    def _ask_judge(self, run: _OpenRun, share: Share, questions: list[Question]) -> int:
        """Judge a few questions at a time, as ``_ask``; each is stored with its scores."""
        assert self._judge is not None
        for first in range(0, len(questions), JUDGED_AT_ONCE):
            self._begin(share, share.last - len(questions) + first, run.cell.label)
            if self._is_budget_used_up():
                return first
            found = [self._find_ranking(run.cell, one) for one in questions[first : first + JUDGED_AT_ONCE]]
            verdicts = self._judge(self._test_set, run.corpus, self._experiment, run.cell, found)
            self._store(run, [verdict.to_dict() for verdict in verdicts])
        return len(questions)

    def _find_ranking(self, cell: Cell, question: Question) -> Ranking:
        """Return what a judge without an LLM judges, what the run found, or what others judge, its answer.

        If another worker still asks the question, ask it here too; what is stored first is judged. If the LLM does not
        answer, the judge gets the reason with what the run found.
        """
        position = self._experiment.cells.index(replace(cell.run, answers=cell.judge != FREE))
        run, found = self.open(position), self._found.setdefault(position, {})
        if question.id not in found:
            found |= self._read_rankings(run)
        if question.id not in found:
            try:
                self._store(run, [self._ask_one(run, question).to_dict()])
            except ModelError as error:
                if not run.cell.answers:
                    raise
                return replace(self._find_ranking(replace(cell, judge=FREE), question), no_answer=str(error))
            self._runs.complete(run.run_id)
            found |= self._read_rankings(run)
        is_relevant = self._test_set.qrels[question.id].get(question.id, 0) > 0
        return found[question.id] if is_relevant else found[question.id].without_itself()

    def _read_rankings(self, run: _OpenRun) -> dict[str, Ranking]:
        return {row["question_id"]: parse_answer(row) for row in self._runs.answers(run.run_id)}

    def _open_cell(self, position: int) -> _OpenRun:
        cell, label = self._experiment.cells[position], self._experiment.cells[position].label

        def report_indexing(progress: Progress) -> None:
            self._tell(f"{label}: indexing, {progress.message}")

        corpus = index_corpus(
            self._wb, self._test_set, cell.index, on_progress=report_indexing, should_stop=self._should_stop
        )
        if corpus.corpus_hash != self._experiment.corpus_hash:
            raise Conflict("The corpus has changed since the experiment started; start a new one to compare fairly.")
        if cell.strategy not in STRATEGIES:
            raise InvalidInput(describe_unregistered(cell.strategy))
        parameters = find_parameters(self._wb.settings, replace(cell, judge=""))
        model = self._wb.settings.llm_model if cell.judge != FREE else ""
        of_answers = [PASSAGES_READ, *_list_threshold(corpus.index)] if cell.judge != FREE else []
        judge = (cell.judge, model, self._test_set.questions_hash, *of_answers) if cell.judge else ()
        wanted = PASSAGES_READ if cell.answers else max_ranking_depth(self._experiment.metrics)
        place = (self._test_set, corpus, cell.strategy, parameters, wanted)
        planned = make_run_row(*place, repetition=cell.repetition, answers=cell.answers, judge=judge)
        planned["parameters"] = find_parameters(self._wb.settings, cell)  # a judge's calls have the price of its LLM
        row = self._runs.begin(planned)
        self._experiments.add_run(self._experiment.id, position, row["id"], label, {})
        priced = {name: row[name] for name in ("strategy", "parameters")}
        return _OpenRun(
            cell, row["id"], corpus, parameters, priced | {"embedding_model": row["index_settings"]["embedding_model"]}
        )

    def _begin(self, share: Share, number: int, label: str) -> None:
        """Report progress. Raises Cancelled if a stop was requested."""
        self._done = self._count_questions(share.cell) + number
        self._part = (number - share.first) / max(1, share.last - share.first)
        self.look()
        self._tell(label)

    def _tell(self, message: str) -> None:
        if self._on_progress is not None:
            total = self._count_questions(len(self._experiment.cells))
            self._on_progress(Progress(self._done, total, message, self._part, share=self._done / max(1, total)))


# Run files: rankings from an external system, measured like a strategy
#
# Two forms are read. TREC's has six columns without a header: query id, Q0, document, rank, score, tag. A CSV, with
# commas, semicolons or tabs, has a header: query (id or text) and document, and score or rank unless its rows are in
# order.

QUERY_COLUMNS = ("query", "query_id", "query-id", "qid", "question", "question_id")
DOCUMENT_COLUMNS = ("document", "document_id", "doc_id", "docid", "docno", "corpus-id", "corpus_id", "doc")
_RUN_FILE_NAME = re.compile(r"[\w][\w .+-]{0,59}")


@dataclass(frozen=True, slots=True)
class RunFile(Value):
    """A run file as answers by question id, one for each answerable question; ``notes`` are sentences on its gaps."""

    name: str
    answers: Mapping[str, Ranking]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _RunRow:
    query: str
    document: str
    order: tuple[float, ...]  # sorts a query's rows, best first


def load_run_file(wb: Workbench, test_set: TestSet, corpus: IndexedCorpus, spec: str, depth: int) -> RunFile:
    """Load the run file given as ``NAME=PATH``.

    Raises:
        InvalidInput: The file or a part of ``spec`` is missing, or the file is unreadable.
    """
    name, _, place = spec.partition("=")
    if not name.strip() or not place.strip():
        raise InvalidInput(f"Invalid run file {spec!r}: use NAME=PATH.")
    return read_run_file(wb, test_set, corpus, name, read_run_text(place.strip()), depth)


def read_run_text(path: str, content: bytes | None = None) -> str:
    """Return the text of a run file, which may be compressed; ``content`` is that of an upload. Raises InvalidInput."""
    try:
        return read_plain_or_gzip(Path(path) if content is None else content)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror or error if isinstance(error, OSError) else "it is not UTF-8 text"
        raise InvalidInput(f"{path} is unreadable ({reason}); give a run file in TREC format or a CSV.") from error


def read_run_file(
    wb: Workbench, test_set: TestSet, corpus: IndexedCorpus, name: str, content: str, depth: int
) -> RunFile:
    """Return the answers in a run file, with the first ``depth`` documents of each.

    Documents are named by the keys of the test set's corpus, or by id, path or URL of the user's documents.

    Raises:
        InvalidInput: The name is not valid, or the content is in neither form.
    """
    name = " ".join(name.split())
    if not _RUN_FILE_NAME.fullmatch(name) or name in STRATEGIES:
        raise InvalidInput(f"Invalid run file name {name!r}: use up to 60 letters and digits, not a strategy's name.")
    keys = _read_document_keys(wb, test_set, corpus)
    ids = {question.id for question in test_set.questions}
    texts = {fold_text(question.text): question.id for question in test_set.questions}
    rows: dict[str, list[_RunRow]] = {}
    strange, documents = set[str](), dict[str, None]()
    for row in _read_run_rows(name, content.lstrip("\ufeff")):
        question_id = row.query if row.query in ids else texts.get(fold_text(row.query))
        if question_id is None:
            strange.add(row.query)
        else:
            rows.setdefault(question_id, []).append(row)
            documents[row.document] = None
    if not rows:
        asked = list_choices([question.id for question in test_set.answerable], 5)
        raise InvalidInput(
            f"The run file {name!r} contains none of the questions of {test_set.name!r}, such as {asked}."
        )
    answers = {
        question.id: Ranking(question.id, _rank_documents(rows.get(question.id, ()), keys, depth), (), 0.0)
        for question in test_set.answerable
    }
    silent = sum(question.id not in rows for question in test_set.answerable)
    unknown = [document for document in documents if document not in keys]
    notes: list[str] = []
    if silent:
        notes.append(f"{name} has no answer to {count_text(silent, 'question')}, counted as if it had found nothing.")
    if strange:
        notes.append(f"{name} answers {count_text(len(strange), 'question')} that the test set lacks; left out.")
    if unknown:
        notes.append(
            f"{name} ranks {count_text(len(unknown), 'document')} that the corpus lacks, such as {unknown[0]!r}; "
            "counted as not relevant."
        )
    repeated = sum(len(ranked) - len({row.document for row in ranked}) for ranked in rows.values())
    if repeated:
        notes.append(f"{name} repeats documents in {count_text(repeated, 'line')}; the best rank of each counts.")
    if test_set.spans or test_set.pages:
        notes.append(f"{name} ranks documents, so its passage and page metrics are 0.")
    return RunFile(name, answers, tuple(notes))


def add_run_files(run: EvalRun, files: Sequence[RunFile], metrics: Sequence[str]) -> EvalRun:
    """Return a run with run files measured next to its strategies.

    Raises:
        InvalidInput: Two run files have the same name.
    """
    names = [file.name for file in files]
    if len(set(names)) < len(names):
        raise InvalidInput(f"The run files are called {list_choices(names)}; give each a unique name.")
    measured = {file.name: score_answers(run.test_set, file.name, {}, file.answers, metrics) for file in files}
    return replace(run, strategies={**run.strategies, **measured})


def _read_document_keys(wb: Workbench, test_set: TestSet, corpus: IndexedCorpus) -> dict[str, str]:
    """Return {name that a run file may use for a document: key used by judgments}."""
    if corpus.keys:
        return {key: key for key in corpus.keys.values()} | dict(corpus.keys)
    listed = list_documents(wb, resolve_scope(wb, test_set.scope))
    by_place = {str(place): one.id for one in listed for place in (one.path, one.url) if place}
    return by_place | {one.id: one.id for one in listed}


def _rank_documents(rows: list[_RunRow] | tuple[()], keys: Mapping[str, str], depth: int) -> tuple[str, ...]:
    ordered = sorted(rows, key=lambda row: row.order)
    return tuple(dict.fromkeys(keys.get(row.document, row.document) for row in ordered))[:depth]


def _read_run_rows(name: str, content: str) -> Iterator[_RunRow]:
    first = next((line for line in content.splitlines() if line.strip()), "")
    delimiter = next((mark for mark in "\t;" if mark in first), ",")
    header = [cell.strip().strip('"').lower() for cell in first.split(delimiter)]
    if set(header) & set(QUERY_COLUMNS) and set(header) & set(DOCUMENT_COLUMNS):
        yield from _read_run_table(name, content, delimiter)
    else:
        yield from _read_trec_run(name, content)


def _read_trec_run(name: str, content: str) -> Iterator[_RunRow]:
    for number, line in enumerate(content.splitlines(), 1):
        if not line.strip():
            continue
        try:
            cells = line.split("\t") if line.count("\t") == 5 else line.split()
            query, _, document, _, score, _ = map(str.strip, cells)
            yield _RunRow(query, document, (-read_number(score, f"Line {number} of the run file {name!r}"), number))
        except ValueError:
            raise InvalidInput(
                f"Line {number} of the run file {name!r} is not in TREC format; it has six columns (query, Q0, "
                "document, rank, score, tag), or the file is a CSV with the columns query, document and score."
            ) from None


def _read_run_table(name: str, content: str, delimiter: str) -> Iterator[_RunRow]:
    reader = csv.DictReader(io.StringIO(content, newline=""), delimiter=delimiter)
    header = [column.strip().lower() for column in reader.fieldnames or []]
    reader.fieldnames = header
    query, document = (next(one for one in names if one in header) for names in (QUERY_COLUMNS, DOCUMENT_COLUMNS))
    try:
        for number, row in enumerate(reader, 2):
            if not (row.get(query) and row.get(document)):
                raise ValueError(number)
            place = f"Line {reader.line_num} of the run file {name!r}"
            order = (
                -read_number(row["score"], place) if row.get("score") else read_number(row.get("rank") or "0", place)
            )
            yield _RunRow(row[query].strip(), row[document].strip(), (order, number))
    except (ValueError, csv.Error):
        raise InvalidInput(
            f"Line {reader.line_num} of the run file {name!r} is invalid; each line has a query, a document, and a "
            "number as score or rank if there is such a column."
        ) from None
