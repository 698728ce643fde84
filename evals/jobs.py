"""Experiments and searches for parameters as jobs: any worker may take them, and take them up where they were."""

from __future__ import annotations

from collections.abc import Sequence

from evals.corpus import index_corpus
from evals.endpoint import Endpoint
from evals.experiments import Experiments
from evals.optimiser import optimise
from evals.store import DatasetStore
from workbench.errors import Conflict, InvalidInput
from workbench.jobs import Outcome, Running
from workbench.storage.jobs import Job
from workbench.types import plain
from workbench.workbench import Workbench

RECENT = 200  # jobs among which an experiment's own is looked for


def enqueue_experiment(wb: Workbench, experiment_id: str, *, ragas: str = "none") -> Job:
    """Run an experiment in the background, or go on with one that was stopped.

    ``ragas`` looks at the texts afterwards: "free" without a language model, "llm" with the configured one.

    Raises:
        NotFound: no such experiment. Conflict: it runs already. ConfigurationError: "llm", and none is configured.
    """
    if ragas == "llm":
        Endpoint.from_settings(wb.settings)
    experiment = Experiments(wb).get(experiment_id)
    there = job_of(wb, experiment.id)
    if there is not None and not there.is_finished:
        raise Conflict(f"{experiment.title!r} is {there.status} already; cancel its job first to start it anew.")
    return wb.jobs.enqueue("experiment", experiment.title, {"experiment": experiment.id, "ragas": ragas})


def enqueue_optimise(
    wb: Workbench, dataset: str, strategies: Sequence[str], seconds: float, metric: str, index: str | None = None
) -> Job:
    """Search for good parameters in the background. Raises NotFound, or InvalidInput without time or strategies."""
    if seconds <= 0 or not strategies:
        raise InvalidInput("A search for parameters needs some seconds and at least one strategy.")
    info = DatasetStore(wb).info(dataset)
    given = {"dataset": info.id, "strategies": list(strategies), "seconds": seconds, "metric": metric, "index": index}
    return wb.jobs.enqueue("optimise", f"Search for parameters on {info.title}", given)


def job_of(wb: Workbench, experiment_id: str) -> Job | None:
    """Return the newest job that runs an experiment; None where it was run by other means, or long ago."""
    jobs = wb.jobs.list(kind="experiment", limit=RECENT)
    return next((job for job in jobs if job.parameters["experiment"] == experiment_id), None)


def run_experiment(wb: Workbench, running: Running) -> Outcome:
    """Run what is not done of an experiment, then what ragas can say of it."""
    given = running.job.parameters
    experiments = Experiments(wb)
    done = experiments.run(given["experiment"], on_progress=running.progress, should_stop=running.should_stop)
    failed = [result for result in experiments.results(done.id) if result.error]
    for result in failed:
        running.log(f"{result.cell.label}: {result.error}", "error")
    if given["ragas"] != "none":
        from evals.judging import judge_experiment  # imports ragas, which takes seconds

        endpoint = Endpoint.from_settings(wb.settings) if given["ragas"] == "llm" else None
        judge_experiment(wb, done, endpoint, on_progress=running.progress, should_stop=running.should_stop)
    return Outcome({"experiment": done.id, "failed": len(failed)}, done.message, with_errors=bool(failed))


def run_optimise(wb: Workbench, running: Running) -> Outcome:
    """Search for parameters; a search that was stopped begins anew, as its time is what was given."""
    given = running.job.parameters
    dataset = DatasetStore(wb).load(given["dataset"])
    corpus = index_corpus(wb, dataset, given["index"], on_progress=running.progress, should_stop=running.should_stop)
    found = optimise(
        wb, dataset, corpus, given["strategies"], given["seconds"], metric=given["metric"],
        on_progress=running.progress, should_stop=running.should_stop,
    )  # fmt: skip
    best = found.finalists[0]
    message = f"{found.tried} settings tried; the best on held-out questions is {best.candidate.strategy}."
    return Outcome(plain(found), message)
