"""Test sets in the database; every edit creates a new version, and old ones are kept."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import ClassVar

from evals.gateway import (
    Row,
    TestSetTables,
    check_title,
    delete_corpus,
    describe_scope,
    ensure_source,
    index_corpus,
    new_id,
)
from evals.test_set import (
    DEFAULT_GRADES,
    MAX_GRADE,
    MIN_GRADE,
    OWN_CORPUS_TEXT,
    QUESTION_FIELDS,
    SCALES,
    WHOLE_CORPUS,
    FolderCorpus,
    Judgment,
    MeasuredScope,
    Place,
    Question,
    StoredCorpus,
    TestSet,
    clean_turns,
    read_question,
)
from evals.test_sets.folders import SAMPLE_NAME, load_test_set
from workbench.errors import InvalidInput, NotFound, list_choices
from workbench.types import JsonObject, OnProgress, Scope, ShouldStop, Value
from workbench.workbench import Workbench

LLM_JUDGE = "llm"
ORIGINAL = "original"  # a grade without a rater that settles nothing, such as that of imported qrels
AGENT_JUDGE = "agent"  # over MCP; it counts until a person has judged the same place
MAX_QUESTION_CHARS = 10_000  # as for a search
MAX_WHOLE_CHARS = 100_000  # of a question with everything that is stored with it, as JSON
MAX_RATER_CHARS = 200


@dataclass(frozen=True, slots=True)
class TestSetInfo(Value):
    """Summary of a stored test set; with ``source_id`` None, it covers the user's own sources within ``scope``.

    ``answerable`` is the number of questions with a relevant judgment; only they can be measured or trained on.
    """

    __test__: ClassVar = False  # not a pytest class

    id: str
    title: str
    description: str
    source_id: str | None
    version: int
    questions: int
    judgments: int
    answerable: int = 0
    created_at: datetime | None = None
    updated_at: datetime | None = None
    scope: MeasuredScope = WHOLE_CORPUS
    grades: int = DEFAULT_GRADES  # number of grades of its raters, from 0

    @property
    def over(self) -> str:
        """The searched documents, as text."""
        return OWN_CORPUS_TEXT if self.source_id else self.scope.text


@dataclass(frozen=True, slots=True)
class ImportReport(Value):
    """The outcome of an import; ``problems`` describe the rejected rows."""

    questions: int
    judgments: int
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Rating(Value):
    """One rater's judgment; without a ``rater`` it is the grade that counts, and a person's settles earlier ones."""

    judgment: Judgment
    rater: str
    judge: str  # person, import, rule, llm or agent
    reason: str = ""
    at: datetime | None = None


class TestSetStore:
    """Operations on stored test sets; every edit creates a new version and returns its number."""

    __test__: ClassVar = False  # not a pytest class

    def __init__(self, wb: Workbench) -> None:
        self._wb = wb
        self._tables = TestSetTables(wb.corpus.database)

    def list(self) -> list[TestSetInfo]:
        """Return all test sets, oldest first."""
        return [_parse_info(row) for row in self._tables.list()]

    def info(self, key: str) -> TestSetInfo:
        """Return the summary of a test set by id or title. Raises NotFound."""
        return _parse_info(self._tables.get(key))

    def find_or_add(self, key: str) -> TestSetInfo:
        """Return the summary of a test set by id or title; ``sample`` is stored if it is not. Raises NotFound."""
        try:
            return self.info(key)
        except NotFound:
            if key != SAMPLE_NAME:
                raise
        return self.add(load_test_set(SAMPLE_NAME))

    def create(
        self, title: str, description: str = "", *, scope: Scope | None = None, grades: int = DEFAULT_GRADES
    ) -> TestSetInfo:
        """Create an empty test set over the user's own sources, or over a scope of them.

        ``grades`` is the number of grades of its raters, two to five.

        Raises:
            InvalidInput: The title or the number of grades is not valid. Conflict: The title is taken. ScopeError: An
                unknown name in the scope.
        """
        measured = describe_scope(self._wb, scope or Scope()).to_stored()
        checked = check_title(title)
        return _parse_info(self._tables.create(checked, description, None, "", measured, _check_grades(grades)))

    def update(
        self, key: str, *, title: str | None = None, description: str | None = None, grades: int | None = None
    ) -> TestSetInfo:
        """Change the title, the description or the number of grades; this does not create a new version.

        Raises:
            InvalidInput: The title or the number of grades is not valid, or higher grades of its scale are used.
        """
        info, checked = self.info(key), None if title is None else check_title(title)
        if grades is not None:
            used = (rating.judgment.grade for rating in self.ratings(info.id))
            highest = max((grade for grade in used if grade < info.grades), default=0)  # qrels may have others
            if highest >= _check_grades(grades):
                raise InvalidInput(f"A judgment has the grade {highest}; {grades} grades end at {grades - 1}.")
        return _parse_info(self._tables.update(info.id, checked, description, grades))

    def delete(self, key: str) -> TestSetInfo:
        """Delete a test set with its history and experiments, and its corpus if no other test set uses it."""
        info = self.info(key)
        self._tables.delete(info.id)
        self._delete_unused_corpus(info.source_id)
        return info

    def add(
        self,
        test_set: TestSet,
        title: str | None = None,
        description: str = "",
        *,
        replace_corpus: bool = False,
        on_progress: OnProgress | None = None,
        should_stop: ShouldStop | None = None,
    ) -> TestSetInfo:
        """Store a test set that was read from a folder, with its corpus; an existing title gets a new version.

        With ``replace_corpus`` the existing test set may have another corpus, which is deleted if no other uses it.

        Raises:
            InvalidInput: The title belongs to a test set over another corpus.
            Cancelled: ``should_stop`` returned True; the documents indexed so far are kept.
        """
        name = check_title(title or test_set.name)
        corpus = test_set.corpus
        source_id = ensure_source(self._wb, test_set.name, corpus).id if isinstance(corpus, FolderCorpus) else None
        if isinstance(corpus, FolderCorpus):
            index_corpus(self._wb, test_set, on_progress=on_progress, should_stop=should_stop)  # indexes the documents
        try:
            row = self._tables.get(name)
        except NotFound:
            stored = test_set.scope.to_stored()
            row = self._tables.create(name, description, source_id, corpus.hash if corpus else "", stored)
        if row["source_id"] != source_id:
            if not replace_corpus:
                raise InvalidInput(f"The test set {name!r} has another corpus; choose another title.")
            self._tables.set_corpus(row["id"], source_id, corpus.hash if corpus else "")
            self._delete_unused_corpus(row["source_id"])
        before, given = self.match(row["id"], test_set)
        if before.questions_hash != given.questions_hash:
            ids = {question.id for question in test_set.questions}
            self._tables.edit(
                row["id"],
                drop_questions=[question.id for question in before.questions if question.id not in ids],
                drop_judgments=[_make_rating_row(Rating(judgment, "", "import")) for judgment in before.judgments],
                questions=[_make_question_row(question) for question in test_set.questions],
                judgments=[_make_rating_row(Rating(judgment, "", "import")) for judgment in given.judgments],
            )
        return self.info(row["id"])

    def match(self, key: str, test_set: TestSet) -> tuple[TestSet, TestSet]:
        """Return what was imported of a stored test set, and a file's without the places that people have settled.

        They are equal if the file has not changed, whatever people have judged since. Raises NotFound.
        """
        ratings = [rating for rating in self.ratings(key) if not rating.rater]
        imported = tuple(rating.judgment for rating in ratings if rating.judge == "import")
        settled = {rating.judgment.place for rating in ratings if rating.judge != "import"}
        given = tuple(judgment for judgment in test_set.judgments if judgment.place not in settled)
        return replace(self.load(key), judgments=imported), replace(test_set, judgments=given)

    def load(self, key: str, version: int | None = None) -> TestSet:
        """Return the current or a given version of a test set, without judgments by an LLM.

        If several raters judged a place and their grades are not settled, the lower of the middle ones counts.

        Raises:
            NotFound: No such test set or version.
        """
        row = self._tables.get(key)
        at = row["version"] if version is None else version
        if not 1 <= at <= row["version"]:
            raise NotFound("version", f"{at} of {row['title']}", f"There are versions 1 to {row['version']}.")
        counting = find_counting(map(_parse_rating, self._tables.judgments(row["id"], at)))
        return TestSet(
            name=row["title"],
            questions=tuple(_parse_question(entry) for entry in self._tables.questions(row["id"], at)),
            judgments=tuple(rating.judgment for rating in counting),
            corpus=StoredCorpus(row["source_id"], row["corpus_hash"]) if row["source_id"] else None,
            version=at,
            scope=MeasuredScope.from_stored(row["scope"]),
            grades=row["grades"],
            by_agents=frozenset(rating.judgment.place for rating in counting if rating.judge == AGENT_JUDGE),
        )

    def ratings(self, key: str, version: int | None = None) -> list[Rating]:
        """Return the judgments of all raters, including LLMs, in the order they were made. Raises NotFound."""
        row = self._tables.get(key)
        return [_parse_rating(entry) for entry in self._tables.judgments(row["id"], version or row["version"])]

    def add_questions(
        self,
        key: str,
        questions: Iterable[Question | str | Mapping[str, object]],
        origin: str = "person",
    ) -> list[Question]:
        """Add questions, or replace those with the same id; those without an id get one, and existing ones are skipped.

        A question is a text, or has a ``text`` and any of: ``reference_answer``; ``turns``, the earlier ones of its
        conversation, from the oldest; ``answerable``, False if the documents do not answer it; and ``metadata``.

        Raises:
            InvalidInput: An empty question, one that is too long with what comes with it, invalid turns, or an unknown
                field.
        """
        info = self.info(key)
        known = {(*question.turns, question.text.casefold()) for question in self.load(info.id).questions}
        added = []
        for entry in questions:
            question = check_question(entry, origin)
            key_text = (*question.turns, question.text.casefold())
            if not question.id:
                if key_text in known:
                    continue
                question = replace(question, id=new_id("question"))
            known.add(key_text)
            added.append(question)
        if added:
            self._tables.edit(info.id, questions=[_make_question_row(question) for question in added])
        return added

    def remove_questions(self, key: str, question_ids: Sequence[str]) -> int:
        """Remove questions with their judgments; earlier versions keep them."""
        return self._tables.edit(self.info(key).id, drop_questions=question_ids)

    def judge(
        self,
        key: str,
        question_id: str,
        document: str,
        grade: str | int | None,
        *,
        start: int | None = None,
        end: int | None = None,
        quote: str = "",
        judge: str = "person",
        rater: str = "",
        reason: str = "",
    ) -> int:
        """Grade a document (or its span ``start``..``end``) for a question by name or number; None clears the grade.

        Args:
            rater: Name of one of several raters, whose grades are kept apart; without it, the grade settles theirs.
            reason: Why.

        Raises:
            NotFound: No such question. InvalidInput: An unknown grade.
        """
        value = 0 if grade is None else parse_grade(grade, self.info(key).grades)
        judgment = Judgment(question_id, document, value, start, end, quote)
        return self.rate(key, [Rating(judgment, rater, judge, reason)], clear=grade is None)

    def judge_all(
        self, key: str, judgments: Iterable[Judgment], judge: str = "person", rater: str = "", reason: str = ""
    ) -> int:
        """Store many judgments as one version; ``rater`` and ``reason`` as in ``judge``.

        Raises:
            NotFound: A judgment of an unknown question. InvalidInput: A rater's grade outside the scale.
        """
        return self.rate(key, [Rating(judgment, rater, judge, reason) for judgment in judgments])

    def rate(self, key: str, ratings: Iterable[Rating], *, clear: bool = False) -> int:
        """Store judgments of several raters as one version, or ``clear`` them; errors as for ``judge_all``."""
        info = self.info(key)
        ids = {question.id for question in self.load(info.id).questions}
        batch = [check_rating(one, info.grades) for one in ratings]
        for one in batch:
            if one.judgment.question_id not in ids:
                raise NotFound("question", one.judgment.question_id, "Load the test set to see its questions.")
        self._check_kinds(info.id, batch)
        rows = [_make_rating_row(one) for one in batch]
        return self._tables.edit(info.id, drop_judgments=rows if clear else (), judgments=() if clear else rows)

    def _check_kinds(self, key: str, ratings: Iterable[Rating]) -> None:
        """Check that no agent or LLM judges under the name of a person, or the reverse. Raises InvalidInput."""
        machines = {one.rater: one.judge in (LLM_JUDGE, AGENT_JUDGE) for one in self.ratings(key) if one.rater}
        for rating in ratings:
            name = " ".join(rating.rater.split())
            if machines.get(name, rating.judge in (LLM_JUDGE, AGENT_JUDGE)) != (
                rating.judge in (LLM_JUDGE, AGENT_JUDGE)
            ):
                kind = "an agent or LLM" if machines[name] else "a person"
                raise InvalidInput(f"The rater {name!r} is {kind}; use another name.")

    def _delete_unused_corpus(self, source_id: str | None) -> None:
        if source_id and all(row["source_id"] != source_id for row in self._tables.list()):
            delete_corpus(self._wb, source_id)


def find_counting(ratings: Iterable[Rating]) -> list[Rating]:
    """Return the judgment of each place that counts: the settled one, else the lower middle one of the people.

    The judgments of agents count if no person has judged the place.
    """
    places: dict[Place, list[Rating]] = {}
    for rating in ratings:
        if rating.judge != LLM_JUDGE:
            places.setdefault(rating.judgment.place, []).append(rating)
    counting: list[Rating] = []
    for rated in places.values():
        settled = [rating for rating in rated if not rating.rater and rating.judge != AGENT_JUDGE]
        people = [rating for rating in rated if rating.judge != AGENT_JUDGE]
        ordered = sorted(people or rated, key=lambda rating: rating.judgment.grade)
        counting.append(settled[0] if settled else ordered[(len(ordered) - 1) // 2])
    return counting


def _check_grades(grades: int) -> int:
    if grades not in SCALES:
        raise InvalidInput(f"Invalid number of grades {grades}; use a whole number from 2 to 5.")
    return grades


def check_rating(rating: Rating, grades: int) -> Rating:
    """Return a rating with its rater's name on one line; an LLM or agent without one never settles a place.

    Raises:
        InvalidInput: The name is blank, too long or "original", the reason is too long, or the rater's grade is not on
            the scale.
    """
    check_length("reason", rating.reason)
    if not rating.rater:
        return replace(rating, rater=rating.judge) if rating.judge in (LLM_JUDGE, AGENT_JUDGE) else rating
    name = " ".join(rating.rater.replace("\x00", "").split())
    if not name or len(name) > MAX_RATER_CHARS:
        raise InvalidInput(f"Invalid name {name[:60]!r} of a rater; use 1 to {MAX_RATER_CHARS} characters.")
    if name == ORIGINAL:
        raise InvalidInput(f"The rater {name!r} is the grade that a test set came with; use another name.")
    if rating.judgment.grade not in range(grades):
        names = list_choices([f"{value} ({title})" for value, title in enumerate(SCALES[grades])])
        raise InvalidInput(f"Invalid grade {rating.judgment.grade} of a rater; use {names}.")
    return replace(rating, rater=name, reason=" ".join(rating.reason.split()))


def parse_grade(given: str | int, grades: int = DEFAULT_GRADES) -> int:
    """Return a grade from its name on a scale of ``grades``, or its number. Raises InvalidInput."""
    text = str(given).strip().lower().replace(",", ".")  # as spreadsheets of many countries write 2.0
    names = list(SCALES[grades])
    if text in names:
        return names.index(text)
    if re.fullmatch(r"-?[0-9]{1,3}(\.0+)?", text) and MIN_GRADE <= float(text) <= MAX_GRADE:
        return int(float(text))
    raise InvalidInput(
        f"Invalid grade {given!r}; use {list_choices(names)}, or a whole number from {MIN_GRADE} to {MAX_GRADE}."
    )


def check_question(given: Question | str | Mapping[str, object], origin: str = "person") -> Question:
    """Return a question to be stored. Raises InvalidInput as ``TestSetStore.add_questions``."""
    if not isinstance(given, Question):
        row = {"text": given} if isinstance(given, str) else given
        if unknown := [name for name in row if name not in QUESTION_FIELDS]:
            choices = list_choices(QUESTION_FIELDS)
            raise InvalidInput(f"Unknown fields {list_choices(unknown)}; a question has {choices}.")
        given = read_question(row, origin=origin)
    question = replace(given, text=clean_question(given.text), metadata=clean_turns(given.metadata))
    whole = json.dumps(question.to_dict(), ensure_ascii=False)
    check_length("question with its answer, turns and metadata", whole, MAX_WHOLE_CHARS)
    return question


def clean_question(text: str) -> str:
    """Return a question's text on one line. Raises InvalidInput for an empty or overlong one."""
    clean = " ".join(text.replace("\x00", "").split())
    if not clean:
        raise InvalidInput("The question is empty; enter its text.")
    return check_length("question", clean)


