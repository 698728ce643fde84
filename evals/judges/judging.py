"""Scores of runs: over samples with their texts, and over answers if an LLM is configured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from evals.experiments.catalogue import Experiments
from evals.experiments.runs import EvalRun, Experiment
from evals.gateway import index_corpus
from evals.judges import FREE_METRICS, JUDGED_METRICS, JudgedMetric, Sample, measure_samples
from evals.judges.agreement import Texts, add_answers, measure_judge_agreement
from evals.judges.endpoint import Endpoint, check_stop
from evals.judges.scores import ScorerFactory, make_scorer
from evals.measures.metrics import JudgeAgreement, Verdicts
from workbench.errors import InvalidInput, list_choices
from workbench.runtime import check_extra
from workbench.types import OnProgress, Progress, ShouldStop
from workbench.workbench import Workbench

MAX_QUESTIONS = 50  # questions scored per run: comparing texts is slow, and a judge costs money
JUDGES = ("built-in", "ragas")  # whose prompts the metrics with an LLM use; ragas needs the extra ``ragas``


def check_judge(name: str) -> None:
    """Check the name of a judge. Raises InvalidInput, or ConfigurationError if ragas is not installed."""
    if name not in JUDGES:
        raise InvalidInput(f"Unknown judge {name!r}; use {list_choices(JUDGES)}.")
    if name == "ragas":
        check_extra("ragas")


def _find_scorer(judge: str, should_stop: ShouldStop | None) -> ScorerFactory:
    check_judge(judge)
    if judge == "built-in":
        return make_scorer
    from evals.judges import ragas  # an extra

    ragas.load_ragas(should_stop)
    return ragas.make_scorer


def judge_run(
    wb: Workbench,
    run: EvalRun,
    *,
    endpoint: Endpoint | None = None,
    judge: str = "built-in",
    questions: int = MAX_QUESTIONS,
    on_progress: OnProgress | None = None,
    should_stop: ShouldStop | None = None,
    parts: int = 0,
) -> dict[str, dict[str, JudgedMetric]]:
    """Return the scores of the first ``questions`` by strategy and metric; with an endpoint, LLM-based ones too.

    ``judge`` is "built-in" for our prompts, or "ragas" for those of ragas. Each strategy gets an equal part of the
    endpoint's remaining limits; ``parts`` is the number of runs still to be judged with it (by default, the number of
    strategies).

    Raises:
        Cancelled: ``should_stop`` returned True.
        ConfigurationError: ragas is not installed.
    """
    scorer = _find_scorer(judge, should_stop)
    texts = Texts(wb, run.test_set, run.corpus)
    judged: dict[str, dict[str, JudgedMetric]] = {}
    parts = parts or len(run.strategies)
    encoder = wb.corpus.index_encoder(run.corpus.index)
    for name, strategy in run.strategies.items():
        samples: list[Sample] = []
        for question_id in list(strategy.answers)[:questions]:
            check_stop(should_stop)
            samples.append(texts.sample(question_id, strategy))
        own = endpoint.share(max(1, parts - len(judged))) if endpoint is not None else None
        if own is not None:
            samples = add_answers(own, samples, should_stop)
        metrics = FREE_METRICS if own is None else (*FREE_METRICS, *JUDGED_METRICS)
        judged[name] = measure_samples(
            samples, metrics, judge=scorer, encoder=encoder, endpoint=own,
            on_progress=on_progress, should_stop=should_stop,
        )  # fmt: skip
    return judged


def judge_experiment(
    wb: Workbench,
    experiment: Experiment,
    endpoint: Endpoint | None = None,
    *,
    judge: str = "built-in",
    on_progress: OnProgress | None = None,
    should_stop: ShouldStop | None = None,
) -> None:
    """Score every run of an experiment, and store the scores with the run; ``judge`` as in ``judge_run``.

    Raises:
        Cancelled: ``should_stop`` returned True; the runs judged so far keep their scores.
    """
    experiments = Experiments(wb)
    test_set = experiments.test_set(experiment)
    wanted = set(FREE_METRICS if endpoint is None else (*FREE_METRICS, *JUDGED_METRICS))
    agreed: JudgeAgreement | None = None
    results = [result for result in experiments.results(experiment.id) if result.run is not None]
    waiting = [
        result
        for result in results
        if not wanted <= result.extra.get("ragas", {}).keys()
        or (endpoint is not None and result.extra.get("prompts", judge) != judge)
    ]
    total = len(waiting) * len(wanted)
    for number, result in enumerate(waiting):
        assert result.run is not None
        check_stop(should_stop)
        corpus = index_corpus(wb, test_set, result.cell.index)
        run = EvalRun(test_set, corpus, {result.cell.label: result.run})

        def report(part: Progress, before: int = number * len(wanted), label: str = result.cell.label) -> None:
            if on_progress is not None:
                on_progress(Progress(before + part.done, total, f"{label}: {part.message}"))

        grading = endpoint is not None and agreed is None  # one more part, after the first run
        parts = len(waiting) - number + grading
        judged = judge_run(
            wb, run, endpoint=endpoint, judge=judge, on_progress=report, should_stop=should_stop, parts=parts
        )
        noted: Verdicts = {"ragas": {name: figures.summary() for name, figures in judged[result.cell.label].items()}}
        if endpoint is not None:
            if agreed is None:
                own = endpoint.share(len(waiting) - number)
                agreed = measure_judge_agreement(test_set, Texts(wb, test_set, corpus), own, should_stop=should_stop)
            noted["judge"], noted["prompts"] = agreed, judge
        experiments.note(experiment, result, noted)
    if on_progress is not None and total:
        on_progress(Progress(total, total, "done"))


def add_ragas(run: EvalRun, judged: Mapping[str, Mapping[str, JudgedMetric]]) -> EvalRun:
    """Return the run with the scores' summaries added to each strategy's metrics."""
    strategies = {}
    for name, strategy in run.strategies.items():
        summaries = {metric: figures.summary() for metric, figures in judged.get(name, {}).items()}
        strategies[name] = replace(strategy, extra={**strategy.extra, "ragas": summaries})
    return replace(run, strategies=strategies)
