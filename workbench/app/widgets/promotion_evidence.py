"""The evidence for a promotion: whether an experiment's paired test tells the candidate from what serves now."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from workbench.app.widgets.names import title_of
from workbench.app.widgets.promoting import PromotionCandidate, Serving
from workbench.retrieval.strategies import check_parameters

if TYPE_CHECKING:
    from evals.experiments.runs import CellResult
    from evals.measures.significance import Difference
    from workbench.workbench import Workbench

LOOKED_AT = 20  # newest experiments in which a candidate and what serves may have been measured together


def beside_serving(results: Sequence[CellResult], metric: str, run_id: str, serving: Serving) -> str:
    """Return a sentence of HTML on a run against what serves, by the paired test of an experiment's results."""
    from evals.experiments.leaderboard import against

    measured = [result for result in results if result.run is not None]
    serves = f"{escape(title_of(serving.strategy))}, which serves now"
    reference = next((result for result in measured if serving.is_run(result.cell)), None)
    if reference is None:
        return f"This experiment did not measure {serves}, so it does not say whether this run is better."
    if reference.run_id == run_id:
        return "It serves now."
    differences = against(measured, metric, reference.run_id)
    clear = any(one.significant and one.difference > 0 for one in differences.values())
    return _verdict(differences[run_id], serves) + ("" if clear else " Nothing in this experiment is clearly better.")


def serving_of(candidate: PromotionCandidate, default_index: str) -> Serving:
    """Return what would serve if a candidate were promoted."""
    parameters = check_parameters(candidate.strategy, candidate.parameters)
    index = candidate.index or default_index
    return Serving(None, candidate.strategy, parameters, index, own="", default_index=default_index)


def _verdict(difference: Difference, serves: str) -> str:
    from evals.measures.significance import equal_everywhere, sentence

    if difference.is_tie:
        return f"<b>It ties with {serves}</b>: {equal_everywhere(difference)}."
    low, high = difference.interval
    size = f"{difference.difference:+.3f}, 95 % {low:+.3f} to {high:+.3f}; {escape(sentence(difference))}"
    if not difference.significant:
        clearly = "" if difference.difference < 0 else "clearly "
        return f"<b>It is not {clearly}better than {serves}</b>: {size}."
    better = "better" if difference.difference > 0 else "worse"
    return f"<b>It is clearly {better} than {serves}</b>: {size}."


def measured_together(workbench: Workbench, candidate: PromotionCandidate, serving: Serving) -> str:
    """Return a sentence of HTML from the newest experiment that measured a candidate and what serves."""
    from evals.experiments.catalogue import Experiments
    from evals.measures.metrics import metric_title

    wanted = serving_of(candidate, serving.default_index)
    experiments = Experiments(workbench)
    finished = [experiment for experiment in experiments.list() if experiment.status == "done"]
    newest = sorted(finished, key=lambda experiment: str(experiment.created_at), reverse=True)
    for experiment in newest[:LOOKED_AT]:
        if any(map(wanted.is_run, experiment.cells)) and any(map(serving.is_run, experiment.cells)):
            results = [result for result in experiments.results(experiment.id) if result.run is not None]
            run = next((result for result in results if wanted.is_run(result.cell)), None)
            if run is not None:
                metric = experiment.metrics[0]
                ground = f"{metric_title(metric)} in {escape(experiment.title)}, over {escape(experiment.over)}"
                return f"{beside_serving(results, metric, run.run_id, serving)} ({ground}.)"
    return (
        f"No experiment has measured it beside {escape(title_of(serving.strategy))}, which serves now; Evaluate "
        "can tell whether it is better."
    )
