"""Frozen values that travel between the layers: no I/O, no framework, plain Python types."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import date, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Literal, TypeAlias, TypeVar, cast, overload

from workbench.errors import InvalidInput, list_choices
from workbench.text import AUTO

if TYPE_CHECKING:
    import altair
    import pandas
    from IPython.lib.pretty import RepresentationPrinter
    from PIL.Image import Image

# --- JSON types, and conversion of JSON values, which raises TypeError for another type ---

JsonValue: TypeAlias = "str | int | float | bool | Sequence[JsonValue] | Mapping[str, JsonValue] | None"
JsonObject: TypeAlias = dict[str, JsonValue]


def as_text(value: JsonValue) -> str:
    """Return a JSON value as a string."""
    if isinstance(value, str):
        return value
    raise TypeError(f"Expected a string, got {value!r}.")


def as_text_or_none(value: JsonValue) -> str | None:
    """Return a JSON value as a string or None."""
    return None if value is None else as_text(value)


def as_number(value: JsonValue) -> float:
    """Return a JSON value as a float."""
    if isinstance(value, int | float):
        return value
    raise TypeError(f"Expected a number, got {value!r}.")


def as_integer(value: JsonValue) -> int:
    """Return a JSON number as an int."""
    return int(as_number(value))


def as_items(value: JsonValue) -> Sequence[JsonValue]:
    """Return a JSON array; empty for null."""
    if value is None:
        return ()
    if isinstance(value, Sequence) and not isinstance(value, str):
        return value
    raise TypeError(f"Expected an array, got {value!r}.")


def as_texts(value: JsonValue) -> list[str]:
    """Return a JSON array of strings as a list."""
    return [as_text(item) for item in as_items(value)]


def as_object(value: JsonValue) -> Mapping[str, JsonValue]:
    """Return a JSON object; empty for null."""
    if value is None:
        return {}
    if isinstance(value, Mapping):
        return value
    raise TypeError(f"Expected an object, got {value!r}.")


# Conversion of values to JSON


def to_plain(value: object) -> JsonValue:
    """Convert a value to JSON types: dataclasses to dicts, dates to ISO strings, tuples to lists."""
    if hasattr(value, "to_dict"):
        return cast("Value", value).to_dict()
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {str(key): to_plain(item) for key, item in cast("Mapping[object, object]", value).items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [to_plain(item) for item in cast("list[object]", value)]
    return cast("JsonValue", value)


class Value:
    """Mixin for frozen values; ``to_dict`` returns the JSON form that the interfaces specify."""

    def to_dict(self) -> JsonObject:
        """Return the value as JSON types, in field order; fields that are hidden in ``repr`` are omitted."""
        shown = (item.name for item in fields(self) if item.repr)  # pyright: ignore[reportArgumentType]
        return {name: to_plain(getattr(self, name)) for name in shown}


# --- Parameters of strategies and chunkers, and validation of their values ---

# Names of the legs, the keys of an attribution (``workbench.retrieval.legs`` describes them)

VECTOR = "vector"
KEYWORD = "keyword"
DOCUMENT = "document"
FEEDBACK = "feedback"
HYDE = "hyde"
QUERY = "query"
LATE = "late"
CLUSTER = "cluster"
CROSS_ENCODER = "cross-encoder"
LLM = "llm"
LEARNED = "learned"
NOVELTY = "novelty"
OWN = "own"


ParameterValue: TypeAlias = bool | int | float | str
MAX_NAME_CHARS = 60  # characters of a name that is a parameter's value
MAX_TEXT_CHARS = 500  # characters of a text that is a parameter's value


@dataclass(frozen=True, slots=True)
class Parameter(Value):
    """A parameter of a strategy or a chunker, shown by the app and the command line."""

    name: str
    kind: Literal["float", "int", "bool", "choice", "name", "text"]  # "name": of a stored object, such as a ranker
    default: ParameterValue
    why: str  # one line on its purpose
    low: float | None = None  # inclusive
    high: float | None = None  # inclusive
    choices: tuple[str, ...] = ()

    def read(self, value: object) -> ParameterValue:
        """Return the value with its type, converted from text if necessary.

        Raises:
            InvalidInput: The value is invalid; the message names the valid ones.
        """
        try:
            return self._read(value)
        except (ValueError, TypeError, KeyError, OverflowError):
            raise InvalidInput(f"Invalid {self.name} {value!r}; {self.valid()}.") from None

    def valid(self) -> str:
        """Return a clause that names the valid values."""
        if self.kind == "choice":
            return f"use one of {list_choices(self.choices, 20)}"
        if self.kind == "bool":
            return "use true or false"
        if self.kind == "name":
            return f"use a name of 1 to {MAX_NAME_CHARS} characters"
        if self.kind == "text":
            return f"use at most {MAX_TEXT_CHARS} printable characters"
        noun = "a whole number" if self.kind == "int" else "a number"
        return f"use {noun} from {self.low or 0:g} to {self.high or 0:g}"

    def _read(self, value: object) -> ParameterValue:
        if self.kind == "choice":
            return {choice: choice for choice in self.choices}[str(value)]
        if self.kind == "bool":
            return value if isinstance(value, bool) else {"true": True, "false": False}[str(value).lower()]
        if self.kind == "name":
            return read_name(value)
        if self.kind == "text":
            return _read_text(value)
        if isinstance(value, bool):
            raise ValueError(value)
        number = float(value)  # pyright: ignore[reportArgumentType] - read catches what this raises
        if self.kind == "int" and number != int(number):
            raise ValueError(value)
        if not (self.low is None or self.low <= number) or not (self.high is None or number <= self.high):
            raise ValueError(value)
        return int(number) if self.kind == "int" else number


def read_name(value: object) -> str:
    """Return a name with normalised spaces.

    Raises:
        ValueError: It is not a string, is empty or too long, or contains unprintable characters.
    """
    name = " ".join(value.split()) if isinstance(value, str) else ""
    if not 0 < len(name) <= MAX_NAME_CHARS or not name.isprintable():
        raise ValueError(value)
    return name


def _read_text(value: object) -> str:
    if not isinstance(value, str) or len(value) > MAX_TEXT_CHARS or not value.replace("\n", " ").isprintable():
        raise ValueError(value)
    return value


def read_parameters(
    owner: str, declared: Sequence[Parameter], given: Mapping[str, object]
) -> dict[str, ParameterValue]:
    """Return the value of every declared parameter: the given one, validated, or the default.

    Raises:
        InvalidInput: ``owner`` has no parameter of a given name, or a value is out of range.
    """
    by_name = {parameter.name: parameter for parameter in declared}
    for name in given:
        if name not in by_name:
            raise InvalidInput(f"{owner} has no parameter {name!r}; its parameters are {list_choices(by_name)}.")
    return {name: by_name[name].read(given.get(name, by_name[name].default)) for name in by_name}


# --- The part of the corpus that a search may see, by names and by ids ---

ScopeKind = Literal["all", "global", "project"]
NamesUse = Literal["prefer", "only", "ignore"]


@dataclass(frozen=True, slots=True)
class Scope(Value):
    """The part of the corpus that a search may see.

    All fields must match; an empty scope is the user's whole corpus.
    """

    kind: ScopeKind = "all"  # "project" needs ``project``; "all" with a project adds the global sources to it
    project: str | None = None
    folder: str | None = None
    tags: tuple[str, ...] = ()  # of a source, which needs one of them
    sources: tuple[str, ...] | None = None  # ids, titles or URLs; None means any, an empty tuple none
    document_types: tuple[str, ...] = ()
    documents: tuple[str, ...] | None = None
    languages: tuple[str, ...] = ()  # ISO 639-1 codes or names; "cjk" is Chinese, Japanese, Korean, "simple" any other
    metadata: tuple[str, ...] = ()  # NAME=VALUE; all of the names, and one of the values of each
    since: date | None = None
    until: date | None = None
    names: NamesUse = "prefer"  # documents named in the question: boost them, require them, or ignore their names
    ignored_names: tuple[str, ...] = ()  # names that are ignored in any case

    def __post_init__(self) -> None:
        for name in ("tags", "sources", "document_types", "documents", "languages", "metadata", "ignored_names"):
            if isinstance(value := getattr(self, name), str):  # a single name, not a sequence of letters
                object.__setattr__(self, name, (value,))


@dataclass(frozen=True, slots=True)
class ResolvedScope(Value):
    """A scope with ids instead of names."""

    source_ids: tuple[str, ...] | None = None  # None means no restriction, an empty tuple nothing
    document_ids: tuple[str, ...] | None = None  # the same
    document_types: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    metadata: tuple[tuple[str, tuple[str, ...]], ...] = ()  # each name with its values in lower case
    since: date | None = None
    until: date | None = None
    preferred_source_ids: tuple[str, ...] = ()  # win ties between passages: a project's own sources
    without_documents: tuple[str, ...] = ()  # excluded, such as those already found when more are requested
    notes: tuple[str, ...] = ()
    project_id: str | None = None  # of all its sources, if they share one
    folder_id: str | None = None  # of all its sources, if they share one
    names: NamesUse = "prefer"
    ignored_names: tuple[str, ...] = ()
    is_whole_corpus: bool = field(default=False, repr=False)  # nothing but the families' own sources is left out

    @property
    def place(self) -> ResolvedScope:
        """Only the filters, without preferences and without the documents that this search excludes."""
        return ResolvedScope(
            source_ids=self.source_ids,
            document_ids=self.document_ids,
            document_types=self.document_types,
            languages=self.languages,
            metadata=self.metadata,
            since=self.since,
            until=self.until,
        )

    @property
    def is_empty(self) -> bool:
        """True if nothing can match."""
        return self.source_ids == () or self.document_ids == ()

    @property
    def is_everything(self) -> bool:
        """True if nothing is filtered out."""
        return (
            self.source_ids is None and self.document_ids is None and not self.document_types
            and not self.languages and not self.metadata
            and self.since is None and self.until is None and not self.without_documents
        )  # fmt: skip


# --- Stored values: projects and folders, sources and documents, indexes, promotions and rankers ---

# Trained rankers


@dataclass(frozen=True, slots=True)
class Ranker(Value):
    """Weights of the strategy ``learned`` under a name."""

    name: str
    weights: Mapping[str, float]  # by feature; may be negative
    trained_on: str = ""  # titles of the test sets, separated by commas
    version: int = 0  # of the test set
    index: str = ""  # that the questions were asked on
    questions: int = 0  # number of training questions
    figures: Mapping[str, float] = field(default_factory=dict)  # cross-validated nDCG@10 of "learned", of the fixed
    # strategies on the same questions, and "p" of the paired test against "rerank"
    note: str = ""
    created_at: datetime | None = None


SOURCE_TYPES = ("upload", "crawl", "api", "workspace", "articles", "archive", "dataset")
DATASET = "dataset"  # sources of this type contain evaluation corpora and are never part of a user's scope
FAMILY_TYPES = ("workspace", "articles", "archive")  # searched by their own tools; other searches must name the source
APART_TYPES = (DATASET, *FAMILY_TYPES)  # neither listed nor counted among a user's sources and documents
ARTICLE_CATEGORIES = ("concepts", "patterns", "practices")  # folders of articles


@dataclass(frozen=True, slots=True)
class Project(Value):
    """A named body of work, to which sources may belong."""

    id: str
    title: str
    description: str = ""
    source_count: int = 0  # without those with conversations, articles and archives
    family_count: int = 0  # sources with conversations, articles or archives
    created_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Folder(Value):
    """A folder of a project; names are unique within it."""

    id: str
    project_id: str
    name: str
    description: str = ""
    color: str = "#6366f1"
    icon_name: str = "folder"
    source_count: int = 0  # without those with conversations, articles and archives
    family_count: int = 0  # sources with conversations, articles or archives


@dataclass(frozen=True, slots=True)
class Source(Value):
    """A collection of documents that came from one place."""

    id: str
    title: str
    source_type: str = "upload"
    url: str | None = None
    scope: Literal["global", "project"] = "global"
    project_id: str | None = None
    folder_id: str | None = None
    folder_name: str | None = None
    tags: tuple[str, ...] = ()
    language: str = AUTO
    encoding: str = ""  # of its texts; "" to detect it for each file
    hidden: Literal["read", "skip"] = "read"  # comments and hidden sheets, rows, slides and text of its files
    status: str = "active"
    documents_count: int = 0
    passages_count: int = 0
    created_at: datetime | None = None
    updated_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Document(Value):
    """A file, page or text."""

    id: str
    source_id: str
    title: str
    path: str | None = None
    url: str | None = None
    document_type: str = "text"
    content_hash: str = ""
    text: str | None = None
    metadata: Mapping[str, JsonValue] = field(default_factory=dict)
    status: str = "completed"
    passages_count: int = 0
    document_date: date | None = None  # in its metadata or file name, or else of its last commit or change
    created_at: datetime | None = None
    updated_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Index(Value):
    """All documents split by one chunker and embedded by one model, in separate tables."""

    name: str
    chunker: str
    chunker_options: Mapping[str, ParameterValue]
    embedding_model: str
    dimensions: int
    is_default: bool = False
    dataset: str | None = None
    status: str = "ready"
    documents_count: int = 0  # without conversations, articles and archives
    passages_count: int = 0  # of all documents
    created_at: datetime | None = None
    has_graph: bool = False  # whether searches of everything use its HNSW graph instead of exact search
    family_count: int = 0  # documents that are conversations, articles or archives
    graph: Mapping[str, JsonValue] | None = None  # ``GraphState``, measured when the graph was built or had grown
    attachment: Mapping[str, JsonValue] | None = None  # the table with its vectors; None if they are in our own tables
    transformations: Sequence[str] = ()  # components that passages go through before they are embedded
    nearness: Mapping[str, float] | None = None  # cosines that count as evidence; None: the model's own, or unknown
    notes: Sequence[str] = ()  # what the last build left out, in sentences

    @property
    def is_attached(self) -> bool:
        """True if it reads an existing table in place."""
        return self.attachment is not None


@dataclass(frozen=True, slots=True)
class Proposal(Value):
    """A promotion that an agent proposes; a person accepts or rejects it."""

    id: int
    strategy: str
    parameters: Mapping[str, ParameterValue]
    index: str | None  # None for the default index
    reason: str
    proposed_by: str
    proposed_at: datetime
    rival: str = ""  # strategy to interleave with
    project_id: str | None = None
    source_id: str | None = None  # both None: everywhere
    scope_title: str = ""
    decided_at: datetime | None = None
    accepted: bool | None = None  # None until a person decides

    @property
    def state(self) -> str:
        """What became of it: "waiting", "accepted" or "rejected"."""
        return "waiting" if self.accepted is None else "accepted" if self.accepted else "rejected"

    @property
    def scope(self) -> Scope:
        """The scope that it would serve."""
        return Scope(project=self.project_id, sources=(self.source_id,) if self.source_id else None)


@dataclass(frozen=True, slots=True)
class Promotion(Value):
    """A strategy that is or was used in a scope if a search names none."""

    scope: str  # "everywhere", "project:ID", "folder:ID" or "source:ID"
    version: int  # from 1 within the scope
    strategy: str
    parameters: Mapping[str, ParameterValue]
    index: str | None = None  # None: the default index
    rival: str = ""  # strategy whose results are interleaved with its own for agents, NAME or NAME@INDEX
    note: str = ""
    serves: bool = True
    scope_title: str = ""
    promoted_at: datetime | None = None
    undone_at: datetime | None = None

    @property
    def key(self) -> str:
        """Its scope and version, as logged with interleaved searches."""
        return f"{self.scope} {self.version}"

    @property
    def label(self) -> str:
        """The strategy, with its index unless it is the default one."""
        return f"{self.strategy}@{self.index}" if self.index else self.strategy


# Suggested tags by category, as the specification of the scoped tools lists them

TAG_CATALOGUE: dict[str, tuple[str, ...]] = {
    "Framework": ("react", "nextjs", "fastapi", "django", "express"),
    "Language": ("python", "typescript", "javascript", "rust", "go"),
    "Architecture": ("microservices", "rest-api", "graphql", "event-driven"),
    "Security": ("authentication", "authorization", "encryption", "security-best-practices"),
    "Testing": ("unit-testing", "integration-testing", "e2e-testing"),
    "Deployment": ("docker", "kubernetes", "ci-cd"),
    "Database": ("postgresql", "mongodb", "redis", "vector-search"),
    "API": ("openapi", "websockets"),
    "UI": ("tailwind", "radix-ui", "design-system"),
    "Documentation": ("api-reference", "tutorial", "architecture-docs", "troubleshooting"),
}


def format_catalogue() -> str:
    return "; ".join(f"{category}: {', '.join(tags)}" for category, tags in TAG_CATALOGUE.items())


# --- Progress of long work, and its two callbacks: one reports progress, the other checks for cancellation ---

# Results of an ingest

MAX_SUFFIXES_SHOWN = 8  # file types named in a line
HIDDEN_FILES = "hidden files"  # key among the suffixes of skipped files: those with a leading dot


@dataclass(frozen=True, slots=True)
class IngestFailure(Value):
    """A file that could not be read."""

    path: str
    error: str  # the reason, as a sentence


MAX_NOTES = 200  # sentences about documents in the report of an ingest
MAX_NOTES_SHOWN = 3  # notes in the message of a job; its log has all
READING_KEYS = frozenset((  # metadata about the reading of a file, which does not apply to the next version of it
    "left_out", "hidden_parts", "encoding", "pages", "page_labels", "turned_pages", "unreadable_pages",
    "damaged_pages", "garbled_pages", "unread_pictures", "uncertain_pages", "scanned_pages", "ocr_confidence",
))  # fmt: skip


def format_left_out(counts: Mapping[str, int]) -> str:
    """Return counts as a list, largest first: "comments (12), hidden rows (3)"."""
    ordered = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    return ", ".join(f"{what} ({count:,})" for what, count in ordered)


@dataclass(frozen=True, slots=True)
class DocumentNotes:
    """The notes of one document, for the report of an ingest."""

    sentences: tuple[str, ...] = ()  # sentences about its pages and what was left out
    left_out: Mapping[str, int] = field(default_factory=dict[str, int])  # counts of what was left out, by plural noun


def sum_notes(notes: Sequence[DocumentNotes]) -> tuple[str, ...]:
    """Return the sentences of all documents, up to a limit, preceded by one that totals what was left out."""
    total: Counter[str] = Counter()
    for each in notes:
        total.update(each.left_out)
    documents = sum(bool(each.left_out) for each in notes)
    sentences = [sentence for each in notes for sentence in each.sentences]
    if len(sentences) > MAX_NOTES:
        more = len(sentences) - MAX_NOTES
        sentences = [*sentences[:MAX_NOTES], f"{more:,} more notes are shown with their documents."]
    summary = f"Not fully read in {documents:,} documents: {format_left_out(total)}." if documents > 1 else ""
    return tuple(filter(None, (summary, *sentences)))


# Formats that are not read, and one that programs for them can write instead.
SAVED_AS = {
    ".doc": ".docx", ".odt": ".docx", ".pages": ".docx", ".wpd": ".docx", ".wps": ".docx",
    ".ppt": ".pptx", ".odp": ".pptx", ".key": ".pptx", ".xls": ".xlsx", ".xlsb": ".xlsx",
    ".ods": ".xlsx", ".numbers": ".xlsx", ".parquet": ".csv", ".msg": ".eml", ".pst": ".mbox", ".olm": ".mbox",
    ".webarchive": ".html", ".chm": ".html", ".one": ".pdf", ".djvu": ".pdf",
    ".xps": ".pdf", ".ps": ".pdf", ".vsdx": ".pdf", ".pub": ".pdf", ".mobi": ".epub", ".azw3": ".epub", ".fb2": ".epub",
    ".heic": ".jpg", ".gif": ".png", ".bmp": ".png", ".rar": ".zip", ".7z": ".zip", ".tar": ".zip", ".gz": ".zip",
    ".tgz": ".zip",
}  # fmt: skip
IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".webp")  # unsupported only without the extra ``ocr``
INSTALL_ADVICE = "To read scans, install the extra: pip install 'rag-workbench[ocr]'."


def suggest_formats(suffixes: Iterable[str]) -> str:
    """Return what to do about files of unsupported formats, such as "Save .msg as .eml, .odt as .docx."; or ""."""
    known = sorted(set(suffixes))
    saved = [f"{suffix} as {SAVED_AS[suffix]}" for suffix in known if suffix in SAVED_AS]
    sentences = (
        f"Save {', '.join(saved)}." if saved else "",
        "To read an archive, ingest it by itself." if ".zip" in known else "",
        INSTALL_ADVICE if any(suffix in IMAGE_SUFFIXES for suffix in known) else "",
    )
    return " ".join(filter(None, sentences))


@dataclass(frozen=True, slots=True)
class IngestReport(Value):
    """The changes made by an ingest."""

    source_id: str  # "" if nothing was stored and the source was therefore not created
    added: int = 0
    updated: int = 0
    unchanged: int = 0
    failures: tuple[IngestFailure, ...] = ()
    passages: int = 0
    embedded: int = 0
    seconds: float = 0.0
    document_ids: tuple[str, ...] = ()
    left_out: Mapping[str, int] = field(default_factory=dict)  # skipped files: unsupported by suffix, and HIDDEN_FILES
    offer: str = ""  # index to build, with its duration, if documents are in languages the model was not trained on
    notes: tuple[str, ...] = ()  # sentences on documents with unread pages or uncertain scans

    @property
    def advice(self) -> str:
        """How to make the skipped files readable; "" if there is no way."""
        return suggest_formats(self.left_out)

    @property
    def left_out_sentence(self) -> str:
        """The number and types of skipped files, and what to do about them; "" if there are none."""
        by_suffix = dict(self.left_out)
        hidden = by_suffix.pop(HIDDEN_FILES, 0)
        sentences = []
        if count := sum(by_suffix.values()):
            kinds = [f"{suffix or 'no suffix'} ({number:,})" for suffix, number in by_suffix.items()]
            more = f" and {len(kinds) - MAX_SUFFIXES_SHOWN} more" if len(kinds) > MAX_SUFFIXES_SHOWN else ""
            files = "1 file" if count == 1 else f"{count:,} files"
            sentences.append(f"{files} skipped (unsupported type): {', '.join(kinds[:MAX_SUFFIXES_SHOWN])}{more}.")
        if hidden:
            files = "1 hidden file" if hidden == 1 else f"{hidden:,} hidden files"
            sentences.append(f"{files} skipped; name one to read it.")
        return " ".join(filter(None, [*sentences, self.advice]))

    @property
    def counts(self) -> dict[str, int]:
        """The numbers of documents and passages, without any document's text or path."""
        documents = {"added": self.added, "updated": self.updated, "unchanged": self.unchanged}
        return documents | {"failed": len(self.failures), "passages": self.passages, "embedded": self.embedded}

    def to_dict(self) -> JsonObject:
        """Return the JSON of ``workbench ingest --json``."""
        return {
            "source_id": self.source_id,
            "documents": {name: self.counts[name] for name in ("added", "updated", "unchanged", "failed")},
            "passages": self.passages,
            "embedded": self.embedded,
            "seconds": round(self.seconds, 3),
            "failures": [asdict(failure) for failure in self.failures],
            "left_out": dict(self.left_out),
            "advice": self.advice,
            "offer": self.offer,
            "notes": list(self.notes),
        }

    def _repr_html_(self) -> str:
        from workbench.display import report_html

        return report_html(self)

    def _repr_pretty_(self, printer: RepresentationPrinter, cycle: bool) -> None:
        from workbench.display import report_text

        printer.text(report_text(self))


