"""Leaderboards of experiments, scores by question, and comparisons of runs and experiments."""

from __future__ import annotations

import csv
import io
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from pydantic import TypeAdapter

from evals.experiments.runs import Bar, CellResult, Experiment, Ranking, StrategyRun
from evals.gateway import IndexedCorpus, describe_deleted, list_documents, resolve_scope
from evals.measures.metrics import measure_unjudged, metric_title
from evals.measures.significance import (
    EQUALITY_TOLERANCE,
    SIGNIFICANCE_LEVEL,
    Difference,
    bootstrap_interval,
    compare_pairs,
    count_pairs,
    count_questions_needed,
    describe_outcome,
    describe_power,
    find_winner_name,
    format_more,
    format_p,
    measure_power,
)
from evals.test_set import TestSet
from workbench.errors import InvalidInput, list_choices
from workbench.formatting import count_text
from workbench.retrieval.own import OWN_NOTE, UNMATCHED_PREFIX
from workbench.types import FAULT_END, JsonObject, Value
from workbench.workbench import Workbench

SCORE_DIGITS = 6


@dataclass(frozen=True, slots=True)
class LeaderboardLine(Value):
    """One run on the leaderboard; ``interval`` is the 95% bootstrap interval of the first metric.

    ``against_best`` is None for the best run. ``on_front`` if no other run is both better and faster (at the median).
    """

    label: str
    run_id: str
    status: str
    error: str | None
    metrics: Mapping[str, float]
    interval: tuple[float, float]
    latency_ms: Mapping[str, float]
    index_name: str
    index_bytes: int
    against_best: Difference | None = None
    on_front: bool = False
    rank: int | None = None  # shared by runs of equal means; None if the run is not done
    unjudged: float | None = None  # share (0..1) of the ranked documents without a judgment; None without a cutoff
    bounds: tuple[float, float] | None = None  # of the mean, if none or all of these documents were relevant
    note: str = ""
    tags: tuple[str, ...] = ()
    usage: Mapping[str, float] = field(default_factory=dict)  # means per question, as in ``StrategyRun.usage``
    dollars: float | None = None  # mean cost of a question; None if no price is known
    spread: Mapping[str, float] = field(default_factory=dict)  # as in ``StrategyRun.spread``


@dataclass(frozen=True, slots=True)
class Change(Value):
    """One question in two runs; ``difference`` = second - first."""

    question_id: str
    first: float
    second: float

    @property
    def difference(self) -> float:
        """The second value minus the first."""
        return self.second - self.first


def make_leaderboard(results: Sequence[CellResult], metric: str) -> list[LeaderboardLine]:
    """Return the runs, best first, each compared with the best and corrected for every pair of runs.

    Raises:
        InvalidInput: The metric was not measured.
    """
    results = select_measured(results, metric)
    measured = [result for result in results if result.run is not None]
    _check_measured(measured, metric)
    ordered = sorted(measured, key=lambda result: -_measure_mean(result, metric))
    lines = [_make_line(result, metric) for result in ordered]
    pairs = count_pairs(len(ordered))
    against = [None, *_list_differences(ordered[0], ordered[1:], metric, pairs)] if ordered else []
    costs = [line.latency_ms.get("p50", math.inf) for line in lines]
    front = set(pareto_front([(line.metrics[metric], cost) for line, cost in zip(lines, costs, strict=True)]))
    means = [line.metrics[metric] for line in lines]
    placed = [
        replace(
            line,
            against_best=difference,
            on_front=place in front,
            rank=1 + sum(mean > means[place] + EQUALITY_TOLERANCE for mean in means),
        )
        for place, (line, difference) in enumerate(zip(lines, against, strict=True))
    ]
    return placed + [_make_line(result, metric) for result in results if result.run is None]


def select_measured(results: Sequence[CellResult], metric: str) -> list[CellResult]:
    """Return the results, without the run files that lack a metric because it measures answers."""
    done = {name for result in results if result.run is not None for name in result.run.values}
    return [
        result
        for result in results
        if metric not in done or not result.cell.file_hash or result.run is None or metric in result.run.values
    ]


