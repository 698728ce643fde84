"""Reports of runs: tables, the JSON of ``workbench eval``, and comparison with a baseline."""

from __future__ import annotations

import json
import os
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import NotRequired, TypedDict, cast

from pydantic import BaseModel, FiniteFloat, ValidationError
from rich.console import Console
from rich.table import Table

from evals.experiments.answers import HOLDING, AnswerScores, Refusals
from evals.experiments.leaderboard import mark_undecidable
from evals.experiments.runs import EvalRun, Experiment, StrategyRun
from evals.measures.metrics import JudgeAgreement
from evals.measures.significance import Difference, Lift, Power, compare_pairs, describe_decision, describe_difference
from evals.test_set import TestSet
from workbench.errors import InvalidInput, list_choices
from workbench.export import notebook_json
from workbench.formatting import format_dollars
from workbench.types import JsonObject

# An experiment as a notebook

_OPEN_CELL = """from evals import Cell, check_comparable, make_leaderboard
from workbench import Workbench

wb = Workbench.open()
experiments = wb.experiments"""

_RUN_CELL = """made = experiments.create(
    {title!r}, {test_set!r}, cells, metrics={metrics!r}, limit_queries={limit!r}{options}
)
check_comparable(experiments.get({id!r}), made)  # same corpus, questions and judgments
experiments.run(made.id)  # unchanged runs are reused
results = experiments.results(made.id)"""

_SHOW_CELL = """import pandas as pd

lines = make_leaderboard(results, {metric!r})
pd.DataFrame([{{"run": line.label, **line.metrics, **line.latency_ms}} for line in lines])"""


def to_notebook(experiment: Experiment) -> str:
    """Return the JSON of a notebook (nbformat 4.5) without outputs."""
    asked = [cell for cell in experiment.cells if not cell.file_hash and cell == cell.run]
    repeats = experiment.repeats if experiment.repeats > 1 else None
    options = {"answers": experiment.answers, "repeats": repeats, "budget": experiment.budget}
    cells = ",\n".join(f"    Cell({c.strategy!r}, {dict(c.parameters)!r}, {c.index!r})" for c in asked)
    run = _RUN_CELL.format(
        title=experiment.title,
        test_set=experiment.test_set_id,
        metrics=list(experiment.metrics),
        limit=experiment.limit_queries,
        options="".join(f", {name}={value}" for name, value in options.items() if value),
        id=experiment.id,
    )
    intro = (
        f"# {experiment.title}\n\n{experiment.runs} runs on version {experiment.test_set_version} of "
        f"*{experiment.test_set_title}*, over {experiment.over}. The cells below run them again."
    )
    sources = [
        _OPEN_CELL,
        f"cells = [\n{cells},\n]",
        run,
        _SHOW_CELL.format(metric=experiment.metrics[0]),
        "wb.close()",
    ]
    return notebook_json(intro, sources)


TABLE_DIGITS = 4
TABLE_WIDTH = 140  # columns of the tables on stderr


class RunJson(TypedDict):
    """The JSON of ``workbench eval``; ``hashes`` has those of the corpus, the index and the test set.

    ``scope`` is the part of the user's documents that was searched, with its text; None for a test set with its own
    corpus.
    """

    dataset: str
    scope: JsonObject | None
    queries: int
    corpus: int
    index: JsonObject
    hashes: dict[str, str]
    strategies: dict[str, dict[str, object]]
    significance: list[JsonObject]
    judge: NotRequired[JudgeAgreement]
    answers: NotRequired[dict[str, AnswerScores]]
    lift: NotRequired[list[Lift]]
    refusals: NotRequired[dict[str, Refusals]]
    baseline: NotRequired[list[JsonObject]]
    outcome: NotRequired[str]
    notes: NotRequired[list[str]]
    power: NotRequired[Power]
    slices: NotRequired[list[JsonObject]]
    error: NotRequired[str]  # why there are no answers