EMBEDDING_SHARE = 0.9  # of the time that a passage takes in an ingest; storing takes the rest
MAX_OPEN_SHARE = 0.99  # share shown while a step of unknown duration ends the work


@dataclass(frozen=True, slots=True)
class Progress(Value):
    """A step of long-running work."""

    done: int
    total: int  # 0 if unknown
    message: str = ""  # what is happening now
    part: float = 0.0  # finished share (0..1) of the items in progress, which are not counted in ``done``
    seconds_left: float | None = None  # None if unknown; inf if it does not follow from the pace so far
    under_way: int = 1  # items in progress at the same time
    share: float | None = None  # finished share (0..1) of all work by its slowest stage; None if done/total is exact

    @property
    def done_share(self) -> float:
        """Finished share of the work, 0..1; 0 if the total is unknown."""
        if self.share is not None:
            return min(1.0, max(0.0, self.share))
        return min(1.0, (self.done + self.part * self.under_way) / self.total) if self.total else 0.0

    def count_active_items(self) -> Progress:
        """Return this progress with the finished share of running items added to ``done``, as if run one at a time."""
        far = self.done + self.part * self.under_way
        return replace(self, done=int(far), part=far - int(far), under_way=1)


def duration_text(seconds: float | None) -> str:
    """Return a rough duration: "40 s", "3 min", "2.5 h"; "" if unknown."""
    if seconds is None:
        return ""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def progress_text(share: float, done: int, total: int) -> str:
    """Return progress as a percentage and in items: "73%, 0 of 80"; 100% only once everything is done."""
    if not total:
        return f"{done:,}"
    percent = 100 if done >= total and share >= 1 else min(99, int(share * 100))
    return f"{percent}%, {done:,} of {total:,}"


