"""The material that a ranker is trained on: of each judged question the candidates' features and their grades."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evals.gateway import IndexedCorpus, WeighedQuestion, weighed_question
from evals.test_set import Judgment, TestSet
from workbench.errors import Cancelled
from workbench.retrieval.options import Ask
from workbench.retrieval.ranker import FeatureArray
from workbench.types import OnProgress, Progress, ShouldStop
from workbench.workbench import Workbench


@dataclass(frozen=True)
class QuestionSheet:
    """One question: rows are candidate passages, ``documents`` their keys, ``grades`` (0 or more) those of these.

    ``eligible`` are the rows that may stand for their document: where spans were judged, the passages that touch one.
    ``orders`` are rows, best first, by fixed strategy.
    """

    question_id: str
    documents: tuple[str, ...]
    scaled: FeatureArray
    grades: FeatureArray
    eligible: NDArray[np.bool_]
    orders: dict[str, tuple[int, ...]]


def question_sheets(
    wb: Workbench,
    test_set: TestSet,
    corpus: IndexedCorpus,
    *,
    on_progress: OnProgress | None = None,
    should_stop: ShouldStop | None = None,
) -> list[QuestionSheet]:
    """Ask every answerable question once and return what is known of its candidates, in the test set's order.

    A question that finds nothing is left out. Raises Cancelled, and what a search raises.
    """
    sheets: list[QuestionSheet] = []
    total = len(test_set.answerable)
    for done, question in enumerate(test_set.answerable, start=1):
        if should_stop is not None and should_stop():
            raise Cancelled("Stopped; nothing was learned.")
        weighed = weighed_question(wb, question.text, Ask(scope=corpus.scope, index=corpus.index.name))
        if weighed is not None:
            sheets.append(sheet_of(question.id, weighed, test_set, corpus))
        if on_progress is not None:
            on_progress(Progress(done, total, "reading what the legs say"))
    return sheets


def sheet_of(question_id: str, weighed: WeighedQuestion, test_set: TestSet, corpus: IndexedCorpus) -> QuestionSheet:
    """Return a question's sheet with the judgments of the test set."""
    sheet, grades = weighed.sheet, test_set.qrels[question_id]
    documents = tuple(corpus.key(document) for document in sheet.documents)
    spans = test_set.spans.get(question_id, ())
    touched = [_touched(key, span, spans) for key, span in zip(documents, sheet.spans, strict=True)]
    return QuestionSheet(
        question_id=question_id,
        documents=documents,
        scaled=sheet.scaled,
        grades=np.array([max(0, grades.get(key, 0)) for key in documents], dtype=np.float64),
        eligible=np.array(touched, dtype=bool),
        orders=weighed.orders,
    )


def ranking(sheet: QuestionSheet, rows: Sequence[int]) -> list[str]:
    """Return the documents of rows, best first, each once."""
    return list(dict.fromkeys(sheet.documents[row] for row in rows))


def by_weights(sheet: QuestionSheet, weights: FeatureArray) -> list[str]:
    """Return the documents as weights order them; equals as rerank does."""
    scores = sheet.scaled @ weights
    return ranking(sheet, [int(row) for row in np.argsort(-scores, kind="stable")])


def _touched(key: str, span: tuple[int, int], spans: Sequence[Judgment]) -> bool:
    own = [judged for judged in spans if judged.document == key]
    start, end = span
    return not own or any((judged.start or 0) < end and start < (judged.end or 0) for judged in own)