def to_json(run: EvalRun, significance: list[JsonObject] | None = None) -> RunJson:
    """Return the JSON form; metrics are means over the answerable questions."""
    return {
        "dataset": run.test_set.name,
        "scope": None if run.test_set.corpus else run.test_set.scope.to_stored() | {"text": run.test_set.over},
        "queries": len(run.test_set.answerable),
        "corpus": run.corpus.documents,
        "index": {
            "name": run.corpus.index.name,
            "chunker": run.corpus.index.chunker,
            "options": dict(run.corpus.index.chunker_options),
            "embedding_model": run.corpus.index.embedding_model,
            "passages": run.corpus.index.passages_count,
        },
        "hashes": {
            "corpus": run.corpus.corpus_hash,
            "index": run.corpus.index_hash,
            "dataset": run.test_set.questions_hash,
        },
        "strategies": {name: strategy_to_json(strategy) for name, strategy in run.strategies.items()},
        "significance": significance or [],
    }


def strategy_to_json(run: StrategyRun) -> dict[str, object]:
    """Return one strategy's metrics, latency, parameters and other measures."""
    metrics: dict[str, object] = {name: round(value, 6) for name, value in run.means.items()}
    judged: dict[str, object] = {
        "unjudged": {name: round(share, 6) for name, share in run.share_unjudged.items()},
        "bounds": {name: [round(end, 6) for end in ends] for name, ends in run.bounds.items()},
    }
    judged |= {"usage": run.usage, "dollars_per_question": run.dollars} | ({"spread": run.spread} if run.spread else {})
    return metrics | judged | {"latency_ms": run.latency_ms, "parameters": dict(run.parameters)} | dict(run.extra)


def make_table(run: EvalRun) -> Table:
    """Return a table with one row per strategy; an asterisk marks the best of each metric.

    ``tokens`` is the text that a search returns, which an agent or an LLM would read.
    """
    metrics = list(next(iter(run.strategies.values())).values)
    index = run.corpus.index
    scope = "" if run.test_set.corpus else f" of {run.test_set.over}"
    title = (
        f"{run.test_set.name}: {len(run.test_set.answerable):,} questions, {run.corpus.documents:,} documents"
        f"{scope}; the index has {index.passages_count:,} passages ({index.chunker}, {index.embedding_model})"
    )
    rows: list[Sequence[str]] = []
    priced = any(strategy.dollars is not None for strategy in run.strategies.values())
    asks_llm = any(strategy.usage.get("llm_calls") for strategy in run.strategies.values())
    best = {name: max(strategy.means[name] for strategy in run.strategies.values()) for name in metrics}
    for name, strategy in run.strategies.items():
        means = strategy.means
        cells = [
            f"{means[metric]:.{TABLE_DIGITS}f}{'*' if means[metric] == best[metric] else ' '}"
            + format_spread(strategy.spread, metric)
            for metric in metrics
        ]
        usage = strategy.usage
        row = [name, *cells, *(f"{time:.1f}" for time in strategy.latency_ms.values())]
        rows.append((*row, f"{usage['context_tokens']:,.0f}" if usage else ""))
        if asks_llm:
            rows[-1] = (*rows[-1], f"{usage['llm_calls']:.1f}" if usage else "")
        if priced:
            rows[-1] = (*rows[-1], "" if strategy.dollars is None else format_dollars(strategy.dollars * 1000))
    columns = ("strategy", *metrics, "p50 ms", "p95 ms", "tokens", *(["LLM calls"] if asks_llm else []))
    return make_text_table(title, (*columns, *(["$ per 1,000"] if priced else [])), rows)


def make_text_table(
    title: str, columns: Iterable[str], rows: Iterable[Sequence[str]], left: Container[str] = ("strategy",)
) -> Table:
    """Return a table whose columns are aligned right, but for those in ``left``; words are never cut."""
    table = Table(title=title, title_justify="left")
    rows = list(rows)
    for place, name in enumerate(columns):
        words = " ".join([name, *(cell for row in rows for cell in row[place : place + 1])]).split()
        table.add_column(name, justify="left" if name in left else "right", min_width=max(map(len, words), default=0))
    for row in rows:
        table.add_row(*row)
    return table


