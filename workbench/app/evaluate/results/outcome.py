"""The results of an experiment, read once and cached while it does not change, and the names of runs and metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import streamlit as st

from evals.experiments.catalogue import Experiments
from evals.experiments.leaderboard import LeaderboardLine, leaderboard
from evals.experiments.runs import CellResult, Experiment
from workbench.app.widgets.names import title_of

if TYPE_CHECKING:
    from workbench.workbench import Workbench

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


def outcome_of(workbench: Workbench, experiment_id: str, metric: str) -> ExperimentOutcome:
    """Return an experiment's results by a metric; one it has not measured falls back to its first.

    Raises:
        NotFound: no such experiment.
    """
    experiments = Experiments(workbench)
    return _read(workbench, experiments.get(experiment_id), experiments.state(experiment_id), metric)


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
