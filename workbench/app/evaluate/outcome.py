"""The results of an experiment, cached until it changes, and the titles of its runs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import streamlit as st

from evals.evaluation import (
    CITATION_PRECISION,
    SLICE_KEYS,
    AnswerScores,
    Experiments,
    Refusals,
    Slices,
    compare_answers,
    compare_in_slices,
    describe_refusals,
    describe_slice,
    format_spread,
    group_questions,
    read_answers,
)
from evals.experiments.leaderboard import LeaderboardLine, describe_wording, make_leaderboard, select_measured
from evals.experiments.runs import CellResult, Experiment
from evals.gateway import map_document_ids, read_judged_texts
from evals.measures.metrics import RagasSummary, list_reasons, metric_title
from workbench.app.evaluate.charts import ChartPoint, make_quality_chart
from workbench.app.state import address
from workbench.app.state.shared import current_theme, show_value
from workbench.app.widgets.looks import escape_markdown, strategy_look, strategy_title
from workbench.app.widgets.notices import report_errors, run_change
from workbench.app.widgets.rows import Figure, Noted, RowCell, make_figure, show_rows

if TYPE_CHECKING:
    from workbench.workbench import Workbench

# Chart of quality against latency

CHART_HEIGHT_PX = 340  # pixels


def show_quality_chart(spots: Sequence[ChartPoint], key: str) -> None:
    """Show a chart of quality against median latency; the alt text names the Pareto front."""
    best = ", ".join(spot.name for spot in spots if spot.on_front)
    sentence = f"Quality and median latency of {len(spots)} runs. No run is both better and faster than {best}."
    st.echarts_chart(
        make_quality_chart(spots, current_theme()), key=key, height=CHART_HEIGHT_PX, renderer="svg", alt=sentence
    )


MAX_OUTCOMES_CACHED = 24  # experiments with a metric, each a few hundred kilobytes


@dataclass(frozen=True)
class ExperimentOutcome:
    """An experiment, the metric shown, its cells, and the leaderboard by that metric."""

    experiment: Experiment
    metric: str
    cells: Sequence[CellResult]
    lines: Sequence[LeaderboardLine]
    wording: Sequence[str] = ()  # sentences on runs and questions left out, and on questions that repeat their passages

    @property
    def done_cells(self) -> list[CellResult]:
        """The finished cells, in the order of the leaderboard."""
        by_run = {cell.run_id: cell for cell in self.cells}
        return [by_run[line.run_id] for line in self.lines if line.status == "done"]

    @property
    def metrics(self) -> list[str]:
        """The names of the measured metrics, including span metrics if spans were judged."""
        return list(dict.fromkeys(name for cell in self.done_cells if cell.run for name in cell.run.values))

    def cell(self, run_id: str) -> CellResult | None:
        """Return the finished cell of a run."""
        return next((cell for cell in self.done_cells if cell.run_id == run_id), None)


def load_outcome(wb: Workbench, experiment_id: str, metric: str) -> ExperimentOutcome:
    """Return an experiment's results by a metric, or by its first metric if that one was not measured.

    Raises:
        NotFound: The experiment does not exist.
    """
    experiments = Experiments(wb)
    return _load_cached(wb, experiments.get(experiment_id), experiments.state(experiment_id), metric)


@st.cache_resource(
    max_entries=MAX_OUTCOMES_CACHED, show_spinner=False, hash_funcs={Experiment: lambda experiment: experiment.id}
)
def _load_cached(_wb: Workbench, experiment: Experiment, state: Mapping[str, str], metric: str) -> ExperimentOutcome:
    cells = Experiments(_wb).results(experiment.id)
    if not any(metric in cell.run.values for cell in cells if cell.run is not None):
        metric = experiment.metrics[0]
    started, cells = cells, select_measured(cells, metric)
    test_set = Experiments(_wb).test_set(experiment)
    wording = [
        *_describe_left_out(metric, started, cells),
        *describe_wording(test_set, read_judged_texts(_wb, test_set)),
    ]
    return ExperimentOutcome(experiment, metric, cells, make_leaderboard(cells, metric), wording)


def _describe_left_out(metric: str, started: Sequence[CellResult], kept: Sequence[CellResult]) -> list[str]:
    """Return sentences on the runs and questions that a measure of answers leaves out."""
    ids = {cell.run_id for cell in kept}
    files = [cell.cell.strategy for cell in started if cell.run_id not in ids]
    sentences = [f"Left out, because a run file has no answers: {', '.join(files)}."] if files else []
    if metric == CITATION_PRECISION:
        cited = len(next(cell.run.values[metric] for cell in kept if cell.run))
        sentences.append(f"Questions whose answers cite something in every run, which alone are measured: {cited:,}.")
    return sentences


def format_run_title(cell: CellResult) -> str:
    """Return a run's title: strategy, index and parameters."""
    return " · ".join([strategy_title(cell.cell.strategy), *list_settings(cell)])


