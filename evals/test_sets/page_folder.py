"""Reading a folder of documents with questions whose truth is pages: what analysts ask of reports and filings.

``questions.jsonl`` has one question a line: ``id``, ``text``, ``document`` (the name of a file below the folder),
``pages`` (a list, counted from 1) and, where it is known, ``answer``. Further fields are kept as metadata.
"""

from __future__ import annotations

from pathlib import Path

from evals.test_set import FolderCorpus, Judgment, Question, TestSet
from evals.test_sets.json_lines import json_lines, key_of
from workbench.errors import InvalidInput, choices
from workbench.ingestion.incoming import Incoming, files_under
from workbench.types import JsonObject

QUESTIONS = "questions.jsonl"
KNOWN = ("id", "_id", "text", "answer", "document", "pages", "evidence")


def is_page_folder(folder: Path) -> bool:
    """Tell whether a folder holds questions with pages as truth."""
    return (folder / QUESTIONS).is_file() and not (folder / "corpus.jsonl").is_file()


def read_page_folder(folder: Path) -> TestSet:
    """Return the folder's questions, each with the pages of the document that answer it.

    Raises:
        InvalidInput: a line without text, document or pages, or a document that does not lie in the folder.
    """
    documents = page_documents(folder)
    names = {item.key for item in documents}
    questions: dict[str, Question] = {}
    judgments: list[Judgment] = []
    for number, row in json_lines(folder / QUESTIONS):
        question_id, place = key_of(folder / QUESTIONS, number, row), f"{QUESTIONS}, line {number}"
        text, document, pages = str(row.get("text") or "").strip(), str(row.get("document") or ""), _pages(row)
        if not text or not pages or question_id in questions:
            raise InvalidInput(
                f"{place}: a question needs an id of its own, a text, and pages as a list of numbers from 1; "
                "correct the line."
            )
        if document not in names:
            raise InvalidInput(
                f"{place}: there is no document {document!r} below the folder; it holds {choices(sorted(names))}."
            )
        metadata = {name: value for name, value in row.items() if name not in KNOWN}
        questions[question_id] = Question(question_id, text, str(row.get("answer") or ""), metadata=metadata)
        judgments.append(Judgment(question_id, document, 2, pages=pages))
    if not questions:
        raise InvalidInput(f"{QUESTIONS} of {folder.name!r} is empty; each of its lines is one question.")
    return TestSet(folder.resolve().name, tuple(questions.values()), tuple(judgments), FolderCorpus(lambda: documents))


def page_documents(folder: Path) -> list[Incoming]:
    """Return the readable files below the folder, each under its file name."""
    items = files_under([folder]).items
    own = [item for item in items if item.name != QUESTIONS and item.name != "SOURCE.md"]
    return [
        Incoming(item.name, item.name, item.load, path=item.name, keep_file=item.keep_file, size=item.size)
        for item in own
    ]


def _pages(row: JsonObject) -> tuple[int, ...]:
    """Return the pages in order; empty where they are not a list of whole numbers from 1."""
    values = row.get("pages")
    if not isinstance(values, list):
        return ()
    pages = [page for page in values if type(page) is int and page >= 1]
    return tuple(sorted(set(pages))) if len(pages) == len(values) else ()