def compare_with_run(results: Sequence[CellResult], metric: str, run_id: str) -> dict[str, Difference]:
    """Return {run id: difference from the given run}, corrected for the number of runs.

    Raises:
        InvalidInput: That run or the metric was not measured.
    """
    measured = {result.run_id: result for result in results if result.run is not None}
    reference = measured.pop(run_id, None)
    if reference is None:
        raise InvalidInput("A run is not finished, so there is nothing to compare; finish the experiment first.")
    _check_measured([reference, *measured.values()], metric)
    return dict(zip(measured, _list_differences(reference, list(measured.values()), metric), strict=True))


def pareto_front(points: Sequence[tuple[float, float]]) -> list[int]:
    """Return the positions of (quality, cost) pairs that no other pair beats in both, without duplicates."""
    front, best = list[int](), -math.inf
    for place in sorted(range(len(points)), key=lambda place: (points[place][1], -points[place][0])):
        if points[place][0] > best:
            front.append(place)
            best = points[place][0]
    return sorted(front)


def scores_by_question(results: Sequence[CellResult], metric: str) -> dict[str, dict[str, float]]:
    """Return {question id: {run label: value}} for the heat map. Raises InvalidInput for an unmeasured metric."""
    _check_measured(results, metric)
    values: dict[str, dict[str, float]] = {}
    for result in results:
        if result.run is not None:
            for question_id, value in result.run.values[metric].items():
                values.setdefault(question_id, {})[result.cell.label] = value
    return values


def find_changes(first: CellResult, second: CellResult, metric: str) -> list[Change]:
    """Return the questions whose value differs between two runs, the greatest losses first.

    Raises:
        InvalidInput: A run is not finished, the metric was not measured, or the questions differ.
    """
    if first.run is None or second.run is None:
        raise InvalidInput("A run is not finished, so there is nothing to compare; finish the experiment first.")
    _check_measured([first, second], metric)
    before, after = first.run.values[metric], second.run.values[metric]
    if before.keys() != after.keys():
        raise InvalidInput("The runs were asked different questions; compare runs on one version of a test set.")
    differing = [Change(key, before[key], after[key]) for key in before if abs(after[key] - before[key]) > 1e-9]
    return sorted(differing, key=lambda change: (change.difference, change.question_id))


def check_comparable(first: Experiment, second: Experiment) -> None:
    """Raise InvalidInput if the corpora or questions of two experiments differ."""
    if first.corpus_hash != second.corpus_hash:
        raise InvalidInput(
            f"{first.title!r} and {second.title!r} ran on different corpora, so differences may come from these; to "
            "compare fairly, repeat the older one as a new experiment."
        )
    if first.test_set_hash != second.test_set_hash:
        raise InvalidInput(
            f"{first.title!r} and {second.title!r} used different questions or judgments; to compare them, repeat the "
            "older one as a new experiment."
        )


def to_csv(lines: Sequence[LeaderboardLine], scope: str) -> str:
    """Return the leaderboard as CSV; ``scope`` is a column."""
    stream = io.StringIO()
    writer = csv.writer(stream)
    metrics = list(dict.fromkeys(name for line in lines for name in line.metrics))
    used = ("context_tokens", "llm_calls", "llm_input_tokens", "llm_output_tokens")
    tail = ["low", "high", "p50_ms", "p95_ms", "index", "index_bytes"]
    tail += ["p", "p_against_best", "won", "lost", "unjudged", *used, "dollars", "scope"]
    writer.writerow(["run", "status", *metrics, *tail])
    for line in lines:
        best = line.against_best
        against = [best.p, best.p_corrected, best.wins, best.losses] if best else [""] * 4
        values = [line.metrics.get(name, "") for name in metrics]
        times = [line.latency_ms.get(name, "") for name in ("p50", "p95")]
        index = [line.index_name, line.index_bytes]
        costs = [*(line.usage.get(name, "") for name in used), line.dollars]
        writer.writerow(
            [line.label, line.status, *values, *line.interval, *times, *index, *against, line.unjudged, *costs, scope]
        )
    return stream.getvalue()


def _check_measured(results: Sequence[CellResult], metric: str) -> None:
    for result in results:
        if result.run is not None and metric not in result.run.values:
            raise InvalidInput(
                f"{metric} was not measured in this experiment; choose one of {list_choices(result.run.values)}."
            )


def _values(result: CellResult, metric: str) -> Mapping[str, float]:
    return result.run.values.get(metric, {}) if result.run else {}


def _measure_mean(result: CellResult, metric: str) -> float:
    return result.run.means[metric] if result.run else 0.0