def time_left_text(seconds: float | None) -> str:
    """Return the time left: "about 40 s left", "about 3 min left"; "" if unknown."""
    return f"about {duration_text(seconds)} left" if seconds is not None else ""


class Countdown:
    """The time left, for display: an estimate counts down from the last change of the numbers until it has passed."""

    def __init__(self) -> None:
        self._numbers: tuple[object, ...] = ()
        self._ends: float | None = None

    def take(self, progress: Progress) -> float | None:
        """Update the estimate and return the seconds left; None if unknown, or if the estimate has passed."""
        numbers = (progress.done, progress.total, progress.part, progress.share, progress.message)
        if numbers != self._numbers:
            self._numbers = numbers
            self._ends = None if progress.seconds_left is None else time.monotonic() + progress.seconds_left
        return self.seconds_left

    @property
    def seconds_left(self) -> float | None:
        """Seconds left now; None if unknown, or if the estimate has passed."""
        left = None if self._ends is None else self._ends - time.monotonic()
        return left if left is not None and 0 < left < math.inf else None


# An item for each running step of this context's job that may take minutes without progress, but ends on its own
SLOW_STEPS: ContextVar[list[None] | None] = ContextVar("slow_steps", default=None)


@contextmanager
def mark_slow_step() -> Generator[None]:
    """Mark a step that may run for minutes without progress, so that its job does not count as stalled.

    Use it only for steps that end on their own, not for waiting for another worker or a lock.
    """
    steps = SLOW_STEPS.get()
    if steps is None:
        yield
        return
    steps.append(None)
    try:
        yield
    finally:
        steps.pop()


