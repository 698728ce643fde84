"""Answers compared with reference answers, and refusals of questions without an answer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean

from evals.gateway import IndexedCorpus
from evals.test_set import Question, TestSet
from workbench.errors import Cancelled, InvalidInput
from workbench.retrieval.options import Ask
from workbench.types import VECTOR, OnProgress, Passage, Progress, ShouldStop, Value
from workbench.workbench import Workbench

CITATION_MARK = re.compile(r"\[\d+\]")  # a citation
PASSAGES_READ = 6  # passages per answer, as in the app


@dataclass(frozen=True, slots=True)
class ReferenceAnswers(Value):
    """Answers compared with reference answers.

    ``holding`` is the share (0..1) of answers that contain the reference answer verbatim, ``words`` the mean number of
    words, ``longest`` the 90th percentile of that number, and ``refused`` the share of refusals.
    """

    questions: int
    holding: float
    words: float
    longest: int
    refused: float


def measure_answers(
    wb: Workbench,
    test_set: TestSet,
    corpus: IndexedCorpus,
    strategy: str | None = None,
    *,
    on_progress: OnProgress | None = None,
    should_stop: ShouldStop | None = None,
) -> ReferenceAnswers:
    """Answer every question that has a reference answer, by extracts if no LLM is configured.

    Raises:
        InvalidInput: No question has a reference answer. Cancelled: ``should_stop`` returned True.
    """
    questions = [question for question in test_set.answerable if question.reference_answer]
    if not questions:
        raise InvalidInput(f"No question of {test_set.name!r} has a reference answer; add some.")
    answers = _answer_all(wb, corpus, strategy, questions, "answers", on_progress, should_stop)
    texts = ["" if refused else CITATION_MARK.sub("", text) for refused, text, _ in answers]
    return _compare_answers(questions, texts, sum(refused for refused, *_ in answers))


def _answer_all(
    wb: Workbench,
    corpus: IndexedCorpus,
    strategy: str | None,
    questions: Sequence[Question],
    message: str,
    on_progress: OnProgress | None,
    should_stop: ShouldStop | None,
) -> list[tuple[bool, str, Sequence[Passage]]]:
    """Return whether each question is refused, its answer and its passages. Raises Cancelled."""
    answers: list[tuple[bool, str, Sequence[Passage]]] = []
    for number, question in enumerate(questions):
        if should_stop is not None and should_stop():
            raise Cancelled("Stopped; no answers were kept.")
        if on_progress is not None:
            on_progress(Progress(number, len(questions), message))
        ask = Ask(strategy, PASSAGES_READ, corpus.scope, corpus.index.name)
        found = wb.answers.ask(question.text, ask).answer()
        answers.append((found.refused, found.text, found.passages))
    return answers


def _compare_answers(questions: Sequence[Question], texts: Sequence[str], refused: int) -> ReferenceAnswers:
    held = [
        contains_answer(text, question.reference_answer or "") for question, text in zip(questions, texts, strict=True)
    ]
    lengths = sorted(len(text.split()) for text in texts)
    return ReferenceAnswers(
        questions=len(questions),
        holding=round(fmean(held), 4),
        words=round(fmean(lengths), 1),
        longest=lengths[int(0.9 * (len(lengths) - 1))],
        refused=round(refused / len(questions), 4),
    )


def contains_answer(text: str, reference: str) -> bool:
    """Return whether a text contains the words of a reference answer in order, ignoring punctuation and case."""
    return f" {_fold(reference)} " in f" {_fold(text)} "


def _fold(text: str) -> str:
    return " ".join(re.sub(r"[^\w]+", " ", text.casefold()).split())


# Refusals

MAX_CURVE_POINTS = 20


@dataclass(frozen=True, slots=True)
class RefusalPoint(Value):
    """Refusing every question whose best similarity is below ``threshold``; precision is None if none is refused."""

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
    curve: tuple[RefusalPoint, ...]  # by threshold of the best cosine; () if the strategy has none
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
                f"Refusing below a similarity of {best.threshold:.3f} would reach precision {best.precision or 0:.3f}, "
                f"recall {best.recall:.3f}."
            )
        return sentences


def measure_refusals(
    wb: Workbench,
    test_set: TestSet,
    corpus: IndexedCorpus,
    strategy: str | None = None,
    *,
    on_progress: OnProgress | None = None,
    should_stop: ShouldStop | None = None,
) -> Refusals:
    """Answer the answerable questions and those without an answer, and count the refusals.

    Raises:
        InvalidInput: No question is marked as without an answer. Cancelled: ``should_stop`` returned True.
    """
    if not test_set.unanswerable:
        raise InvalidInput(
            f'No question of {test_set.name!r} is marked as without an answer; add some with "answerable": false in '
            "queries.jsonl, or answerable = no in a CSV."
        )
    asked = [*test_set.unanswerable, *test_set.answerable]
    answers = _answer_all(wb, corpus, strategy, asked, "refusals", on_progress, should_stop)
    similarities: list[float | None] = []
    for _, _, passages in answers:
        cosines = [hit.attribution[VECTOR].score for hit in passages if VECTOR in hit.attribution]
        similarities.append(max(cosines, default=None if passages else 0.0))
    return count_refusals([refused for refused, *_ in answers], similarities, len(test_set.unanswerable))


def count_refusals(refused: Sequence[bool], similarities: Sequence[float | None], unanswerable: int) -> Refusals:
    """Return the figures of refusals.

    Args:
        refused: Whether each question was refused, first those without an answer.
        similarities: The best cosine of each question; the curve is left out if one is None.
        unanswerable: Number of questions without an answer.
    """
    points: list[RefusalPoint] = []
    known = [value for value in similarities if value is not None]
    if len(known) == len(similarities):
        ordered = sorted(set(known))
        between = [(low + high) / 2 for low, high in pairwise(ordered)]
        for threshold in between:
            rightly = sum(value < threshold for value in known[:unanswerable])
            wrongly = sum(value < threshold for value in known[unanswerable:])
            precision, recall = rightly / (rightly + wrongly), rightly / unanswerable
            wrong = wrongly / max(1, len(known) - unanswerable)
            points.append(RefusalPoint(round(threshold, 4), round(precision, 4), round(recall, 4), round(wrong, 4)))
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