def _measure_interval(result: CellResult, metric: str) -> tuple[float, float]:
    low, high = bootstrap_interval(list(_values(result, metric).values()))
    return round(low, SCORE_DIGITS), round(high, SCORE_DIGITS)


def _list_differences(
    reference: CellResult, others: Sequence[CellResult], metric: str, comparisons: int | None = None
) -> list[Difference]:
    """Return how each of the others differs from a run, corrected for ``comparisons`` (default: their number)."""
    label, values = reference.cell.label, _values(reference, metric)
    pairs = [(other.cell.label, _values(other, metric), label, values) for other in others]
    runs = [one.run for one in (reference, *others) if one.run is not None]
    return mark_undecidable(compare_pairs(metric, pairs, comparisons=comparisons), runs)


def _make_line(result: CellResult, metric: str) -> LeaderboardLine:
    return LeaderboardLine(
        label=result.cell.label,
        run_id=result.run_id,
        status=result.status,
        error=result.error,
        metrics={name: round(value, SCORE_DIGITS) for name, value in result.run.means.items()} if result.run else {},
        interval=_measure_interval(result, metric),
        latency_ms=result.run.latency_ms if result.run else {},
        index_name=result.index_name,
        index_bytes=0 if result.cell.file_hash else result.index_bytes,
        unjudged=result.run.share_unjudged.get(metric) if result.run and metric in result.run.bounds else None,
        bounds=result.run.bounds.get(metric) if result.run else None,
        note=result.note,
        tags=result.tags,
        usage=result.run.usage if result.run else {},
        dollars=result.run.dollars if result.run else None,
        spread=result.run.spread if result.run else {},
    )


# Comparing two experiments


@dataclass(frozen=True, slots=True)
class Score(Value):
    """The mean of a run's metric over its questions, in 0..1, with the 95% bootstrap interval."""

    mean: float
    interval: tuple[float, float]


@dataclass(frozen=True, slots=True)
class Pair(Value):
    """The finished run with one label in the first and in the second experiment; None if there is none.

    ``difference`` is second - first, paired by question; None if their questions differ.
    """

    label: str
    strategy: str
    first: Score | None
    second: Score | None
    difference: Difference | None = None


def find_shared_metrics(first: Sequence[CellResult], second: Sequence[CellResult]) -> list[str]:
    """Return the metrics of all finished runs of both experiments, in the first one's order; files have no answers."""
    runs = [result.run for result in (*first, *second) if result.run is not None and not result.cell.file_hash]
    runs = runs or [result.run for result in (*first, *second) if result.run is not None]
    return [metric for metric in (runs[0].values if runs else ()) if all(metric in run.values for run in runs)]


def pair_runs(
    first: Sequence[CellResult], second: Sequence[CellResult], metric: str, *, paired: bool = True
) -> list[Pair]:
    """Match the runs of two experiments by label; return them by the better value of each pair, best first.

    The differences are corrected for their number (Holm); ``paired=False`` omits them, as is required if the
    questions or their judgments differ.

    Raises:
        InvalidInput: The metric was not measured in both.
    """
    if metric not in find_shared_metrics(first, second):
        raise InvalidInput(f"{metric} was not measured in both experiments; choose a shared metric.")
    before, after = (
        {one.cell.label: one for one in select_measured(results, metric) if one.run is not None}
        for results in (first, second)
    )
    values = {
        label: (_values(after[label], metric), _values(before[label], metric)) for label in before if label in after
    }
    tested = {label: both for label, both in values.items() if paired and both[0].keys() == both[1].keys()}
    differences = compare_pairs(metric, [(label, second, label, first) for label, (second, first) in tested.items()])
    by_label = dict(zip(tested, differences, strict=True))
    pairs = [
        Pair(
            label=label,
            strategy=(before.get(label) or after[label]).cell.strategy,
            first=_make_score(before.get(label), metric),
            second=_make_score(after.get(label), metric),
            difference=by_label.get(label),
        )
        for label in dict.fromkeys([*before, *after])
    ]
    return sorted(pairs, key=lambda pair: -max(score.mean for score in (pair.first, pair.second) if score))


def _make_score(result: CellResult | None, metric: str) -> Score | None:
    if result is None:
        return None
    return Score(round(_measure_mean(result, metric), SCORE_DIGITS), _measure_interval(result, metric))


