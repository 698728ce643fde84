"""Results of ``wb.evaluate``, and ``wb.test_sets``: evaluation for notebooks and scripts."""

from __future__ import annotations

import csv
import hashlib
import io
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from itertools import combinations
from math import log2
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from evals.experiments import report
from evals.experiments.answers import (
    CITATION_PRECISION,
    AnswerScores,
    Refusals,
    ask_answers,
    check_unanswerable,
    compare_answers,
    describe_refusals,
    describe_threshold,
    measure_answers,
    measure_lifts,
    read_answers,
)
from evals.experiments.catalogue import Cell, Experiments, make_cells
from evals.experiments.leaderboard import (
    check_comparable,
    describe_judged_outside,
    describe_pageless,
    describe_weaknesses,
    describe_wording,
    find_changes,
    gain_bars,
    make_leaderboard,
    mark_undecidable,
)
from evals.experiments.report import format_spread
from evals.experiments.runs import (
    MAX_REPEATS,
    NO_PRICE,
    Bar,
    Budget,
    CellResult,
    EvalRun,
    Experiment,
    Prices,
    Ranking,
    StrategyRun,
    add_run_files,
    ask_question,
    estimate_cost,
    list_variants,
    load_run_file,
    mean_cost,
    name_writer,
    plan_cells,
    repeat_cells,
    run_strategies,
)
from evals.gateway import IndexedCorpus, describe_scope, index_corpus, map_document_ids, read_judged_texts
from evals.judges.judging import MAX_RATED, LlmRating, rate_by_llm, resume_experiment
from evals.learning.training import TrainingResult, describe_seen_ranker, find_trained_rankers
from evals.measures.metrics import (
    DEFAULT_METRICS,
    OFFERED_METRICS,
    PAGE_METRIC,
    check_metrics,
    max_ranking_depth,
    measure_rankings,
    measure_spans,
    metric_title,
)
from evals.measures.significance import (
    Difference,
    Lift,
    Power,
    bootstrap_interval,
    check_difference,
    compare_all_pairs,
    compare_pairs,
    compare_with_best,
    describe_decision,
    describe_difference,
    describe_outcome,
    describe_power,
    explain_difference,
    find_winner_name,
    measure_power,
)
from evals.test_set import FolderCorpus, Judgment, TestSet
from evals.test_sets.exchange import (
    export_folder,
    find_delimiter,
    import_csv,
    import_qrels,
    locate_quote,
    read_table,
    select_rater,
    to_csv,
    to_qrels,
    write_csv,
)
from evals.test_sets.folders import load_test_set, read_text
from evals.test_sets.raters import ORIGINAL, Disagreement, RaterAgreement, find_disagreements, measure_raters
from evals.test_sets.store import (
    ImportReport,
    Rating,
    TestSetInfo,
    TestSetStore,
    check_question,
    check_rating,
    find_counting,
    load_named_test_set,
    parse_grade,
)
from evals.test_sets.traffic import (
    ChainVerdict,
    InterleavingResult,
    add_agent_queries,
    judge_chain,
    list_chains,
    measure_interleavings,
)
from workbench.display import leaderboard_html
from workbench.errors import Cancelled, Conflict, InvalidInput, NotFound, WorkbenchError, list_choices
from workbench.formatting import count_text, progress_bar
from workbench.retrieval.strategies import check_parameters, split_strategy
from workbench.runtime import check_extra
from workbench.types import OnProgress, Progress, Scope, ShouldStop, Value
from workbench.workbench import Workbench

if TYPE_CHECKING:
    import altair
    import pandas
    from IPython.lib.pretty import RepresentationPrinter
    from rich.table import Table

__all__ = [  # imported for ``evals``, ``evals.workbench`` and the pages of the app
    "CITATION_PRECISION",
    "Bar",
    "check_comparable",
    "check_difference",
    "check_question",
    "MAX_REPEATS",
    "NO_PRICE",
    "OFFERED_METRICS",
    "InterleavingResult",
    "TrainingResult",
    "compare_all_pairs",
    "compare_answers",
    "describe_refusals",
    "describe_threshold",
    "explain_difference",
    "find_changes",
    "gain_bars",
    "format_spread",
    "locate_quote",
    "list_variants",
    "make_cells",
    "measure_interleavings",
    "measure_rankings",
    "measure_spans",
    "plan_cells",
    "read_answers",
    "resume_experiment",
]

AnyTestSet: TypeAlias = "str | Path | TestSet | TestSetInfo"

# The result of an evaluation