def check_length(noun: str, text: str, most: int = MAX_QUESTION_CHARS) -> str:
    """Return a text unchanged. Raises InvalidInput for an overlong one."""
    if len(text) > most:
        raise InvalidInput(f"The {noun} has {len(text):,} characters; shorten it to at most {most:,}.")
    return text


def _parse_info(row: Row) -> TestSetInfo:
    values: Row = {field.name: row[field.name] for field in fields(TestSetInfo)}
    values["scope"] = MeasuredScope.from_stored(row["scope"])
    return TestSetInfo(**values)


def _parse_question(row: Row) -> Question:
    return Question(row["question_id"], row["text"], row["reference_answer"], row["origin"], row["metadata"])


def _make_question_row(question: Question) -> JsonObject:
    row = question.to_dict()
    return {"question_id": row.pop("id"), **row}


def _parse_rating(row: Row) -> Rating:
    values: Row = {field.name: row[field.name] for field in fields(Judgment)}
    values["pages"] = tuple(row["pages"])
    return Rating(Judgment(**values), row["rater"], row["judge"], row["reason"], row["created_at"])


def _make_rating_row(rating: Rating) -> JsonObject:
    return rating.judgment.to_dict() | {"judge": rating.judge, "rater": rating.rater, "reason": rating.reason}


# Loading by title, id or folder


def load_named_test_set(wb: Workbench, key: str, scope: Scope | None = None) -> TestSet:
    """Load a stored test set by title or id, else a folder, else the sample.

    Args:
        scope: Scope to search instead of the test set's own, unless it is None or everything.

    Raises:
        InvalidInput: No such test set, or a scope for one that has its own corpus.
        ScopeError: An unknown name in the scope.
    """
    try:
        test_set = TestSetStore(wb).load(TestSetStore(wb).info(key).id)
    except NotFound:
        test_set = load_test_set(key)
    if scope is None or scope == Scope():
        return test_set
    if test_set.corpus is not None:
        raise InvalidInput(
            f"{test_set.name!r} has its own corpus, which a scope does not narrow; omit the scope options."
        )
    return replace(test_set, scope=describe_scope(wb, scope))