# Winners over time and weaknesses

MIN_QUESTIONS = 30  # with fewer questions, intervals are so wide that few differences are significant
SATURATION_SCORE = 0.95  # if every run is above it, the test set no longer separates them


@dataclass(frozen=True, slots=True)
class Winner(Value):
    """The best run of an experiment by a metric, with the 95% bootstrap interval of the mean."""

    experiment_id: str
    test_set_id: str
    label: str
    strategy: str
    metric: str
    score: float
    interval: tuple[float, float]
    created_at: datetime | None = None
    tied: int = 1  # runs with this score, including this one
    is_decided: bool = False  # whether it is significantly better than every other run


def find_winner(experiment: Experiment, results: Sequence[CellResult]) -> Winner | None:
    """Return the best run by the experiment's first metric; None if none is done."""
    metric = experiment.metrics[0]
    lines = [line for line in make_leaderboard(results, metric) if line.rank is not None]
    if not lines:
        return None
    best = lines[0]
    winner = next(result for result in results if result.run_id == best.run_id)
    differences = [line.against_best for line in lines if line.against_best is not None]
    return Winner(
        experiment_id=experiment.id,
        test_set_id=experiment.test_set_id,
        label=winner.cell.label,
        strategy=winner.cell.strategy,
        metric=metric,
        score=best.metrics[metric],
        interval=best.interval,
        created_at=experiment.created_at,
        tied=sum(line.rank == 1 for line in lines),
        is_decided=find_winner_name(best.label, differences) is not None,
    )


def load_winner(experiment: Experiment, stored: JsonObject) -> Winner:
    """Return an experiment's winner from its stored form."""
    return TypeAdapter(Winner).validate_python({**stored, "created_at": experiment.created_at})


def winner_trend(winners: Iterable[Winner], test_set_id: str) -> list[Winner]:
    """Return the winners of a test set's experiments, oldest first; those with another first metric are omitted.

    The metric is taken from the newest experiment.
    """
    own = [win for win in winners if win.test_set_id == test_set_id]
    dated = sorted(own, key=lambda win: (win.created_at is not None, win.created_at))
    return [win for win in dated if win.metric == dated[-1].metric]


def describe_judged_outside(wb: Workbench, test_set: TestSet) -> tuple[str, ...]:
    """Return a sentence on the relevant documents outside the test set's scope; () if there are none."""
    if test_set.corpus is not None or test_set.scope.is_everything or describe_deleted(wb, test_set.scope):
        return ()
    relevant = {key for grades in test_set.qrels.values() for key, grade in grades.items() if grade > 0}
    present = {document.id for document in wb.documents.list()} & relevant
    outside = present - {document.id for document in list_documents(wb, resolve_scope(wb, test_set.scope))}
    if not outside:
        return ()
    are = "is" if len(outside) == 1 else "are"
    return (
        f"{count_text(len(outside), 'document')} judged relevant {are} outside the scope of this test set "
        f"({test_set.scope.text}), so no search finds {'it' if len(outside) == 1 else 'them'}.",
    )


def describe_pageless(test_set: TestSet, corpus: IndexedCorpus) -> tuple[str, ...]:
    """Return a sentence on the documents whose pages were judged but that have none, such as Markdown; () if none."""
    keys = {key for places in test_set.pages.values() for key, _ in places}
    pageless = [key for key in sorted(keys) if any(not corpus.pages(one) for one in corpus.document_ids([key]))]
    if not pageless:
        return ()
    shown = list_choices(pageless, 5)
    return (f"Pages are judged of documents without pages, so these judgments are never met: {shown}.",)


# Shorter words are mostly grammar, and a passage does not repeat the words that ask.
CONTENT_WORD = re.compile(r"\b(?!(?:what|when|where|which|does|whose)\b)\w{4,}")
SENTENCE_END = re.compile(r"(?<=[.!?])\s|\n")
MIN_WORDS_REPEATED = 4  # content words of a question; shorter ones repeat a passage's words by necessity
REPEATED_SHARE = 0.8  # of a question's content words, in one sentence
MAX_SHARE_REPEATED = 0.25  # of the questions


