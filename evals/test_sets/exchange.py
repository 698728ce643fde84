"""Import and export of test sets: CSV with quotes, qrels, and folders in BEIR format."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from evals.gateway import list_documents, new_id, resolve_scope
from evals.test_set import Judgment, Question, StoredCorpus, TestSet, best_span_grades, fold_text
from evals.test_sets.folders import EMPTY_TITLE, UNDECODABLE, read_qrels
from evals.test_sets.store import (
    AGENT_JUDGE,
    LLM_JUDGE,
    ImportReport,
    Rating,
    TestSetStore,
    check_question,
    check_rating,
    clean_question,
    parse_grade,
)
from workbench.errors import InvalidInput, NotFound, WorkbenchError, list_choices
from workbench.ingestion.text import normalise
from workbench.types import Document, JsonObject, JsonValue
from workbench.workbench import Workbench

# The position of a quote in a text


def locate_quote(text: str, quote: str, near: int = 0) -> tuple[int, int] | None:
    """Return (start, end) of the quote's occurrence that starts nearest to ``near``; None if not found.

    The quote is searched for verbatim, then normalised like read documents, then with any whitespace between words.
    """
    if not quote.strip():
        return None
    words = normalise(quote).split()
    for pattern in (re.escape(quote), re.escape(normalise(quote)), r"\s+".join(re.escape(word) for word in words)):
        places = [match.span() for match in re.finditer(pattern, text)] if pattern else []
        if places:
            return min(places, key=lambda span: abs(span[0] - near))
    return None


CSV_COLUMNS = (
    "question", "id", "turns", "reference_answer", "source", "document", "quote", "start", "end", "grade", "answerable",
    "rater", "judge", "reason", "judged_at",
)  # fmt: skip
METADATA_PREFIX = "metadata."  # of a column with a value of the questions' metadata


def import_csv(wb: Workbench, store: TestSetStore, key: str, text: str, rater: str = "") -> ImportReport:
    """Add questions and judgments from CSV; rows with the same question are merged.

    Columns: question, and any of id, turns (earlier ones of its conversation, one per line), reference_answer, source,
    document (id, path, title or URL; or its key in the test set's own corpus), quote, start, end, grade (relevant,
    partly, not, or a number; empty cells mean relevant, but not those of a named rater), answerable ("no" for a
    question without an answer in the documents), rater, judge ("person", "llm" or "agent"), reason,
    judged_at (ignored) and metadata.KEY. ``rater`` is that of rows without one; judgments of a named rater are kept
    apart from those of others. A quote is enough if only one document contains it; if it occurs several times, the
    occurrence nearest to ``start`` is used.

    Raises:
        InvalidInput: No header, or none with the column question.
    """
    test_set = store.load(key)
    known = {question.id: question for question in test_set.questions}
    questions, ratings, problems = read_csv(wb, test_set, text, rater)
    marked = [known[one.id] for one in questions if one.has_no_answer and one.id in known]
    replaced = [replace(one, metadata={**one.metadata, "answerable": False}) for one in marked if not one.has_no_answer]
    added = store.add_questions(key, [*replaced, *(one for one in questions if one.id not in known)])
    if ratings:
        store.rate(key, ratings)
    return ImportReport(len(added), len(ratings), tuple(problems))


def read_csv(
    wb: Workbench, test_set: TestSet, text: str, rater: str = ""
) -> tuple[list[Question], list[Rating], list[str]]:
    """Return the questions and judgments of a CSV, and a sentence on each row or column that is left out.

    Known questions of ``test_set`` keep their ids, and judgments name its documents.

    Raises:
        InvalidInput: No header, or none with the column question.
    """
    texts = {one.id: fold_text(" ".join([*one.turns, one.text])) for one in test_set.questions}
    ids = {text: key for key, text in texts.items()}
    catalogue = _Documents(wb, test_set)
    questions: dict[str, Question] = {}
    ratings: list[Rating] = []
    problems: list[str] = []
    for number, row in _read_csv_rows(text, problems):
        try:
            if UNDECODABLE.search(" ".join(row.values())):
                raise InvalidInput("It is not UTF-8 text; convert the file.")
            question = _parse_question(row, ids, texts)
            name = row.get("rater") or rater
            if name and not row.get("grade", "relevant") and (row.get("document") or row.get("quote")):
                questions.setdefault(question.id, question)
                raise InvalidInput(f"The grade of {name} is missing.")
            judgment = _parse_judgment(question.id, row, catalogue, test_set.grades)
            kind = _parse_kind(row.get("judge", ""))
            rating = judgment and check_rating(Rating(judgment, name, kind, row.get("reason", "")), test_set.grades)
        except WorkbenchError as error:
            problems.append(f"Row {number}: {error}")
            continue
        questions.setdefault(question.id, question)
        if rating is not None:
            ratings.append(rating)
    return list(questions.values()), ratings, problems


def import_qrels(wb: Workbench, store: TestSetStore, key: str, path: Path, rater: str = "") -> ImportReport:
    """Add the judgments of a qrels file in the format of TREC or BEIR; documents are named as in a CSV.

    A line with an unknown question or document, or with a grade outside the scale, is left out and reported.

    Raises:
        InvalidInput: None of its lines is a judgment.
    """
    test_set = store.load(key)
    known = {name: one.id for one in test_set.questions for name in (one.id, _fill_blanks(one.id))}
    catalogue = _Documents(wb, test_set)
    problems: list[str] = []
    ratings: list[Rating] = []
    for judgment in read_qrels(path, known, problems):
        try:
            if judgment.question_id not in known:
                raise InvalidInput(f"There is no question {judgment.question_id!r} in the test set.")
            document, _ = catalogue.find({"document": judgment.document})
            own = replace(judgment, question_id=known[judgment.question_id], document=catalogue.name(document))
            ratings.append(check_rating(Rating(own, rater, "import"), test_set.grades))
        except WorkbenchError as error:
            problems.append(f"{judgment.question_id} {judgment.document}: {error}")
    if ratings:
        store.rate(key, ratings)
    return ImportReport(0, len(ratings), tuple(problems))


def to_qrels(judgments: Iterable[Judgment]) -> str:
    """Return judgments as TREC qrels: question, 0, document, grade; a document has the grade of its best span.

    Blanks in ids, which the format does not allow, become ``%20``.
    """
    grades = _grade_documents(list(judgments))
    return "".join(f"{_fill_blanks(q)} 0 {_fill_blanks(d)} {grade}\n" for (q, d), grade in grades.items())


def _grade_documents(judgments: Sequence[Judgment]) -> dict[tuple[str, str], int]:
    best = best_span_grades(judgment for judgment in judgments if judgment.is_span)
    return best | {(j.question_id, j.document): j.grade for j in judgments if not j.is_span}


def _fill_blanks(text: str) -> str:
    return re.sub(r"\s", "%20", text)


def select_rater(test_set: TestSet, ratings: Iterable[Rating], rater: str) -> TestSet:
    """Return a test set with the judgments of one rater only. Raises NotFound if there are none."""
    own = tuple(rating.judgment for rating in ratings if rating.rater == rater)
    if not own:
        raise NotFound("rater", rater, "List the agreement of the test set to see its raters.")
    return replace(test_set, judgments=own)


def to_csv(test_set: TestSet, ratings: Iterable[Rating] | None = None) -> str:
    """Return a test set as CSV for ``import_csv``; a question without judgments has one row.

    ``ratings`` are the judgments of all raters; without them, only those that count are written.
    """
    rows: list[Mapping[str, object]] = []
    by_question: dict[str, list[Rating]] = {}
    if ratings is None:
        ratings = [Rating(judgment, "", "import") for judgment in test_set.judgments]
    for rating in ratings:
        by_question.setdefault(rating.judgment.question_id, []).append(rating)
    for question in test_set.questions:
        row: dict[str, object] = {"question": question.text, "id": question.id, "turns": "\n".join(question.turns)}
        row |= {"reference_answer": question.reference_answer, "answerable": "no" if question.has_no_answer else ""}
        own = {name: value for name, value in question.metadata.items() if name not in ("turns", "answerable")}
        row |= {f"{METADATA_PREFIX}{name}": _format_value(value) for name, value in own.items()}
        judged = by_question.get(question.id, [None])
        rows += [row | (_format_rating(rating) if rating else {}) for rating in judged]
    return write_csv(rows)


def write_csv(rows: Iterable[Mapping[str, object]]) -> str:
    """Return rows as CSV for ``import_csv``."""
    stream, rows = io.StringIO(), list(rows)
    writer = csv.DictWriter(stream, list(dict.fromkeys([*CSV_COLUMNS, *(name for row in rows for name in row)])))
    writer.writeheader()
    writer.writerows(rows)
    return stream.getvalue()


def export_folder(wb: Workbench, test_set: TestSet, folder: Path) -> Path:
    """Write a stored test set in BEIR format, with spans in spans.jsonl; ``load_test_set`` reads it.

    Raises:
        InvalidInput: The folder is not empty or not writable. ScopeError: A part of its scope has been deleted.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InvalidInput(f"{folder} exists and is not empty; choose another folder.")
    spans = [judgment for judgment in test_set.judgments if judgment.is_span]
    grades = _grade_documents(test_set.judgments)
    rows = ["query-id\tcorpus-id\tscore", *(f"{q}\t{d}\t{grade}" for (q, d), grade in grades.items())]
    try:
        (folder / "qrels").mkdir(parents=True)
        _write_lines(folder / "corpus.jsonl", _make_corpus_rows(wb, test_set))
        asked = [question.to_dict() for question in test_set.questions]
        _write_lines(folder / "queries.jsonl", [{"_id": row.pop("id"), **row} for row in asked])
        (folder / "qrels" / "test.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")
        if spans:
            _write_lines(folder / "spans.jsonl", [judgment.to_dict() for judgment in spans])
    except OSError as error:
        raise InvalidInput(f"{folder} is not writable ({error.strerror}); choose another folder.") from error
    return folder


