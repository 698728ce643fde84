"""Verdicts of judges on runs: scores of the texts, and an LLM's grades and their agreement with a person's."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from pydantic import create_model

from evals.experiments.catalogue import Experiments
from evals.experiments.runs import (
    FREE,
    JUDGES,
    MAX_JUDGED,
    Cell,
    EvalRun,
    Experiment,
    Judging,
    Ranking,
    Usage,
    list_asked,
    run_stoppable,
)
from evals.gateway import IndexedCorpus, index_corpus
from evals.judges.endpoint import Endpoint, Spending, check_stop, run_judging
from evals.judges.scores import (
    FREE_METRICS,
    JUDGED_METRICS,
    JudgedMetric,
    Sample,
    ScorerFactory,
    make_scorer,
    measure_samples,
    summarise_scores,
)
from evals.measures.metrics import JudgeAgreement, Verdicts
from evals.test_set import DEFAULT_GRADES, SCALES, Judgment, TestSet
from evals.test_sets.raters import AGAIN, cohens_kappa
from evals.test_sets.store import Rating, TestSetInfo, TestSetStore
from workbench.errors import InvalidInput, ModelError, NotFound, list_choices
from workbench.runtime import check_extra
from workbench.types import Document, JsonObject, OnProgress, Progress, ShouldStop, Value
from workbench.workbench import Workbench

MAX_DOCUMENT_CHARS = 6_000  # about 1,500 tokens, which small local models read well
_PROMPT = """How well does the text answer the question? The grades:
{grades}

Question: {question}

Text: {text}

Answer with JSON only: {{"grade": one of the grades in quotes}}"""


def grade_judgments(
    endpoint: Endpoint,
    judged: Sequence[Judgment],
    questions: Mapping[str, str],
    text_of: Callable[[Judgment], str],
    should_stop: ShouldStop | None = None,
    *,
    grades: int = DEFAULT_GRADES,
    temperature: float = 0.0,
) -> list[int | str]:
    """Return an LLM's grade of each span, or why there is none; ``questions`` are by id."""
    return run_judging(lambda: _grade_all(endpoint, judged, questions, text_of, grades, temperature), should_stop)


def measure_agreement(pairs: Sequence[tuple[int, int | str]], model: str = "") -> JudgeAgreement:
    """Return the agreement of a person's grades with an LLM's: the share of equal verdicts, and Cohen's kappa.

    A verdict is relevant or not (grade above 0). A text in place of the LLM's grade is the reason why there is none.
    """
    both = [(person > 0, llm > 0) for person, llm in pairs if isinstance(llm, int)]
    reasons = dict(Counter(llm for _, llm in pairs if isinstance(llm, str)))
    found: JudgeAgreement = {
        "pairs": len(both), "agreement": None, "kappa": None,
        "model": model, "not_graded": len(pairs) - len(both), "reasons": reasons,
    }  # fmt: skip
    if both:
        found["agreement"] = round(sum(a == b for a, b in both) / len(both), 6)
        found["kappa"] = cohens_kappa(both)
    return found


async def _grade_all(
    endpoint: Endpoint,
    judged: Sequence[Judgment],
    questions: Mapping[str, str],
    text_of: Callable[[Judgment], str],
    grades: int,
    temperature: float,
) -> list[int | str]:
    scale = SCALES[grades]
    names = "\n".join(f"{name} - {meaning}" for name, meaning in reversed(scale.items()))
    choice: Any = Enum("GradeName", {name: name for name in scale})
    form = create_model("Grade", grade=(choice, ...))

    async def parse_verdict(judgment: Judgment) -> int | str:
        text = text_of(judgment)[:MAX_DOCUMENT_CHARS]
        try:
            prompt = _PROMPT.format(grades=names, question=questions[judgment.question_id], text=text)
            reply = await endpoint.ask(prompt, form, temperature)
        except ModelError as error:
            return str(error)
        return list(scale).index(reply.model_dump(mode="json")["grade"])

    async with endpoint:
        return list(await asyncio.gather(*(parse_verdict(judgment) for judgment in judged)))


