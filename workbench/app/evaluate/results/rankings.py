"""One question as two runs answered it: the rankings side by side, with what people judged of each document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from evals.experiments.runs import CellResult, RankedPassage
from evals.gateway import document_ids
from evals.measures.metrics import metric_title
from evals.test_set import StoredCorpus, TestSet
from workbench.app.evaluate.results.outcome import run_title
from workbench.app.widgets.assets import component
from workbench.app.widgets.looks import look
from workbench.app.widgets.plain_text import plain
from workbench.app.widgets.reader import open_document
from workbench.errors import NotFound

if TYPE_CHECKING:
    from workbench.types import Document
    from workbench.workbench import Workbench

SHOWN = 10
SNIPPET = 260  # characters of a passage


def rankings(
    workbench: Workbench, test_set: TestSet, question_id: str, pair: Sequence[CellResult], metric: str
) -> None:
    """Show both rankings; a document's title opens it at the passage that was found."""
    documents = JudgedDocuments(workbench, test_set)
    grades = test_set.qrels.get(question_id, {})
    columns = [
        _column(letter, cell, other, question_id, grades, documents, metric)
        for letter, cell, other in (("A", pair[0], pair[1]), ("B", pair[1], pair[0]))
    ]
    binary = max(grades.values(), default=0) <= 1
    result = component("evaluate/rankings")(
        key="rankings", data={"columns": columns, "binary": binary}, on_open_change=_nothing
    )
    if result.open:
        open_document(result.open["document"], int(result.open["start"]), int(result.open["end"]))


class JudgedDocuments:
    """Documents by the names that judgments use, each read once."""

    def __init__(self, workbench: Workbench, test_set: TestSet) -> None:
        self._workbench, self._test_set = workbench, test_set
        self._ids = document_ids(workbench, test_set)
        self._documents: dict[str, Document | None] = {}
        self._titles: dict[str, str] = {}

    def get(self, key: str) -> Document | None:
        """Return a document; None where it is gone."""
        if key not in self._documents:
            try:
                self._documents[key] = self._workbench.documents.get(self._ids.get(key, key))
            except NotFound:
                self._documents[key] = None
        return self._documents[key]

    def name(self, key: str) -> str:
        """Return what a document is called in a list, without reading every text."""
        if not self._titles:
            source = self._test_set.corpus.source_id if isinstance(self._test_set.corpus, StoredCorpus) else None
            self._titles = {
                document.id: document.title for document in self._workbench.documents.list(source_id=source)
            }
        return self._titles.get(self._ids.get(key, key), "").strip() or key

    def title(self, key: str) -> str:
        """Return what a document is called; one without a title by its first words, one that is gone by its key."""
        document = self.get(key)
        if document is None:
            return key
        return document.title.strip() or " ".join((document.text or key)[:70].split())


def _column(
    letter: str,
    cell: CellResult,
    other: CellResult,
    question_id: str,
    grades: Mapping[str, int],
    documents: JudgedDocuments,
    metric: str,
) -> dict[str, Any]:
    appearance = look(cell.cell.strategy)
    answer = cell.run.answers[question_id] if cell.run and question_id in cell.run.answers else None
    keys = answer.documents[:SHOWN] if answer else ()
    elsewhere = other.run.answers[question_id].documents if other.run and question_id in other.run.answers else ()
    passages = {hit.document: hit for hit in reversed(answer.passages)} if answer else {}
    value = cell.run.values[metric].get(question_id, 0.0) if cell.run else 0.0
    deep = list(answer.documents) if answer else []
    wanted = [key for key, grade in grades.items() if grade > 0]
    return {
        "label": f"{letter} {run_title(cell)}",
        "hue": appearance.hue,
        "shape": appearance.shape,
        "value": f"{metric_title(metric)} {value:.3f}",
        "hits": [
            _hit(rank, key, passages.get(key), grades.get(key), list(elsewhere), documents)
            for rank, key in enumerate(keys, start=1)
        ],
        "missed": [_missed(documents.title(key), key, deep) for key in wanted if key not in keys],
    }


def _missed(title: str, key: str, deep: Sequence[str]) -> str:
    return f"{title} (rank {deep.index(key) + 1})" if key in deep else f"{title} (not among its first {len(deep)})"


def _hit(
    rank: int,
    key: str,
    passage: RankedPassage | None,
    grade: int | None,
    elsewhere: Sequence[str],
    documents: JudgedDocuments,
) -> dict[str, Any]:
    document = documents.get(key)
    text = (document.text or "")[passage.start : passage.end] if document and passage else ""
    other_rank = elsewhere.index(key) + 1 if key in elsewhere else None
    absent = f"not in the other's first {len(elsewhere)}" if elsewhere else "nothing found by the other"
    return {
        "rank": rank,
        "id": document.id if document else None,
        "title": documents.title(key),
        "grade": grade,
        "text": plain(text)[:SNIPPET],
        "start": passage.start if passage else 0,
        "end": passage.end if passage else 0,
        "moved": absent if other_rank is None else f"rank {other_rank} in the other",
    }


def _nothing() -> None:
    """Do nothing: Streamlit wants a callback, and the trigger is read from the result."""
