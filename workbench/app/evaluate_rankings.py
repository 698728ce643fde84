"""One question as two runs answered it: the rankings side by side, with what people judged of each document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from evals.corpus import document_ids
from evals.dataset import Dataset, StoredCorpus
from evals.plan import CellResult
from evals.runner import Hit
from workbench.app.assets import component
from workbench.app.evaluate_results import metric_name, run_title
from workbench.app.looks import look
from workbench.app.reader import open_document
from workbench.errors import NotFound

if TYPE_CHECKING:
    from workbench.types import Document
    from workbench.workbench import Workbench

SHOWN = 10
SNIPPET = 260  # characters of a passage


def rankings(workbench: Workbench, dataset: Dataset, question_id: str, pair: Sequence[CellResult], metric: str) -> None:
    """Show both rankings; a document's title opens it at the passage that was found."""
    documents = Documents(workbench, dataset)
    grades = dataset.qrels.get(question_id, {})
    columns = [
        _column(letter, cell, other, question_id, grades, documents, metric)
        for letter, cell, other in (("A", pair[0], pair[1]), ("B", pair[1], pair[0]))
    ]
    binary = max(grades.values(), default=0) <= 1
    result = component("rankings")(key="rankings", data={"columns": columns, "binary": binary}, on_open_change=_nothing)
    if result.open:
        open_document(result.open["document"], int(result.open["start"]), int(result.open["end"]))


class Documents:
    """Documents by the names that judgments use, each read once."""

    def __init__(self, workbench: Workbench, dataset: Dataset) -> None:
        self._workbench, self._dataset = workbench, dataset
        self._ids = document_ids(workbench, dataset)
        self._known: dict[str, Document | None] = {}
        self._titles: dict[str, str] = {}

    def get(self, key: str) -> Document | None:
        """Return a document; None where it is gone."""
        if key not in self._known:
            try:
                self._known[key] = self._workbench.knowledge.document(self._ids.get(key, key))
            except NotFound:
                self._known[key] = None
        return self._known[key]

    def name(self, key: str) -> str:
        """Return what a document is called in a list, without reading every text."""
        if not self._titles:
            source = self._dataset.corpus.source_id if isinstance(self._dataset.corpus, StoredCorpus) else None
            self._titles = {one.id: one.title for one in self._workbench.knowledge.documents(source_id=source)}
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
    documents: Documents,
    metric: str,
) -> dict[str, Any]:
    drawn = look(cell.cell.strategy)
    answer = cell.run.answers[question_id] if cell.run and question_id in cell.run.answers else None
    found = answer.documents[:SHOWN] if answer else ()
    elsewhere = other.run.answers[question_id].documents if other.run and question_id in other.run.answers else ()
    passages = {hit.document: hit for hit in reversed(answer.passages)} if answer else {}
    value = cell.run.values[metric].get(question_id, 0.0) if cell.run else 0.0
    deep = list(answer.documents) if answer else []
    wanted = [key for key, grade in grades.items() if grade > 0]
    return {
        "label": f"{letter} {run_title(cell)}",
        "hue": drawn.hue,
        "shape": drawn.shape,
        "value": f"{metric_name(metric)} {value:.3f}",
        "hits": [
            _hit(rank, key, passages.get(key), grades.get(key), list(elsewhere), documents)
            for rank, key in enumerate(found, start=1)
        ],
        "missed": [_missed(documents.title(key), key, deep) for key in wanted if key not in found],
    }


def _missed(title: str, key: str, deep: Sequence[str]) -> str:
    return f"{title} (rank {deep.index(key) + 1})" if key in deep else f"{title} (not found)"


def _hit(
    rank: int, key: str, passage: Hit | None, grade: int | None, elsewhere: Sequence[str], documents: Documents
) -> dict[str, Any]:
    document = documents.get(key)
    text = (document.text or "")[passage.start : passage.end] if document and passage else ""
    there = elsewhere.index(key) + 1 if key in elsewhere else None
    return {
        "rank": rank,
        "id": document.id if document else None,
        "title": documents.title(key),
        "grade": grade,
        "text": " ".join(text.split())[:SNIPPET],
        "start": passage.start if passage else 0,
        "end": passage.end if passage else 0,
        "moved": "not there in the other" if there is None else f"{there} in the other",
    }


def _nothing() -> None:
    """The trigger is read from the result; Streamlit wants a callback."""
