"""An experiment's notebook is valid, and its code repeats the experiment."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable

import nbformat

from evals.experiments.catalogue import Experiments, make_cells
from evals.experiments.report import to_notebook
from evals.test_sets.folders import load_test_set
from tests.evals.conftest import WriteTestSet
from workbench import Workbench
from workbench.settings import Settings


def test_the_notebook_of_an_experiment_runs_it_again(
    wb: Workbench, beir: WriteTestSet, make_settings: Callable[..., Settings]
) -> None:
    experiments = Experiments(wb)
    test_set = experiments.test_sets.add(load_test_set(beir())).id
    weights = {"hybrid": [{"vector_weight": 0.25}]}
    made = experiments.create("It's 'quoted' {here}", test_set, make_cells(["keyword", "hybrid"], parameters=weights))
    experiments.run(made.id)
    notebook = nbformat.reads(to_notebook(experiments.get(made.id)), as_version=4)
    nbformat.validate(notebook)
    settings = make_settings()
    assert settings.database_url is not None
    environment = os.environ | {
        "WORKBENCH_HOME": str(settings.home),
        "WORKBENCH_DATABASE_URL": settings.database_url.get_secret_value(),
        "WORKBENCH_EMBEDDING_MODEL": "hash",
    }
    program = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "code")
    words = [sys.executable, "-W", "ignore", "-c", program]
    done = subprocess.run(words, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    again = experiments.list(test_set)[0]
    assert (again.title, again.cells) == (made.title, made.cells)
    assert again.message == "0 questions run, 10 cached."