def list_settings(cell: CellResult) -> list[str]:
    """Return a run's index and parameters if they differ from the defaults."""
    parameters = [
        f"{name.replace('_', ' ')} {value:g}" if isinstance(value, float) else f"{name.replace('_', ' ')} {value}"
        for name, value in cell.cell.parameters.items()
    ]
    return [*([f"index {cell.cell.index}"] if cell.cell.index else []), *parameters]


# The note and the bars of an experiment

BAR_STATES = {"passed": "done", "failed": "failed", "error": "failed", "undecided": "waiting", "skipped": "waiting"}


def show_note(experiment: Experiment) -> None:
    """Show the note and the tags of an experiment, and its bars as a table."""
    tags = " ".join(f":gray-badge[#{escape_markdown(tag)}]" for tag in experiment.tags)
    if shown := "\n\n".join(filter(None, (tags, *map(escape_markdown, experiment.note.split("\n\n"))))):
        st.markdown(shown)
    if experiment.bars:
        rows = {
            str(place): (
                strategy_look(bar["run"]) | {"text": strategy_title(bar["run"])},
                {"state": BAR_STATES[bar["state"]], "text": bar["state"]},
                Noted(f"{metric_title(bar['metric'])} {bar['bar']}", bar.get("detail", "")),
            )
            for place, bar in enumerate(experiment.bars)
        }
        show_rows("bars", ("Run", "Outcome", "Bar"), rows, label="Bars", noun="bars")


# Parts of the questions

MAX_RUNS_IN_PARTS = 6  # the best ones; more columns are too narrow to read


def show_parts(wb: Workbench, outcome: ExperimentOutcome) -> None:
    """Show the runs on each part of the questions, such as those about one source."""
    runs = outcome.done_cells[:MAX_RUNS_IN_PARTS]
    if len(runs) < 2:
        return
    st.subheader(f"{metric_title(outcome.metric)} by part of the questions", anchor=False)
    chosen = address.get("parts") or SLICE_KEYS[0]
    choices = list(dict.fromkeys([*SLICE_KEYS, chosen]))
    show_value("parts", chosen, choices)
    st.selectbox(
        "Group by", choices, format_func=lambda key: PART_TITLES.get(key, str(key).capitalize()), key="parts",
        accept_new_options=True,
        on_change=lambda: address.put(parts=st.session_state["parts"]), width=320,
        help="Or a name in the metadata of the questions or of the relevant documents",
    )  # fmt: skip
    with report_errors():
        parts = _load_parts(wb, outcome, chosen)
        title = PART_TITLES.get(chosen, chosen.capitalize()).partition(" of")[0]
        columns = (title, "Questions", *map(format_run_title, runs), "Clearly differs from the best run")
        rows: dict[str, Sequence[RowCell]] = {
            one.name: (
                one.name,
                one.questions,
                *map(make_figure, one.means.values()),
                "; ".join(describe_slice(one)) or "–",
            )
            for one in parts.slices
        }
        show_rows("parts_table", columns, rows, label="Parts of the questions", noun="parts")
        st.caption("A question can be in several parts. Tests are corrected for all runs and parts.")


PART_TITLES = {
    "length": "Length of the question",
    "origin": "Origin of the question",
    "source": "Source of the relevant documents",
    "tag": "Tag of the relevant documents",
    "type": "Type of the relevant documents",
    "language": "Language of the relevant documents",
}


@st.cache_resource(
    max_entries=MAX_OUTCOMES_CACHED,
    show_spinner=False,
    hash_funcs={ExperimentOutcome: lambda outcome: (outcome.experiment.id, outcome.metric, str(outcome.lines))},
)
def _load_parts(_wb: Workbench, outcome: ExperimentOutcome, by: str) -> Slices:
    """Return the best runs on each part of the questions. Raises InvalidInput for an unknown name in metadata."""
    test_set = Experiments(_wb).test_set(outcome.experiment)
    groups = group_questions(_wb, test_set, map_document_ids(_wb, test_set), by)
    runs = outcome.done_cells[:MAX_RUNS_IN_PARTS]
    values = {format_run_title(cell): cell.run.values[outcome.metric] for cell in runs if cell.run}
    return compare_in_slices(by, outcome.metric, groups, values)


# Answers of the runs

ANSWER_COLUMNS = ("Run", "Contains reference answer", "Citation precision", "Citation recall", "Words", "Refused")
AnswerCost: TypeAlias = tuple[str, Callable[[AnswerScores], float | None]]  # its format, and how it is read
ANSWER_COSTS: Mapping[str, AnswerCost] = {  # with the search; shown if a run has a value
    "LLM tokens": (",.0f", lambda scores: scores.llm_tokens),
    "$ / 1,000": (",.3f", lambda scores: scores.dollars and scores.dollars * 1000),
}
REFUSAL_COLUMNS = ("Refuse below similarity", "Precision", "Recall", "Answerable ones refused")