@dataclass(frozen=True)
class Evaluation:
    """Strategies and run files, measured on the same questions; a notebook shows it as a leaderboard."""

    run: EvalRun  # all answers and metric values
    metric: str  # the metric that orders the leaderboard
    notes: tuple[str, ...] = ()  # sentences about anything that was left out, failed, or weakens a conclusion
    wb: Workbench | None = field(default=None, repr=False, compare=False)  # has the documents
    budget: Budget = field(default_factory=Budget, repr=False, compare=False)  # of everything that is asked for it
    replies: dict[str, dict[str, Ranking]] = field(default_factory=dict, repr=False, compare=False)  # by strategy

    @property
    def strategies(self) -> dict[str, StrategyRun]:
        """The runs by name, best first."""
        return dict(sorted(self.run.strategies.items(), key=lambda item: -item[1].means[self.metric]))

    @property
    def best(self) -> str:
        """The name of the run with the highest mean, which may be chance; see ``winner``."""
        return next(iter(self.strategies))

    @property
    def winner(self) -> str | None:
        """The name of the run that is significantly better than every other one; None if that is not decided."""
        return find_winner_name(self.best, self.against_best)

    @property
    def outcome(self) -> str:
        """A sentence: decided, or about how many more questions would decide it; "" for a single run."""
        return describe_outcome(self.best, self.against_best)

    def power(self, difference: float | None = None, *, questions: int | None = None) -> Power:
        """Return the smallest difference that the questions can show with a power of 80%, from these runs.

        Args:
            difference: Also return how many questions this difference needs.
            questions: Number of questions of the whole test set, if these were a pilot of it.

        Raises:
            InvalidInput: A single run, fewer than two questions, or a difference outside 0..1.
        """
        values = {name: run.values[self.metric] for name, run in self.strategies.items()}
        return measure_power(self.metric, values, questions, difference)

    def slices(self, by: str) -> Slices:
        """Return the runs on each part of the questions, each compared with the best run of all.

        Args:
            by: "length" (in words) or "origin" of the question; else a key in its metadata or, if it lacks that, the
                "source", "tag", "type", "language" or metadata of its relevant documents. A question may be in several
                slices.

        Raises:
            InvalidInput: No question and no document has that key.
        """
        assert self.wb is not None
        groups = group_questions(self.wb, self.run.test_set, self.run.corpus.ids, by)
        values = {name: run.values[self.metric] for name, run in self.strategies.items()}
        return compare_in_slices(by, self.metric, groups, values)

    @property
    def questions(self) -> pandas.DataFrame:
        """One row per question with its text, and one column per run with its value."""
        check_extra("app")
        import pandas as pd

        asked = self.run.test_set.answerable
        columns = {
            name: [run.values[self.metric].get(one.id) for one in asked] for name, run in self.strategies.items()
        }
        index = pd.Index([question.id for question in asked], name="question_id")
        return pd.DataFrame({"question": [question.text for question in asked], **columns}, index=index)

    def compare(self, a: str, b: str, metric: str | None = None) -> Difference:
        """Return how run ``a`` differs from ``b``: a paired randomisation test over the questions.

        Args:
            a: Name of a run.
            b: Name of another run.
            metric: A measured metric; the leaderboard's if None.

        Raises:
            InvalidInput: There is no such run, or the metric was not measured.
        """
        chosen = metric or self.metric
        for name in (a, b):
            if name not in self.run.strategies:
                raise InvalidInput(f"There is no run {name!r}; use one of {list_choices(self.strategies, 20)}.")
            if chosen not in self.run.strategies[name].values:
                measured = list_choices(self.run.strategies[name].values, 20)
                raise InvalidInput(f"The metric {chosen!r} was not measured; use one of {measured}.")
        values = {name: self.run.strategies[name].values[chosen] for name in (a, b)}
        return compare_pairs(chosen, [(a, values[a], b, values[b])])[0]

    def answers(
        self,
        *,
        repeats: int = 1,
        on_progress: OnProgress | None = None,
        should_stop: ShouldStop | None = None,
    ) -> tuple[dict[str, AnswerScores], list[Lift]]:
        """Answer the questions with every strategy, and return what the answers contain and cite.

        Args:
            repeats: Number of times that a configured LLM answers.
            on_progress: Called with each ``Progress``, instead of a progress bar.
            should_stop: Polled between questions; return True to stop.

        Returns:
            The answers by strategy, and whether better retrieval by the best strategy reached the answers: one
            comparison with each of the others.
        """
        assert self.wb is not None
        prices, test_set, asked = Prices.from_settings(self.wb.settings), self.run.test_set, self.run.without_files
        scores: dict[str, AnswerScores] = {}
        left_out, before = list[str](), self.budget.spent
        with progress_bar("Answers", on_progress) as show:
            for name in (one for one in self.strategies if one in asked.strategies):  # best first
                strategy, index = split_strategy(name, None)
                corpus = index_corpus(self.wb, test_set, index) if index else self.run.corpus
                parameters, self.replies[name] = self.strategies[name].parameters, {}
                rounds = ask_answers(
                    self.wb, test_set, corpus, strategy, parameters, repeats=repeats, budget=self.budget,
                    first=self.replies[name], on_progress=show, should_stop=should_stop,
                )  # fmt: skip
                if missing := sum(len(test_set.scorable) - len(answers) for answers in rounds):
                    left_out.append(f"{name} ({missing:,} of {len(rounds) * len(test_set.scorable):,} not written)")
                    continue
                priced = (strategy, name_writer(self.wb.settings, parameters), corpus.index.embedding_model)
                costs = [prices.mean_cost(test_set.scorable, answers, *priced) for answers in rounds]
                scores[name] = measure_answers(test_set, rounds, mean_cost(costs))
        dollars = {name: one.dollars for name, one in scores.items()}
        self.budget.notes[:] = report.describe_cost(dollars, self.budget.spent - before, verb="answers")
        if left_out:
            self.budget.notes.append(f"Answers left out, because the budget was used up: {list_choices(left_out, 20)}.")
        found = {name: run.values[self.metric] for name, run in self.strategies.items()}
        return scores, measure_lifts(list(scores), self.metric, found, scores)

    def refusals(
        self, *, on_progress: OnProgress | None = None, should_stop: ShouldStop | None = None
    ) -> dict[str, Refusals]:
        """Return how well each strategy's answers refuse questions without an answer.

        Raises:
            InvalidInput: No question is marked as without an answer. Cancelled: ``should_stop`` returned True.
        """
        check_unanswerable(self.run.test_set)
        scores, _ = self.answers(on_progress=on_progress, should_stop=should_stop)
        return {name: one.refusals for name, one in scores.items() if one.refusals is not None}

    def to_pandas(self) -> pandas.DataFrame:
        """Return one row per run, best first: its means, the 95% interval of the first, times, and the test."""
        check_extra("app")
        import pandas as pd

        against = {one.a: describe_difference(one) for one in self.against_best}
        decisions = {one.a: describe_decision(one) for one in self.against_best}
        rows: list[dict[str, object]] = []
        for name, run in self.strategies.items():
            low, high = bootstrap_interval(list(run.values[self.metric].values()))
            row: dict[str, object] = {"strategy": name, **run.means, "low": low, "high": high}
            row |= {"p50_ms": run.latency_ms.get("p50"), "against_best": against.get(name, "")}
            row |= {"unjudged": run.share_unjudged.get(self.metric), "bounds": run.bounds.get(self.metric)}
            rows.append(row | {"decision": decisions.get(name, "")})
        return pd.DataFrame(rows).set_index("strategy")

    def plot(self) -> altair.LayerChart | altair.FacetChart:
        """Return an Altair chart: the mean of each run with its 95% interval."""
        check_extra("app")
        import altair as alt

        frame = self.to_pandas().reset_index()
        data = frame[["strategy", "low", "high"]].assign(mean=frame[self.metric])
        order = list(frame["strategy"])
        base = alt.Chart(data).encode(y=alt.Y("strategy:N", sort=order, title=None))
        bars = base.mark_bar(color="#5b8def", opacity=0.75).encode(
            x=alt.X("mean:Q", title=metric_title(self.metric), scale=alt.Scale(domainMin=0)),
            tooltip=["strategy:N", *(alt.Tooltip(f"{name}:Q", format=".3f") for name in ("mean", "low", "high"))],
        )
        intervals = base.mark_rule(color="gray", strokeWidth=2).encode(x=alt.X("low:Q", title=""), x2="high:Q")
        chart = alt.layer(bars, intervals).properties(
            title=alt.Title(self.run.test_set.name, anchor="start"), width=420, height=34 * len(order)
        )
        return chart.configure(background="transparent").configure_view(stroke=None)

    @cached_property
    def against_best(self) -> list[Difference]:
        """How each other run differs from the best one by the leaderboard's metric, corrected for the comparisons."""
        values = {name: run.values[self.metric] for name, run in self.strategies.items()}
        return mark_undecidable(compare_with_best(self.metric, values), list(self.strategies.values()))

    def _repr_html_(self) -> str:
        against = {one.a: describe_difference(one) for one in self.against_best}
        metrics = list(next(iter(self.strategies.values())).values)
        rows: list[list[str]] = []
        for name, run in self.strategies.items():
            values = [f"{run.means[metric]:.3f}" for metric in metrics]
            p50 = f"{run.latency_ms['p50']:.0f}" if run.latency_ms else ""
            unjudged = f"{run.share_unjudged[self.metric]:.0%}" if self.metric in run.share_unjudged else ""
            leads = "best" if self.winner else "highest mean, not decided" if len(self.strategies) > 1 else ""
            rows.append([name, *values, unjudged, p50, against.get(name, leads)])
        titles = [metric_title(metric) for metric in metrics]
        heads = ["Strategy", *titles, "Unjudged", "p50 ms", "Against the best"]
        asked, documents = len(self.run.test_set.answerable), self.run.corpus.documents
        head = f"{asked:,} questions, {documents:,} documents; by {metric_title(self.metric)}"
        return leaderboard_html(self.run.test_set.name, head, heads, rows, tuple(self.sentences))

    @property
    def sentences(self) -> list[str]:
        """The outcome, what the questions can show, and the notes."""
        is_compared = len(self.strategies) > 1 and len(self.run.test_set.answerable) > 1
        power = describe_power(self.power()) if is_compared else []
        return [*filter(None, [self.outcome]), *power, *self.notes, *self.budget.notes]

    def _repr_pretty_(self, printer: RepresentationPrinter, cycle: bool) -> None:
        printer.text("\n".join([report.render_text(report.make_table(self.run)), *self.sentences]))