def make_unjudged_table(run: EvalRun) -> Table:
    """Return a table of the unjudged share of the first K next to each mean, and its bounds."""
    metrics = list(next(iter(run.strategies.values())).bounds)
    rows: list[Sequence[str]] = []
    for name, strategy in run.strategies.items():
        bounds = [f"{low:.3f} .. {high:.3f}" for low, high in (strategy.bounds[metric] for metric in metrics)]
        shares = [f" ({strategy.share_unjudged[metric]:.0%})" for metric in metrics]
        rows.append((name, *(both + share for both, share in zip(bounds, shares, strict=True))))
    title = "Bounds if none or all unjudged documents among the first K were relevant (share unjudged)"
    return make_text_table(title, ("strategy", *metrics), rows)


def make_ragas_table(run: EvalRun) -> Table:
    """Return the table of ragas metrics, each mean with its number of questions."""
    summaries_of = {name: strategy.extra.get("ragas", {}) for name, strategy in run.strategies.items()}
    metrics = list(dict.fromkeys(metric for summaries in summaries_of.values() for metric in summaries))
    rows: list[Sequence[str]] = []
    for name, summaries in summaries_of.items():
        means = [f"{mean:.{TABLE_DIGITS}f}" if (mean := one["mean"]) is not None else "-" for one in summaries.values()]
        counts = [f" ({one['measured']}/{one['not_measured']})" for one in summaries.values()]
        if summaries:  # a run file has no texts to judge
            rows.append((name, *(mean + count for mean, count in zip(means, counts, strict=True))))
    columns = ("strategy", *(metric.replace("_", " ") for metric in metrics))
    return make_text_table("ragas: mean (questions measured / not measured)", columns, rows)


def make_pair_table(differences: Sequence[Difference], title: str = "Differences") -> Table:
    """Return a table with one row per comparison and its verdict at level .05."""
    metric = differences[0].metric if differences else ""
    rows: list[Sequence[str]] = []
    for item in differences:
        low, high = item.interval
        figures = f"{item.difference:+.4f}", f"{low:+.4f} .. {high:+.4f}"
        rows.append((item.a, item.b, *figures, describe_difference(item), describe_decision(item)))
    columns = ("a", "b", "a - b", "95% interval", "verdict", "decision")
    return make_text_table(f"{title}, {metric}", columns, rows, left=("a", "b", "verdict", "decision"))


def render_text(table: Table) -> str:
    """Return a table as plain text, wider than the terminal if its words need it."""
    stream = StringIO()
    console = Console(file=stream, width=int(os.environ.get("COLUMNS", TABLE_WIDTH)), no_color=True)
    console.print(table, crop=False)
    return stream.getvalue().rstrip()


def make_answer_table(answers: Mapping[str, AnswerScores]) -> Table:
    """Return a table of what answers contain and cite, of their lengths, and of their cost with their searches."""
    rows: list[Sequence[str]] = []
    asks_llm = any(row.usage.get("llm_calls") for row in answers.values())
    priced = any(row.dollars is not None for row in answers.values())
    for name, row in answers.items():
        cells = [
            ("-" if value is None else f"{value:.{TABLE_DIGITS}f}") + format_spread(row.spread, measure)
            for measure, value in row.means.items()
        ]
        cells += [f"{row.words:.1f}", str(row.longest), f"{row.refused:.4f}"]
        if asks_llm:
            cells += [f"{row.usage['llm_calls']:.1f}", f"{row.llm_tokens:,.0f}"]
        if priced:
            cells.append("" if row.dollars is None else format_dollars(row.dollars * 1000))
        rows.append((name, str(row.questions), *cells))
    cited = ("citation precision", "citation recall")
    columns = ["strategy", "questions", HOLDING, *cited, "words (mean)", "words (p90)", "refused"]
    columns += [*(["LLM calls", "LLM tokens"] if asks_llm else []), *(["$ per 1,000"] if priced else [])]
    return make_text_table("Answers: holding is the share that contains the reference answer", columns, rows)