class _Documents:
    """The documents that judgments may name, by id, path, title or URL."""

    def __init__(self, wb: Workbench, test_set: TestSet) -> None:
        self._wb, self._own = wb, isinstance(test_set.corpus, StoredCorpus)
        if isinstance(test_set.corpus, StoredCorpus):
            self.listed = wb.documents.list(source_id=test_set.corpus.source_id)
        else:
            self.listed = list_documents(wb, resolve_scope(wb, test_set.scope))
        self._names: dict[str, list[Document]] = {}
        for document in self.listed:
            names = {str(name) for name in (document.id, document.path, document.title, document.url) if name}
            for name in (names | {_fill_blanks(name) for name in names}) - {EMPTY_TITLE, _fill_blanks(EMPTY_TITLE)}:
                self._names.setdefault(name, []).append(document)
        self._texts: dict[str, str] = {}

    def name(self, document: Document) -> str:
        """Return a document's key in judgments."""
        return str(document.path) if self._own else document.id

    def text(self, document: Document) -> str:
        """Return a document's text, cached."""
        if document.id not in self._texts:
            self._texts[document.id] = self._wb.documents.get(document.id).text or ""
        return self._texts[document.id]

    def find(self, row: Mapping[str, str]) -> tuple[Document, tuple[int, int] | None]:
        """Return the document of a row and the span of its quote. Raises InvalidInput."""
        candidates = self._candidates(row)
        quote = row.get("quote", "")
        if not quote:
            if len(candidates) != 1:
                raise InvalidInput(f"{len(candidates)} documents match; name one in the column 'document'.")
            return candidates[0], _parse_range(row, self.text(candidates[0]))
        start = row.get("start", "")
        near = int(start) if start.isdecimal() else 0
        places = [(document, locate_quote(self.text(document), quote, near)) for document in candidates]
        occurrences = [(document, place) for document, place in places if place]
        if len(occurrences) != 1:
            where = (
                "in none of the documents" if not occurrences else f"in {len(occurrences)} documents; name one of them"
            )
            raise InvalidInput(f"The quote {quote[:60]!r} is {where}.")
        return occurrences[0]

    def _candidates(self, row: Mapping[str, str]) -> list[Document]:
        documents = self._names.get(row["document"], []) if row.get("document") else self.listed
        if row.get("document") and not documents:
            raise InvalidInput(f"There is no document {row['document']!r}; use its id, path, title or URL.")
        if row.get("source"):
            source = self._wb.sources.get(row["source"])
            documents = [document for document in documents if document.source_id == source.id]
        return documents