def describe_candidate(
    wb: Workbench, experiment: Experiment, strategy: str, parameters: Mapping[str, object] | None, scope: Scope
) -> str:
    """Return what an experiment measured of a strategy (NAME or NAME@INDEX) that is proposed for a scope.

    Raises:
        InvalidInput: It has no finished run of the strategy with these parameters and this index.
    """
    experiments, metric, default = Experiments(wb), experiment.metrics[0], wb.corpus.index(None).name
    (name, index), results = split_strategy(strategy, None), experiments.results(experiment.id)
    wanted, lines = check_parameters(name, parameters), make_leaderboard(results, metric)
    labels = [
        one.cell.label
        for one in results
        if (one.cell.strategy, one.cell.index or default) == (name, index or default)
        and check_parameters(name, one.cell.parameters) == wanted
    ]
    line = next((one for one in lines if one.label in labels and one.rank), None)
    if line is None:
        done = list_choices([one.label for one in lines if one.rank], 20)
        raise InvalidInput(f"No finished run of {experiment.title!r} is {strategy!r} with these parameters: {done}.")
    facts = f"{metric_title(metric)} {line.metrics[metric]:.3f}, rank {line.rank} of {len(lines)}"
    facts += f" on {experiment.test_set_title!r} ({experiment.over}) in {experiment.id}."
    if any(one.against_best for one in lines):
        facts += f" {experiments.describe(experiment, results, metric)[0]}"
    test_set = experiments.test_set(experiment)
    if test_set.by_agents:
        facts += f" Only agents made {len(test_set.by_agents):,} of {len(test_set.judgments):,} judgments."
    if experiment.scope is None or describe_scope(wb, scope).scope != experiment.scope.scope:
        facts += " Another scope is proposed, for which the scores may not hold."
    return facts


# Slices: the questions of one kind

SLICE_KEYS = ("length", "origin", "source", "tag", "type", "language")  # others are keys of metadata
WORD_COUNTS = ((4, "1 to 4 words"), (9, "5 to 9 words"), (19, "10 to 19 words"))
MANY_WORDS = "20 words or more"
MAX_SLICES = 30  # the largest; more are too many to compare
NO_VALUE = "(none)"


@dataclass(frozen=True, slots=True)
class Slice(Value):
    """The questions of one kind, such as those about one source."""

    name: str
    questions: int
    means: Mapping[str, float]  # by run
    against_best: tuple[Difference, ...]  # of the other runs from the best one of all questions


@dataclass(frozen=True, slots=True)
class Slices(Value):
    """The runs on each slice, in the order of ``group_questions``.

    Tests and intervals are corrected for all comparisons of all slices.
    """

    by: str
    metric: str
    slices: tuple[Slice, ...]
    left_out: int = 0  # smaller slices beyond the largest 30

    def to_pandas(self) -> pandas.DataFrame:
        """Return one row per slice: its number of questions, the mean of each run, and the significant differences."""
        check_extra("app")
        import pandas as pd

        rows = [
            {"slice": one.name, "questions": one.questions, **one.means, "differs": "; ".join(describe_slice(one))}
            for one in self.slices
        ]
        return pd.DataFrame(rows).set_index("slice")

    def to_table(self) -> Table:
        """Return a table with one row per slice."""
        rows = [
            (
                one.name,
                str(one.questions),
                *(f"{mean:.4f}" for mean in one.means.values()),
                "; ".join(describe_slice(one)),
            )
            for one in self.slices
        ]
        rest = f"; {count_text(self.left_out, 'smaller slice')} left out" if self.left_out else ""
        head = f"{metric_title(self.metric)} by {self.by}, intervals and tests corrected for all slices{rest}"
        runs = list(self.slices[0].means) if self.slices else []
        best = f"differs from {runs[0]}" if runs else ""
        return report.make_text_table(head, (self.by, "questions", *runs, best), rows, left=(self.by, best))

    def _repr_html_(self) -> str:
        return self.to_pandas().to_html()