# Texts of questions and judgments

CONTEXT_PASSAGES = 5  # passages judged of a search; of an answer all that it was written from
MAX_REFERENCE_PASSAGES = 20  # relevant passages compared with a question if whole documents were judged


class Texts:
    """Texts of passages and documents by the keys of judgments; each document is read once."""

    def __init__(self, wb: Workbench, test_set: TestSet, corpus: IndexedCorpus) -> None:
        self._wb, self._test_set, self.corpus = wb, test_set, corpus
        self._ids = {key: document_id for document_id, key in corpus.keys.items()}
        self._questions = {question.id: question for question in test_set.questions}
        self._texts: dict[str, str] = {}

    def sample(self, found: Ranking) -> Sample:
        """Return one question, with what was found or answered, as a sample."""
        question, reply = self._questions[found.question_id], found.reply
        hits = found.passages if reply else found.passages[:CONTEXT_PASSAGES]
        relevant = [key for key, grade in self._test_set.qrels[question.id].items() if grade > 0]
        return Sample(
            question_id=question.id,
            question=question.in_context,
            passages=tuple(self.text(hit.document)[hit.start : hit.end] for hit in hits),
            documents=tuple(dict.fromkeys(hit.document for hit in hits)),
            reference_passages=tuple(self._references(question.id, relevant)),
            reference_documents=tuple(relevant),
            answer=reply.text if reply else "",
            reference_answer=question.reference_answer,
            no_answer=found.no_answer,
        )

    def judged_text(self, judgment: Judgment) -> str:
        """Return the judged text: the span, or the whole document."""
        return self.text(judgment.document)[judgment.start : judgment.end]

    def text(self, key: str) -> str:
        """Return a document's text; "" if it is gone."""
        if key not in self._texts:
            document = self._document(key)
            self._texts[key] = (document.text or "") if document else ""
        return self._texts[key]

    def _document(self, key: str) -> Document | None:
        document_id = self._ids.get(key, key)
        if self.corpus.keys and document_id not in self.corpus.keys:
            return None
        try:
            return self._wb.documents.get(document_id)
        except NotFound:  # deleted since it was judged
            return None

    def _references(self, question_id: str, relevant: Sequence[str]) -> list[str]:
        spans = self._test_set.spans.get(question_id, ())
        if spans:
            return [text for text in map(self.judged_text, spans) if text]
        texts = []
        for document in filter(None, map(self._document, relevant)):
            passages = self._wb.documents.passages(document.id, index=self.corpus.index.name)
            texts += [passage.text for passage in passages]
        return texts[:MAX_REFERENCE_PASSAGES]


# Agreement of an LLM with the test set

MAX_JUDGMENTS = 50  # judgments that the LLM repeats, one call each


def sample_to_grade(test_set: TestSet, texts: Texts, questions: Iterable[str]) -> list[Judgment]:
    """Return the judgments of these questions that an LLM repeats: at most 50 whose text exists, half of them
    relevant if possible."""
    wanted = set(questions)
    existing = [one for one in test_set.judgments if one.question_id in wanted and texts.judged_text(one).strip()]
    return sample_judgments(existing, MAX_JUDGMENTS)


def grade_again(
    test_set: TestSet, texts: Texts, endpoint: Endpoint, chosen: Sequence[Judgment], should_stop: ShouldStop | None
) -> list[tuple[int, int | str]]:
    """Return the test set's grade of each judgment with the LLM's, or why it has none."""
    questions = {question.id: question.in_context for question in test_set.questions}
    given = grade_judgments(endpoint, chosen, questions, texts.judged_text, should_stop, grades=test_set.grades)
    return [(one.grade, grade) for one, grade in zip(chosen, given, strict=True)]


