"""Reading test sets: folders in BEIR format, folders of files with judged pages, or the shipped sample."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from pathlib import Path

from evals.test_set import MAX_GRADE, MIN_GRADE, FolderCorpus, Judgment, Question, TestSet, best_span_grades
from workbench.errors import InvalidInput, list_choices
from workbench.ingestion.incoming import IngestItem, list_files
from workbench.types import JsonObject, JsonValue

# JSON Lines files


def read_json_lines(path: Path) -> Iterator[tuple[int, JsonObject]]:
    """Yield (line number from 1, object) of every non-empty line. Raises InvalidInput."""
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise InvalidInput(f"{path.name}, line {number} is not JSON ({error}); correct the line.") from None
        if not isinstance(row, dict):
            raise InvalidInput(f"{path.name}, line {number} is not a JSON object; correct the line.")
        yield number, row


def read_text(path: Path) -> str:
    """Return a test set's file as text. Raises InvalidInput if it is missing or not UTF-8."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise InvalidInput(f"The test set {path.parent.name!r} has no {path.name}; add it.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path.name} is not UTF-8 text ({error}); convert the file.") from None


def read_id(path: Path, number: int, row: JsonObject) -> str:
    """Return a line's ``_id`` or ``id``. Raises InvalidInput if there is none."""
    key = row.get("_id", row.get("id"))
    if key is None or not clean_id(str(key)):
        raise InvalidInput(f"{path.name}, line {number} has no '_id' or 'id'; add one.")
    return clean_id(str(key))


def clean_id(text: str) -> str:
    """Return an id as it is stored: stripped, and without NUL, which Postgres cannot store."""
    return text.replace("\x00", "").strip()


# Folders with judged pages

QUESTIONS_FILE = "questions.jsonl"
KNOWN_FIELDS = ("id", "_id", "text", "answer", "document", "pages", "evidence")


def is_page_folder(folder: Path) -> bool:
    """Return whether a folder has questions with judged pages."""
    return (folder / QUESTIONS_FILE).is_file() and not (folder / "corpus.jsonl").is_file()


def read_page_folder(folder: Path) -> TestSet:
    """Return the folder's questions with their relevant pages.

    Raises:
        InvalidInput: a line without text, document or pages, or a document that is not in the folder.
    """
    documents = list_page_documents(folder)
    names = {item.key for item in documents}
    questions: dict[str, Question] = {}
    judgments: list[Judgment] = []
    for number, row in read_json_lines(folder / QUESTIONS_FILE):
        question_id, place = read_id(folder / QUESTIONS_FILE, number, row), f"{QUESTIONS_FILE}, line {number}"
        text, document, pages = str(row.get("text") or "").strip(), str(row.get("document") or ""), _parse_pages(row)
        if not text or not pages or question_id in questions:
            raise InvalidInput(
                f"{place}: a question needs a unique id, a text, and pages as a list of numbers from 1; "
                "correct the line."
            )
        if document not in names:
            raise InvalidInput(
                f"{place}: the folder has no document {document!r}; it has {list_choices(sorted(names))}."
            )
        metadata = {name: value for name, value in row.items() if name not in KNOWN_FIELDS}
        questions[question_id] = Question(question_id, text, str(row.get("answer") or ""), metadata=metadata)
        judgments.append(Judgment(question_id, document, 2, pages=pages))
    if not questions:
        raise InvalidInput(f"{QUESTIONS_FILE} of {folder.name!r} is empty; each of its lines is one question.")
    return TestSet(folder.resolve().name, tuple(questions.values()), tuple(judgments), FolderCorpus(lambda: documents))


def list_page_documents(folder: Path) -> list[IngestItem]:
    """Return the readable files in the folder and its subfolders, by file name."""
    items = list_files([folder]).items
    own = [item for item in items if item.name != QUESTIONS_FILE and item.name != "SOURCE.md"]
    return [
        IngestItem(item.name, item.name, item.load, path=item.name, keep_file=item.keep_file, size=item.size)
        for item in own
    ]