def describe_slice(one: Slice) -> list[str]:
    """Return a clause for each run that is significantly better or worse in a slice than the best run of all."""
    return [
        f"{of.a} {of.difference:+.3f} ({of.interval[0]:+.3f} to {of.interval[1]:+.3f})"
        for of in one.against_best
        if of.significant
    ]


def group_questions(wb: Workbench, test_set: TestSet, ids: Mapping[str, str], by: str) -> dict[str, list[str]]:
    """Return {slice: ids of its measured questions}: lengths from short to long, others with most questions first.

    Args:
        wb: The workbench with the documents.
        test_set: The questions.
        ids: {key used by judgments: document id}; empty if judgments use ids.
        by: As in ``Evaluation.slices``.

    Raises:
        InvalidInput: No question and no document has that key.
    """
    groups: dict[str, list[str]] = {}

    @cache
    def of_document(key: str) -> tuple[str, ...]:
        try:
            document = wb.corpus.documents.record(ids.get(key, key))
        except NotFound:
            return ()
        source = wb.sources.get(document.source_id)
        known: dict[str, object] = {"source": source.title, "tag": list(source.tags), "type": document.document_type}
        known["language"] = document.metadata.get("language", document.language)
        return _list_values(known.get(by, document.metadata.get(by)))

    for question in test_set.answerable:
        if by == "length":
            words = len(question.text.split())
            names = {next((name for most, name in WORD_COUNTS if words <= most), MANY_WORDS)}
        elif by == "origin":
            names = {question.origin}
        else:
            names = set(_list_values(question.metadata.get(by)))
            if not names:
                grades = test_set.qrels[question.id]
                names = {name for key, grade in grades.items() if grade > 0 for name in of_document(key)}
        for name in names or {NO_VALUE}:
            groups.setdefault(name, []).append(question.id)
    if by not in SLICE_KEYS and groups.keys() == {NO_VALUE}:
        raise InvalidInput(
            f"No question and no relevant document has {by!r} in its metadata; use {list_choices(SLICE_KEYS, 10)}, or "
            "another key."
        )
    in_order = (lambda name: int(name.split()[0])) if by == "length" else (lambda name: (-len(groups[name]), name))
    return {name: groups[name] for name in sorted(groups, key=in_order)}


def check_reports(wb: Workbench, test_set: TestSet, keys: Sequence[str], index: str | None, *, refusals: bool) -> None:
    """Check what is reported after the searches, before them.

    Raises:
        InvalidInput: A key of slices is unknown, or no question is marked as without an answer.
    """
    if refusals:
        check_unanswerable(test_set)
    for by in keys:
        group_questions(wb, test_set, index_corpus(wb, test_set, index).ids, by)


def _list_values(value: object) -> tuple[str, ...]:
    """Return a value of metadata as names of slices."""
    values = value if isinstance(value, list) else [value]
    return tuple(str(one) for one in values if one is not None and str(one).strip())


def compare_in_slices(
    by: str, metric: str, groups: Mapping[str, Sequence[str]], values: Mapping[str, Mapping[str, float]]
) -> Slices:
    """Compare every run with the best one of all questions, within each group of questions.

    Args:
        by: What the groups differ in.
        metric: The metric of the values.
        groups: {slice: question ids}.
        values: {run: {question id: value}}, the best first.
    """
    best, *others = values
    shared = set[str].intersection(*(set(of) for of in values.values()))  # answers have no value without a reference
    measured = {name: kept for name, ids in groups.items() if (kept := [key for key in ids if key in shared])}
    chosen = list(measured.items())[:MAX_SLICES]
    own = {name: {run: {key: of[key] for key in ids} for run, of in values.items()} for name, ids in chosen}
    pairs = [(other, own[name][other], best, own[name][best]) for name in own for other in others]
    found = iter(compare_pairs(metric, pairs, together=True))
    slices = [
        Slice(
            name,
            len(ids),
            {run: round(sum(of.values()) / len(ids), 6) for run, of in own[name].items()},
            tuple(next(found) for _ in others),
        )
        for name, ids in chosen
    ]
    return Slices(by, metric, tuple(slices), len(measured) - len(chosen))


def slice_experiment(
    wb: Workbench, experiment: Experiment, results: Sequence[CellResult], metric: str, by: str
) -> Slices:
    """Return the finished runs of an experiment on each part of its questions, as ``Evaluation.slices``."""
    test_set, runs = Experiments(wb).test_set(experiment), {one.cell.label: one.run for one in results}
    values = {one.label: run.values[metric] for one in make_leaderboard(results, metric) if (run := runs[one.label])}
    return compare_in_slices(by, metric, group_questions(wb, test_set, map_document_ids(wb, test_set), by), values)


# Pools: what the strategies found and no one has judged, as a blind queue for people to judge
#
# A pool is the union of the first documents of several strategies, each document once per question, without the name of
# the strategy that found it (Sparck Jones and van Rijsbergen 1975). The documents that are expected to change the
# decision most come first: those on whose ranks two strategies disagree, by how much, times how likely they are
# relevant, which is taken from the same ranks (Carterette, Allan and Sitaraman, SIGIR 2006). The rest of the order
# is random but repeatable.

POOL_DEPTH = 10  # documents per strategy and question
SECONDS_PER_PAIR = 15  # to read a question and a passage, and to judge
MAX_POOL_DEPTH = 200
POOL_COLUMNS = ("id", "question", "document", "title", "text", "grade")
MAX_TEXT_CHARS = 1_500  # of a document, around the passage that was found

Rankings = Mapping[str, Mapping[str, Ranking]]  # by strategy and question id


