"""From a run to what ragas measures of it: samples with their texts, and answers where an LLM is configured."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from evals.agreement import judge_agreement
from evals.corpus import IndexedCorpus, index_corpus
from evals.dataset import Dataset, Judgment
from evals.endpoint import Endpoint
from evals.experiments import Experiments
from evals.judges import FREE, JUDGED, Judged, Sample, answers, judge
from evals.plan import Experiment
from evals.runner import EvalRun, StrategyRun
from workbench.errors import Cancelled, NotFound
from workbench.types import Document, Progress
from workbench.workbench import Workbench

OnProgress = Callable[[Progress], None]
QUESTIONS = 50  # questions of a run that ragas looks at: comparing texts is slow, and a judge costs money
SHOWN = 5  # passages of each that count as its context
MOST_REFERENCES = 20  # relevant passages a question is compared with, where whole documents were judged


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


class Texts:
    """Texts of passages and documents by the names that judgments use, each document read once."""

    def __init__(self, wb: Workbench, dataset: Dataset, corpus: IndexedCorpus) -> None:
        self._wb, self._dataset, self._corpus = wb, dataset, corpus
        self._ids = {key: document_id for document_id, key in corpus.keys.items()}
        self._questions = {question.id: question for question in dataset.questions}
        self._texts: dict[str, str] = {}

    def sample(self, question_id: str, run: StrategyRun) -> Sample:
        """Return one question as ragas sees it."""
        question, hits = self._questions[question_id], run.answers[question_id].passages[:SHOWN]
        relevant = [key for key, grade in self._dataset.qrels[question_id].items() if grade > 0]
        return Sample(
            question_id=question_id,
            question=question.text,
            passages=tuple(self.text(hit.document)[hit.start : hit.end] for hit in hits),
            documents=tuple(dict.fromkeys(hit.document for hit in hits)),
            reference_passages=tuple(self._references(question_id, relevant)),
            reference_documents=tuple(relevant),
            reference_answer=question.reference_answer,
        )

    def judged(self, judgment: Judgment) -> str:
        """Return what a judgment is about: the span, or the whole document."""
        return self.text(judgment.document)[judgment.start : judgment.end]

    def text(self, key: str) -> str:
        """Return a document's text; "" where it is gone."""
        if key not in self._texts:
            document = self._document(key)
            self._texts[key] = (document.text or "") if document else ""
        return self._texts[key]

    def _document(self, key: str) -> Document | None:
        document_id = self._ids.get(key, key)
        if self._corpus.keys and document_id not in self._corpus.keys:
            return None
        try:
            return self._wb.knowledge.document(document_id)
        except NotFound:  # judged once, deleted since
            return None

    def _references(self, question_id: str, relevant: Sequence[str]) -> list[str]:
        spans = self._dataset.spans.get(question_id, ())
        if spans:
            return [text for text in map(self.judged, spans) if text]
        found = []
        for document in filter(None, map(self._document, relevant)):
            passages = self._wb.knowledge.passages(document.id, index=self._corpus.index.name)
            found += [passage.text for passage in passages]
        return found[:MOST_REFERENCES]
