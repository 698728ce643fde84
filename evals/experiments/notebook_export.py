"""An experiment as a notebook that runs it again, on the same workbench, and shows what it shows."""

from __future__ import annotations

from evals.experiments.runs import Experiment
from workbench.export import notebook_json

_OPEN_CELL = """from evals import Cell, check_comparable, make_leaderboard
from workbench import Workbench

wb = Workbench.open()
experiments = wb.experiments"""

_RUN_CELL = """made = experiments.create({title!r}, {test_set!r}, cells, metrics={metrics!r}, limit_queries={limit!r})
check_comparable(experiments.get({id!r}), made)  # the same corpus, questions and judgments as then
experiments.run(made.id)  # what has not changed since is not run again
results = experiments.results(made.id)"""

_SHOW_CELL = """import pandas as pd

lines = make_leaderboard(results, {metric!r})
pd.DataFrame([{{"run": line.label, **line.metrics, **line.latency_ms}} for line in lines])"""


def to_notebook(experiment: Experiment) -> str:
    """Return the JSON of a notebook (nbformat 4.5) without outputs."""
    asked = [cell for cell in experiment.cells if not cell.file_hash]
    cells = ",\n".join(f"    Cell({c.strategy!r}, {dict(c.parameters)!r}, {c.index!r})" for c in asked)
    run = _RUN_CELL.format(
        title=experiment.title,
        test_set=experiment.test_set_id,
        metrics=list(experiment.metrics),
        limit=experiment.limit_queries,
        id=experiment.id,
    )
    intro = (
        f"# {experiment.title}\n\n{len(experiment.cells)} runs on version {experiment.test_set_version} of "
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
