"""Cutoffs by document score, and answers compared with reference answers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from evals.gateway import IndexedCorpus
from evals.test_set import Question, TestSet
from workbench.errors import Cancelled, InvalidInput
from workbench.retrieval.options import Ask
from workbench.types import OnProgress, Progress, ShouldStop, Value
from workbench.workbench import Workbench

# Cutoffs by document score

MAX_DOCUMENTS = 10  # default maximum for agents
PASSAGE_LIMITS = (50, 200)  # passages per search; the second is used if the first finds too few documents


@dataclass(frozen=True, slots=True)
class DocumentCutoff(Value):
    """The documents among the first ten that pass a cutoff, a fraction (0..1) of the best one's score.

    ``documents`` is their mean number; ``recall`` is the mean fraction (0..1) of the relevant documents among them.
    """

    cutoff: float
    documents: float
    recall: float


def measure_cutoffs(
    wb: Workbench,
    test_set: TestSet,
    corpus: IndexedCorpus,
    strategy: str,
    cutoffs: Sequence[float],
    *,
    on_progress: OnProgress | None = None,
    should_stop: ShouldStop | None = None,
) -> list[DocumentCutoff]:
    """Ask every question once, and apply each cutoff to the documents' scores, which are those of their best passages.

    Raises:
        InvalidInput: A cutoff outside 0..1. Cancelled: ``should_stop`` returned True.
    """
    for cutoff in cutoffs:
        if not 0 <= cutoff <= 1:
            raise InvalidInput(f"Invalid cutoff {cutoff}; use shares from 0 to 1.")
    rankings: list[tuple[dict[str, float], frozenset[str]]] = []
    for number, question in enumerate(test_set.answerable):
        if should_stop is not None and should_stop():
            raise Cancelled("Stopped; no results were kept.")
        if on_progress is not None:
            on_progress(Progress(number, len(test_set.answerable), f"{strategy}, cutoffs"))
        relevant = frozenset(key for key, grade in test_set.qrels[question.id].items() if grade > 0)
        rankings.append((_rank_documents(wb, corpus, question.text, strategy), relevant))
    return [_apply_cutoff(cutoff, rankings) for cutoff in cutoffs]


def _rank_documents(wb: Workbench, corpus: IndexedCorpus, query: str, strategy: str) -> dict[str, float]:
    """Return the first ten documents with the scores of their best passages, best first."""
    scores: dict[str, float] = {}
    for limit in PASSAGE_LIMITS:
        result = wb.search_service.search(
            query, Ask(strategy, limit, corpus.scope, corpus.index.name, fold_copies=False)
        )
        for hit in result:
            scores.setdefault(corpus.key(hit.document_id), hit.score)
        if len(scores) >= MAX_DOCUMENTS or len(result) < limit:
            break
    return dict(list(scores.items())[:MAX_DOCUMENTS])


def _apply_cutoff(cutoff: float, rankings: Sequence[tuple[dict[str, float], frozenset[str]]]) -> DocumentCutoff:
    kept = [
        ({key for key, score in scores.items() if score >= cutoff * max(scores.values())}, relevant)
        for scores, relevant in rankings
    ]
    return DocumentCutoff(
        cutoff=cutoff,
        documents=round(fmean(len(keys) for keys, _ in kept), 2),
        recall=round(fmean(len(keys & relevant) / len(relevant) for keys, relevant in kept), 4),
    )


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
    texts: list[str] = []
    refused = 0
    for number, question in enumerate(questions):
        if should_stop is not None and should_stop():
            raise Cancelled("Stopped; no answers were kept.")
        if on_progress is not None:
            on_progress(Progress(number, len(questions), "answers"))
        found = wb.answers.ask(question.text, Ask(strategy, PASSAGES_READ, corpus.scope, corpus.index.name)).answer()
        refused += found.refused
        texts.append("" if found.refused else CITATION_MARK.sub("", found.text))
    return _compare_answers(questions, texts, refused)


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