OnProgress = Callable[[Progress], None]
ShouldStop = Callable[[], bool]


# --- Results of a search and of a comparison ---

# Document names in a question


@dataclass(frozen=True, slots=True)
class DocumentName(Value):
    """A name in a question that identifies documents; they are preferred."""

    text: str
    kind: str  # "title", "name" (part of a title or file name with a period), "year" or "quarter"
    documents: int = 1  # that have the name


def preference_text(names: Iterable[DocumentName]) -> str:
    """Return a sentence on the preferred documents, such as "Preferring: 3M · 2018."; "" without names."""
    texts = " · ".join(name.text for name in names)
    return f"Preferring: {texts}." if texts else ""


@dataclass(frozen=True, slots=True)
class Leg(Value):
    """The score that one way of matching assigns to a passage."""

    score: float  # in the leg's own unit (cosine, BM25, MaxSim)
    rank: int | None = None  # from 1; None if the leg did not retrieve the passage itself
    contribution: float = 0.0  # to the final score


@dataclass(frozen=True, slots=True)
class Copy(Value):
    """A passage with nearly the same text as a better one, under which it is folded."""

    passage_id: str
    document_id: str
    document_title: str
    source_id: str
    path: str | None
    url: str | None
    start: int
    end: int


MAX_COPIES_NAMED = 3  # documents named with the number of copies


