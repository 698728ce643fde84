"""Answers against reference answers: how many hold the words that are wanted, and how long they are."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from evals.gateway import IndexedCorpus, answer
from evals.test_set import Question, TestSet
from workbench.errors import Cancelled, InvalidInput
from workbench.retrieval.options import Ask
from workbench.types import OnProgress, Progress, ShouldStop, Value
from workbench.workbench import Workbench

MARK = re.compile(r"\[\d+\]")  # of a citation
READ = 6  # passages an answer is made from, as for people


@dataclass(frozen=True, slots=True)
class ReferenceAnswers(Value):
    """How answers compare with reference answers.

    ``holding``: the share 0..1 of the questions whose answer holds the reference answer, word by word; ``words``: the
    mean length of an answer; ``longest``: the length that nine of ten answers do not exceed; ``refused``: the share
    that were refused.
    """

    questions: int
    holding: float
    words: float
    longest: int
    refused: float


def reference_answers(
    wb: Workbench,
    test_set: TestSet,
    corpus: IndexedCorpus,
    strategy: str | None = None,
    *,
    on_progress: OnProgress | None = None,
    should_stop: ShouldStop | None = None,
) -> ReferenceAnswers:
    """Answer every question that has a reference answer, by extracts where no LLM is configured.

    Raises:
        InvalidInput: no question has a reference answer. Cancelled: ``should_stop`` said so.
    """
    questions = [question for question in test_set.answerable if question.reference_answer]
    if not questions:
        raise InvalidInput(f"No question of {test_set.name!r} has a reference answer to hold an answer against.")
    texts: list[str] = []
    refused = 0
    for number, question in enumerate(questions):
        if should_stop is not None and should_stop():
            raise Cancelled("Stopped; the answers so far are not kept.")
        if on_progress is not None:
            on_progress(Progress(number, len(questions), "answers"))
        found = answer(wb, question.text, Ask(strategy, READ, corpus.scope, corpus.index.name))
        refused += found.refused
        texts.append("" if found.refused else MARK.sub("", found.text))
    return _compared(questions, texts, refused)


def _compared(questions: Sequence[Question], texts: Sequence[str], refused: int) -> ReferenceAnswers:
    held = [holds(text, question.reference_answer or "") for question, text in zip(questions, texts, strict=True)]
    lengths = sorted(len(text.split()) for text in texts)
    return ReferenceAnswers(
        questions=len(questions),
        holding=round(fmean(held), 4),
        words=round(fmean(lengths), 1),
        longest=lengths[int(0.9 * (len(lengths) - 1))],
        refused=round(refused / len(questions), 4),
    )


def holds(text: str, reference: str) -> bool:
    """Tell whether a text holds the words of a reference answer in their order; marks and letter case do not count."""
    return f" {_plain(reference)} " in f" {_plain(text)} "


def _plain(text: str) -> str:
    return " ".join(re.sub(r"[^\w]+", " ", text.casefold()).split())
