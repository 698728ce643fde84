"""Answers compared with reference answers and judgments, and refusals of questions without an answer."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise, product
from statistics import fmean

from evals.experiments.runs import (
    Budget,
    CellResult,
    Prices,
    Ranking,
    Reply,
    answer_question,
    average_values,
    mean_usage,
    measure_spread,
    name_writer,
    run_stoppable,
)
from evals.gateway import IndexedCorpus
from evals.measures.significance import Lift, measure_lift
from evals.test_set import TestSet
from workbench.errors import Cancelled, InvalidInput
from workbench.types import OnProgress, ParameterValue, Progress, ShouldStop, Value
from workbench.workbench import Workbench

CITATION_MARK = re.compile(r"\[\d+\]")  # a citation


# Refusals

MAX_CURVE_POINTS = 20


@dataclass(frozen=True, slots=True)
class RefusalPoint(Value):
    """The refusals of an index whose threshold is ``threshold``; precision is None if none is refused."""

    threshold: float
    precision: float | None
    recall: float
    wrong: float  # share (0..1) of the answerable questions that are refused


@dataclass(frozen=True, slots=True)
class Refusals(Value):
    """How well answers are refused if, and only if, the documents have none."""

    answerable: int  # questions with a relevant judgment
    unanswerable: int  # questions marked as without an answer
    refused: int  # refused questions
    refused_rightly: int  # of them, those without an answer
    curve: tuple[RefusalPoint, ...]  # by threshold of the index; () for answers stored by an earlier version
    best: float | None  # the threshold with the highest F1

    @property
    def precision(self) -> float | None:
        """The share of the refusals that are right; None without a refusal."""
        return self.refused_rightly / self.refused if self.refused else None

    @property
    def recall(self) -> float:
        """The share of the questions without an answer that are refused."""
        return self.refused_rightly / self.unanswerable

    def describe(self) -> list[str]:
        """Return sentences on the refusals and the best threshold."""
        precision = "undefined" if self.precision is None else f"{self.precision:.3f}"
        wrong = self.refused - self.refused_rightly
        sentences = [
            f"Refused {self.refused_rightly:,} of {self.unanswerable:,} questions without an answer and {wrong:,} of "
            f"{self.answerable:,} with one: precision {precision}, recall {self.recall:.3f}."
        ]
        best = next((point for point in self.curve if point.threshold == self.best), None)
        if best is not None:
            sentences.append(
                f"Refusing below {best.threshold:.3f} would reach precision "
                f"{best.precision or 0:.3f}, recall {best.recall:.3f}."
            )
        return sentences


def describe_threshold(refusals: Refusals | None, index: str) -> list[str]:
    """Return the command that sets the best threshold for an index; [] if there is none."""
    if refusals is None or refusals.best is None:
        return []
    return [f"Refuse below it with workbench indexes update {index} --refuse-below {refusals.best:g}"]


# Answers

HOLDING, CITATION_PRECISION, CITATION_RECALL = "holding", "citation-precision", "citation-recall"


@dataclass(frozen=True, slots=True)
class AnswerScores(Value):
    """Answers of one strategy, compared with reference answers and judgments; shares are 0..1.

    A citation is relevant if its passage overlaps a relevant span or, if whole documents were judged, is from a
    relevant document. A refused answer contains and cites nothing.
    """

    questions: int
    holding: float | None  # share of answers that contain the reference answer; None without reference answers
    citation_precision: float | None  # mean share of an answer's citations that are relevant; None without citations
    citation_recall: float  # mean share of a question's relevant spans or documents that its answer cites
    words: float  # mean number of words
    longest: int  # 90th percentile of that number
    refused: float  # share of refusals
    values: Mapping[str, Mapping[str, float]]  # by measure and question id, means over the repetitions
    refusals: Refusals | None = None  # None if no question is marked as without an answer
    # Standard deviation of each measure over the repetitions of an LLM; {} without repetitions.
    spread: Mapping[str, float] = field(default_factory=dict)
    usage: Mapping[str, float] = field(default_factory=dict)  # means per answer, with those of its search
    dollars: float | None = None  # mean cost of an answer with its search; None if no price is known

    @property
    def llm_tokens(self) -> float:
        """The mean number of tokens that an LLM reads and writes for an answer."""
        return self.usage.get("llm_input_tokens", 0.0) + self.usage.get("llm_output_tokens", 0.0)

    @property
    def means(self) -> dict[str, float | None]:
        """The mean of each measure, by its name."""
        precision, recall = self.citation_precision, self.citation_recall
        return {HOLDING: self.holding, CITATION_PRECISION: precision, CITATION_RECALL: recall}

    @property
    def lead(self) -> str:
        """The measure by which answers are compared: ``HOLDING`` if any answer contains its reference answer."""
        return HOLDING if any(self.values.get(HOLDING, {}).values()) else CITATION_RECALL


def ask_answers(
    wb: Workbench,
    test_set: TestSet,
    corpus: IndexedCorpus,
    strategy: str,
    parameters: Mapping[str, ParameterValue],
    *,
    repeats: int,
    budget: Budget,
    first: dict[str, Ranking] | None = None,
    on_progress: OnProgress | None = None,
    should_stop: ShouldStop | None = None,
) -> list[dict[str, Ranking]]:
    """Answer every question that has relevant documents or is marked as without an answer; by extracts without an LLM.

    Args:
        wb: The workbench.
        test_set: Questions with judgments, and reference answers if there are any.
        corpus: The searched documents and index.
        strategy: Name of the strategy that finds the passages.
        parameters: Parameters of the strategy, by name.
        repeats: Number of times that a configured LLM answers; extracts are always the same.
        budget: Stop when it is used up; the last round is then incomplete.
        first: Receives the answers of the first round, which are kept if a later one fails.
        on_progress: Called before each question.
        should_stop: Polled before each question.

    Returns:
        The answers of each round by question id.

    Raises:
        InvalidInput: No question has a relevant document. Cancelled: ``should_stop`` returned True.
        ModelError: The LLM did not answer.
    """
    if not test_set.answerable:
        raise InvalidInput(f"No question of {test_set.name!r} has a relevant document; judge some first.")
    others: list[dict[str, Ranking]] = [{} for _ in range(repeats - 1 if wb.corpus.llm is not None else 0)]
    rounds = [{} if first is None else first, *others]
    prices = Prices.from_settings(wb.settings)
    priced = (strategy, name_writer(wb.settings, parameters), corpus.index.embedding_model)
    total = len(rounds) * len(test_set.scorable)
    for number, (answers, question) in enumerate(product(rounds, test_set.scorable)):
        if should_stop is not None and should_stop():
            raise Cancelled("Stopped; no answers were kept.")
        if budget.left <= 0:
            break
        if on_progress is not None:
            on_progress(Progress(number, total, "answers"))
        asked = (wb, corpus, question, strategy, parameters)
        answers[question.id] = run_stoppable(partial(answer_question, *asked), should_stop)
        budget.spent += prices.cost(question.text, answers[question.id], *priced)
    return rounds


def measure_answers(
    test_set: TestSet, rounds: Sequence[Mapping[str, Ranking]], dollars: float | None = None
) -> AnswerScores:
    """Return the scores of answers.

    Args:
        test_set: Questions with judgments.
        rounds: The answers by question id, of each repetition of an LLM.
        dollars: Mean cost of an answer, if it is known.
    """
    questions, without = test_set.answerable, len(test_set.unanswerable)
    measured = [_measure_round(test_set, answers) for answers in rounds]
    values = average_values(measured)
    means = {name: fmean(own.values()) for name, own in values.items() if own}
    every = [_read_reply(answers[question.id]) for answers in rounds for question in questions]
    lengths = sorted(0 if answer.refused else len(CITATION_MARK.sub("", answer.text).split()) for answer in every)
    precision = means.get(CITATION_PRECISION)
    return AnswerScores(
        questions=len(questions),
        holding=round(means[HOLDING], 4) if HOLDING in means else None,
        citation_precision=None if precision is None else round(precision, 4),
        citation_recall=round(means[CITATION_RECALL], 4),
        words=round(fmean(lengths), 1),
        longest=lengths[int(0.9 * (len(lengths) - 1))],
        refused=round(fmean(answer.refused for answer in every), 4),
        values=values,
        refusals=count_refused(test_set, rounds[0]) if without else None,
        spread=measure_spread(measured),
        usage=mean_usage([answer for answers in rounds for answer in answers.values()]),
        dollars=dollars,
    )


def _read_reply(answer: Ranking) -> Reply:
    assert answer.reply is not None
    return answer.reply


def read_answers(results: Sequence[CellResult]) -> dict[str, AnswerScores]:
    """Return the answers of an experiment's runs, by label, in the order of the runs."""
    read = {one.cell.label: one.extra.get("answers") for one in results}
    return {label: scores for label, scores in read.items() if isinstance(scores, AnswerScores)}