def make_refusal_table(run: str, refusals: Refusals) -> Table:
    """Return the curve of a run's refusals over the threshold."""
    rows = [
        (f"{one.threshold:.3f}", f"{one.precision or 0:.3f}", f"{one.recall:.3f}", f"{one.wrong:.3f}")
        for one in refusals.curve
    ]
    columns = ("refuse below", "precision", "recall", "answerable ones refused")
    return make_text_table(f"Refusals of {run} by threshold", columns, rows)


def format_spread(spread: Mapping[str, float], name: str) -> str:
    """Return the standard deviation over the repetitions of an LLM, such as " ±.01"; "" without repetitions."""
    return f" ±{spread[name]:.{TABLE_DIGITS}f}" if name in spread else ""


def describe_cost(
    costs: Mapping[str, float | None], spent: float, questions: int = 0, verb: str = "searches"
) -> tuple[str, ...]:
    """Return a sentence on what the searches or answers of a run cost; () if no price is known.

    Args:
        costs: Mean cost of a question in dollars by strategy; None if no price is known.
        spent: Dollars of all of them, also of strategies that a budget left out.
        questions: Number of questions of the whole test set, if these were a pilot of it.
        verb: "searches" or "answers".
    """
    known = {name: cost for name, cost in costs.items() if cost is not None}
    if not known and not spent:
        return ()
    each = ", ".join(f"{name} {format_dollars(cost * 1000)}" for name, cost in known.items())
    parts = [f"The {verb} cost {format_dollars(spent)}", *([f"per 1,000 questions: {each}"] if each else [])]
    total = sum(known.values()) * questions
    rest = f" All {questions:,} questions cost about {format_dollars(total)}." if questions else ""
    return (f"{'; '.join(parts)}.{rest}",)


# Comparison with a saved baseline

BASELINE_DIGITS = 9  # finer than any difference that counts


class Baseline(BaseModel):
    """The compared fields of a saved run; ``questions`` is {strategy: {metric: {question id: value}}}."""

    hashes: dict[str, str]
    strategies: dict[str, dict[str, object]]
    questions: dict[str, dict[str, dict[str, FiniteFloat]]]


@dataclass(frozen=True)
class BaselineCheck:
    """A run against its baseline; ``regressions`` are the differences that are significantly below 0."""

    differences: tuple[Difference, ...]
    notes: tuple[str, ...] = ()

    @property
    def regressions(self) -> tuple[Difference, ...]:
        """The strategies that became significantly worse."""
        return tuple(difference for difference in self.differences if difference.significant)


def save_baseline(run: EvalRun, path: Path) -> None:
    """Write a run with its values by question as a baseline."""
    questions = {
        name: {metric: {key: round(value, BASELINE_DIGITS) for key, value in sorted(by_question.items())}}
        for name, strategy in run.strategies.items()
        for metric, by_question in list(strategy.values.items())[:1]
    }
    payload = to_json(run)
    for strategy in payload["strategies"].values():
        strategy.pop("latency_ms")  # times of another machine are not comparable
        strategy.pop("ragas", None)
    write_report(path, _format_json({**payload, "questions": questions}))


