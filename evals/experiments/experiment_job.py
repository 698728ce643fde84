"""An experiment as a job that several workers share: one leads it, and each asks shares of its questions."""

from __future__ import annotations

from collections.abc import Sequence

from evals.experiments.catalogue import Experiments
from evals.experiments.cell_runs import CellRuns, Share, ShareOutcome
from evals.experiments.plan import Experiment
from evals.gateway import complete_part
from evals.test_set import TestSet
from workbench.jobs.sharing import Assignment, progress_of, shared
from workbench.types import JsonObject, JsonValue, OnProgress, Progress, as_object
from workbench.types.json import as_whole
from workbench.workbench import Workbench


def run_together(wb: Workbench, experiment_id: str, assignment: Assignment) -> Experiment:
    """Carry out what is not done yet, or help with it.

    A helper returns when there is no share left for it, though others may still be at theirs. Raises what
    ``Experiments.run`` raises, and PartLost where another worker took over what this one had in hand.
    """
    experiments = Experiments(wb)

    def ask_together(experiment: Experiment, test_set: TestSet) -> Sequence[ShareOutcome]:
        return _outcomes(wb, experiment, test_set, assignment)

    if assignment.leads:
        return experiments.run(experiment_id, ask_all=ask_together)
    experiment = experiments.get(experiment_id)
    ask_together(experiment, experiments.test_set(experiment))
    return experiment


def _outcomes(
    wb: Workbench, experiment: Experiment, test_set: TestSet, assignment: Assignment
) -> Sequence[ShareOutcome]:
    """Ask the shares that come into these hands; returns what came of all shares that are done, by any hands."""
    tell: OnProgress | None = assignment.progress if assignment.leads else None

    def on_progress(progress: Progress) -> None:
        if tell is not None:
            tell(progress)

    runs = CellRuns(wb, experiment, test_set, on_progress, assignment.should_stop)

    def plan() -> None:
        for position in range(len(experiment.cells)):  # so that no two workers index one corpus
            runs.look()
            runs.open(position)
        parts = [(share.to_dict(), share.last - share.first) for share in runs.shares()]
        wb.jobs.table.parts.plan(assignment.job.id, parts)

    with shared(wb.jobs.table, assignment, plan) as in_hand:
        tell = progress_of(assignment, in_hand, "questions")
        for part in in_hand.all_taken():
            runs.look()
            if part is None:
                continue
            share = _share(part.content)
            before = [_outcome(result) for _, result in in_hand.results()]
            failed = any(each.failed and each.cell == share.cell for each in before)
            outcome = ShareOutcome(share.cell, 0, 0, failed=True) if failed else runs.answer(share)
            complete_part(wb, in_hand, part, outcome.to_dict())
        return [_outcome(result) for _, result in in_hand.results()]


def _share(content: JsonValue) -> Share:
    told = as_object(content)
    return Share(as_whole(told["cell"]), as_whole(told["first"]), as_whole(told["last"]))


def _outcome(result: JsonObject) -> ShareOutcome:
    cell, asked, stored = (as_whole(result[name]) for name in ("cell", "asked", "stored"))
    return ShareOutcome(cell, asked, stored, failed=bool(result["failed"]))