def read_table(text: str) -> csv.DictReader[str]:
    """Return a reader of the rows of a CSV, whose cells are separated by commas, semicolons or tabs."""
    clean = text.lstrip("\ufeff").replace("\x00", "")
    return csv.DictReader(io.StringIO(clean, newline=""), delimiter=find_delimiter(clean))


def find_delimiter(text: str) -> str:
    """Return what separates the names in the first line of a CSV; spreadsheets of many countries write semicolons."""
    header = text.partition("\n")[0]
    return next((mark for mark in "\t;" if mark in header), ",")


def _read_csv_rows(text: str, problems: list[str]) -> list[tuple[int, dict[str, str]]]:
    reader = read_table(text)
    try:
        header = [name.strip() for name in reader.fieldnames or []]
        header = [name if name.startswith(METADATA_PREFIX) else name.lower() for name in header]
        choices = list_choices([*CSV_COLUMNS[1:], f"{METADATA_PREFIX}KEY"])
        if "question" not in header:
            raise InvalidInput(f"The CSV header needs 'question'; optional are {choices}.")
        unknown = [name for name in header if name not in ("", *CSV_COLUMNS) and not name.startswith(METADATA_PREFIX)]
        problems += [f"The column {name!r} is unknown and was ignored; optional are {choices}." for name in unknown]
        reader.fieldnames = header
        rows = [{k: (v or "").strip() for k, v in row.items() if k} for row in reader]
        return [(number, row) for number, row in enumerate(rows, 2) if any(row.values())]
    except csv.Error as error:
        raise InvalidInput(f"The CSV is not readable ({error}); save it as comma-separated UTF-8.") from error


