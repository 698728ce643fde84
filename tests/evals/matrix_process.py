"""Run one experiment in a separate process, reporting each step, so that a test can kill it halfway."""

import sys

from evals.experiments.catalogue import Experiments
from workbench.settings import Settings
from workbench.types import Progress
from workbench.workbench import Workbench


def say(progress: Progress) -> None:
    """Report progress to the parent, which reads it line by line."""
    print(progress.done, flush=True)


if __name__ == "__main__":
    home, url, experiment_id = sys.argv[1:]
    settings = Settings(home=home, database_url=url, embedding_model="hash", _env_file=None)  # pyright: ignore
    with Workbench.open(settings=settings) as workbench:
        Experiments(workbench).run(experiment_id, on_progress=say)