@dataclass(frozen=True, slots=True)
class PoolItem(Value):
    """A question and a document to judge; ``start`` is the start of its first found passage."""

    question_id: str
    question: str
    document: str
    start: int = 0


@dataclass(frozen=True, slots=True)
class Pool(Value):
    """A blind queue of unjudged pairs, the most decisive first."""

    items: tuple[PoolItem, ...]
    total: int  # pairs in the union of the strategies' first documents, with those already judged
    judged: int  # pairs of the union that have a judgment
    left_out: int = 0  # pairs beyond the budget

    def describe(self) -> str:
        """Return the size of the pool as a sentence."""
        minutes = len(self.items) * SECONDS_PER_PAIR / 60
        rest = f"; {self.left_out:,} more are left out by the budget" if self.left_out else ""
        return (
            f"{len(self.items):,} pairs to judge, about {minutes:.0f} minutes at {SECONDS_PER_PAIR} s each; "
            f"{self.judged:,} of {self.total:,} in the pool are judged already{rest}."
        )


def rank_all(
    wb: Workbench,
    test_set: TestSet,
    corpus: IndexedCorpus,
    strategies: Sequence[str],
    depth: int = POOL_DEPTH,
    *,
    on_progress: OnProgress | None = None,
    should_stop: ShouldStop | None = None,
) -> dict[str, dict[str, Ranking]]:
    """Ask every question, also those without a judgment, and return the answers by strategy and question id.

    Raises:
        InvalidInput: An unknown strategy, no question, or a depth outside 1..200.
        Cancelled: ``should_stop`` returned True.
    """
    if not 1 <= depth <= MAX_POOL_DEPTH:
        raise InvalidInput(f"Invalid pool depth {depth}; use 1 to {MAX_POOL_DEPTH}.")
    if not test_set.questions or not strategies:
        raise InvalidInput("A pool needs questions and strategies; add some.")
    rankings: dict[str, dict[str, Ranking]] = {}
    for number, name in enumerate(dict.fromkeys(strategies)):
        strategy, index = split_strategy(name, None)
        over = index_corpus(wb, test_set, index, should_stop=should_stop) if index else corpus
        parameters = check_parameters(strategy, None)
        rankings[name] = {}
        for place, question in enumerate(test_set.questions):
            if should_stop is not None and should_stop():
                raise Cancelled("Stopped; no pool was written.")
            rankings[name][question.id] = ask_question(wb, over, question, strategy, parameters, depth)
            if on_progress is not None:
                done, total = number * len(test_set.questions) + place + 1, len(strategies) * len(test_set.questions)
                on_progress(Progress(done, total, name))
    return rankings


def make_pool(test_set: TestSet, rankings: Rankings, depth: int = POOL_DEPTH, minutes: float | None = None) -> Pool:
    """Return the unjudged pairs among the first ``depth`` documents of each strategy, the most decisive first.

    Args:
        test_set: The questions and the judgments so far.
        rankings: Answers by strategy and question id.
        depth: Documents per strategy and question.
        minutes: Budget, at 15 seconds for each pair; all pairs if None.

    Raises:
        InvalidInput: A budget of 0 or less.
    """
    if minutes is not None and minutes <= 0:
        raise InvalidInput(f"Invalid budget of {minutes:g} minutes; use more than 0.")
    pairs = list(combinations(rankings, 2))
    texts = {question.id: question.in_context for question in test_set.questions}
    weighed: list[tuple[float, bytes, PoolItem]] = []
    total = 0
    for question_id, text in texts.items():
        gains = {
            name: {key: 1 / log2(place + 2) for place, key in enumerate(answers[question_id].documents[:depth])}
            for name, answers in rankings.items()
            if question_id in answers
        }
        grades = test_set.qrels.get(question_id, {})
        for document in dict.fromkeys(key for own in gains.values() for key in own):
            total += 1
            if grades.get(document, -1) >= 0:
                continue
            apart = [abs(gains[a].get(document, 0.0) ** 2 - gains[b].get(document, 0.0) ** 2) for a, b in pairs]
            digest = hashlib.sha256(f"{question_id}|{document}".encode()).digest()
            found = (hit for name in rankings for hit in rankings[name][question_id].passages)
            start = min((hit.start for hit in found if hit.document == document), default=0)
            item = PoolItem(question_id, text, document, start)
            weighed.append((-max(apart, default=0.0), digest, item))
    weighed.sort(key=lambda one: one[:2])
    most = len(weighed) if minutes is None else max(1, int(minutes * 60 / SECONDS_PER_PAIR))
    items = tuple(item for _, _, item in weighed[:most])
    return Pool(items, total, total - len(weighed), len(weighed) - len(items))


def write_pool(wb: Workbench, corpus: IndexedCorpus, pool: Pool) -> str:
    """Return a pool as CSV with an empty column ``grade`` for ``read_pool``."""
    stream = io.StringIO()
    writer = csv.writer(stream)
    writer.writerow(POOL_COLUMNS)
    ids = corpus.ids
    for item in pool.items:
        document = wb.documents.get(ids.get(item.document, item.document))
        text = (document.text or "")[item.start : item.start + MAX_TEXT_CHARS]
        writer.writerow([item.question_id, item.question, item.document, document.title.strip(), text, ""])
    return stream.getvalue()


@dataclass(frozen=True, slots=True)
class PoolReading(Value):
    """The judgments of a judged pool; ``blank`` counts rows without a grade, ``problems`` describe rejected rows."""

    judgments: tuple[Judgment, ...]
    blank: int
    problems: tuple[str, ...] = ()

    def describe(self) -> list[str]:
        """Return sentences on what was read and what was left out."""
        left_out = [f"Left out: {problem}" for problem in self.list_left_out()]
        return [f"Read {count_text(len(self.judgments), 'judgment')}.", *left_out]

    def list_left_out(self) -> list[str]:
        """Return phrases on the rows that were left out."""
        blank = [f"{count_text(self.blank, 'row')} without a grade."] if self.blank else []
        return [*blank, *self.problems]