def _parse_question(row: Mapping[str, str], ids: dict[str, str], texts: dict[str, str]) -> Question:
    """Return a row's question; ``ids`` ({text: id}) and ``texts`` ({id: text}) are updated."""
    text = clean_question(row["question"])
    turns = [line for line in map(str.strip, row.get("turns", "").splitlines()) if line]
    folded = fold_text(" ".join([*turns, text]))
    key = ids.get(folded) or row.get("id") or new_id("question")
    if texts.setdefault(key, folded) != folded and folded not in ids:
        raise InvalidInput(f"The id {key[:60]!r} belongs to another question; give this one a unique id.")
    ids[folded] = key
    answerable = row.get("answerable", "").casefold()
    if answerable not in ("", "yes", "no"):
        raise InvalidInput(f"Invalid value {answerable!r} in the column 'answerable'; use yes or no.")
    metadata: JsonObject = {"answerable": False} if answerable == "no" else {}
    metadata |= {"turns": [*turns]} if turns else {}
    own = {name.partition(".")[2]: one for name, one in row.items() if name.startswith(METADATA_PREFIX) and one}
    metadata |= {name: _parse_value(one) for name, one in own.items()}
    return check_question(Question(key, text, row.get("reference_answer", ""), origin="csv", metadata=metadata))


def _format_value(value: JsonValue) -> JsonValue:
    """Return a value of metadata as a cell, which has a list or an object as JSON."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else value


def _parse_value(cell: str) -> JsonValue:
    try:
        return json.loads(cell) if cell[0] in "[{" else cell
    except (ValueError, RecursionError):
        return cell


def _parse_kind(judge: str) -> str:
    """Return how a judgment of a CSV is stored: as imported, unless it names a person, an LLM or an agent."""
    kinds = ("", "person", "import", "rule", LLM_JUDGE, AGENT_JUDGE)
    if judge not in kinds:
        raise InvalidInput(f"Invalid value {judge!r} in the column 'judge'; use {list_choices(kinds[1:])}.")
    return "import" if judge in ("", "rule") else judge


def _parse_judgment(question_id: str, row: Mapping[str, str], catalogue: _Documents, grades: int) -> Judgment | None:
    if not row.get("document") and not row.get("quote"):
        return None
    document, place = catalogue.find(row)
    start, end = place or (None, None)
    grade = parse_grade(row.get("grade") or "relevant", grades)
    return Judgment(question_id, catalogue.name(document), grade, start, end, row.get("quote", ""))


def _parse_range(row: Mapping[str, str], text: str) -> tuple[int, int] | None:
    if not row.get("start") and not row.get("end"):
        return None
    try:
        start, end = int(row.get("start", "")), int(row.get("end", ""))
    except ValueError:
        start = end = -1
    if not 0 <= start < end <= len(text):
        raise InvalidInput(f"start and end must be whole numbers with 0 <= start < end <= {len(text)}.")
    return start, end


def _format_rating(rating: Rating) -> dict[str, object]:
    judgment = rating.judgment
    cells: dict[str, object] = {"document": judgment.document, "quote": judgment.quote, "grade": judgment.grade}
    cells |= {"rater": rating.rater, "judge": rating.judge, "reason": rating.reason}
    cells |= {"judged_at": rating.at.isoformat(timespec="seconds") if rating.at else ""}
    if judgment.is_span:
        cells |= {"start": judgment.start, "end": judgment.end}
    return cells


def _make_corpus_rows(wb: Workbench, test_set: TestSet) -> list[dict[str, object]]:
    """Return the rows of everything that the test set's searches can find."""
    catalogue = _Documents(wb, test_set)
    return [
        {
            "_id": catalogue.name(document),
            "title": document.title.strip(),
            "text": wb.documents.get(document.id).text,
            "metadata": document.metadata,
        }
        for document in catalogue.listed
    ]


def _write_lines(path: Path, rows: Iterable[Mapping[str, object]]) -> None:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