def copies_json(copies: Sequence[Copy]) -> JsonObject:
    """Return the number of copies folded under a result and the ids of their first documents; {} without copies."""
    documents = list(dict.fromkeys(copy.document_id for copy in copies))
    return {"copies": len(copies), "copies_in": documents[:MAX_COPIES_NAMED]} if copies else {}


@dataclass(frozen=True, slots=True)
class Passage(Value):
    """A passage that was found, with its attribution: ``sum(leg.contribution) == score`` for fused strategies."""

    rank: int
    score: float
    passage_id: str
    document_id: str
    document_title: str
    source_id: str
    path: str | None
    url: str | None
    text: str
    start: int
    end: int
    match_type: str
    attribution: Mapping[str, Leg]
    metadata: Mapping[str, JsonValue] = field(default_factory=dict)
    copies: tuple[Copy, ...] = ()  # passages with nearly the same text, which are not among the results
    # Renders a page of the document; None for a hit that was copied to another process.
    draw_page: Callable[[Passage], Image] | None = field(default=None, compare=False, repr=False)

    def __reduce__(self) -> tuple[type[Passage], tuple[object, ...]]:
        return Passage, tuple(getattr(self, item.name) for item in fields(self) if item.repr)

    def page_image(self) -> Image:
        """Return the image of the page on which the passage starts, with its lines marked; notebooks display it.

        Raises:
            NotFound: The document has no page images.
            UnreadableDocument: Rendering the page failed.
            InvalidInput: The hit was created without a workbench.
        """
        if self.draw_page is None:
            raise InvalidInput("This hit is not connected to a workbench; call wb.pages.of_passage(hit) for its page.")
        return self.draw_page(self)

    def describe_copies(self, titles: int = 5) -> str:
        """Return a line on the folded copies, such as "2 copies: A · B"; "" without copies.

        Args:
            titles: Number of different document titles to name; the others are counted. 0 to name none.
        """
        if not self.copies:
            return ""
        count = "1 copy" if len(self.copies) == 1 else f"{len(self.copies):,} copies"
        names = list(dict.fromkeys(copy.document_title for copy in self.copies))
        more = [f"{len(names) - titles:,} more"] if len(names) > titles else []
        return f"{count}: {' · '.join([*names[:titles], *more])}" if titles else count

    @property
    def headings(self) -> tuple[str, ...]:
        """The heading path, the document's own heading first; empty if there is none."""
        return tuple(str(heading) for heading in as_items(self.metadata.get("heading_path")))

    @property
    def page(self) -> str:
        """The page on which it starts, counted from 1, with the printed page number if that differs: "12 (xii)"."""
        page, label = self.metadata.get("page"), self.metadata.get("page_label")
        return f"{page} ({label})" if page and label else str(page or "")

    @property
    def similarity(self) -> float:
        """Cosine between query and passage, 0..1, whichever strategy found it."""
        leg = self.attribution.get(VECTOR)
        return leg.score if leg else 0.0