def read_pool(test_set: TestSet, text: str, rater: str = "") -> PoolReading:
    """Return the judgments in a pool whose column ``grade`` was filled in; further columns are ignored.

    Grades are names of the test set's scale, or whole numbers; those of a rater must be on the scale.

    Raises:
        InvalidInput: A column is missing.
    """
    reader = read_table(text)
    needed = ("id", "document", "grade")
    if lacking := [name for name in needed if name not in (reader.fieldnames or ())]:
        raise InvalidInput(f"The judged pool has no column {list_choices(lacking)}; keep the columns of the pool.")
    known = {question.id for question in test_set.questions}
    judgments: dict[tuple[str, str], Judgment] = {}
    problems: list[str] = []
    blank = 0
    for number, row in enumerate(reader, 2):
        key, document, grade = ((row[name] or "").strip() for name in needed)
        if not grade:
            blank += 1
            continue
        try:
            if key not in known:
                raise InvalidInput(f"There is no question {key!r} in the test set.")
            if not document:
                raise InvalidInput("The document is missing.")
            judgment = Judgment(key, document, parse_grade(grade, test_set.grades))
            judgments[key, document] = check_rating(Rating(judgment, rater, "person"), test_set.grades).judgment
        except WorkbenchError as error:
            problems.append(f"Row {number}: {error}")
    return PoolReading(tuple(judgments.values()), blank, tuple(problems))


def add_judgments(
    wb: Workbench, test_set: TestSet, key: str, text: str, rater: str = ""
) -> tuple[TestSet, PoolReading]:
    """Return a test set with the judgments of a judged pool on documents that exist; a stored one gets a new version.

    Args:
        key: Title or id of the test set; one that is not stored is changed for this run only.
        rater: Who judged the pool, if several do.
    """
    read = read_pool(test_set, text, rater)
    if test_set.corpus is None:
        present = {document.id for document in wb.documents.list()}
    elif isinstance(test_set.corpus, FolderCorpus):
        present = {document.key for document in test_set.corpus.documents}
    else:
        present = set(wb.corpus.documents.by_key(test_set.corpus.source_id, wb.corpus.index(None).name))
    absent = dict.fromkeys(one.document for one in read.judgments if one.document not in present)
    judgments = tuple(one for one in read.judgments if one.document in present)
    problems = (*read.problems, *(f"The test set does not search a document {key!r}." for key in absent))
    read, store = replace(read, judgments=judgments, problems=problems), TestSetStore(wb)
    if read.judgments and key in {name for info in store.list() for name in (info.id, info.title)}:
        store.judge_all(key, read.judgments, rater=rater)
        return replace(store.load(key), scope=test_set.scope), read
    judged = {(one.question_id, one.document) for one in read.judgments}
    kept = [one for one in test_set.judgments if one.is_span or (one.question_id, one.document) not in judged]
    return replace(test_set, judgments=(*kept, *read.judgments)), read


# Test sets from folders, pairs and tables


EXPORT_FORMATS = ("csv", "qrels", "beir")


def _read_columns(text: str) -> set[str]:
    header = text.partition("\n")[0].lower().replace('"', "").lstrip("\ufeff")
    return {name.strip() for name in header.split(find_delimiter(text))}


