"""Reading test sets: a folder in BEIR's form, or the sample that comes with the workbench."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from evals.dataset import HIGHEST_GRADE, LOWEST_GRADE, Dataset, FolderCorpus, Judgment, Question, best_of_spans
from workbench.errors import InvalidInput
from workbench.ingestion.incoming import Incoming

SAMPLE = "sample"
SPANS = "spans.jsonl"  # beside BEIR's files: parts of documents that were judged
QRELS = ("qrels.tsv", "qrels/test.tsv")
LONGEST_SPAN_END = 2**31 - 1  # what the database holds
UNTITLED = " "  # no context header is made of it, so that nothing but the text is embedded


def load_dataset(name: str | Path) -> Dataset:
    """Return the sample ("sample"), or the test set in a folder.

    A folder holds corpus.jsonl (``_id`` or ``id``, title, text, metadata), queries.jsonl (``_id`` or ``id``, text,
    reference_answer) and qrels.tsv or qrels/test.tsv (query, document, grade; with or without a header).

    Raises:
        InvalidInput: no such folder, a missing file, or a line that cannot be read; the message says which.
    """
    from workbench.sample import questions_dir

    folder = questions_dir() if str(name) == SAMPLE else Path(name)
    if not folder.is_dir():
        raise InvalidInput(f"There is no dataset folder {str(name)!r}; give a folder in BEIR's form, or 'sample'.")
    corpus = folder / "corpus.jsonl"
    sample = folder.resolve() == questions_dir().resolve()
    if not corpus.is_file() and not sample:
        raise InvalidInput(f"The dataset {folder.name!r} has no corpus.jsonl; each of its lines is one document.")
    questions = read_questions(folder / "queries.jsonl")
    spans = read_spans(folder / SPANS)
    best = best_of_spans(spans)
    whole = read_judgments(folder, {question.id for question in questions})
    judged = [j for j in whole if best.get((j.question_id, j.document)) != j.grade]  # qrels repeat spans' grades
    judgments = tuple({(j.question_id, j.document, j.start, j.end): j for j in (*judged, *spans)}.values())
    _check(folder.name, questions, judgments)
    return Dataset(
        name=SAMPLE if sample else folder.resolve().name,
        questions=questions,
        judgments=judgments,
        corpus=FolderCorpus(sample_documents if sample else lambda: corpus_documents(corpus)),
    )


def corpus_documents(path: Path) -> list[Incoming]:
    """Return the documents of a corpus.jsonl, one a line; a document without text is its title."""
    found: dict[str, Incoming] = {}
    for number, row in _json_lines(path):
        key = _key(path, number, row)
        if key in found:
            raise InvalidInput(f"{path.name}, line {number}: the id {key!r} stands there twice; make ids unique.")
        title, text = str(row.get("title") or "").strip(), str(row.get("text") or "")
        found[key] = Incoming(
            key=key,
            name="text.txt",
            load=_bytes_of(text if text.strip() else title),
            path=key,
            title=title or UNTITLED,
            metadata=_metadata(row),
        )
    if not found:
        raise InvalidInput(f"{path.name} is empty; each of its lines is one document.")
    return list(found.values())


def sample_documents() -> list[Incoming]:
    """Return the sample's articles; a document's key is the article's slug."""
    from workbench.sample import articles_dir

    paths = sorted(articles_dir().glob("*/*.md"))
    return [Incoming(key=path.stem, name=path.name, load=path.read_bytes, path=path.stem) for path in paths]


def read_questions(path: Path) -> tuple[Question, ...]:
    """Return the questions of a queries.jsonl. Raises InvalidInput."""
    found: dict[str, Question] = {}
    for number, row in _json_lines(path):
        key, text = _key(path, number, row), str(row.get("text") or "").strip()
        if not text or key in found:
            reason = "has no text" if not text else f"has the id {key!r}, which another one has too"
            raise InvalidInput(f"{path.name}, line {number}: the question {reason}; correct the line.")
        found[key] = Question(key, text, str(row.get("reference_answer") or ""), metadata=_metadata(row))
    return tuple(found.values())


