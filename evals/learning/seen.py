"""Rankers that were trained on the questions they are measured with: on others they will reach less."""

from __future__ import annotations

from collections.abc import Iterable

from evals.experiments.strategy_run import StrategyRun
from evals.gateway import known_rankers
from evals.learning.training import LEARNED, has_seen
from workbench.retrieval.parameters import RANKER, SHIPPED
from workbench.workbench import Workbench


def rankers_that_saw(wb: Workbench, title: str, runs: Iterable[StrategyRun]) -> list[str]:
    """Return the rankers of these runs that a test set of this title taught, each once; deleted ones are not known."""
    used = {str(run.parameters.get(RANKER.name, SHIPPED)) for run in runs if run.strategy == LEARNED}
    return [ranker.name for ranker in known_rankers(wb) if ranker.name in used and has_seen(ranker, title)]


def sentence(ranker: str) -> str:
    """Say what such a figure is worth."""
    return f"The ranker {ranker!r} was trained on these questions: on others it will reach less."