def describe_refusals(answers: Mapping[str, AnswerScores], titles: Mapping[str, str] | None = None) -> list[str]:
    """Return sentences on the refusals of each run, under its title; [] if no question is without an answer."""
    return [
        f"{(titles or {}).get(label, label)}: {sentence}"
        for label, scores in answers.items()
        if scores.refusals is not None
        for sentence in scores.refusals.describe()
    ]


def add_answer_values(results: Sequence[CellResult]) -> list[CellResult]:
    """Return the results with the measures of their answers as metrics, if every finished run of a strategy has them.

    Citation precision is that of the questions whose answers cite something in every run, so that runs can be paired.
    """
    answers = read_answers(results)
    asked = {one.cell.label for one in results if one.run is not None and not one.cell.file_hash}
    if not asked or not asked <= answers.keys():
        return list(results)
    cited = set[str].intersection(*(set(one.values.get(CITATION_PRECISION, ())) for one in answers.values()))
    return [_with_answers(one, answers[one.cell.label], cited) if one.cell.label in asked else one for one in results]


def _with_answers(result: CellResult, answers: AnswerScores, cited: set[str]) -> CellResult:
    assert result.run is not None
    added = {name: answers.values[name] for name in (HOLDING, CITATION_RECALL) if name in answers.values}
    if cited:
        added[CITATION_PRECISION] = {key: answers.values[CITATION_PRECISION][key] for key in sorted(cited)}
    run = replace(result.run, values={**result.run.values, **added}, spread={**result.run.spread, **answers.spread})
    return replace(result, run=run)