def show_answers(wb: Workbench, outcome: ExperimentOutcome) -> None:
    """Show what the answers contain, cite and refuse, and whether better retrieval reached them, if there are any."""
    titles = {cell.cell.label: format_run_title(cell) for cell in outcome.done_cells}
    answers = read_answers(outcome.done_cells)
    if not answers:
        return
    st.subheader("Answers", anchor=False)
    costs = {title: cost for title, cost in ANSWER_COSTS.items() if any(map(cost[1], answers.values()))}
    rows = {label: (titles[label], *_make_answer_cells(one, costs.values())) for label, one in answers.items()}
    show_rows("answers", (*ANSWER_COLUMNS, *costs), rows, label="Answers", noun="runs")
    for lift in compare_answers(outcome.done_cells, outcome.experiment.metrics[0]):
        st.caption(escape_markdown(lift.describe(titles)))
    for sentence in describe_refusals(answers, titles):
        st.caption(escape_markdown(sentence))
    cell = next((cell for cell in outcome.done_cells if cell.cell.label in answers), None)
    if cell is not None and (refusals := answers[cell.cell.label].refusals) and refusals.curve:
        _show_refusals(wb, outcome, cell, refusals)


def _show_refusals(wb: Workbench, outcome: ExperimentOutcome, cell: CellResult, refusals: Refusals) -> None:
    """Show the refusals of the best run over the threshold, and offer to set the best one for its index."""
    with st.expander(f"Refusals of {escape_markdown(format_run_title(cell))} by threshold"):
        rows = {
            str(point.threshold): (
                f"{point.threshold:.3f}",
                *(make_figure(share, ".0%") for share in (point.precision or 0.0, point.recall, point.wrong)),
            )
            for point in refusals.curve
        }
        show_rows("refusals", REFUSAL_COLUMNS, rows, label="Refusals by threshold", noun="thresholds")
        best = refusals.best
        if best is None or outcome.experiment.scope is None:  # a corpus of its own is not searched by others
            return
        label = escape_markdown(f"Refuse below {best:.3f} in index {cell.index_name}")
        if st.button(label, key="set_threshold", help="For all answers from this index, in every strategy"):
            run_change(lambda: _set_threshold(wb, cell.index_name, best))


def _set_threshold(wb: Workbench, index: str, threshold: float) -> str:
    wb.indexes.set_threshold(index, threshold)
    return f"Answers from index {index} are refused below a similarity of {threshold:.3f}."


def _make_answer_cells(scores: AnswerScores, costs: Iterable[AnswerCost]) -> list[Figure]:
    means = [make_figure(mean, suffix=format_spread(scores.spread, name)) for name, mean in scores.means.items()]
    shares = [make_figure(scores.words, ".0f"), make_figure(scores.refused, ".0%")]
    return [*means, *shares, *(make_figure(read(scores), form) for form, read in costs)]


# Ragas metrics of the runs


def show_ragas(outcome: ExperimentOutcome) -> None:
    """Show each mean with its number of questions, and why the other questions have no value."""
    judged = [(cell, summaries) for cell in outcome.done_cells if (summaries := cell.extra.get("ragas"))]
    if not judged:
        return
    st.subheader("Ragas", anchor=False)
    prompts = {cell.extra["prompts"] for cell in outcome.done_cells if "prompts" in cell.extra}
    used = f" Prompts of the metrics with an LLM: {', '.join(sorted(prompts))}." if prompts else ""
    st.caption(f"Mean (number of questions). Questions that could not be measured are excluded.{used}")
    names = list(dict.fromkeys(name for _, summaries in judged for name in summaries))
    rows = {
        cell.run_id: (format_run_title(cell), *(_make_ragas_cell(summaries.get(name)) for name in names))
        for cell, summaries in judged
    }
    show_rows("ragas", ("Run", *(name.replace("_", " ") for name in names)), rows, label="Ragas", noun="runs")
    reasons = list_reasons(summaries for _, summaries in judged)
    for reason in [*reasons, *list_agreements(outcome)]:
        st.caption(escape_markdown(reason))


def list_agreements(outcome: ExperimentOutcome) -> list[str]:
    """Return how well the LLM judge agrees with the test set's own judgments; [] without an LLM judge."""
    from evals.judges.judging import describe_agreement

    return list(
        dict.fromkeys(describe_agreement(cell.extra["judge"]) for cell in outcome.done_cells if "judge" in cell.extra)
    )


def _make_ragas_cell(summary: RagasSummary | None) -> Figure:
    """Return a mean with its number of questions: "0.812 (50)", or "0.812 (48, 2 not measured)"."""
    if summary is None:
        return make_figure(None)
    missing = f", {summary['not_measured']} not measured" if summary["not_measured"] else ""
    return make_figure(summary["mean"], suffix=f" ({summary['measured']}{missing})")


# Settings of a run, from its stored label

SETTING_PATTERN = re.compile(r" ?\b([a-z]\w*)=(\S+?)(?:\.0)?(?= |$)")  # of a parameter, as in "vector_weight=0.75"


def format_settings(label: str, strategy: str) -> str:
    """Return a label's index and parameters: "index fine, depth 5" for the label "hybrid on fine depth=5"."""
    rest = re.sub("^on ", "index ", label.removeprefix(strategy).replace("(run file)", "run file").strip())
    return SETTING_PATTERN.sub(lambda found: f", {found[1].replace('_', ' ')} {found[2]}", rest).removeprefix(", ")