@dataclass(frozen=True, slots=True)
class Interleaving(Value):
    """The two strategies whose results are mixed in one list, to see whose documents agents open."""

    promotion: str  # scope and version of the promotion that asks for it
    strategies: tuple[str, str]  # the promoted one and its rival
    teams: Mapping[str, str] = field(default_factory=dict)  # the strategy that contributed a document, by id


@dataclass(frozen=True, slots=True)
class Evidence(Value):
    """Evidence that a search found something close to the question."""

    close: bool = True
    reason: str = ""  # sentence on why nothing is close


CLOSE_EVIDENCE = Evidence()
EVERYWHERE_KEY = "everywhere"  # of a promotion without a scope
FAULT_END = ", so nothing is shown"  # ends the note about a retriever that failed
MAX_RANKED_PASSAGES = 200  # passages per question
_T = TypeVar("_T")


class ResultSequence(Sequence[_T]):
    """A sequence of results for a question, best first; ``evidence`` is whether any of them is close to it."""

    __slots__ = ()
    results: tuple[_T, ...]
    evidence: Evidence

    def __len__(self) -> int:
        return len(self.results)

    @overload
    def __getitem__(self, item: int) -> _T: ...
    @overload
    def __getitem__(self, item: slice) -> tuple[_T, ...]: ...
    def __getitem__(self, item: int | slice) -> _T | tuple[_T, ...]:
        return self.results[item]

    def __iter__(self) -> Iterator[_T]:
        return iter(self.results)

    @property
    def nothing_close(self) -> str:
        return weak_match_text(self.results, self.evidence)