class TestSets(TestSetStore):
    """Test sets: those in the database, and new ones from folders, tables and pairs."""

    __test__ = False

    def read(self, test_set: AnyTestSet, scope: Scope | None = None) -> TestSet:
        """Return a test set: a stored one by title or id, a folder, "sample", or a test set object, unchanged.

        Raises:
            InvalidInput: There is no such test set.
            ScopeError: An unknown name in the scope.
        """
        if isinstance(test_set, TestSet):
            return test_set
        key = test_set.id if isinstance(test_set, TestSetInfo) else str(test_set)
        return load_named_test_set(self._wb, key, scope)

    def from_folder(self, folder: str | Path, title: str | None = None) -> TestSetInfo:
        """Store the test set, with its corpus, from a folder or a data set.

        Args:
            folder: A folder in BEIR format, with questions.jsonl or of a Hugging Face data set; ``hf:OWNER/NAME`` in
                the cache of Hugging Face; ``ir_datasets:NAME``; or "sample". Nothing is downloaded.
            title: Title of the test set; its name if None.

        Raises:
            InvalidInput: It is unreadable or not on this machine.
            ConfigurationError: The package ir_datasets is not installed.
        """
        return self.add(load_test_set(folder), title)

    def from_pairs(self, title: str, pairs: Iterable[tuple[str, str | Sequence[str]]]) -> TestSetInfo:
        """Store (question, relevant documents) pairs as a test set over your own documents.

        Args:
            title: Title of the test set.
            pairs: Each with a document's id, path, title or URL, or a list of these.

        Raises:
            InvalidInput: A pair has another form, or no document is known.
            Conflict: There is a test set with this title.
        """
        rows: list[Mapping[str, object]] = []
        for pair in pairs:
            match pair:
                case [str() as question, str() as document]:
                    rows.append({"question": question, "document": document})
                case [str() as question, [*documents]] if documents:
                    rows += [dict[str, object](question=question, document=document) for document in documents]
                case _:
                    raise InvalidInput(f"Invalid pair {pair!r}: use (question, document) or (question, [documents]).")
        return self._store_rows(title, rows)

    def from_pandas(self, title: str, frame: pandas.DataFrame) -> TestSetInfo:
        """Store a table as a test set over your own documents.

        Args:
            title: Title of the test set.
            frame: Columns as in a CSV: question, document (id, path, title or URL) or quote, and any of id,
                reference_answer, source, start, end, grade, metadata.KEY. Others are ignored with a warning.

        Raises:
            InvalidInput: No row can be used.
            Conflict: There is a test set with this title.
        """
        rows = frame.astype(object).where(frame.notna(), "").to_dict("records")
        for row in rows:  # pandas turns whole numbers into floats in a column with gaps
            row |= {name: int(one) for name, one in row.items() if isinstance(one, float) and one.is_integer()}
        return self._store_rows(title, [{str(name): value for name, value in row.items()} for row in rows])

    def add_agent_queries(self, key: str, *, zero_only: bool = False, as_chains: bool = False) -> ImportReport:
        """Add what agents asked over MCP in the scope of a test set; what they opened or cited becomes weak judgments.

        The judgments are by the rater "traffic" and count until a person has judged the same document.

        Args:
            key: Title or id of the test set.
            zero_only: Only queries without results.
            as_chains: One question for each chain of searches, its first query.

        Raises:
            NotFound: No such test set. ScopeError: A part of its scope has been deleted.
        """
        return add_agent_queries(self._wb, self, key, zero_only=zero_only, as_chains=as_chains)

    def chains(self, key: str) -> list[ChainVerdict]:
        """Return agents' chains of searches in the scope of a test set, each judged as one case, the newest first.

        Raises:
            NotFound: No such test set. ScopeError: A part of its scope has been deleted.
        """
        test_set = self.load(key)
        return [judge_chain(chain, test_set) for chain in list_chains(self._wb, test_set.scope)]

    def pool(
        self,
        test_set: AnyTestSet,
        strategies: Sequence[str],
        *,
        depth: int = POOL_DEPTH,
        minutes: float | None = None,
        rater: str = "",
        index: str | None = None,
        on_progress: OnProgress | None = None,
        should_stop: ShouldStop | None = None,
    ) -> tuple[Pool, str]:
        """Return the unjudged documents among the strategies' first ones as a blind queue, and as CSV.

        Args:
            test_set: A test set; its questions need no judgments.
            strategies: Names of strategies (NAME or NAME@INDEX).
            depth: Documents per strategy and question.
            minutes: Budget for judging: the pairs that can still change the decision come first; all pairs if None.
            rater: One of several people, who each get the same queue: the grades of the others are ignored.
            index: Index whose chunker and model are used; the default one if None.
            on_progress: Called with each ``Progress``, instead of a progress bar.
            should_stop: Polled between questions; return True to stop.

        Raises:
            InvalidInput: An unknown strategy, no questions, or an invalid depth or budget.
        """
        chosen = self.read(test_set)
        if rater and not isinstance(chosen.corpus, FolderCorpus):  # a folder that is not stored has no raters
            ids = {question.id for question in chosen.questions}
            counting = find_counting(one for one in self.ratings(chosen.name) if one.rater in ("", rater))
            own = tuple(one.judgment for one in counting if one.judgment.question_id in ids)
            chosen = replace(chosen, judgments=own)
        with progress_bar("Pool", on_progress) as show:
            corpus = index_corpus(self._wb, chosen, index, on_progress=show, should_stop=should_stop)
            rankings = rank_all(self._wb, chosen, corpus, strategies, depth, on_progress=show, should_stop=should_stop)
            pool = make_pool(chosen, rankings, depth, minutes)
        return pool, write_pool(self._wb, corpus, pool)

    def import_pool(self, key: str, text: str, rater: str = "") -> PoolReading:
        """Store the judgments of a judged pool (CSV) in a stored test set; rows without a grade are left out.

        ``rater`` is who judged it, if several people judge the same pool.

        Raises:
            NotFound: No such test set. InvalidInput: A column is missing.
        """
        return add_judgments(self._wb, self.load(key), self.info(key).id, text, rater)[1]

    def agreement(self, key: str) -> RaterAgreement:
        """Return how far the raters of a stored test set agree. Raises NotFound."""
        info = self.info(key)
        return measure_raters(info.title, info.grades, self.ratings(info.id))

    def disagreements(self, key: str) -> list[Disagreement]:
        """Return the different grades of raters that a later ``judge`` without a rater settles. Raises NotFound."""
        return find_disagreements(self.ratings(key))

    def settle(self, key: str, rater: str) -> int:
        """Settle all disagreements in which a rater has a grade with that grade, and return their number.

        The rater "original" keeps the grades that the test set had before people judged.

        Raises:
            NotFound: No such test set, or no such rater.
        """
        info, ratings = self.info(key), self.ratings(key)
        own = {one.judgment.place: one.judgment for one in ratings if (one.rater or ORIGINAL) == rater}
        if not own:
            names = list_choices(dict.fromkeys(one.rater or ORIGINAL for one in ratings))
            raise NotFound("rater", rater, f"The raters are {names}." if names else "No judgment names its rater.")
        open_places = ((one.question_id, one.document, one.start, one.end) for one in find_disagreements(ratings))
        chosen = [own[place] for place in open_places if place in own]
        if chosen:
            self.judge_all(info.id, chosen, reason=f"settled as {rater}")
        return len(chosen)

    def settle_one(self, key: str, question_id: str, document: str, grade: str | int, *, reason: str = "") -> int:
        """Settle the disagreements on a document (its spans, if these were judged) with a grade; return their number.

        Raises:
            NotFound: No such test set, or no disagreement on this document. InvalidInput: An unknown grade.
        """
        found = [one for one in self.disagreements(key) if (one.question_id, one.document) == (question_id, document)]
        if not found:
            raise NotFound("disagreement", f"{question_id} {document}", "It may be settled; list the disagreements.")
        for one in found:
            self.judge(key, question_id, document, grade, start=one.start, end=one.end, quote=one.quote, reason=reason)
        return len(found)

    def import_judgments(self, key: str, file: str | Path, *, rater: str = "") -> ImportReport:
        """Add the judgments of a CSV, or of qrels in the format of TREC or BEIR, to a stored test set.

        Args:
            key: Title or id of the test set.
            file: A CSV has a header with the column ``question``, or is a judged pool with ``id``; otherwise it is a
                qrels file.
            rater: Who judged, if several people do.

        Raises:
            NotFound: No such test set. InvalidInput: The file is unreadable, or none of its lines is a judgment.
        """
        text = read_text(Path(file))
        if "question" in _read_columns(text):
            return self.import_csv(key, text, rater)
        return import_qrels(self._wb, self, self.info(key).id, Path(file), rater)

    def import_csv(self, key: str, text: str, rater: str = "") -> ImportReport:
        """Add the questions and judgments of a CSV, or the judgments of a judged pool, to a stored test set.

        Raises:
            NotFound: No such test set. InvalidInput: A column is missing, or no row can be used.
        """
        if {"id", "document", "grade", "title"} <= _read_columns(text):  # a pool
            read = self.import_pool(key, text, rater)
            return ImportReport(0, len(read.judgments), tuple(read.list_left_out()))
        return import_csv(self._wb, self, self.info(key).id, text, rater)

    def export(self, key: str, target: str | Path, *, format: str = "csv", rater: str = "") -> int:
        """Write the judgments of a stored test set, and return their number.

        Args:
            key: Title or id of the test set.
            target: A new file, or a new folder for "beir".
            format: "csv" (of all raters), "qrels" (TREC's format) or "beir"; the latter two have the grades that count.
            rater: Only the judgments of this rater.

        Raises:
            NotFound: No such test set or rater. InvalidInput: An unknown format, or the target is not writable.
            Conflict: The file exists.
        """
        test_set, ratings, path = self.load(key), self.ratings(key), Path(target)
        if format not in EXPORT_FORMATS:
            raise InvalidInput(f"Unknown format {format!r}; use {list_choices(EXPORT_FORMATS)}.")
        if rater:
            ratings = [one for one in ratings if one.rater == rater]
            test_set = select_rater(test_set, ratings, rater)
        if format == "beir":
            export_folder(self._wb, test_set, path)
            return len(test_set.judgments)
        if path.exists():
            raise Conflict(f"The file {str(path)!r} already exists; choose another name.")
        text = to_csv(test_set, ratings) if format == "csv" else to_qrels(test_set.judgments)
        report.write_report(path, text)
        return len(ratings) if format == "csv" else len(text.splitlines())

    def rate_by_llm(
        self,
        key: str,
        *,
        limit: int = MAX_RATED,
        rounds: int = 1,
        on_progress: OnProgress | None = None,
        should_stop: ShouldStop | None = None,
    ) -> LlmRating:
        """Let the configured LLM judge what people have judged, as a rater under the name of its model.

        Args:
            key: Title or id of a stored test set.
            limit: Maximum number of places.
            rounds: 2 to judge everything twice, which shows how consistent the LLM is.

        Raises:
            ConfigurationError: There is no LLM. InvalidInput: Nothing was judged, or a number is invalid.
        """
        info = self.info(key)
        with progress_bar("Rate", on_progress) as show:
            return rate_by_llm(
                self._wb, self, info, limit=limit, rounds=rounds, on_progress=show, should_stop=should_stop
            )

    def _store_rows(self, title: str, rows: Sequence[Mapping[str, object]]) -> TestSetInfo:
        made = self.create(title)
        imported = import_csv(self._wb, self, made.id, write_csv(rows))
        problems = " ".join(imported.problems[:MAX_PROBLEMS_SHOWN])
        if not imported.judgments:
            self.delete(made.id)
            raise InvalidInput(f"No row of {title!r} can be used: {problems or 'there are no rows'}")
        if problems:
            warnings.warn(f"{len(imported.problems):,} notes on {title!r}: {problems}", stacklevel=3)
        return self.info(made.id)


