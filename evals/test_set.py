"""A test set: questions, judgments and their corpus."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import math
import re
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from pydantic import TypeAdapter

from workbench.errors import InvalidInput
from workbench.retrieval.llm_prompts import quote_turns
from workbench.text import language_title
from workbench.types import JsonObject, JsonValue, Scope, Value, as_object

if TYPE_CHECKING:
    from workbench.ingestion.incoming import IngestItem

# Names of the grades 0, 1, ... by their number, with their meanings. Four grades as in TREC Deep Learning.
SCALES: dict[int, dict[str, str]] = {
    2: {"not": "it does not answer it", "relevant": "it answers it, at least a part of it"},
    3: {"not": "it does not answer it", "partly": "it answers a part of it", "relevant": "it answers it by itself"},
    4: {
        "not": "it is about something else",
        "related": "it is about the subject, but does not answer it",
        "relevant": "it answers a part of it, or answers it among other things",
        "perfect": "it answers it by itself and is about nothing else",
    },
    5: {
        "not": "it is about something else",
        "related": "it is about the subject, but does not answer it",
        "partly": "it answers a part of it",
        "relevant": "it answers it among other things",
        "perfect": "it answers it by itself and is about nothing else",
    },
}
DEFAULT_GRADES = 3


def grade_titles(grades: int) -> list[str]:
    """Return the grades 0, 1, ... of a scale as people read them."""
    return ["not relevant" if name == "not" else name for name in SCALES[grades]]


OWN_CORPUS_TEXT = "its own corpus"
MIN_GRADE, MAX_GRADE = -100, 100  # trec_eval keeps a table as long as the highest grade


def fold_text(text: str) -> str:
    """Return a question's text for comparison with others: without case and repeated blanks."""
    return " ".join(text.split()).casefold()


MAX_IMPORT_CHARS = 200_000_000  # of a file with judgments or rankings, once unpacked
GZIP_START = b"\x1f\x8b"


def read_plain_or_gzip(file: Path | bytes, errors: str = "strict", most: int | None = MAX_IMPORT_CHARS) -> str:
    """Return the text of a UTF-8 file, or of the content of one, which may be compressed whatever its name is.

    Raises:
        OSError: It is unreadable, damaged, or longer than ``most`` characters. UnicodeDecodeError.
    """
    try:
        with file.open("rb") if isinstance(file, Path) else io.BufferedReader(io.BytesIO(file)) as raw:
            stream = gzip.GzipFile(fileobj=raw) if raw.peek(2).startswith(GZIP_START) else raw
            with io.TextIOWrapper(stream, "utf-8-sig", errors) as text:
                read = text.read(-1 if most is None else most + 1)
    except (EOFError, zlib.error) as error:
        raise OSError(f"it is damaged: {error}") from error
    if most is not None and len(read) > most:
        raise OSError(f"it has over {most // 1_000_000} million characters")
    return read


THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}((,\d{3})+(\.\d*)?|(\.\d{3})+,\d*|(\.\d{3}){2,}|(['’]\d{3})+([.,]\d*)?)")


def read_number(text: str, place: str) -> float:
    """Return a finite number, which may have a decimal comma, as spreadsheets of many countries write it.

    Raises:
        InvalidInput: At this place it has, or may have, separators of thousands. ValueError: It is no number.
    """
    if THOUSANDS.fullmatch(text.strip()):
        raise InvalidInput(f"{place}: {text.strip()!r} may have a separator of thousands; write 1234.5, not 1,234.5.")
    number = float(text.replace(",", "."))
    if not math.isfinite(number):
        raise ValueError(text)
    return number


@dataclass(frozen=True, slots=True)
class Question(Value):
    """A question; ``origin`` is its source (folder, person, csv, agent, synthetic, llm)."""

    id: str
    text: str
    reference_answer: str = ""
    origin: str = "folder"
    metadata: Mapping[str, JsonValue] = field(default_factory=dict)

    @property
    def turns(self) -> tuple[str, ...]:
        """The earlier turns of its conversation, oldest first: question, answer, question, ... (in its metadata)."""
        turns = self.metadata.get("turns")
        return tuple(str(turn) for turn in turns) if isinstance(turns, list) else ()

    @property
    def in_context(self) -> str:
        """The question after the earlier turns of its conversation, for people and LLMs that judge."""
        return quote_turns(self.turns, self.text)

    @property
    def has_no_answer(self) -> bool:
        """True if it is marked as without an answer in the documents (``"answerable": false`` in its metadata)."""
        return self.metadata.get("answerable") is False


QUESTION_FIELDS = ("text", "reference_answer", "turns", "answerable", "metadata")  # of its JSON


def read_question(row: Mapping[str, object], key: str = "", origin: str = "folder") -> Question:
    """Return a question from its JSON: text, and any of reference_answer, turns, answerable (false) and metadata.

    Raises:
        InvalidInput: The turns are not a list of texts, or the metadata no object.
    """
    given = row.get("metadata") or {}
    if not isinstance(given, Mapping):
        raise InvalidInput(f"The metadata of a question must be an object, not {given!r}.")
    metadata = {**given, **({"answerable": False} if row.get("answerable") is False else {})}
    metadata |= {"turns": row["turns"]} if row.get("turns") else {}
    text, answer = str(row.get("text") or ""), str(row.get("reference_answer") or "")
    return Question(key, text, answer, origin, clean_turns(metadata))


def clean_turns(metadata: Mapping[str, JsonValue]) -> JsonObject:
    """Return a question's metadata with each of its earlier turns on one line.

    Raises:
        InvalidInput: The turns are not a list of texts.
    """
    turns = metadata.get("turns", [])
    if not isinstance(turns, list) or not all(isinstance(turn, str) for turn in turns):
        raise InvalidInput("The earlier turns of a question must be a list of texts, from the oldest; correct it.")
    lines = [" ".join(str(turn).replace("\x00", "").split()) for turn in turns]
    return {**metadata, "turns": [*lines]} if lines else dict(metadata)


Place = tuple[str, str, int | None, int | None]  # question id, document, start and end of a span


@dataclass(frozen=True, slots=True)
class Judgment(Value):
    """The relevance of a document, a span of its characters, or some of its pages (from 1) to a question.

    ``grade`` 0 is not relevant.
    """

    question_id: str
    document: str
    grade: int = 1
    start: int | None = None
    end: int | None = None
    quote: str = ""
    pages: tuple[int, ...] = ()

    @property
    def is_span(self) -> bool:
        """True if a part of the document was judged."""
        return self.start is not None and self.end is not None

    @property
    def place(self) -> Place:
        """What was judged."""
        return self.question_id, self.document, self.start, self.end


def best_span_grades(spans: Iterable[Judgment]) -> dict[tuple[str, str], int]:
    """Return {(question id, document): grade of the best span}, as qrels require."""
    best: dict[tuple[str, str], int] = {}
    for span in spans:
        place = (span.question_id, span.document)
        best[place] = max(span.grade, best.get(place, span.grade))
    return best


@dataclass(frozen=True)
class FolderCorpus:
    """Documents that come with a test set, read once."""

    read: Callable[[], Sequence[IngestItem]]
    problems: list[str] = field(default_factory=list)  # lines that could not be read, once the documents were

    @cached_property
    def documents(self) -> tuple[IngestItem, ...]:
        """Every document with its key."""
        return tuple(self.read())

    @cached_property
    def hash(self) -> str:
        """A hash of the documents."""
        digest = hashlib.sha256()
        for item in self.documents:
            for part in (item.key, item.title or "", item.name):
                digest.update(f"{len(part)}:{part}".encode(errors="surrogatepass"))
            digest.update(hashlib.sha256(item.load()).digest())
        return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class StoredCorpus:
    """Documents already in the database, as a source of type "dataset"."""

    source_id: str
    hash: str


_SCOPES = TypeAdapter(Scope)


@dataclass(frozen=True, slots=True)
class MeasuredScope(Value):
    """The part of a user's documents that a test set measures; the default is everything."""

    scope: Scope = field(default_factory=Scope)  # names projects, folders, sources and documents by id
    # The titles of these ids, which can still be shown after a deletion.
    titles: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_everything(self) -> bool:
        """True if nothing is excluded."""
        return self.scope == Scope()

    @property
    def text(self) -> str:
        """The scope as text, such as "project Shop, source Manuals"."""
        scope = self.scope
        parts = ["sources without a project"] if scope.kind == "global" else []
        if scope.project:
            only = "only " if scope.kind == "project" else ""
            folder = f", folder {self.title(scope.folder)}" if scope.folder else ""
            parts.append(f"{only}project {self.title(scope.project)}{folder}")
        parts += _format_list("source", [self.title(key) for key in scope.sources or ()])
        parts += _format_list("document", [self.title(key) for key in scope.documents or ()])
        parts += _format_list("tag", scope.tags) + _format_list("type", scope.document_types)
        parts += _format_list("language", [language_title(name) or name for name in scope.languages])
        parts += [item.replace("=", " ", 1) for item in scope.metadata]
        parts += [f"since {scope.since}"] if scope.since else []
        parts += [f"until {scope.until}"] if scope.until else []
        parts += [f"names {scope.names}"] if scope.names != "prefer" else []
        parts += _format_list("ignored name", scope.ignored_names)
        return "; ".join(parts) or "all your documents"

    def title(self, key: str) -> str:
        """Return the title of an id, or its last title if deleted."""
        return self.titles.get(key, key)

    def to_stored(self) -> JsonObject:
        """Return the JSON that ``from_stored`` reads; {} for everything."""
        default = Scope().to_dict()
        changed: JsonObject = {key: value for key, value in self.scope.to_dict().items() if value != default[key]}
        return changed | {"titles": dict(self.titles)} if changed else {}

    @classmethod
    def from_stored(cls, stored: Mapping[str, JsonValue]) -> MeasuredScope:
        """Return a scope from its stored form; a missing field excludes nothing."""
        titles = {key: str(title) for key, title in as_object(stored.get("titles")).items()}
        return cls(_SCOPES.validate_python(stored), titles)


WHOLE_CORPUS = MeasuredScope()
MAX_NAMES_LISTED = 3  # titles listed in a scope's text


def _format_list(noun: str, names: Sequence[str]) -> list[str]:
    if len(names) <= 1:
        return [f"{noun} {name}" for name in names]
    more = f" and {len(names) - MAX_NAMES_LISTED} more" if len(names) > MAX_NAMES_LISTED else ""
    return [f"{noun}s {', '.join(names[:MAX_NAMES_LISTED])}{more}"]


@dataclass(frozen=True)
class TestSet:
    """Questions with judgments over a corpus; ``corpus`` None means the user's own sources.

    With its own corpus, a judgment names a document by its key there; without one, by the document's id. ``scope`` is
    the part of the user's own sources that is searched; with its own corpus, it is everything.
    """

    __test__: ClassVar = False  # not a pytest class

    name: str
    questions: tuple[Question, ...]
    judgments: tuple[Judgment, ...]
    corpus: FolderCorpus | StoredCorpus | None = None
    version: int = 1
    scope: MeasuredScope = WHOLE_CORPUS
    grades: int = DEFAULT_GRADES  # number of grades of its raters, from 0
    by_agents: frozenset[Place] = frozenset()  # what only agents judged, or opened or cited
    read_problems: tuple[str, ...] = ()  # lines of its files that could not be read, a sentence each

    @property
    def problems(self) -> tuple[str, ...]:
        """A sentence for each line of its files or corpus that could not be read and was left out."""
        found = self.read_problems
        if isinstance(self.corpus, FolderCorpus):
            _ = self.corpus.documents  # read once
            found = (*found, *self.corpus.problems)
        more = len(found) - MAX_PROBLEMS_SHOWN
        return found if more <= 0 else (*found[:MAX_PROBLEMS_SHOWN], f"{more:,} more lines were left out.")

    @property
    def scale(self) -> tuple[str, ...]:
        """The names of the grades 0, 1, ..."""
        return tuple(SCALES[self.grades])

    @property
    def over(self) -> str:
        """The searched documents, as text."""
        return self.scope.text if self.corpus is None else OWN_CORPUS_TEXT

    @cached_property
    def questions_hash(self) -> str:
        """A hash of the questions and judgments, independent of their order."""
        marks = {q.id: ["no answer"] for q in self.unanswerable}
        rows = sorted(
            json.dumps([q.id, q.text, q.reference_answer, *marks.get(q.id, []), *q.turns]) for q in self.questions
        )
        rows += sorted(json.dumps(_judgment_fields(judgment)) for judgment in self.judgments)
        return hashlib.sha256("\n".join(rows).encode()).hexdigest()

    @cached_property
    def answerable_hash(self) -> str:
        """A hash of the answerable questions, independent of their judgments."""
        rows = sorted(json.dumps([question.id, question.text, *question.turns]) for question in self.answerable)
        rows += sorted(f"{key} within {place[0]}" for key, places in self.pages.items() for place in places)
        return hashlib.sha256("\n".join(rows).encode()).hexdigest()

    @cached_property
    def qrels(self) -> dict[str, dict[str, int]]:
        """{question id: {document key: grade}}; the grade is that of the document's best span."""
        grades: dict[str, dict[str, int]] = {}
        for judgment in self.judgments:
            of_question = grades.setdefault(judgment.question_id, {})
            of_question[judgment.document] = max(judgment.grade, of_question.get(judgment.document, judgment.grade))
        return grades

    @cached_property
    def spans(self) -> dict[str, tuple[Judgment, ...]]:
        """{question id: relevant spans}."""
        by_question: dict[str, list[Judgment]] = {}
        for judgment in self.judgments:
            if judgment.is_span and judgment.grade > 0:
                by_question.setdefault(judgment.question_id, []).append(judgment)
        return {key: tuple(spans) for key, spans in by_question.items()}

    @cached_property
    def pages(self) -> dict[str, tuple[tuple[str, int], ...]]:
        """{question id: (document, page) pairs that answer it}, if pages were judged."""
        places: dict[str, list[tuple[str, int]]] = {}
        for judgment in self.judgments:
            if judgment.grade > 0 and judgment.pages:
                places.setdefault(judgment.question_id, []).extend((judgment.document, page) for page in judgment.pages)
        return {key: tuple(own) for key, own in places.items()}

    @cached_property
    def answerable(self) -> tuple[Question, ...]:
        """The questions with a relevant judgment; only they can be measured."""
        relevant = {key for key, grades in self.qrels.items() if any(grade > 0 for grade in grades.values())}
        return tuple(question for question in self.questions if question.id in relevant)

    @cached_property
    def unanswerable(self) -> tuple[Question, ...]:
        """The questions marked as without an answer and without a relevant judgment; they should be refused."""
        answerable = {question.id for question in self.answerable}
        return tuple(one for one in self.questions if one.has_no_answer and one.id not in answerable)

    @cached_property
    def scorable(self) -> tuple[Question, ...]:
        """The questions whose answers can be scored: first those that should be refused, then the answerable ones."""
        return (*self.unanswerable, *self.answerable)

    @cached_property
    def nowhere(self) -> tuple[str, ...]:
        """The relevant documents that are missing from the test set's own corpus."""
        if not isinstance(self.corpus, FolderCorpus):
            return ()
        keys = {item.key for item in self.corpus.documents}
        grades_of_questions = (self.qrels[question.id] for question in self.answerable)
        wanted = {key: None for grades in grades_of_questions for key, grade in grades.items() if grade > 0}
        return tuple(key for key in wanted if key not in keys)

    def only(self, ids: Sequence[str]) -> TestSet:
        """Return the test set restricted to some of its questions, in its own order."""
        wanted = set(ids)
        return replace(
            self,
            questions=tuple(question for question in self.questions if question.id in wanted),
            judgments=tuple(judgment for judgment in self.judgments if judgment.question_id in wanted),
        )

    def spread(self, count: int | None) -> TestSet:
        """Return at most ``count`` questions with an answer, and as many without, evenly from its order.

        The first ones alone are a poor pilot, because test sets are often sorted by document or difficulty.

        Raises:
            InvalidInput: A count below 1.
        """
        if count is None:
            return self
        if count < 1:
            raise InvalidInput(f"Invalid number of queries {count}; use a whole number of at least 1.")
        return self.only(
            [question.id for group in (self.answerable, self.unanswerable) for question in _spread(group, count)]
        )


def _spread(questions: tuple[Question, ...], count: int) -> list[Question]:
    size = min(count, len(questions))
    return [questions[n * len(questions) // size] for n in range(size)]


MAX_PROBLEMS_SHOWN = 20


def _judgment_fields(judgment: Judgment) -> list[str | int | list[int] | None]:
    """Return a judgment's fields for hashing; pages only if there are any, so that older hashes stay valid."""
    values: list[str | int | list[int] | None] = [judgment.question_id, judgment.document, judgment.grade]
    return [*values, judgment.start, judgment.end, *([list(judgment.pages)] if judgment.pages else [])]