@dataclass(frozen=True, slots=True)
class Results(ResultSequence[_T], Value):
    """Results of one kind for a question, as a sequence."""

    results: tuple[_T, ...] = ()
    evidence: Evidence = CLOSE_EVIDENCE
    degraded: tuple[str, ...] = ()  # sentences on what could not be searched


STILL_READING = "Documents are still being read; search again when that has finished."


def weak_match_text(results: Sequence[object], evidence: Evidence) -> str:
    """Return the sentence on why no result is close to the question; "" if one is, or if there are none."""
    return "" if evidence.close or not results else evidence.reason


@dataclass(frozen=True, slots=True)
class SearchResult(ResultSequence["Passage"], Value):
    """The passages that one strategy found for one query, best first; behaves as a sequence of them."""

    query: str
    strategy: str
    scope: ResolvedScope
    under_filled: bool  # whether there are fewer passages than requested
    degraded: tuple[str, ...]  # sentences on parts that failed
    timings_ms: Mapping[str, float]  # by ``TimedStep`` and ``TOTAL``
    results: tuple[Passage, ...]
    index: str = ""  # pyright: ignore[reportIncompatibleMethodOverride] - the index searched, not Sequence.index
    corrections: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # unknown word -> words tried instead
    evidence: Evidence = CLOSE_EVIDENCE
    preferring: tuple[DocumentName, ...] = ()  # names in the query whose documents were preferred
    rewritten: str = ""  # the question that was searched for, if earlier turns of a conversation changed it
    interleaving: Interleaving | None = None  # None if all results are from one strategy

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences on preferred documents, weak matches, the scope, and parts that failed."""
        return (*_preferred(self.preferring), *self.remarks)

    @property
    def is_early(self) -> bool:
        """Whether nothing was found and documents are still being read, which is the last of ``degraded``."""
        return not self.results and STILL_READING in self.degraded

    @property
    def remarks(self) -> tuple[str, ...]:
        """The notes, except those on preferred documents."""
        most = (
            f"A search ranks at most {MAX_RANKED_PASSAGES} passages; narrow the scope or ask a more specific question."
        )
        limit = most if len(self.results) >= MAX_RANKED_PASSAGES else ""
        return tuple(filter(None, (self.nothing_close, *self.scope.notes, *self.degraded, limit)))

    def to_pandas(self) -> pandas.DataFrame:
        """Return a DataFrame, one row per passage: rank, score, title, heading, text and the score of each leg."""
        from workbench.display import result_frame

        return result_frame(self)

    def _repr_html_(self) -> str:
        from workbench.display import result_html

        return result_html(self)

    def _repr_pretty_(self, printer: RepresentationPrinter, cycle: bool) -> None:
        from workbench.display import result_text

        printer.text(result_text(self))


@dataclass(frozen=True, slots=True)
class Comparison(Value):
    """Results of several strategies for one query."""

    query: str
    strategies: Mapping[str, SearchResult]
    agreement: Mapping[str, Mapping[str, float]]  # measure -> pair of strategies -> 0..1

    @property
    def preferring(self) -> tuple[DocumentName, ...]:
        return tuple(dict.fromkeys(name for result in self.strategies.values() for name in result.preferring))

    @property
    def notes(self) -> tuple[str, ...]:
        """The distinct notes of all results; a note about a single strategy is prefixed with its name."""
        notes = [(name, note) for name, result in self.strategies.items() for note in result.remarks]
        texts = [note for _, note in notes]
        return tuple(
            dict.fromkeys(
                (
                    *_preferred(self.preferring),
                    *(note if texts.count(note) == len(self.strategies) else f"{name}: {note}" for name, note in notes),
                )
            )
        )

    def to_pandas(self) -> pandas.DataFrame:
        """Return a DataFrame with one row per passage and one rank column per strategy."""
        from workbench.display import comparison_frame

        return comparison_frame(self)

    def plot(self) -> altair.LayerChart | altair.FacetChart:
        """Return an Altair bump chart that connects the ranks of each passage across the strategies."""
        from workbench.display import bump_chart

        return bump_chart(self)

    def _repr_html_(self) -> str:
        from workbench.display import comparison_html

        return comparison_html(self)

    def _repr_pretty_(self, printer: RepresentationPrinter, cycle: bool) -> None:
        from workbench.display import comparison_text

        printer.text(comparison_text(self))


def _preferred(names: Iterable[DocumentName]) -> tuple[str, ...]:
    sentence = preference_text(names)
    return (sentence,) if sentence else ()


# Words that OCR read on a page


@dataclass(frozen=True, slots=True)
class WordPlace:
    """A word in a text and on the page's image.

    A word that is hyphenated at the end of a line has one place per line.
    """

    start: int  # characters of the text
    end: int
    left: float  # box in shares (0..1) of the page, from its top left
    top: float
    right: float
    bottom: float
    confidence: float  # of the OCR engine, 0..1

    def shift(self, by: int) -> WordPlace:
        return replace(self, start=self.start + by, end=self.end + by)


@dataclass(frozen=True, slots=True)
class ScannedPage:
    """A page that OCR read; if the page has embedded text, only the words in its images."""

    number: int  # from 1
    confidence: float  # mean of the words, 0..1
    words: tuple[WordPlace, ...]

    def shift(self, by: int) -> ScannedPage:
        return replace(self, words=tuple(word.shift(by) for word in self.words))


# Spans in characters; the end is exclusive

Span: TypeAlias = tuple[int, int]  # start, end
PageSpan: TypeAlias = tuple[int, int, int]  # page from 1, start, end
DocumentSpan: TypeAlias = tuple[str, int, int]  # document, start, end


# Timed steps of a search, in their order

TOTAL = "total"  # key of the whole search in ``timings_ms``; the steps need not add up to it


class TimedStep(StrEnum):
    """A timed step; its value is its key in ``timings_ms``."""

    LLM = "llm"
    EMBED = "embed"
    VECTOR = "vector"
    SPELLING = "spelling"
    KEYWORD = "keyword"
    FRAMEWORK = "framework"
    FUSE = "fuse"
    WIDEN = "widen"
    RERANK = "rerank"
    CLUSTER = "cluster"
    LEARNED = "learned"
    CROSS_ENCODER = "cross-encoder"
    MMR = "mmr"
    FETCH = "fetch"
    EVIDENCE = "evidence"
    EXTRACT = "extract"
