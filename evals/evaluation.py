"""Results of ``wb.evaluate``, and ``wb.test_sets``: evaluation for notebooks and scripts."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from evals.experiments import report
from evals.experiments.catalogue import Cell, Experiments, make_cells
from evals.experiments.leaderboard import check_comparable, describe_weaknesses, find_changes, make_leaderboard
from evals.experiments.runs import EvalRun, StrategyRun, add_run_files, load_run_file, run_strategies
from evals.gateway import index_corpus
from evals.learning.training import TrainingResult
from evals.measures.metrics import (
    DEFAULT_METRICS,
    check_metrics,
    max_ranking_depth,
    measure_rankings,
    measure_spans,
    metric_title,
)
from evals.measures.significance import (
    Difference,
    bootstrap_interval,
    compare_all_pairs,
    compare_pairs,
    compare_with_best,
    describe_difference,
)
from evals.test_set import TestSet
from evals.test_sets.exchange import CSV_COLUMNS, import_csv, locate_quote, write_csv
from evals.test_sets.folders import load_test_set
from evals.test_sets.store import TestSetInfo, TestSetStore, load_named_test_set
from workbench.display import leaderboard_html
from workbench.errors import InvalidInput, list_choices
from workbench.formatting import progress_bar
from workbench.runtime import check_extra
from workbench.types import OnProgress, Scope, ShouldStop
from workbench.workbench import Workbench

if TYPE_CHECKING:
    import altair
    import pandas
    from IPython.lib.pretty import RepresentationPrinter

__all__ = [  # with names of ``evals`` and of ``evals.workbench``
    "AnyTestSet",
    "Cell",
    "check_comparable",
    "Evaluation",
    "Experiments",
    "TestSets",
    "TrainingResult",
    "bootstrap_interval",
    "compare_all_pairs",
    "compare_pairs",
    "compare_with_best",
    "find_changes",
    "locate_quote",
    "make_cells",
    "make_leaderboard",
    "measure",
    "measure_rankings",
    "measure_spans",
]

AnyTestSet: TypeAlias = "str | Path | TestSet | TestSetInfo"

# The result of an evaluation


@dataclass(frozen=True)
class Evaluation:
    """Strategies and run files, measured on the same questions; a notebook shows it as a leaderboard."""

    run: EvalRun  # all answers and metric values
    metric: str  # the metric that orders the leaderboard
    notes: tuple[str, ...] = ()  # sentences about anything that was left out, failed, or weakens a conclusion

    @property
    def strategies(self) -> dict[str, StrategyRun]:
        """The runs by name, best first."""
        return dict(sorted(self.run.strategies.items(), key=lambda item: -item[1].means[self.metric]))

    @property
    def best(self) -> str:
        """The name of the best run."""
        return next(iter(self.strategies))

    @property
    def questions(self) -> pandas.DataFrame:
        """One row per question with its text, and one column per run with its value."""
        check_extra("app")
        import pandas as pd

        asked = self.run.test_set.answerable
        columns = {name: [run.values[self.metric][one.id] for one in asked] for name, run in self.strategies.items()}
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

    def to_pandas(self) -> pandas.DataFrame:
        """Return one row per run, best first: its means, the 95% interval of the first, times, and the test."""
        check_extra("app")
        import pandas as pd

        against = self._against_best
        rows: list[dict[str, object]] = []
        for name, run in self.strategies.items():
            low, high = bootstrap_interval(list(run.values[self.metric].values()))
            row: dict[str, object] = {"strategy": name, **run.means, "low": low, "high": high}
            rows.append(row | {"p50_ms": run.latency_ms.get("p50"), "against_best": against.get(name, "")})
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

    @property
    def _against_best(self) -> dict[str, str]:
        values = {name: run.values[self.metric] for name, run in self.strategies.items()}
        return {one.a: describe_difference(one) for one in compare_with_best(self.metric, values)}

    def _repr_html_(self) -> str:
        against, metrics = self._against_best, list(next(iter(self.strategies.values())).values)
        rows: list[list[str]] = []
        for name, run in self.strategies.items():
            values = [f"{run.means[metric]:.3f}" for metric in metrics]
            p50 = f"{run.latency_ms['p50']:.0f}" if run.latency_ms else ""
            rows.append([name, *values, p50, against.get(name, "best")])
        heads = ["Strategy", *(metric_title(metric) for metric in metrics), "p50 ms", "Against the best"]
        asked, documents = len(self.run.test_set.answerable), self.run.corpus.documents
        head = f"{asked:,} questions, {documents:,} documents; by {metric_title(self.metric)}"
        return leaderboard_html(self.run.test_set.name, head, heads, rows, self.notes)

    def _repr_pretty_(self, printer: RepresentationPrinter, cycle: bool) -> None:
        printer.text("\n".join([report.render_text(report.make_table(self.run)), *self.notes]))


# Test sets from folders, pairs and tables


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
        """Store the test set, with its corpus, from a folder in BEIR format or with questions.jsonl.

        Raises:
            InvalidInput: The folder is unreadable.
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
                reference_answer, source, start, end, grade.

        Raises:
            InvalidInput: A column is unknown, or no row can be used.
            Conflict: There is a test set with this title.
        """
        unknown = [name for name in map(str, frame.columns) if name not in CSV_COLUMNS]
        if unknown:
            raise InvalidInput(f"Unknown columns {list_choices(unknown)}; use {list_choices(CSV_COLUMNS, 20)}.")
        rows = frame.astype(object).where(frame.notna(), "").to_dict("records")
        return self._store_rows(title, [{str(name): _read_cell(value) for name, value in row.items()} for row in rows])

    def _store_rows(self, title: str, rows: Sequence[Mapping[str, object]]) -> TestSetInfo:
        made = self.create(title)
        imported = import_csv(self._wb, self, made.id, write_csv(rows))
        if not imported.judgments:
            self.delete(made.id)
            reason = imported.problems[0] if imported.problems else "there are no rows"
            raise InvalidInput(f"No row of {title!r} can be used: {reason}")
        if imported.problems:
            left_out = f"{len(imported.problems):,} rows of {title!r} are left out; the first: {imported.problems[0]}"
            warnings.warn(left_out, stacklevel=3)
        return self.info(made.id)


def _read_cell(value: object) -> object:
    """Return a table's value; pandas turns whole numbers into floats in a column with gaps."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