def compare_answers(results: Sequence[CellResult], metric: str) -> list[Lift]:
    """Return whether better retrieval by the best run reached the answers: one comparison with each other run.

    ``metric`` is a metric of retrieval. Runs without answers are left out.
    """
    answers = read_answers(results)
    runs = {one.cell.label: one.run for one in results if one.run is not None and one.cell.label in answers}
    ordered = sorted(runs, key=lambda label: -runs[label].means[metric])
    found = {label: run.values[metric] for label, run in runs.items()}
    return measure_lifts(ordered, metric, found, answers)


def measure_lifts(
    ordered: Sequence[str],
    metric: str,
    found: Mapping[str, Mapping[str, float]],
    answers: Mapping[str, AnswerScores],
) -> list[Lift]:
    """Return the lift of the first run over each other one.

    Args:
        ordered: Names of runs, best first.
        metric: A metric of retrieval.
        found: Its values by run and question id.
        answers: The answers by run.
    """
    if not ordered:
        return []
    measure = HOLDING if any(one.lead == HOLDING for one in answers.values()) else CITATION_RECALL
    answered = {name: one.values[measure] for name, one in answers.items()}
    return [measure_lift(ordered[0], name, (metric, found), (measure, answered)) for name in ordered[1:]]


def _measure_round(test_set: TestSet, answers: Mapping[str, Ranking]) -> dict[str, dict[str, float]]:
    """Return {measure: {question id: value}}; questions without reference answer or citation lack those measures."""
    values: dict[str, dict[str, float]] = {}
    for question in test_set.answerable:
        own: dict[str, float | None] = {}
        reply = _read_reply(answers[question.id])
        if question.reference_answer:
            text = CITATION_MARK.sub("", reply.text)
            own[HOLDING] = float(not reply.refused and contains_answer(text, question.reference_answer))
        relevant = list_relevant(test_set, question.id)
        own[CITATION_PRECISION], own[CITATION_RECALL] = measure_citations(reply.cited, relevant)
        for name, value in own.items():
            if value is not None:
                values.setdefault(name, {})[question.id] = value
    return values