def describe_wording(test_set: TestSet, texts: Mapping[str, Sequence[str]]) -> list[str]:
    """Return a sentence if many questions repeat the words of a sentence in their relevant texts; [] if few do."""
    asked = {question.id: question.text for question in test_set.answerable if question.id in texts}
    repeated = sum(any(_repeats(asked[key], text) for text in texts[key]) for key in asked)
    if repeated <= MAX_SHARE_REPEATED * len(asked):
        return []
    return [
        f"{repeated:,} of {count_text(len(asked), 'question')} repeat the words of a sentence that is judged relevant, "
        "which favours keyword search."
    ]


def _repeats(question: str, text: str) -> bool:
    words = set(CONTENT_WORD.findall(question.casefold()))
    sentences = (set(CONTENT_WORD.findall(sentence)) for sentence in SENTENCE_END.split(text.casefold()))
    needed = max(MIN_WORDS_REPEATED, REPEATED_SHARE * len(words))
    return any(len(words & sentence) >= needed for sentence in sentences)


def describe_leaderboard(
    lines: Sequence[LeaderboardLine],
    results: Sequence[CellResult],
    metric: str,
    titles: Mapping[str, str] | None = None,
    *,
    questions: int | None = None,
    difference: float | None = None,
) -> list[str]:
    """Return whether the best run is decided, and which differences its questions can show; [] for a single run.

    Args:
        lines: The leaderboard.
        results: The runs.
        metric: The metric of the leaderboard.
        titles: Display names of the runs by label.
        questions: Number of questions of the whole test set, if these were a pilot of it.
        difference: Also report how many questions this difference needs.
    """
    titles = titles or {line.label: line.label for line in lines}
    differences = [replace(d, a=titles[d.a]) for line in lines if (d := line.against_best) is not None]
    if not differences:
        return []
    values = {result.run_id: _values(result, metric) for result in results if result.run is not None}
    outcome = describe_outcome(titles[lines[0].label], differences)
    pilot = len(next(iter(values.values())))
    return [outcome, *(describe_power(measure_power(metric, values, questions, difference)) if pilot > 1 else [])]


def describe_weaknesses(test_set: TestSet, runs: Mapping[str, StrategyRun], metric: str) -> tuple[str, ...]:
    """Return a sentence for each weakness of the test set: few, generated or saturated questions."""
    questions = test_set.answerable
    sentences: list[str] = []
    if len(questions) < MIN_QUESTIONS:
        verb, asked = "is" if len(questions) == 1 else "are", count_text(len(questions), "question")
        few = f"with fewer than {MIN_QUESTIONS}, few differences are significant"
        sentences.append(f"There {verb} only {asked}; {few}.")
    left_out = len(test_set.questions) - len(test_set.scorable)
    if left_out and test_set.corpus is None:
        sentences.append(
            f"Left out, as nothing is judged relevant: {count_text(left_out, 'question')}; judge more documents, or "
            "mark the questions that they do not answer."
        )
    folded = [" ".join(re.findall(r"\w+", one.in_context.casefold())) for one in questions]
    times = Counter(folded)
    repeated = sum(count - 1 for count in times.values())
    if repeated:
        first = next(one.text for one, text in zip(questions, folded, strict=True) if times[text] > 1)
        verb = "repeats an earlier one" if repeated == 1 else "repeat earlier ones"
        sentences.append(
            f"{count_text(repeated, 'question')} {verb}, so their answers count more than once; the first: {first!r}."
        )
    weak = sum(judgment.place in test_set.by_agents for judgment in test_set.judgments)
    if weak:
        sentences.append(
            f"{weak:,} of {count_text(len(test_set.judgments), 'judgment')} are weak: agents judged, opened or cited "
            "the documents, and no person has confirmed it."
        )
    relevant = [sum(grade > 0 for grade in test_set.qrels[question.id].values()) for question in questions]
    if relevant and max(relevant) == 1:
        sentences.append("Each question has a single relevant document, so other good documents count as misses.")
    synthetic = sum(question.origin == "synthetic" for question in questions)
    if questions and synthetic * 2 > len(questions):
        sentences.append(
            f"{synthetic} of {len(questions)} questions reuse the documents' wording, which favours keyword search."
        )
    own = max((sum(answer.has_lost_itself for answer in run.answers.values()) for run in runs.values()), default=0)
    if own:
        sentences.append(f"Left out of the ranking of a question that is itself a document: {count_text(own, 'time')}.")
    means = [run.means[metric] for run in runs.values() if metric in run.values]
    if means and min(means) >= SATURATION_SCORE:
        sentences.append(
            f"Every run reaches at least {SATURATION_SCORE} {metric_title(metric)}: the questions are too easy to "
            "separate the runs."
        )
    return (*sentences, *describe_pool(test_set, runs), *_describe_faults(runs))