def sample_judgments(judgments: Sequence[Judgment], most: int) -> list[Judgment]:
    """Return at most ``most`` judgments, always the same ones, half of them relevant if possible."""
    ordered = _shuffle(judgments)
    relevant = [judgment for judgment in ordered if judgment.grade > 0]
    others = [judgment for judgment in ordered if judgment.grade <= 0]
    first = max(most // 2, most - len(others))
    return [*relevant[:first], *others[: most - len(relevant[:first])]]


def _shuffle(judgments: Sequence[Judgment]) -> list[Judgment]:
    """Return judgments in an order that is always the same."""
    return sorted(judgments, key=lambda one: hashlib.sha256(f"{one.question_id}|{one.document}".encode()).digest())


def describe_agreement(figures: JudgeAgreement) -> str:
    """Return the agreement as a sentence."""
    if not figures["pairs"]:
        why = "; ".join(figures["reasons"]) or "No judged text of the test set still exists."
        return f"The agreement of the LLM {figures['model']!r} with the test set could not be measured: {why}"
    agreed = round((figures["agreement"] or 0.0) * figures["pairs"])
    kappa = "" if figures["kappa"] is None else f" (kappa {figures['kappa']:.2f}; 0 is chance, 1 is perfect)"
    rest = f" {figures['not_graded']} were not graded: {'; '.join(figures['reasons'])}" if figures["not_graded"] else ""
    judgments = f"{agreed} of {figures['pairs']} judgments{kappa}"
    return f"The LLM {figures['model']!r} agrees with the test set on {judgments}.{rest}"


# An LLM as one of the raters

MAX_RATED = 200  # places that it judges by default, one call each
AGAIN_TEMPERATURE = 0.3  # of a second round: at 0 it would repeat the first


@dataclass(frozen=True)
class LlmRating(Value):
    """The outcome of an LLM's judging; ``reasons`` explains missing grades, with counts."""

    rater: str
    judged: int
    left_out: int  # places beyond the limit
    reasons: Mapping[str, int]


def rate_by_llm(
    wb: Workbench,
    store: TestSetStore,
    info: TestSetInfo,
    *,
    endpoint: Endpoint | None = None,
    limit: int = MAX_RATED,
    rounds: int = 1,
    on_progress: OnProgress | None = None,
    should_stop: ShouldStop | None = None,
) -> LlmRating:
    """Store the grades of an LLM for the places that people have judged, under the name of its model.

    A second round is stored as a rater of its own, ``MODEL #2``.

    Raises:
        ConfigurationError: There is no LLM. InvalidInput: Nothing was judged, or a number is invalid.
        Cancelled: ``should_stop`` returned True; finished rounds are kept.
    """
    if limit < 1 or rounds not in (1, 2):
        raise InvalidInput(f"Invalid limit {limit} or number of rounds {rounds}; use at least 1, and 1 or 2 rounds.")
    endpoint = endpoint or Endpoint.from_workbench(wb)
    test_set = store.load(info.id)
    texts = Texts(wb, test_set, index_corpus(wb, test_set))
    questions = {question.id: question.in_context for question in test_set.questions}
    judgeable = [judgment for judgment in test_set.judgments if texts.judged_text(judgment).strip()]
    if not judgeable:
        raise InvalidInput(f"Nothing in {info.title!r} has been judged; judge a pool first.")
    chosen: Sequence[Judgment] = _shuffle(judgeable)[:limit]  # so that its base rate is comparable with that of people
    reasons: Counter[str] = Counter()
    judged, left_out = 0, len(judgeable) - len(chosen)
    for done in range(rounds):
        if on_progress is not None:
            on_progress(Progress(done, rounds, f"round {done + 1}"))
        warmth, name = (AGAIN_TEMPERATURE, endpoint.model + AGAIN) if done else (0.0, endpoint.model)
        given = grade_judgments(
            endpoint, chosen, questions, texts.judged_text, should_stop, grades=info.grades, temperature=warmth
        )
        reasons.update(grade for grade in given if isinstance(grade, str))
        # a second round is of use only for what the first one graded
        chosen = [replace(one, grade=grade) for one, grade in zip(chosen, given, strict=True) if isinstance(grade, int)]
        judged += len(chosen)
        store.rate(info.id, [Rating(judgment, name, "llm") for judgment in chosen])
    return LlmRating(endpoint.model, judged, left_out, dict(reasons))


# Scores of runs


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

    run_stoppable(ragas.ragas, should_stop)  # its import takes seconds
    return ragas.make_scorer


def judge_run(
    wb: Workbench,
    run: EvalRun,
    *,
    endpoint: Endpoint | None = None,
    judge: str = "built-in",
    questions: int = MAX_JUDGED,
    on_progress: OnProgress | None = None,
    should_stop: ShouldStop | None = None,
    parts: int = 0,
    answers: Mapping[str, Mapping[str, Ranking]] | None = None,
    no_answer: str = "",
) -> dict[str, dict[str, JudgedMetric]]:
    """Return the scores of the first ``questions`` by strategy and metric; with an endpoint, LLM-based ones too.

    ``answers`` are those of the strategies by question id, which are judged in place of what was found, and
    ``no_answer`` is why others lack one. ``judge`` is "built-in" for our prompts, or "ragas" for those of ragas. Each
    strategy gets an equal part of the endpoint's remaining limits; ``parts`` is the number of runs still to be judged
    with it (by default, the number of strategies).

    Raises:
        Cancelled: ``should_stop`` returned True.
        ConfigurationError: ragas is not installed.
    """
    scorer = _find_scorer(judge, should_stop)
    texts = Texts(wb, run.test_set, run.corpus)
    judged: dict[str, dict[str, JudgedMetric]] = {}
    parts = parts or len(run.strategies)
    for name, strategy in run.strategies.items():
        written, rankings = (answers or {}).get(name, {}), list(strategy.answers.values())[:questions]
        found = [written.get(one.question_id, replace(one, no_answer=no_answer)) for one in rankings]
        own = endpoint.share(max(1, parts - len(judged))) if endpoint is not None else None
        judged[name] = _score_found(wb, texts, found, own, scorer, should_stop, on_progress)
    return judged


def _score_found(
    wb: Workbench,
    texts: Texts,
    found: Sequence[Ranking],
    endpoint: Endpoint | None,
    scorer: ScorerFactory,
    should_stop: ShouldStop | None,
    on_progress: OnProgress | None = None,
) -> dict[str, JudgedMetric]:
    samples: list[Sample] = []
    for one in found:
        check_stop(should_stop)
        samples.append(texts.sample(one))
    return measure_samples(
        samples, FREE_METRICS if endpoint is None else (*FREE_METRICS, *JUDGED_METRICS), judge=scorer,
        encoder=wb.corpus.index_encoder(texts.corpus.index), endpoint=endpoint,
        on_progress=on_progress, should_stop=should_stop,
    )  # fmt: skip


class RunJudge:
    """Judges the rankings of an experiment's runs, a few questions at a time, and grades the judgments of the test set.

    Each run may take an equal part of what is left of the endpoint's limits.
    """

    def __init__(
        self, wb: Workbench, endpoint: Endpoint | None, judge: str = "built-in", should_stop: ShouldStop | None = None
    ) -> None:
        """``judge`` is as in ``judge_run``; without an endpoint only the metrics without an LLM are measured."""
        self._wb, self._endpoint, self._should_stop = wb, endpoint, should_stop
        self._scorer = _find_scorer(judge, should_stop)
        self._texts: dict[str, Texts] = {}
        self._parts: dict[str, Endpoint] = {}  # by label of the cell

    def __call__(
        self, test_set: TestSet, corpus: IndexedCorpus, experiment: Experiment, cell: Cell, found: Sequence[Ranking]
    ) -> list[Ranking]:
        """Return the questions with their scores; what the calls took is counted with the first of them."""
        texts = self._texts.setdefault(corpus.index.name, Texts(self._wb, test_set, corpus))
        own, cells = None, [one for one in experiment.cells if one.judge == cell.judge]
        if self._endpoint is not None:
            own = self._parts.setdefault(cell.label, self._endpoint.share(len(cells) - cells.index(cell)))
        began, before = time.perf_counter(), replace(own.spent) if own else Spending()
        scored = _score_found(self._wb, texts, found, own, self._scorer, self._should_stop)
        verdicts: list[JsonObject] = [
            {"scores": {name: metric.outcomes[one.question_id] for name, metric in scored.items()}} for one in found
        ]
        if own is not None and cell == cells[0]:
            asked = [question.id for question in list_asked(test_set, answers=False, judge=True)]
            ids = {one.question_id for one in found}
            chosen = [one for one in sample_to_grade(test_set, texts, asked) if one.question_id in ids]
            given = grade_again(test_set, texts, own, chosen, self._should_stop)
            for one, verdict in zip(found, verdicts, strict=True):
                verdict["grades"] = [
                    list(pair)
                    for place, pair in zip(chosen, given, strict=True)
                    if place.question_id == one.question_id
                ]
        usage = Usage()
        if own is not None:
            written = own.spent.written - before.written
            usage = Usage(0, own.spent.calls - before.calls, own.spent.tokens - before.tokens - written, written)
        each = (time.perf_counter() - began) * 1000 / len(found)
        return [
            Ranking(one.question_id, (), (), each, usage=Usage() if place else usage, verdict=verdict)
            for place, (one, verdict) in enumerate(zip(found, verdicts, strict=True))
        ]


def resume_experiment(
    wb: Workbench,
    experiment_id: str,
    *,
    endpoint: Endpoint | None = None,
    budget: float | None = None,
    on_progress: OnProgress | None = None,
    should_stop: ShouldStop | None = None,
) -> Experiment:
    """Run the rest of an experiment, with its judges; ``endpoint`` is their LLM, by default the configured one.

    Raises:
        ConfigurationError: A judge needs an LLM, and none is configured. Others are those of ``Experiments.run``.
    """
    experiments = Experiments(wb)
    experiments.prepare(experiment_id, budget=budget)
    judge, model = make_judging(wb, experiments.get(experiment_id), endpoint, should_stop)
    done = experiments.run(experiment_id, on_progress=on_progress, should_stop=should_stop, judge=judge)
    note_verdicts(experiments, done, model)
    return done


def make_judging(
    wb: Workbench, experiment: Experiment, endpoint: Endpoint | None = None, should_stop: ShouldStop | None = None
) -> tuple[Judging, str]:
    """Return what judges an experiment's runs by all of its judges, and the name of their LLM, or "" without one."""
    names = {cell.judge for cell in experiment.cells if cell.judge}
    llm = (endpoint or Endpoint.from_workbench(wb)) if names - {FREE} else None
    judges = {
        name: RunJudge(wb, None, should_stop=should_stop) if name == FREE else RunJudge(wb, llm, name, should_stop)
        for name in names
    }

    def judge(
        test_set: TestSet, corpus: IndexedCorpus, planned: Experiment, cell: Cell, found: Sequence[Ranking]
    ) -> list[Ranking]:
        return judges[cell.judge](test_set, corpus, planned, cell, found)

    return judge, llm.model if llm else ""


def note_verdicts(experiments: Experiments, experiment: Experiment, model: str) -> None:
    """Store a summary of what the judges of an experiment have stored with its runs; ``model`` is the LLM's name."""
    results = {one.cell.label: one for one in experiments.results(experiment.id)}
    for judge in dict.fromkeys(cell.judge for cell in experiment.cells if cell.judge):
        found = {label: rows for label, rows in experiments.verdicts(experiment, judge).items() if rows}
        pairs = [pair for rows in found.values() for row in rows for pair in row.get("grades", ())]
        agreed = measure_agreement(pairs, model) if judge != FREE else None
        for label, rows in found.items():
            noted: Verdicts = {"ragas": summarise_scores(rows)}
            if agreed is not None:
                noted["judge"], noted["prompts"] = agreed, judge
            experiments.note(experiment, results[label], noted)


def add_ragas(run: EvalRun, judged: Mapping[str, Mapping[str, JudgedMetric]]) -> EvalRun:
    """Return the run with the scores' summaries added to each strategy's metrics."""
    strategies = {}
    for name, strategy in run.strategies.items():
        summaries = {metric: figures.summary() for metric, figures in judged.get(name, {}).items()}
        strategies[name] = replace(strategy, extra={**strategy.extra, "ragas": summaries})
    return replace(run, strategies=strategies)
