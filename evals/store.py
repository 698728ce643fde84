"""Test sets in the database: made, imported, judged, corrected, exported; no version is ever lost."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from evals.corpus import index_corpus, store_source
from evals.dataset import GRADES, HIGHEST_GRADE, LOWEST_GRADE, Dataset, FolderCorpus, Judgment, Question, StoredCorpus
from workbench.errors import InvalidInput, NotFound, choices
from workbench.services.naming import check_title
from workbench.storage.evaluation import DatasetTables
from workbench.storage.ids import new_id
from workbench.types import Value
from workbench.workbench import Workbench

LLM = "llm"
LONGEST_QUESTION = 10_000  # characters, as for a search


@dataclass(frozen=True, slots=True)
class DatasetInfo(Value):
    """A stored test set at a glance; ``source_id`` None means it judges the person's own sources."""

    id: str
    title: str
    description: str
    source_id: str | None
    version: int
    questions: int
    judgments: int
    created_at: datetime | None = None
    updated_at: datetime | None = None


class DatasetStore:
    """The verbs over stored test sets; every edit makes a new version and returns its number."""

    def __init__(self, wb: Workbench) -> None:
        self._wb = wb
        self._tables = DatasetTables(wb.corpus.database)

    def list(self) -> list[DatasetInfo]:
        """Return all test sets, oldest first."""
        return [_info(row) for row in self._tables.list()]

    def info(self, key: str) -> DatasetInfo:
        """Return one test set at a glance, by id or title. Raises NotFound."""
        return _info(self._tables.get(key))

    def create(self, title: str, description: str = "") -> DatasetInfo:
        """Create an empty test set over the person's own sources. Raises InvalidInput or Conflict."""
        return _info(self._tables.create(check_title(title), description, None, ""))

    def update(self, key: str, *, title: str | None = None, description: str | None = None) -> DatasetInfo:
        """Rename or describe a test set; that makes no new version."""
        checked = None if title is None else check_title(title)
        return _info(self._tables.update(self.info(key).id, checked, description))

    def delete(self, key: str) -> DatasetInfo:
        """Delete a test set with its history and experiments; its own corpus goes with the last test set over it."""
        gone = self.info(key)
        self._tables.delete(gone.id)
        shared = any(row["source_id"] == gone.source_id for row in self._tables.list())
        if gone.source_id and not shared:
            for name in self._wb.corpus.indexes.of_dataset(gone.source_id):
                self._wb.corpus.indexes.drop(name)
            self._wb.corpus.sources.delete(gone.source_id, [])
        return gone

    def add(self, dataset: Dataset, title: str | None = None, description: str = "") -> DatasetInfo:
        """Store a test set that was read from a folder, its corpus too; one of that title gets it as a new version.

        Raises:
            InvalidInput: the title belongs to a test set over another corpus.
        """
        name = check_title(title or dataset.name)
        corpus = dataset.corpus
        source_id = store_source(self._wb, dataset.name, corpus).id if isinstance(corpus, FolderCorpus) else None
        if isinstance(corpus, FolderCorpus):
            index_corpus(self._wb, dataset)  # brings the documents in
        try:
            there = self._tables.get(name)
        except NotFound:
            there = self._tables.create(name, description, source_id, corpus.hash if corpus else "")
        if there["source_id"] != source_id:
            raise InvalidInput(f"The dataset {name!r} is over another corpus; give this one another title.")
        before = self.load(there["id"])
        if before.questions_hash != dataset.questions_hash:
            kept = {question.id for question in dataset.questions}
            self._tables.edit(
                there["id"],
                drop_questions=[question.id for question in before.questions if question.id not in kept],
                drop_judgments=[_judgment_row(judgment, "import") for judgment in before.judgments],
                questions=[_question_row(question) for question in dataset.questions],
                judgments=[_judgment_row(judgment, "import") for judgment in dataset.judgments],
            )
        return self.info(there["id"])

    def load(self, key: str, version: int | None = None) -> Dataset:
        """Return a test set as it is, or as it was in a version; judgments by an LLM are not part of it.

        Raises:
            NotFound: no such test set or version.
        """
        row = self._tables.get(key)
        at = row["version"] if version is None else version
        if not 1 <= at <= row["version"]:
            raise NotFound("version", f"{at} of {row['title']}", f"There are versions 1 to {row['version']}.")
        return Dataset(
            name=row["title"],
            questions=tuple(_question(found) for found in self._tables.questions(row["id"], at)),
            judgments=tuple(_judgment(found) for found in self._judged(row["id"], at) if found["judge"] != LLM),
            corpus=StoredCorpus(row["source_id"], row["corpus_hash"]) if row["source_id"] else None,
            version=at,
        )

    def judged_by_llm(self, key: str) -> tuple[Judgment, ...]:
        """Return the judgments an LLM made, to hold them against a person's."""
        row = self._tables.get(key)
        return tuple(_judgment(found) for found in self._judged(row["id"], row["version"]) if found["judge"] == LLM)

    def add_questions(self, key: str, questions: Iterable[Question | str], origin: str = "person") -> list[Question]:
        """Add questions, or replace those of the same id; a plain text gets an id, and one that is there is left out.

        Raises:
            InvalidInput: an empty or overlong question.
        """
        info = self.info(key)
        known = {question.text.casefold() for question in self.load(info.id).questions}
        added = []
        for given in questions:
            question = Question(new_id("question"), given, origin=origin) if isinstance(given, str) else given
            text = checked_text(question.text)
            if isinstance(given, str) and text.casefold() in known:
                continue
            known.add(text.casefold())
            added.append(replace(question, text=text))
        if added:
            self._tables.edit(info.id, questions=[_question_row(question) for question in added])
        return added

    def update_question(self, key: str, question_id: str, **changes: Any) -> int:
        """Change a question's text, reference_answer or metadata. Raises NotFound or InvalidInput."""
        question = replace(self._question(key, question_id), **changes)
        checked_text(question.text)
        return self._tables.edit(self.info(key).id, questions=[_question_row(question)])

    def remove_questions(self, key: str, question_ids: Sequence[str]) -> int:
        """Take questions out with their judgments; earlier versions keep them."""
        return self._tables.edit(self.info(key).id, drop_questions=question_ids)

    def judge(self, key: str, question_id: str, document: str, grade: str | int | None, **more: Any) -> int:
        """Say how well a document (or its span ``start``..``end``) answers: relevant, partly, not; None takes it back.

        Raises:
            NotFound: no such question. InvalidInput: an unknown grade.
        """
        self._question(key, question_id)
        judge = more.pop("judge", "person")
        judgment = Judgment(question_id, document, 0 if grade is None else read_grade(grade), **more)
        row = _judgment_row(judgment, judge)
        info = self.info(key)
        if grade is None:
            return self._tables.edit(info.id, drop_judgments=[row])
        return self._tables.edit(info.id, judgments=[row])

    def judge_all(self, key: str, judgments: Iterable[Judgment], judge: str = "person") -> int:
        """Store many judgments as one version. Raises NotFound for a judgment of an unknown question."""
        known = {question.id for question in self.load(key).questions}
        rows = [_judgment_row(judgment, judge) for judgment in judgments]
        for row in rows:
            if row["question_id"] not in known:
                raise NotFound("question", row["question_id"], "Add the question first.")
        return self._tables.edit(self.info(key).id, judgments=rows)

    def _question(self, key: str, question_id: str) -> Question:
        for question in self.load(key).questions:
            if question.id == question_id:
                return question
        raise NotFound("question", question_id, "Load the dataset to see its questions.")

    def _judged(self, dataset_id: str, version: int) -> Sequence[Mapping[str, Any]]:
        return self._tables.judgments(dataset_id, version)