POOL_DEPTH = 10
MIN_POOL_GRADES = 3  # judgments per question, from which a pool can be recognised


def describe_pool(test_set: TestSet, runs: Mapping[str, StrategyRun]) -> list[str]:
    """Return a sentence if the judgments seem to come from one strategy's results only; [] if not.

    Runs that found nothing for half of the questions or more are left out.
    """
    found = {
        name: sum(bool(answer.documents) and not _is_elsewhere(answer) for answer in run.answers.values())
        for name, run in runs.items()
    }
    runs = {name: run for name, run in runs.items() if 2 * found[name] > len(run.answers)}
    qrels = {question.id: test_set.qrels[question.id] for question in test_set.answerable}
    judged = sum(len(grades) for grades in qrels.values())
    if len(runs) < 2 or not qrels:
        return []
    unjudged: dict[str, float] = {}
    covered: dict[str, float] = {}
    for name, run in runs.items():
        rankings = {key: answer.documents for key, answer in run.answers.items()}
        unjudged[name] = measure_unjudged(qrels, rankings, POOL_DEPTH)
        shared = (set(rankings.get(key, ())[:POOL_DEPTH]) & grades.keys() for key, grades in qrels.items())
        covered[name] = sum(map(len, shared)) / judged
    own = min(unjudged, key=lambda name: unjudged[name])
    others = [name for name in runs if name != own]
    is_full = unjudged[own] <= 0.02 and all(unjudged[name] >= 0.1 for name in others)
    is_source = covered[own] >= 0.98 and all(covered[name] < 0.9 for name in others)
    if not is_full and not (is_source and judged >= MIN_POOL_GRADES * len(qrels)):
        return []
    share = min(unjudged[name] for name in others)
    return [
        f"The judgments seem to come from the results of {own} only ({share:.0%} or more of the others' first "
        f"{POOL_DEPTH} documents are unjudged), which favours it; judge a pool of all strategies."
    ]


MIN_POOL_JUDGED = 1 / 3  # with less, the judgments of anthropic_docs made a winner of equal strategies (decision 042)


def mark_undecidable(differences: Sequence[Difference], runs: Sequence[StrategyRun]) -> list[Difference]:
    """Return differences that are not significant if too little of a pool is judged, as the rest can change them.

    A pool has as many judgments that a document is not relevant as that one is, or more, those of questions without a
    relevant document included. With fewer, what has no judgment is taken to be not relevant, as usual.
    """
    qrels = runs[0].qrels
    relevant = sum(grade > 0 for own in qrels.values() for grade in own.values())
    found = {(key, one) for run in runs for key, answer in run.answers.items() for one in answer.documents[:POOL_DEPTH]}
    judged = sum(qrels.get(key, {}).get(document, -1) >= 0 for key, document in found)
    if relevant > runs[0].judged_not or judged >= MIN_POOL_JUDGED * len(found):
        return list(differences)
    return [replace(one, significant=False, unjudged=round(1 - judged / len(found), 4)) for one in differences]


def _describe_faults(runs: Mapping[str, StrategyRun]) -> list[str]:
    """Return sentences on the user's own strategies that failed or found other documents on some questions."""
    sentences: list[str] = []
    for name, run in runs.items():
        asked = f"of {count_text(len(run.answers), 'question')}"
        faults = [note for answer in run.answers.values() for note in answer.degraded if note.endswith(FAULT_END)]
        if faults:
            first = faults[0].removeprefix(OWN_NOTE).removesuffix(FAULT_END)
            failed = f"{len(faults):,} {asked}"
            sentences.append(f"{name} failed on {failed}, which count as if it had found nothing; the first: {first}.")
        missed = sum(_is_elsewhere(answer) for answer in run.answers.values())
        if 2 * missed >= len(run.answers) > 0:
            sentences.append(
                f"{name} found no document of this test set on {missed:,} {asked}; check that it searches the same "
                "documents, under the same ids, URLs or paths."
            )
    return sentences


