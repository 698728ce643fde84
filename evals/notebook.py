"""An experiment as a notebook that runs it again, on the same workbench, and shows what it shows."""

from __future__ import annotations

import json
from typing import Any

from evals.plan import Experiment

_OPEN = """from evals.experiments import Cell, Experiments
from evals.leaderboard import check_same_ground, leaderboard
from workbench import Workbench

wb = Workbench.open()
experiments = Experiments(wb)"""

_RUN = """made = experiments.create({title!r}, {dataset!r}, cells, metrics={metrics!r}, limit_queries={limit!r})
check_same_ground(experiments.get({id!r}), made)  # the same corpus, questions and judgments as then
experiments.run(made.id)  # what has not changed since is not run again
results = experiments.results(made.id)"""

_SHOW = """import pandas as pd

lines = leaderboard(results, {metric!r})
pd.DataFrame([{{"run": line.label, **line.metrics, **line.latency_ms}} for line in lines])"""


def to_notebook(experiment: Experiment) -> str:
    """Return the JSON of a notebook (nbformat 4.5) without outputs."""
    cells = ",\n".join(f"    Cell({c.strategy!r}, {dict(c.parameters)!r}, {c.index!r})" for c in experiment.cells)
    run = _RUN.format(
        title=experiment.title,
        dataset=experiment.dataset_id,
        metrics=list(experiment.metrics),
        limit=experiment.limit_queries,
        id=experiment.id,
    )
    intro = (
        f"# {experiment.title}\n\n{len(experiment.cells)} runs on version {experiment.dataset_version} of "
        f"*{experiment.dataset_title}*. The cells below run them again."
    )
    sources = [_OPEN, f"cells = [\n{cells},\n]", run, _SHOW.format(metric=experiment.metrics[0]), "wb.close()"]
    code = [_cell("code", number, source) for number, source in enumerate(sources, start=1)]
    notebook = {"cells": [_cell("markdown", 0, intro), *code], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(notebook, ensure_ascii=False, indent=1)


def _cell(kind: str, number: int, source: str) -> dict[str, Any]:
    cell: dict[str, Any] = {"id": f"cell{number}", "cell_type": kind, "metadata": {}, "source": source}
    return cell | ({"execution_count": None, "outputs": []} if kind == "code" else {})
