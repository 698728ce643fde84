"""From a run to what ragas measures of it: samples with their texts, and answers where an LLM is configured."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from evals.agreement import judge_agreement
from evals.corpus import index_corpus
from evals.endpoint import Endpoint
from evals.experiments import Experiments
from evals.judges import FREE, JUDGED, Judged, Sample, answers, judge
from evals.plan import Experiment
from evals.runner import EvalRun
from evals.texts import Texts
from workbench.errors import Cancelled
from workbench.types import Progress
from workbench.workbench import Workbench

OnProgress = Callable[[Progress], None]
QUESTIONS = 50  # questions of a run that ragas looks at: comparing texts is slow, and a judge costs money


def judge_run(
    wb: Workbench,
    run: EvalRun,
    *,
    endpoint: Endpoint | None = None,
    questions: int = QUESTIONS,
    on_progress: OnProgress | None = None,
) -> dict[str, dict[str, Judged]]:
    """Return strategy -> metric -> what ragas measured, on the first ``questions``; with an endpoint the LLM's too."""
    texts = Texts(wb, run.dataset, run.corpus)
    found = {}
    for name, strategy in run.strategies.items():
        samples = [texts.sample(question_id, strategy) for question_id in list(strategy.answers)[:questions]]
        if endpoint is not None:
            samples = answered(endpoint, samples)
        metrics = FREE if endpoint is None else (*FREE, *JUDGED)
        encoder = wb.corpus.encoder_of(run.corpus.index)
        found[name] = judge(samples, metrics, encoder=encoder, endpoint=endpoint, on_progress=on_progress)
    return found


def judge_experiment(
    wb: Workbench,
    experiment: Experiment,
    endpoint: Endpoint | None = None,
    *,
    on_progress: OnProgress | None = None,
    should_stop: Callable[[], bool] | None = None,
) -> None:
    """Let ragas look at every run of an experiment, and keep what it says beside the run.

    Raises:
        Cancelled: ``should_stop`` said so; the runs judged so far keep what was said of them.
    """
    experiments = Experiments(wb)
    dataset = experiments.dataset(experiment)
    wanted = set(FREE if endpoint is None else (*FREE, *JUDGED))
    agreed: dict[str, Any] | None = None
    results = [result for result in experiments.results(experiment.id) if result.run is not None]
    waiting = [result for result in results if not wanted <= result.extra.get("ragas", {}).keys()]
    total = len(waiting) * len(wanted)
    for number, result in enumerate(waiting):
        assert result.run is not None
        if should_stop is not None and should_stop():
            raise Cancelled("Stopped; what was judged so far is kept.")
        corpus = index_corpus(wb, dataset, result.cell.index)
        run = EvalRun(dataset, corpus, {result.cell.label: result.run})
        told = _further(on_progress, result.cell.label, number * len(wanted), total)
        judged = judge_run(wb, run, endpoint=endpoint, on_progress=told)[result.cell.label]
        noted: dict[str, Any] = {"ragas": {name: found.summary() for name, found in judged.items()}}
        if endpoint is not None:
            agreed = agreed or judge_agreement(dataset, Texts(wb, dataset, corpus), endpoint)
            noted["judge"] = agreed
        experiments.note(experiment, result, noted)
    if on_progress is not None and total:
        on_progress(Progress(total, total, "done"))


def _further(on_progress: OnProgress | None, label: str, before: int, total: int) -> OnProgress | None:
    """Return what tells one run's progress as a part of all runs'."""
    if on_progress is None:
        return None
    return lambda one: on_progress(Progress(before + one.done, total, f"{label}: {one.message}"))


def with_ragas(run: EvalRun, judged: Mapping[str, Mapping[str, Judged]]) -> EvalRun:
    """Return the run with ragas' summaries beside each strategy's metrics."""
    strategies = {}
    for name, strategy in run.strategies.items():
        summaries = {metric: found.summary() for metric, found in judged.get(name, {}).items()}
        strategies[name] = replace(strategy, extra={**strategy.extra, "ragas": summaries})
    return replace(run, strategies=strategies)


def answered(endpoint: Endpoint, samples: Sequence[Sample]) -> list[Sample]:
    """Return the samples with the LLM's answers from their passages; without one where it gives none."""

    async def ask() -> dict[str, str]:
        async with endpoint:
            return await answers(endpoint, samples)

    with ThreadPoolExecutor(1) as pool:
        given = pool.submit(asyncio.run, ask()).result()
    return [replace(sample, answer=given[sample.question_id]) for sample in samples]