MAX_PROBLEMS_SHOWN = 5

# Measuring


def estimate_run(
    wb: Workbench,
    test_set: TestSet,
    strategies: Sequence[str],
    parameters: Mapping[str, Mapping[str, object]],
    index: str | None,
    budget: float | None,
    *,
    answers: bool = False,
    repeats: int = 1,
    judges: bool = False,
) -> str:
    """Return a sentence on what a run will take and cost at least, as ``estimate_cost``."""
    named = {name: split_strategy(name, index) for name in strategies}
    cells = [
        Cell(name, check_parameters(name, parameters.get(given) or parameters.get(name)), over)
        for given, (name, over) in named.items()
    ]
    has_llm = wb.corpus.llm is not None
    planned = repeat_cells(test_set, cells, repeats, answers=answers, has_llm=has_llm)
    return estimate_cost(wb, test_set, planned, judges=judges, budget=budget)


def measure(
    wb: Workbench,
    test_set: TestSet,
    strategies: Sequence[str],
    metrics: Sequence[str] | None,
    *,
    run_files: Sequence[str],
    parameters: Mapping[str, Mapping[str, object]] | None = None,
    index: str | None = None,
    budget: float | None = None,
    repeats: int = 1,
    questions: int = 0,
    on_progress: OnProgress | None = None,
    should_stop: ShouldStop | None = None,
) -> Evaluation:
    """Measure strategies and run files (NAME=PATH) on a test set; the rest is as in ``Workbench.evaluate``.

    ``questions`` is the number of questions of the whole test set, if these are a pilot of it.
    """
    checked = check_metrics(metrics or DEFAULT_METRICS)
    spending = Budget(budget)
    lead = PAGE_METRIC if test_set.pages and not metrics else checked[0]
    with progress_bar("Evaluate", on_progress) as show:
        corpus = index_corpus(wb, test_set, index, on_progress=show, should_stop=should_stop)
        files = [load_run_file(wb, test_set, corpus, spec, max_ranking_depth(checked)) for spec in run_files]
        run = run_strategies(
            wb, test_set, corpus, strategies, checked, parameters=parameters, budget=spending, repeats=repeats,
            on_progress=show, should_stop=should_stop,
        )  # fmt: skip
    run = add_run_files(run, files, checked)
    notes = [*test_set.problems, *describe_judged_outside(wb, test_set), *describe_pageless(test_set, corpus)]
    if test_set.nowhere:
        missing = list_choices(test_set.nowhere, 5)
        notes.append(f"Judged relevant but missing from corpus.jsonl, so never found: {missing}; check the ids.")
    notes += [f"Not indexed: {failure}" for failure in corpus.failures]
    notes += [note for file in files for note in file.notes]
    costs = {name: one.dollars for name, one in run.strategies.items()}
    notes += report.describe_cost(costs, spending.spent, questions if questions > len(test_set.answerable) else 0)
    if missing := [name for name in dict.fromkeys(strategies) if name not in run.strategies]:
        notes.append(f"Left out, because the budget was used up: {list_choices(missing, 20)}.")
    notes += describe_weaknesses(test_set, run.strategies, lead)
    notes += describe_wording(test_set, read_judged_texts(wb, test_set, corpus.ids))
    notes += map(describe_seen_ranker, find_trained_rankers(wb, test_set.name, run.strategies.values()))
    return Evaluation(run, lead, tuple(notes), wb, spending)