# Measuring


def measure(
    wb: Workbench,
    test_set: TestSet,
    strategies: Sequence[str],
    metrics: Sequence[str] | None,
    *,
    run_files: Mapping[str, str | Path],
    parameters: Mapping[str, Mapping[str, object]] | None = None,
    index: str | None = None,
    on_progress: OnProgress | None = None,
    should_stop: ShouldStop | None = None,
) -> Evaluation:
    """Measure strategies and run files on a test set; the arguments are those of ``Workbench.evaluate``."""
    checked = check_metrics(metrics or DEFAULT_METRICS)
    with progress_bar("Evaluate", on_progress) as show:
        corpus = index_corpus(wb, test_set, index, on_progress=show, should_stop=should_stop)
        depth = max_ranking_depth(checked)
        specs = [f"{name}={path}" for name, path in run_files.items()]
        files = [load_run_file(wb, test_set, corpus, spec, depth) for spec in specs]
        run = run_strategies(
            wb, test_set, corpus, strategies, checked, parameters=parameters, on_progress=show, should_stop=should_stop
        )
    run = add_run_files(run, files, checked)
    notes = [note for file in files for note in file.notes]
    notes += [f"Not indexed: {failure}" for failure in corpus.failures]
    notes += report.describe_cost(run, wb.settings.reranker)
    return Evaluation(run, checked[0], (*notes, *describe_weaknesses(test_set, run.strategies, checked[0])))