def _is_elsewhere(answer: Ranking) -> bool:
    """Return whether a retriever of the user's own answered, but with no passage of the corpus."""
    notes = [note for note in answer.degraded if note.startswith(OWN_NOTE)]
    failed = any(note.endswith(FAULT_END) for note in notes)
    return bool(notes) and not failed and all(hit.passage_id.startswith(UNMATCHED_PREFIX) for hit in answer.passages)


# Bars: what the runs must reach, set before the experiment runs, and the verdicts on them


def check_bars(bars: Sequence[Bar], runs: Sequence[str], metrics: Sequence[str]) -> None:
    """Check bars for an experiment with these runs. Raises InvalidInput."""
    for bar in bars:
        for name in (bar.run, bar.against) if bar.against else (bar.run,):
            if name not in runs:
                raise InvalidInput(f"{name!r} is not a run of the experiment; use {list_choices(runs, 20)} in a bar.")
        if bar.metric not in metrics:
            raise InvalidInput(f"{bar.metric} is not measured; add it to the metrics, or use {list_choices(metrics)}.")
        if bar.min is None and not bar.is_compared:
            raise InvalidInput(f"The bar of {bar.run} has no value; give it min, or max_drop or min_gain.")


def gain_bars(baseline: str, min_gain: float | None, runs: Sequence[str], metric: str) -> tuple[Bar, ...]:
    """Return the bars by which every other run has to gain ``min_gain`` over the run ``baseline``; none without both.

    Raises:
        InvalidInput: There is only one of the two, the baseline is no run or the only one, or the gain is below 0.
    """
    if not baseline and min_gain is None:
        return ()
    others = [run for run in runs if run != baseline]
    if baseline not in runs or not others or min_gain is None or min_gain < 0:
        raise InvalidInput(
            f"A bar needs a baseline, one of several runs ({list_choices(runs, 20)}), and the smallest gain over it "
            "that matters, at least 0."
        )
    return tuple(Bar(run, metric, against=baseline, min_gain=min_gain) for run in others)


@dataclass(frozen=True, slots=True)
class Verdict(Value):
    """The outcome of one bar of one run."""

    experiment: str
    run: str
    metric: str
    bar: str  # such as "at least 0.8" or "at most 0.02 below hybrid"
    value: float | None  # the mean; None if the run failed
    state: str  # "passed", "failed", "undecided", "error" or "skipped"
    detail: str

    @property
    def is_failure(self) -> bool:
        """True if it fails the check."""
        return self.state in ("failed", "error")


def judge_bars(
    title: str,
    bars: Sequence[Bar],
    runs: Mapping[str, StrategyRun],
    baseline: Mapping[str, Mapping[str, Mapping[str, float]]] | None = None,
    missing: str = "the baseline has no values for it",
) -> Iterator[Verdict]:
    """Yield a verdict for each bar of the runs that have figures.

    Tests of drops are one-sided, and all are corrected for their number.

    Args:
        title: Title of the experiment.
        bars: The bars; those of other runs are left out.
        runs: The runs by name.
        baseline: The baseline's values of each question, by run and metric.
        missing: Why the baseline has no values.
    """
    bars = [bar for bar in bars if bar.run in runs]
    for bar in bars:
        if bar.min is not None:
            mean = runs[bar.run].means[bar.metric]
            state, verb = ("passed", "is not") if mean >= bar.min - 1e-9 else ("failed", "is")
            detail = f"{mean:.4f} {verb} below {bar.min:g}"
            yield Verdict(title, bar.run, bar.metric, f"at least {bar.min:g}", mean, state, detail)
    groups: dict[tuple[str, bool], list[tuple[Bar, Mapping[str, float]]]] = {}
    for bar in bars:
        if not bar.is_compared:
            continue
        if bar.against:
            before = runs[bar.against].values[bar.metric] if bar.against in runs else None
        else:
            before = (baseline or {}).get(bar.run, {}).get(bar.metric)
        if before is not None:
            groups.setdefault((bar.metric, bar.min_gain is not None), []).append((bar, before))
            continue
        mean, reason = (
            runs[bar.run].means[bar.metric],
            f"{bar.against} has no values for it" if bar.against else missing,
        )
        yield Verdict(title, bar.run, bar.metric, bar.allowance, mean, "skipped", reason)
    for (metric, is_gain), group in groups.items():
        pairs = [(bar.run, runs[bar.run].values[metric], bar.against or "the baseline", own) for bar, own in group]
        judge = judge_gain if is_gain else _judge_fall
        found = compare_pairs(metric, pairs, alternative="two-sided" if is_gain else "less")
        for (bar, _), difference in zip(group, mark_undecidable(found, list(runs.values())), strict=True):
            yield judge(title, bar, runs[bar.run].means[metric], difference)


