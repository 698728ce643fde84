"""Reading test sets: a folder in BEIR's form, or the sample that comes with the workbench."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from pathlib import Path

from evals.test_set import (
    HIGHEST_GRADE,
    LOWEST_GRADE,
    FolderCorpus,
    Judgment,
    Question,
    TestSet,
    best_of_spans,
)
from evals.test_sets.json_lines import clean_id, json_lines, key_of, text_of
from evals.test_sets.page_folder import is_page_folder, read_page_folder
from workbench.errors import InvalidInput
from workbench.ingestion.incoming import Incoming
from workbench.types import JsonObject, JsonValue

SAMPLE = "sample"
SPANS = "spans.jsonl"  # beside BEIR's files: parts of documents that were judged
QRELS = ("qrels.tsv", "qrels/test.tsv")
LONGEST_SPAN_END = 2**31 - 1  # the largest whole number that the database holds
UNTITLED = " "  # no context header is made of it, so that nothing but the text is embedded


def load_test_set(name: str | Path) -> TestSet:
    """Return the sample ("sample"), or the test set in a folder.

    A folder holds corpus.jsonl (``_id`` or ``id``, title, text, metadata), queries.jsonl (``_id`` or ``id``, text,
    reference_answer) and qrels.tsv or qrels/test.tsv (query, document, grade; with or without a header). A folder of
    files with questions.jsonl has pages as its truth (``read_page_folder``).

    Raises:
        InvalidInput: no such folder, a missing file, or a line that cannot be read; the message says which.
    """
    from workbench.sample import questions_dir

    folder = questions_dir() if str(name) == SAMPLE else Path(name)
    if not folder.is_dir():
        raise InvalidInput(f"There is no test set folder {str(name)!r}; give a folder in BEIR's form, or 'sample'.")
    if is_page_folder(folder):
        return read_page_folder(folder)
    corpus = folder / "corpus.jsonl"
    sample = folder.resolve() == questions_dir().resolve()
    if not corpus.is_file() and not sample:
        raise InvalidInput(f"The test set {folder.name!r} has no corpus.jsonl; each of its lines is one document.")
    questions = read_questions(folder / "queries.jsonl")
    spans = read_spans(folder / SPANS)
    best = best_of_spans(spans)
    whole = read_judgments(folder, {question.id for question in questions})
    judged = [j for j in whole if best.get((j.question_id, j.document)) != j.grade]  # qrels repeat spans' grades
    judgments = tuple({(j.question_id, j.document, j.start, j.end): j for j in (*judged, *spans)}.values())
    _check(folder.name, questions, judgments)
    return TestSet(
        name=SAMPLE if sample else folder.resolve().name,
        questions=questions,
        judgments=judgments,
        corpus=FolderCorpus(sample_documents if sample else lambda: corpus_documents(corpus)),
    )


def corpus_documents(path: Path) -> list[Incoming]:
    """Return the documents of a corpus.jsonl, one a line; a document without text is its title."""
    documents: dict[str, Incoming] = {}
    for number, row in json_lines(path):
        key = key_of(path, number, row)
        if key in documents:
            raise InvalidInput(f"{path.name}, line {number}: the id {key!r} stands there twice; make ids unique.")
        title, text = str(row.get("title") or "").strip(), str(row.get("text") or "")
        documents[key] = Incoming(
            key=key,
            name="text.txt",
            load=_bytes_of(text if text.strip() else title),
            path=key,
            title=title or UNTITLED,
            metadata=_metadata(row),
        )
    if not documents:
        raise InvalidInput(f"{path.name} is empty; each of its lines is one document.")
    return list(documents.values())


def sample_documents() -> list[Incoming]:
    """Return the sample's articles; a document's key is the article's slug."""
    from workbench.sample import articles_dir

    paths = sorted(articles_dir().glob("*/*.md"))
    return [Incoming(key=path.stem, name=path.name, load=path.read_bytes, path=path.stem) for path in paths]


def read_questions(path: Path) -> tuple[Question, ...]:
    """Return the questions of a queries.jsonl. Raises InvalidInput."""
    questions: dict[str, Question] = {}
    for number, row in json_lines(path):
        key, text = key_of(path, number, row), str(row.get("text") or "").strip()
        if not text or key in questions:
            reason = "has no text" if not text else f"has the id {key!r}, which another one has too"
            raise InvalidInput(f"{path.name}, line {number}: the question {reason}; correct the line.")
        questions[key] = Question(key, text, str(row.get("reference_answer") or ""), metadata=_metadata(row))
    return tuple(questions.values())


def read_judgments(folder: Path, question_ids: Collection[str] = ()) -> tuple[Judgment, ...]:
    """Return the judgments of a folder's qrels; a first line that is no judgment may be a header.

    ``asked`` are the questions' ids: a first line that begins with one is no header.

    Raises:
        InvalidInput: no qrels, or a line that is no judgment.
    """
    path = next((folder / name for name in QRELS if (folder / name).is_file()), None)
    if path is None:
        raise InvalidInput(f"The test set {folder.name!r} has no judgments; write qrels.tsv: query, document, grade.")
    judgments = []
    first = True
    for number, line in enumerate(text_of(path).split("\n"), start=1):
        cells = [clean_id(cell) for cell in line.split("\t")]
        if len(cells) == 4:  # trec_eval's form has a column that nobody uses
            del cells[1]
        if not any(cells):
            continue
        try:
            question_id, document, grade = cells
            judgments.append(Judgment(question_id, document, _grade(path, number, float(grade))))
        except ValueError:
            if not first or cells[0] in question_ids:  # a header names columns, never a question
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
    for number, row in json_lines(path):
        try:
            start, end = int(_figure(row["start"])), int(_figure(row["end"]))
            grade = _grade(path, number, float(_figure(row["grade"])))
            span = Judgment(clean_id(str(row["question_id"])), clean_id(str(row["document"])), grade, start, end)
        except (KeyError, TypeError, ValueError, OverflowError):
            raise InvalidInput(
                f"{path.name}, line {number}: needs question_id, document, grade, start and end; correct the line."
            ) from None
        if not 0 <= start < end <= LONGEST_SPAN_END:
            raise InvalidInput(f"{path.name}, line {number}: a span from {start} to {end} holds nothing; correct it.")
        spans.append(replace(span, quote=str(row.get("quote") or "")))
    return tuple(spans)


def _check(name: str, questions: tuple[Question, ...], judgments: tuple[Judgment, ...]) -> None:
    ids = {question.id for question in questions}
    if not any(judgment.question_id in ids and judgment.grade > 0 for judgment in judgments):
        raise InvalidInput(f"No question of {name!r} has a relevant document; its qrels must use the queries' ids.")


def _figure(value: JsonValue) -> str | int | float:
    if isinstance(value, str | int | float):
        return value
    raise TypeError(value)


def _grade(path: Path, number: int, given: float) -> int:
    if not (given.is_integer() and LOWEST_GRADE <= given <= HIGHEST_GRADE):
        raise InvalidInput(
            f"{path.name}, line {number}: the grade {given:g} is not a whole number from {LOWEST_GRADE} to "
            f"{HIGHEST_GRADE}; correct the line."
        )
    return int(given)


def _metadata(row: JsonObject) -> JsonObject:
    metadata = row.get("metadata")
    return dict(metadata) if isinstance(metadata, dict) else {}


def _bytes_of(text: str) -> Callable[[], bytes]:
    data = text.encode(errors="replace")
    return lambda: data