def read_grade(given: str | int) -> int:
    """Return a grade from its name or number. Raises InvalidInput naming the valid ones."""
    text = str(given).strip().lower()
    if text in GRADES:
        return GRADES[text]
    if re.fullmatch(r"-?[0-9]{1,3}", text) and LOWEST_GRADE <= int(text) <= HIGHEST_GRADE:
        return int(text)
    raise InvalidInput(
        f"A judgment cannot be {given!r}; use {choices(GRADES)}, or a whole number from {LOWEST_GRADE} to "
        f"{HIGHEST_GRADE}."
    )


def checked_text(text: str) -> str:
    """Return a question's text on one line. Raises InvalidInput for an empty or overlong one."""
    clean = " ".join(text.replace("\x00", "").split())
    if not clean:
        raise InvalidInput("A question is empty; write what is asked.")
    if len(clean) > LONGEST_QUESTION:
        raise InvalidInput(f"A question has {len(clean):,} characters; shorten it to at most {LONGEST_QUESTION:,}.")
    return clean


def _info(row: Mapping[str, Any]) -> DatasetInfo:
    return DatasetInfo(**{name: row[name] for name in DatasetInfo.__dataclass_fields__})


def _question(row: Mapping[str, Any]) -> Question:
    return Question(row["question_id"], row["text"], row["reference_answer"], row["origin"], row["metadata"])


def _question_row(question: Question) -> dict[str, Any]:
    row = question.to_dict()
    return {"question_id": row.pop("id"), **row}


def _judgment(row: Mapping[str, Any]) -> Judgment:
    return Judgment(**{name: row[name] for name in Judgment.__dataclass_fields__})


def _judgment_row(judgment: Judgment, judge: str) -> dict[str, Any]:
    return judgment.to_dict() | {"judge": judge}
