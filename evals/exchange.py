"""Test sets in and out: CSV with quotes, what agents asked, and folders in BEIR's form."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evals.dataset import Dataset, Judgment, Question, StoredCorpus, best_of_spans
from evals.quotes import locate
from evals.store import DatasetStore, checked_text, read_grade
from workbench.errors import InvalidInput, WorkbenchError, choices
from workbench.storage.ids import new_id
from workbench.types import Document, Value
from workbench.workbench import Workbench

COLUMNS = ("question", "id", "reference_answer", "source", "document", "quote", "start", "end", "grade")
MOST_AGENT_QUERIES = 5_000


@dataclass(frozen=True, slots=True)
class ImportReport(Value):
    """What an import brought; ``problems`` name the rows that could not be used, with the reason."""

    questions: int
    judgments: int
    problems: tuple[str, ...] = ()


def import_csv(wb: Workbench, store: DatasetStore, key: str, text: str) -> ImportReport:
    """Add questions and judgments from CSV; rows with the same question belong together.

    Columns: question, and any of id, reference_answer, source, document (id, path, title or URL; or its key in the
    test set's own corpus), quote, start, end, grade (relevant, partly, not, or a number; default relevant). A quote is
    enough where it stands in one document only; of several places in it the one nearest to start is meant.

    Raises:
        InvalidInput: no header, or an unknown column.
    """
    rows = _csv_rows(text)
    dataset = store.load(key)
    known = {_folded(question.text): question.id for question in dataset.questions}
    there = {question.id for question in dataset.questions}
    texts = {question.id: _folded(question.text) for question in dataset.questions}
    documents = _Documents(wb, dataset)
    questions: dict[str, Question] = {}
    judgments, problems = [], []
    for number, row in rows:
        try:
            question = _csv_question(row, known, texts)
            judgment = _csv_judgment(question.id, row, documents)
        except WorkbenchError as error:
            problems.append(f"Row {number}: {error}")
            continue
        questions.setdefault(question.id, question)
        if judgment is not None:
            judgments.append(judgment)
    added = store.add_questions(key, [question for question in questions.values() if question.id not in there])
    if judgments:
        store.judge_all(key, judgments, judge="import")
    return ImportReport(len(added), len(judgments), tuple(problems))


def add_agent_queries(wb: Workbench, store: DatasetStore, key: str, *, zero_only: bool = False) -> ImportReport:
    """Add what agents asked over MCP, each once; ``zero_only`` takes the queries that found nothing."""
    calls = wb.tool_calls.list(queries_only=True, zero_only=zero_only, limit=MOST_AGENT_QUERIES)
    asked = list(dict.fromkeys(" ".join(call.query.split()) for call in calls if call.query and call.query.strip()))
    return ImportReport(len(store.add_questions(key, asked, origin="agent")), 0)


def to_csv(dataset: Dataset) -> str:
    """Return a test set as the CSV that ``import_csv`` reads; a question without judgments keeps a row."""
    stream = io.StringIO()
    writer = csv.writer(stream)
    writer.writerow(COLUMNS)
    by_question: dict[str, list[Judgment]] = {}
    for judgment in dataset.judgments:
        by_question.setdefault(judgment.question_id, []).append(judgment)
    for question in dataset.questions:
        row: dict[str, Any] = {"question": question.text, "id": question.id}
        row["reference_answer"] = question.reference_answer
        for judgment in by_question.get(question.id, [None]):
            cells = row | (_csv_cells(judgment) if judgment else {})
            writer.writerow([cells.get(column, "") for column in COLUMNS])
    return stream.getvalue()


def export_folder(wb: Workbench, dataset: Dataset, folder: Path) -> Path:
    """Write a stored test set in BEIR's form, with spans.jsonl beside it; ``load_dataset`` reads it back.

    Raises:
        InvalidInput: the folder holds something else already, or cannot be written.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InvalidInput(f"{folder} is there already and not empty; choose another folder.")
    whole = [judgment for judgment in dataset.judgments if not judgment.is_span]
    spans = [judgment for judgment in dataset.judgments if judgment.is_span]
    by_span = best_of_spans(spans)
    by_document = by_span | {(j.question_id, j.document): j.grade for j in whole}
    rows = ["query-id\tcorpus-id\tscore", *(f"{q}\t{d}\t{grade}" for (q, d), grade in by_document.items())]
    try:
        (folder / "qrels").mkdir(parents=True)
        _write_lines(folder / "corpus.jsonl", _corpus_rows(wb, dataset))
        _write_lines(folder / "queries.jsonl", [{"_id": q.id, **_without_id(q)} for q in dataset.questions])
        (folder / "qrels" / "test.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")
        if spans:
            _write_lines(folder / "spans.jsonl", [judgment.to_dict() for judgment in spans])
    except OSError as error:
        raise InvalidInput(f"{folder} cannot be written ({error.strerror}); choose another place.") from error
    return folder


class _Documents:
    """The documents a judgment may name, by whatever a person calls them."""

    def __init__(self, wb: Workbench, dataset: Dataset) -> None:
        self._wb, self._own = wb, isinstance(dataset.corpus, StoredCorpus)
        source_id = dataset.corpus.source_id if isinstance(dataset.corpus, StoredCorpus) else None
        self._listed = wb.knowledge.documents(source_id=source_id)
        self._names: dict[str, list[Document]] = {}
        for document in self._listed:
            for name in {document.id, document.path, document.title, document.url} - {None, "", " "}:
                self._names.setdefault(str(name), []).append(document)
        self._texts: dict[str, str] = {}

    def name(self, document: Document) -> str:
        """Return what judgments call a document."""
        return str(document.path) if self._own else document.id

    def text(self, document: Document) -> str:
        """Return a document's text, read once."""
        if document.id not in self._texts:
            self._texts[document.id] = self._wb.knowledge.document(document.id).text or ""
        return self._texts[document.id]

    def find(self, row: Mapping[str, str]) -> tuple[Document, tuple[int, int] | None]:
        """Return the document a row means, and where its quote stands. Raises InvalidInput."""
        candidates = self._candidates(row)
        quote = row.get("quote", "")
        if not quote:
            if len(candidates) != 1:
                raise InvalidInput(f"{len(candidates)} documents are meant; name one in the column 'document'.")
            return candidates[0], _range(row, self.text(candidates[0]))
        start = row.get("start", "")
        near = int(start) if start.isdecimal() else 0
        places = [(document, locate(self.text(document), quote, near)) for document in candidates]
        found = [(document, place) for document, place in places if place]
        if len(found) != 1:
            where = "in none of the documents" if not found else f"in {len(found)} documents; name one of them"
            raise InvalidInput(f"The quote {quote[:60]!r} stands {where}.")
        return found[0]

    def _candidates(self, row: Mapping[str, str]) -> list[Document]:
        found = self._names.get(row["document"], []) if row.get("document") else self._listed
        if row.get("document") and not found:
            raise InvalidInput(f"There is no document {row['document']!r}; use its id, path, title or URL.")
        if row.get("source"):
            source = self._wb.knowledge.source(row["source"])
            found = [document for document in found if document.source_id == source.id]
        return found


def _csv_rows(text: str) -> list[tuple[int, dict[str, str]]]:
    reader = csv.DictReader(io.StringIO(text.lstrip("\ufeff").replace("\x00", ""), newline=""))
    try:
        header = [name.strip().lower() for name in reader.fieldnames or []]
        unknown = [name for name in header if name not in COLUMNS]
        if "question" not in header or unknown:
            raise InvalidInput(f"The CSV needs a header with 'question' and may have {choices(COLUMNS[1:])}.")
        reader.fieldnames = header
        return [(number, {k: (v or "").strip() for k, v in row.items() if k}) for number, row in enumerate(reader, 2)]
    except csv.Error as error:
        raise InvalidInput(f"The CSV cannot be read ({error}); save it as comma-separated UTF-8.") from error


def _csv_question(row: Mapping[str, str], known: dict[str, str], texts: dict[str, str]) -> Question:
    """Return a row's question; ``known`` (text -> id) and ``texts`` (id -> text) learn it."""
    text = checked_text(row["question"])
    folded = _folded(text)
    key = known.get(folded) or row.get("id") or new_id("question")
    if texts.setdefault(key, folded) != folded and folded not in known:
        raise InvalidInput(f"The id {key[:60]!r} belongs to another question; give this one an id of its own.")
    known[folded] = key
    return Question(key, text, row.get("reference_answer", ""), origin="csv")


def _folded(text: str) -> str:
    return " ".join(text.split()).casefold()


def _csv_judgment(question_id: str, row: Mapping[str, str], documents: _Documents) -> Judgment | None:
    if not row.get("document") and not row.get("quote"):
        return None
    document, place = documents.find(row)
    start, end = place or (None, None)
    grade = read_grade(row.get("grade") or "relevant")
    return Judgment(question_id, documents.name(document), grade, start, end, row.get("quote", ""))


def _range(row: Mapping[str, str], text: str) -> tuple[int, int] | None:
    if not row.get("start") and not row.get("end"):
        return None
    try:
        start, end = int(row.get("start", "")), int(row.get("end", ""))
    except ValueError:
        start = end = -1
    if not 0 <= start < end <= len(text):
        raise InvalidInput(f"start and end must be whole numbers with 0 <= start < end <= {len(text)}.")
    return start, end


def _csv_cells(judgment: Judgment) -> dict[str, Any]:
    cells = {"document": judgment.document, "quote": judgment.quote, "grade": judgment.grade}
    if judgment.is_span:
        cells |= {"start": judgment.start, "end": judgment.end}
    return cells


def _corpus_rows(wb: Workbench, dataset: Dataset) -> list[dict[str, Any]]:
    """The test set's own corpus, or of the person's sources the documents that were judged."""
    if isinstance(dataset.corpus, StoredCorpus):
        listed = wb.knowledge.documents(source_id=dataset.corpus.source_id)
        named = {str(document.path): document.id for document in listed}
    else:
        there = {document.id for document in wb.knowledge.documents()}
        judged = dict.fromkeys(judgment.document for judgment in dataset.judgments)
        named = {document_id: document_id for document_id in judged if document_id in there}
    rows = []
    for key, document_id in named.items():
        document = wb.knowledge.document(document_id)
        row = {"_id": key, "title": document.title.strip(), "text": document.text, "metadata": document.metadata}
        rows.append(row)
    return rows


def _without_id(question: Question) -> dict[str, Any]:
    row = question.to_dict()
    del row["id"]
    return row


def _write_lines(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