def _parse_pages(row: JsonObject) -> tuple[int, ...]:
    """Return the pages in order; empty if they are not a list of whole numbers from 1."""
    values = row.get("pages")
    if not isinstance(values, list):
        return ()
    pages = [page for page in values if type(page) is int and page >= 1]
    return tuple(sorted(set(pages))) if len(pages) == len(values) else ()


SAMPLE_NAME = "sample"
SPANS_FILE = "spans.jsonl"  # judged parts of documents, next to BEIR's files
QRELS_FILES = ("qrels.tsv", "qrels/test.tsv")
MAX_SPAN_END = 2**31 - 1  # Postgres integer
EMPTY_TITLE = " "  # gives no context header, so only the text is embedded


def load_test_set(name: str | Path) -> TestSet:
    """Return the sample ("sample"), or the test set in a folder.

    A folder holds corpus.jsonl (``_id`` or ``id``, title, text, metadata), queries.jsonl (``_id`` or ``id``, text,
    reference_answer) and qrels.tsv or qrels/test.tsv (query, document, grade; with or without a header). A folder of
    files with questions.jsonl has judged pages (``read_page_folder``).

    Raises:
        InvalidInput: no such folder, a missing file, or an invalid line.
    """
    from workbench.sample import questions_dir

    folder = questions_dir() if str(name) == SAMPLE_NAME else Path(name)
    if not folder.is_dir():
        raise InvalidInput(f"There is no test set folder {str(name)!r}; give a folder in BEIR format, or 'sample'.")
    if is_page_folder(folder):
        return read_page_folder(folder)
    corpus = folder / "corpus.jsonl"
    sample = folder.resolve() == questions_dir().resolve()
    if not corpus.is_file() and not sample:
        raise InvalidInput(f"The test set {folder.name!r} has no corpus.jsonl; each of its lines is one document.")
    questions = read_questions(folder / "queries.jsonl")
    spans = read_spans(folder / SPANS_FILE)
    best = best_span_grades(spans)
    whole = read_judgments(folder, {question.id for question in questions})
    judged = [j for j in whole if best.get((j.question_id, j.document)) != j.grade]  # qrels repeat the grades of spans
    judgments = tuple({(j.question_id, j.document, j.start, j.end): j for j in (*judged, *spans)}.values())
    _check_relevant(folder.name, questions, judgments)
    return TestSet(
        name=SAMPLE_NAME if sample else folder.resolve().name,
        questions=questions,
        judgments=judgments,
        corpus=FolderCorpus(list_sample_documents if sample else lambda: read_corpus(corpus)),
    )


def read_corpus(path: Path) -> list[IngestItem]:
    """Return the documents of a corpus.jsonl, one per line; a document without text uses its title."""
    documents: dict[str, IngestItem] = {}
    for number, row in read_json_lines(path):
        key = read_id(path, number, row)
        if key in documents:
            raise InvalidInput(f"{path.name}, line {number}: duplicate id {key!r}; make ids unique.")
        title, text = str(row.get("title") or "").strip(), str(row.get("text") or "")
        documents[key] = IngestItem(
            key=key,
            name="text.txt",
            load=_make_loader(text if text.strip() else title),
            path=key,
            title=title or EMPTY_TITLE,
            metadata=_parse_metadata(row),
        )
    if not documents:
        raise InvalidInput(f"{path.name} is empty; each of its lines is one document.")
    return list(documents.values())


def list_sample_documents() -> list[IngestItem]:
    """Return the sample's articles; a document's key is the article's slug."""
    from workbench.sample import articles_dir

    paths = sorted(articles_dir().glob("*/*.md"))
    return [IngestItem(key=path.stem, name=path.name, load=path.read_bytes, path=path.stem) for path in paths]


