"""The results of an experiment, read once and cached while it does not change, and the names of runs and metrics."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import streamlit as st

from evals.experiments.catalogue import Experiments
from evals.experiments.leaderboard import LeaderboardLine, leaderboard
from evals.experiments.runs import CellResult, Experiment
from evals.measures.metrics import RagasSummary
from workbench.app.evaluate.charts import Spot, quality_latency
from workbench.app.state.shared import theme_of_run
from workbench.app.widgets.looks import escaped, title_of
from workbench.app.widgets.table import Column, table

if TYPE_CHECKING:
    from workbench.workbench import Workbench

# --- Quality against time as a picture on a page: what a better answer costs ---

TALL = 340  # pixels


def front_chart(spots: Sequence[Spot], key: str) -> None:
    """Show runs by median time and quality, and say which of them none beats in both."""
    best = ", ".join(spot.name for spot in spots if spot.on_front)
    sentence = f"Quality against median time of {len(spots)} runs; none is both better and faster than {best}."
    st.echarts_chart(quality_latency(spots, theme_of_run()), key=key, height=TALL, renderer="svg", alt=sentence)


KEPT = 24  # experiments with a metric, each a few hundred kilobytes


@dataclass(frozen=True)
class ExperimentOutcome:
    """An experiment with its cells, and the leaderboard by one metric."""

    experiment: Experiment
    metric: str
    cells: Sequence[CellResult]
    lines: Sequence[LeaderboardLine]

    @property
    def measured(self) -> list[CellResult]:
        """The cells that are done, as the leaderboard orders them."""
        by_run = {cell.run_id: cell for cell in self.cells}
        return [by_run[line.run_id] for line in self.lines if line.status == "done"]

    @property
    def metrics(self) -> list[str]:
        """The names of the measured metrics; span metrics are among them where spans were judged."""
        return list(self.measured[0].run.values) if self.measured and self.measured[0].run else []

    def cell(self, run_id: str) -> CellResult | None:
        """Return a done cell by its run."""
        return next((cell for cell in self.measured if cell.run_id == run_id), None)


def outcome_of(wb: Workbench, experiment_id: str, metric: str) -> ExperimentOutcome:
    """Return an experiment's results by a metric; one it has not measured falls back to its first.

    Raises:
        NotFound: no such experiment.
    """
    experiments = Experiments(wb)
    return _read(wb, experiments.get(experiment_id), experiments.state(experiment_id), metric)


@st.cache_resource(max_entries=KEPT, show_spinner=False, hash_funcs={Experiment: lambda experiment: experiment.id})
def _read(_workbench: Workbench, experiment: Experiment, state: Mapping[str, str], metric: str) -> ExperimentOutcome:
    cells = Experiments(_workbench).results(experiment.id)
    measured = [cell.run for cell in cells if cell.run is not None]
    if metric not in (measured[0].values if measured else ()):
        metric = experiment.metrics[0]
    return ExperimentOutcome(experiment, metric, cells, leaderboard(cells, metric))


def run_title(cell: CellResult) -> str:
    """Return a run's name for people: the strategy, where it ran, what was set."""
    return " · ".join([title_of(cell.cell.strategy), *settings_of(cell)])


def settings_of(cell: CellResult) -> list[str]:
    """Return the index and the parameters a run was made with, where they are not the defaults."""
    parameters = [
        f"{name.replace('_', ' ')} {value:g}" if isinstance(value, float) else f"{name.replace('_', ' ')} {value}"
        for name, value in cell.cell.parameters.items()
    ]
    return [*([f"index {cell.cell.index}"] if cell.cell.index else []), *parameters]


# --- The metrics of ragas for an experiment's runs; questions it could not measure are counted and enter no mean ---


def ragas_view(outcome: ExperimentOutcome) -> None:
    """Show the means with how many questions they are over, and why the others have none."""
    rows = ragas_rows(outcome)
    if not rows:
        return
    st.subheader("ragas", anchor=False)
    st.caption(
        "The mean, with the number of its questions in brackets; questions that could not be measured are left out."
    )
    names = list(dict.fromkeys(name for cell in outcome.measured for name in cell.extra.get("ragas", {})))
    columns = (Column("run", "Run"), *(Column(name, name.replace("_", " "), "shown", "right") for name in names))
    table("ragas", columns, rows, label="ragas", noun="runs", filters=False)
    for reason in [*reasons(outcome), *agreements(outcome)]:
        st.caption(escaped(reason))


def ragas_rows(outcome: ExperimentOutcome) -> list[Mapping[str, object]]:
    """Return each judged run as a row: "0.812 (50)", or "0.812 (48, 2 not)"."""
    rows: list[Mapping[str, object]] = []
    for cell in outcome.measured:
        summaries = cell.extra.get("ragas", {})
        if summaries:
            cells = {name: _cell(summary) for name, summary in summaries.items()}
            rows.append({"id": cell.run_id, "name": run_title(cell), "cells": {"run": run_title(cell), **cells}})
    return rows


def reasons(outcome: ExperimentOutcome) -> list[str]:
    """Return why questions could not be measured, each reason with its count over all runs."""
    counts: dict[tuple[str, str], int] = {}
    for cell in outcome.measured:
        for name, summary in cell.extra.get("ragas", {}).items():
            for reason, times in summary["reasons"].items():
                counts[name, reason] = counts.get((name, reason), 0) + times
    return [f"{name.replace('_', ' ')}, {times} times: {reason}" for (name, reason), times in counts.items()]


def agreements(outcome: ExperimentOutcome) -> list[str]:
    """Return how far the LLM that judged agrees with the test set's own judgments; empty where no LLM judged."""
    from evals.judges.agreement import sentence

    return list(dict.fromkeys(sentence(cell.extra["judge"]) for cell in outcome.measured if "judge" in cell.extra))


def _cell(summary: RagasSummary) -> dict[str, object]:
    mean = summary["mean"]
    missing = f", {summary['not_measured']} not measured" if summary["not_measured"] else ""
    text = f"{'–' if mean is None else f'{mean:.3f}'} ({summary['measured']}{missing})"
    return {"text": text, "order": -1.0 if mean is None else mean}


# --- The settings of a run in the words of the leaderboard, from the label that is kept with it ---

SETTING = re.compile(r"\b([a-z]\w*)=(\S+)")  # of a parameter, as in "vector_weight=0.75"


def settings_text(label: str, strategy: str) -> str:
    """Return a label's index and parameters: "index fine, depth 5" of the label "hybrid on fine depth=5"."""
    rest = label.removeprefix(strategy).strip()
    before = SETTING.split(rest, maxsplit=1)[0].strip()
    index = [f"index {before.removeprefix('on ')}"] if before else []
    return ", ".join([*index, *(f"{name.replace('_', ' ')} {_shown(value)}" for name, value in SETTING.findall(rest))])


def _shown(value: str) -> str:
    try:
        return f"{float(value):g}"
    except ValueError:
        return value