def _judge_fall(title: str, bar: Bar, mean: float, difference: Difference) -> Verdict:
    """Fail a drop that is larger than tolerated, unless the paired test finds that it may be noise."""
    drop = -difference.difference
    too_large = drop > (bar.max_drop or 0.0) + 1e-9
    state = "failed" if too_large and difference.significant else "passed"
    change = f"{difference.difference:+.4f} against {difference.b}, {format_p(difference.p_corrected)}"
    if too_large and difference.unjudged:
        detail = f"{change}; not decidable: {difference.unjudged:.0%} of the pool is unjudged"
        return Verdict(title, bar.run, bar.metric, bar.allowance, mean, "undecided", detail)
    counts = f"won {difference.wins:,} and lost {difference.losses:,} questions"
    noise = f"; a larger drop than {bar.max_drop:g}, but it may be noise (p is not below {SIGNIFICANCE_LEVEL:g})"
    detail = f"{change}, {counts}{noise if too_large and state == 'passed' else ''}"
    return Verdict(title, bar.run, bar.metric, bar.allowance, mean, state, detail)


def judge_gain(title: str, bar: Bar, mean: float, difference: Difference) -> Verdict:
    """Pass a significant gain that is large enough, fail if the interval excludes it, else report it as undecided."""
    wanted = bar.min_gain or 0.0
    low, high = difference.interval
    change = f"{difference.difference:+.4f} against {difference.b} (95% interval {low:+.4f} to {high:+.4f})"
    change += f", {format_p(difference.p_corrected)}"
    state = "undecided"
    if difference.unjudged:
        change += f"; not decidable: {difference.unjudged:.0%} of the pool is unjudged"
    elif difference.significant and difference.difference >= max(wanted, 1e-9):
        state = "passed"
    elif high < wanted or (difference.significant and difference.difference < 0):
        state = "failed"
    else:
        measured = difference.wins + difference.losses + difference.ties
        differing = (difference.wins + difference.losses) / max(1, measured)
        size = max(wanted, abs(difference.difference))
        needed = count_questions_needed(difference.deviation, size, differing, difference.comparisons)
        more = f": {format_more(needed - measured)}" if needed and needed > measured else ""
        change += f"; not decidable with these questions{more}"
    return Verdict(title, bar.run, bar.metric, bar.allowance, mean, state, change)


def describe_changed_bars(experiment: Experiment, stored: Sequence[Experiment]) -> list[str]:
    """Return a sentence if an experiment ran with other bars before, or if its runs were measured before its bars.

    The latter is so if they were measured without bars, or with another bar for the same comparison.

    ``stored`` are the experiments on its test set, the newest first.
    """
    if not experiment.bars_hash:
        return []
    own = [one for one in stored if one.title == experiment.title and one.bars_hash]
    present = [one for one in own if one.bars_hash == experiment.bars_hash][-1]
    since = f"{present.created_at:%Y-%m-%d %H:%M}"
    before = stored[stored.index(present) + 1 :]
    if other := [one for one in own if one in before]:
        return [
            "Its hypothesis, runs or bars were changed: it first ran with others on "
            f"{other[-1].created_at:%Y-%m-%d %H:%M}; the present ones are from {since}."
        ]
    labels = {cell.label for cell in present.cells}
    compared = {(bar.run, bar.metric, bar.against) for bar in present.planned_bars}
    earlier = [
        one
        for one in before
        if (one.test_set_hash, one.corpus_hash) == (present.test_set_hash, present.corpus_hash)
        and one.bars_hash != present.bars_hash
        and (not one.bars_hash or compared & {(bar.run, bar.metric, bar.against) for bar in one.planned_bars})
        and labels & {cell.label for cell in one.cells}
    ]
    if not earlier:
        return []
    measured = f"{earlier[-1].title!r} on {earlier[-1].created_at:%Y-%m-%d %H:%M}"
    return [f"Its runs were measured in {measured}, before its bars were set on {since}."]