def read_judgments(folder: Path, asked: Collection[str] = ()) -> tuple[Judgment, ...]:
    """Return the judgments of a folder's qrels; what comes before the first judgment may be a header.

    ``asked`` are the questions' ids: a first line that begins with one is no header.

    Raises:
        InvalidInput: no qrels, or a line that is no judgment.
    """
    path = next((folder / name for name in QRELS if (folder / name).is_file()), None)
    if path is None:
        raise InvalidInput(f"The dataset {folder.name!r} has no judgments; write qrels.tsv: query, document, grade.")
    found = []
    first = True
    for number, line in enumerate(_text(path).split("\n"), start=1):
        cells = [_name(cell) for cell in line.split("\t")]
        if len(cells) == 4:  # trec_eval's form has a column that nobody uses
            del cells[1]
        if not any(cells):
            continue
        try:
            question_id, document, grade = cells
            found.append(Judgment(question_id, document, _grade(path, number, float(grade))))
        except ValueError:
            if not first or cells[0] in asked:  # a header names columns, never a question
                raise InvalidInput(
                    f"{path.name}, line {number}: expected query, document and grade between tabs, not {line[:80]!r}."
                ) from None
        first = False
    return tuple(found)


def read_spans(path: Path) -> tuple[Judgment, ...]:
    """Return the judged spans of a spans.jsonl (question_id, document, grade, start, end); none without the file."""
    if not path.is_file():
        return ()
    found = []
    for number, row in _json_lines(path):
        try:
            start, end = int(row["start"]), int(row["end"])
            grade = _grade(path, number, float(row["grade"]))
            span = Judgment(_name(str(row["question_id"])), _name(str(row["document"])), grade, start, end)
        except (KeyError, TypeError, ValueError, OverflowError):
            raise InvalidInput(
                f"{path.name}, line {number}: needs question_id, document, grade, start and end; correct the line."
            ) from None
        if not 0 <= start < end <= LONGEST_SPAN_END:
            raise InvalidInput(f"{path.name}, line {number}: a span from {start} to {end} holds nothing; correct it.")
        found.append(replace(span, quote=str(row.get("quote") or "")))
    return tuple(found)


def _check(name: str, questions: tuple[Question, ...], judgments: tuple[Judgment, ...]) -> None:
    known = {question.id for question in questions}
    if not any(judgment.question_id in known and judgment.grade > 0 for judgment in judgments):
        raise InvalidInput(f"No question of {name!r} has a relevant document; its qrels must use the queries' ids.")


def _key(path: Path, number: int, row: Mapping[str, Any]) -> str:
    key = row.get("_id", row.get("id"))
    if key is None or not _name(str(key)):
        raise InvalidInput(f"{path.name}, line {number}: there is no '_id' and no 'id'; give each line one.")
    return _name(str(key))


def _name(given: str) -> str:
    """Return an id as it is stored: without blanks around it, and without NUL, which no database text can hold."""
    return given.replace("\x00", "").strip()


def _grade(path: Path, number: int, given: float) -> int:
    if not (given.is_integer() and LOWEST_GRADE <= given <= HIGHEST_GRADE):
        raise InvalidInput(
            f"{path.name}, line {number}: the grade {given:g} is not a whole number from {LOWEST_GRADE} to "
            f"{HIGHEST_GRADE}; correct the line."
        )
    return int(given)


def _metadata(row: Mapping[str, Any]) -> dict[str, Any]:
    given = row.get("metadata")
    return dict(given) if isinstance(given, dict) else {}


def _json_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in enumerate(_text(path).split("\n"), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise InvalidInput(f"{path.name}, line {number} is not JSON ({error}); correct the line.") from None
        if not isinstance(row, dict):
            raise InvalidInput(f"{path.name}, line {number} is not a JSON object; correct the line.")
        yield number, row


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise InvalidInput(f"The dataset {path.parent.name!r} has no {path.name}; add it.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path.name} cannot be read as UTF-8 text ({error}); correct the file.") from None


def _bytes_of(text: str) -> Callable[[], bytes]:
    data = text.encode(errors="replace")
    return lambda: data