Part = tuple[str, int | None, int | None]  # key of a document, start and end of a span; None for the whole document


def list_relevant(test_set: TestSet, question_id: str) -> list[Part]:
    """Return the relevant spans of a question, or its relevant documents if no spans were judged."""
    spans = test_set.spans.get(question_id, ())
    documents = [key for key, grade in test_set.qrels[question_id].items() if grade > 0]
    return [(span.document, span.start, span.end) for span in spans] or [(key, None, None) for key in documents]


def measure_citations(cited: Sequence[tuple[str, int, int]], relevant: Sequence[Part]) -> tuple[float | None, float]:
    """Return precision (None without citations) and recall of cited passages."""

    def is_hit(passage: tuple[str, int, int], part: Part) -> bool:
        document, start, end = part
        return passage[0] == document and (start is None or end is None or (passage[1] < end and start < passage[2]))

    right = sum(any(is_hit(passage, part) for part in relevant) for passage in cited)
    reached = sum(any(is_hit(passage, part) for passage in cited) for part in relevant)
    return right / len(cited) if cited else None, reached / len(relevant)


def contains_answer(text: str, reference: str) -> bool:
    """Return whether a text contains the words of a reference answer in order, ignoring punctuation and case."""
    return f" {_fold(reference)} " in f" {_fold(text)} "


def _fold(text: str) -> str:
    return " ".join(re.sub(r"[^\w]+", " ", text.casefold()).split())


def count_refused(test_set: TestSet, answers: Mapping[str, Ranking]) -> Refusals:
    """Return the figures of the refusals of one round of answers."""
    replies = [_read_reply(answers[question.id]) for question in test_set.scorable]
    refused, thresholds = [reply.refused for reply in replies], [reply.threshold for reply in replies]
    return count_refusals(refused, thresholds, len(test_set.unanswerable))


def check_unanswerable(test_set: TestSet) -> None:
    """Raise InvalidInput if no question is marked as without an answer."""
    if not test_set.unanswerable:
        raise InvalidInput(
            f'No question of {test_set.name!r} is marked as without an answer; add some with "answerable": false in '
            "queries.jsonl, or answerable = no in a CSV."
        )


def count_refusals(refused: Sequence[bool], thresholds: Sequence[float | None], unanswerable: int) -> Refusals:
    """Return the figures of refusals.

    Args:
        refused: Whether each question was refused, first those without an answer.
        thresholds: Up to which each question is answered; the curve is left out if one is None.
        unanswerable: Number of questions without an answer.
    """
    points: list[RefusalPoint] = []
    known = [value for value in thresholds if value is not None]
    if len(known) == len(thresholds):
        ordered = sorted(set(known))
        between = {round((low + high) / 2, 4) for low, high in pairwise(ordered)}
        for threshold in sorted(between):
            rightly = sum(value < threshold for value in known[:unanswerable])
            wrongly = sum(value < threshold for value in known[unanswerable:])
            if not rightly + wrongly:
                continue  # rounded below all
            precision, recall = rightly / (rightly + wrongly), rightly / unanswerable
            wrong = wrongly / max(1, len(known) - unanswerable)
            points.append(RefusalPoint(threshold, round(precision, 4), round(recall, 4), round(wrong, 4)))
    best = max(points, key=_measure_f1, default=None)
    step = max(1, -(-len(points) // MAX_CURVE_POINTS))
    curve = tuple(point for place, point in enumerate(points) if place % step == 0 or point is best)
    return Refusals(
        answerable=len(refused) - unanswerable,
        unanswerable=unanswerable,
        refused=sum(refused),
        refused_rightly=sum(refused[:unanswerable]),
        curve=curve,
        best=best.threshold if best else None,
    )


def _measure_f1(point: RefusalPoint) -> float:
    total = (point.precision or 0.0) + point.recall
    return 2 * (point.precision or 0.0) * point.recall / total if total else 0.0