def write_report(path: Path, text: str) -> None:
    """Write a report. Raises InvalidInput if the file is not writable."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InvalidInput(f"{path} is not writable ({error.strerror}); choose another path.") from error


def check_baseline(
    run: EvalRun, path: Path, groups: Mapping[str, Sequence[str]] | None = None
) -> tuple[BaselineCheck, list[Difference]]:
    """Test, for each strategy in both, whether the baseline's first metric is now lower.

    The test is one-sided and corrected for the number of strategies. Also return the same for each slice of the
    questions ({slice: question ids}), with tests and intervals corrected for all of them. As on a leaderboard, no
    difference is significant if too little of a pool is judged.

    Raises:
        InvalidInput: The file is not a baseline, or has another corpus or other questions.
    """
    baseline, measured = read_baseline(path), next(iter(run.strategies.values())).values
    shared = _find_shared_strategies(
        baseline, path, run.test_set, run.corpus.corpus_hash, tuple(run.strategies), tuple(measured)
    )
    pairs, metric = [], _baseline_metric(baseline)
    for name in shared:
        before = baseline.questions[name][metric]
        pairs.append((name, run.strategies[name].values[metric], f"{name} (baseline)", before))
    in_slices = [
        (f"{a} on {name}", {key: of_a[key] for key in ids}, b, {key: of_b[key] for key in ids})
        for name, ids in (groups or {}).items()
        for a, of_a, b, of_b in pairs
    ]
    runs = [run.strategies[name] for name in shared]
    differences = mark_undecidable(compare_pairs(metric, pairs, alternative="less"), runs)
    check = BaselineCheck(tuple(differences), tuple(_make_notes(run, baseline, shared)))
    return check, mark_undecidable(compare_pairs(metric, in_slices, alternative="less", together=True), runs)


def check_comparable(path: Path, test_set: TestSet, strategies: Sequence[str], metrics: Sequence[str]) -> None:
    """Raise, before a run, what ``check_baseline`` would raise after it."""
    corpus_hash = test_set.corpus.hash if test_set.corpus is not None else None
    _find_shared_strategies(read_baseline(path), path, test_set, corpus_hash, strategies, metrics)


def _find_shared_strategies(
    baseline: Baseline,
    path: Path,
    test_set: TestSet,
    corpus_hash: str | None,
    strategies: Sequence[str],
    metrics: Sequence[str],
) -> list[str]:
    """Return the strategies in both. Raises InvalidInput if corpus or questions differ."""
    hashes = baseline.hashes
    again = "save it again with --save"
    if corpus_hash is not None and hashes.get("corpus") != corpus_hash:
        raise InvalidInput(f"The baseline {path.name} was made on another corpus, so it is not comparable; {again}.")
    if hashes.get("dataset") != test_set.questions_hash:
        raise InvalidInput(f"The baseline {path.name} was made with other questions or judgments; {again}.")
    shared = [name for name in baseline.questions if name in strategies]
    if not shared:
        raise InvalidInput(f"The baseline has none of the strategies; it has {list_choices(baseline.questions, 20)}.")
    if _baseline_metric(baseline) not in metrics:
        raise InvalidInput(f"The baseline compares {_baseline_metric(baseline)}; add it to the metrics.")
    return shared


def _baseline_metric(baseline: Baseline) -> str:
    """Return the metric of a baseline, the same for all its strategies."""
    return next(iter(next(iter(baseline.questions.values()))))


def _make_notes(run: EvalRun, baseline: Baseline, shared: list[str]) -> list[str]:
    notes = []
    if baseline.hashes.get("index") != run.corpus.index_hash:
        notes.append("The baseline's index has another chunker or embedding model.")
    parameters = {name: baseline.strategies.get(name, {}).get("parameters") for name in shared}
    changed = [name for name in shared if parameters[name] != dict(run.strategies[name].parameters)]
    if changed:
        notes.append(f"The baseline ran with other parameters: {list_choices(changed, 20)}.")
    missing = [name for name in run.strategies if name not in baseline.questions]
    if missing:
        notes.append(f"Not in the baseline: {list_choices(missing, 20)}.")
    return notes


def read_baseline(path: Path) -> Baseline:
    """Return a saved run. Raises InvalidInput if the file is missing or not a baseline."""
    try:
        baseline = Baseline.model_validate_json(path.read_bytes())
        metrics = {tuple(measured) for measured in baseline.questions.values()}
        if len(metrics) == 1 and () not in metrics:
            return baseline
    except OSError as error:
        raise InvalidInput(f"The baseline {path} is not readable ({error.strerror}); check the path.") from error
    except ValidationError:
        pass
    raise InvalidInput(f"{path.name} is not a baseline; write one with 'workbench eval DATASET --save {path.name}'.")


def _format_json(payload: Mapping[str, object]) -> str:
    """Return JSON with one line per strategy, so that a diff shows which one changed."""
    lines = []
    for key, value in payload.items():
        if key in ("strategies", "questions"):
            entries = cast("Mapping[str, object]", value).items()
            inner = ",\n".join(f"    {json.dumps(name)}: {json.dumps(item)}" for name, item in entries)
            lines.append(f"  {json.dumps(key)}: {{\n{inner}\n  }}")
        elif key != "significance":
            lines.append(f"  {json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"
