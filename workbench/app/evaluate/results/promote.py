"""The dialog that promotes a run, with the evidence of its experiment for and against it."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from evals.learning.training import LEARNED, has_seen
from evals.measures.metrics import metric_title
from evals.measures.significance import LEVEL, sentence
from workbench.app.evaluate.results.outcome import ExperimentOutcome, run_title
from workbench.app.shell.scope_bar import place_scope
from workbench.app.widgets.promoting import PromotionCandidate, Serving, places_of_measured, promote_dialog
from workbench.app.widgets.promotion_evidence import beside_serving
from workbench.retrieval.parameters import RANKER, SHIPPED

if TYPE_CHECKING:
    from evals.experiments.runs import CellResult
    from workbench.workbench import Workbench


def promote_run(workbench: Workbench, outcome: ExperimentOutcome, cell: CellResult, serving: Serving | None) -> None:
    """Ask where a run's strategy is to serve from now on, saying what the evidence is."""
    value = cell.run.means[outcome.metric] if cell.run else 0.0
    note = f"{metric_title(outcome.metric)} {value:.3f} in {outcome.experiment.title}"
    candidate = PromotionCandidate(cell.cell.strategy, cell.cell.parameters, cell.cell.index, note)
    sentences = evidence(outcome, cell, serving) + _seen_before(workbench, outcome, cell)
    promote_dialog(
        workbench, candidate, places_of_measured(workbench, outcome.experiment.scope, place_scope()), sentences
    )


def _seen_before(workbench: Workbench, outcome: ExperimentOutcome, cell: CellResult) -> list[str]:
    """Say that a ranker was trained on the questions it was measured with, as HTML; nothing where it was not."""
    if cell.cell.strategy != LEARNED:
        return []
    name = str(cell.cell.parameters.get(RANKER.name, SHIPPED))
    known = [ranker for ranker in workbench.rankers.list() if ranker.name == name]
    if not any(has_seen(ranker, outcome.experiment.test_set_title) for ranker in known):
        return []
    return [f"The ranker <b>{escape(name)}</b> was trained on these questions: on others it will reach less."]


def evidence(outcome: ExperimentOutcome, cell: CellResult, serving: Serving | None = None) -> list[str]:
    """Return the sentences about a run, as HTML; every text is escaped."""
    line = next(line for line in outcome.lines if line.run_id == cell.run_id)
    low, high = line.interval
    sentences = [
        f"<b>{escape(run_title(cell))}</b> reached {metric_title(outcome.metric)} {line.metrics[outcome.metric]:.3f} "
        f"(95 % {low:.3f} to {high:.3f}) on {escape(outcome.experiment.test_set_title)}, "
        f"over {escape(outcome.experiment.over)}."
    ]
    if line.against_best and line.against_best.significant:
        sentences.append("Another run did significantly better on these questions.")
    elif line.against_best and line.against_best.is_tie:
        sentences.append("It ties with the run listed first: both are equal on every question.")
    elif line.against_best and line.against_best.p < LEVEL:
        sentences.append(f"Against the run that leads it {sentence(line.against_best)}.")
    elif line.against_best:
        sentences.append("It does not lead, but these questions cannot tell it from the leader.")
    if serving is not None:
        sentences.append(beside_serving(outcome.measured, outcome.metric, cell.run_id, serving))
    return sentences