def read_questions(path: Path) -> tuple[Question, ...]:
    """Return the questions of a queries.jsonl. Raises InvalidInput."""
    questions: dict[str, Question] = {}
    for number, row in read_json_lines(path):
        key, text = read_id(path, number, row), str(row.get("text") or "").strip()
        if not text or key in questions:
            reason = "has no text" if not text else f"has the duplicate id {key!r}"
            raise InvalidInput(f"{path.name}, line {number}: the question {reason}; correct the line.")
        questions[key] = Question(key, text, str(row.get("reference_answer") or ""), metadata=_parse_metadata(row))
    return tuple(questions.values())


def read_judgments(folder: Path, question_ids: Collection[str] = ()) -> tuple[Judgment, ...]:
    """Return the judgments of a folder's qrels; if the first line is not a judgment it may be a header.

    A first line that starts with one of ``question_ids`` is not a header.

    Raises:
        InvalidInput: no qrels, or an invalid line.
    """
    path = next((folder / name for name in QRELS_FILES if (folder / name).is_file()), None)
    if path is None:
        raise InvalidInput(f"The test set {folder.name!r} has no judgments; write qrels.tsv: query, document, grade.")
    judgments = []
    first = True
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        cells = [clean_id(cell) for cell in line.split("\t")]
        if len(cells) == 4:  # trec_eval's format has an unused column
            del cells[1]
        if not any(cells):
            continue
        try:
            question_id, document, grade = cells
            judgments.append(Judgment(question_id, document, _parse_grade(path, number, float(grade))))
        except ValueError:
            if not first or cells[0] in question_ids:  # a header has column names, never a question id
                raise InvalidInput(
                    f"{path.name}, line {number}: expected query, document and grade between tabs, not {line[:80]!r}."
                ) from None
        first = False
    return tuple(judgments)


def read_spans(path: Path) -> tuple[Judgment, ...]:
    """Return the judged spans of a spans.jsonl (question_id, document, grade, start, end); none without the file."""
    if not path.is_file():
        return ()
    spans = []
    for number, row in read_json_lines(path):
        try:
            start, end = int(_check_number(row["start"])), int(_check_number(row["end"]))
            grade = _parse_grade(path, number, float(_check_number(row["grade"])))
            span = Judgment(clean_id(str(row["question_id"])), clean_id(str(row["document"])), grade, start, end)
        except (KeyError, TypeError, ValueError, OverflowError):
            raise InvalidInput(
                f"{path.name}, line {number}: needs question_id, document, grade, start and end; correct the line."
            ) from None
        if not 0 <= start < end <= MAX_SPAN_END:
            raise InvalidInput(f"{path.name}, line {number}: the span from {start} to {end} is empty; correct it.")
        spans.append(replace(span, quote=str(row.get("quote") or "")))
    return tuple(spans)


def _check_relevant(name: str, questions: tuple[Question, ...], judgments: tuple[Judgment, ...]) -> None:
    ids = {question.id for question in questions}
    if not any(judgment.question_id in ids and judgment.grade > 0 for judgment in judgments):
        raise InvalidInput(f"No question of {name!r} has a relevant document; its qrels must use the queries' ids.")


def _check_number(value: JsonValue) -> str | int | float:
    if isinstance(value, str | int | float):
        return value
    raise TypeError(value)


def _parse_grade(path: Path, number: int, given: float) -> int:
    if not (given.is_integer() and MIN_GRADE <= given <= MAX_GRADE):
        raise InvalidInput(
            f"{path.name}, line {number}: the grade {given:g} is not a whole number from {MIN_GRADE} to "
            f"{MAX_GRADE}; correct the line."
        )
    return int(given)


def _parse_metadata(row: JsonObject) -> JsonObject:
    metadata = row.get("metadata")
    return dict(metadata) if isinstance(metadata, dict) else {}


def _make_loader(text: str) -> Callable[[], bytes]:
    data = text.encode(errors="replace")
    return lambda: data
