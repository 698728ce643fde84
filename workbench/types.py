"""Frozen values that travel between the layers: no I/O, no framework, plain Python types."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from datetime import date, datetime
from typing import Any, Literal

from workbench.errors import InvalidInput, choices

SOURCE_TYPES = ("upload", "crawl", "api", "workspace", "articles", "archive", "dataset")
DATASET = "dataset"  # sources of this type hold evaluation corpora and are never part of a person's scope
ARTICLE_CATEGORIES = ("concepts", "patterns", "practices")  # the folders that articles lie in

ScopeKind = Literal["all", "global", "project"]


def plain(value: Any) -> Any:
    """Turn a value into what JSON can hold: dataclasses to dicts, dates to ISO strings, tuples to lists."""
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    return value


class Value:
    """Mixin of the frozen values: ``to_dict`` gives the JSON form that interfaces promise."""

    def to_dict(self) -> dict[str, Any]:
        """Return the value as plain JSON types, in field order."""
        return {item.name: plain(getattr(self, item.name)) for item in fields(self)}  # pyright: ignore[reportArgumentType]


@dataclass(frozen=True, slots=True)
class Parameter(Value):
    """One thing that can be set about a strategy or a chunker: drawn by the app, offered by the command line.

    ``kind`` is "float", "int", "bool" or "choice"; ``low`` and ``high`` bound numbers inclusively; ``why`` is one
    line on what it is good for.
    """

    name: str
    kind: Literal["float", "int", "bool", "choice"]
    default: Any
    why: str
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()

    def read(self, value: Any) -> Any:
        """Return the value in its type, also from text. Raises InvalidInput naming the valid values."""
        try:
            return self._read(value)
        except (ValueError, TypeError, KeyError, OverflowError):
            raise InvalidInput(f"{self.name} cannot be {value!r}; {self.valid()}.") from None

    def valid(self) -> str:
        """Say which values are valid."""
        if self.kind == "choice":
            return f"use one of {choices(self.choices, 20)}"
        if self.kind == "bool":
            return "use true or false"
        noun = "a whole number" if self.kind == "int" else "a number"
        return f"use {noun} from {self.low:g} to {self.high:g}"

    def _read(self, value: Any) -> Any:
        if self.kind == "choice":
            return {choice: choice for choice in self.choices}[str(value)]
        if self.kind == "bool":
            return value if isinstance(value, bool) else {"true": True, "false": False}[str(value).lower()]
        if isinstance(value, bool):
            raise ValueError(value)
        number = float(value)
        if self.kind == "int" and number != int(number):
            raise ValueError(value)
        if not (self.low is None or self.low <= number) or not (self.high is None or number <= self.high):
            raise ValueError(value)
        return int(number) if self.kind == "int" else number


def read_parameters(owner: str, declared: Sequence[Parameter], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return every declared parameter's value: the given one, checked, or the default.

    Raises:
        InvalidInput: a name ``owner`` does not have, or a value out of its range.
    """
    known = {parameter.name: parameter for parameter in declared}
    for name in given:
        if name not in known:
            raise InvalidInput(f"{owner} has no parameter {name!r}; its parameters are {choices(known)}.")
    return {name: known[name].read(given.get(name, known[name].default)) for name in known}


@dataclass(frozen=True, slots=True)
class Scope(Value):
    """What a search may see; fields narrow each other, an empty scope is everything a person has.

    ``sources`` are ids, titles or URLs; ``None`` means any, an empty tuple means none at all.
    ``tags`` match a source that has *any* of them. ``kind`` "project" needs ``project``; "all" with a
    ``project`` means that project and the global sources, never another project.
    """

    kind: ScopeKind = "all"
    project: str | None = None
    folder: str | None = None
    tags: tuple[str, ...] = ()
    sources: tuple[str, ...] | None = None
    document_types: tuple[str, ...] = ()
    documents: tuple[str, ...] | None = None
    since: date | None = None
    until: date | None = None


@dataclass(frozen=True, slots=True)
class ResolvedScope(Value):
    """A scope after names became ids; ``source_ids`` None means no restriction, an empty tuple nothing.

    ``preferred_source_ids`` win between passages that match equally well (a project's own sources);
    ``without_documents`` are left out (those already found, when more are looked for). ``project_id`` and
    ``folder_id`` are where all of its sources lie, if that is one place.
    """

    source_ids: tuple[str, ...] | None = None
    document_ids: tuple[str, ...] | None = None
    document_types: tuple[str, ...] = ()
    since: date | None = None
    until: date | None = None
    preferred_source_ids: tuple[str, ...] = ()
    without_documents: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    project_id: str | None = None
    folder_id: str | None = None

    @property
    def is_empty(self) -> bool:
        """True when nothing can match."""
        return self.source_ids == () or self.document_ids == ()

    @property
    def is_everything(self) -> bool:
        """True when nothing is filtered out."""
        return (
            self.source_ids is None and self.document_ids is None and not self.document_types
            and self.since is None and self.until is None and not self.without_documents
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Project(Value):
    """A named body of work; sources may belong to one."""

    id: str
    title: str
    description: str = ""
    source_count: int = 0
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
    source_count: int = 0


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
    language: str = "english"
    status: str = "active"
    documents_count: int = 0
    passages_count: int = 0
    created_at: datetime | None = None
    updated_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Document(Value):
    """One file, page or text, whole; ``text`` is None where only a listing was asked for."""

    id: str
    source_id: str
    title: str
    path: str | None = None
    url: str | None = None
    document_type: str = "text"
    content_hash: str = ""
    text: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    status: str = "completed"
    passages_count: int = 0
    created_at: datetime | None = None
    updated_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Index(Value):
    """One way of cutting and embedding all documents: a (chunker, embedding model) pair and its table."""

    name: str
    chunker: str
    chunker_options: Mapping[str, Any]
    embedding_model: str
    dimensions: int
    is_default: bool = False
    dataset: str | None = None
    status: str = "ready"
    documents_count: int = 0
    passages_count: int = 0
    created_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Promotion(Value):
    """A strategy that serves, or served, a scope when none is named.

    ``scope`` is "everywhere", "project:ID", "folder:ID" or "source:ID"; ``index`` None is the default index;
    ``version`` counts from 1 within the scope.
    """

    scope: str
    version: int
    strategy: str
    parameters: Mapping[str, Any]
    index: str | None = None
    note: str = ""
    serves: bool = True
    scope_title: str = ""
    promoted_at: datetime | None = None
    undone_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Leg(Value):
    """What one way of matching says about a passage.

    ``score`` is in the leg's own unit (cosine, BM25, MaxSim); ``contribution`` is what it adds to the final score;
    ``rank`` counts from 1 and is None where the leg did not find the passage by itself.
    """

    score: float
    rank: int | None = None
    contribution: float = 0.0


@dataclass(frozen=True, slots=True)
class Passage(Value):
    """A piece of a document that was found, with why: ``sum(leg.contribution) == score`` for fused strategies."""

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
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @property
    def similarity(self) -> float:
        """Cosine between query and passage, 0..1, whichever strategy found it."""
        leg = self.attribution.get("vector")
        return leg.score if leg else 0.0


@dataclass(frozen=True, slots=True)
class SearchResult(Value, Sequence["Passage"]):
    """The passages that one strategy found for one query, best first; behaves as a sequence of them.

    ``corrections`` are words of the query that the index does not know, with the known words tried for each.
    """

    query: str
    strategy: str
    scope: ResolvedScope
    under_filled: bool
    degraded: tuple[str, ...]
    timings_ms: Mapping[str, float]
    results: tuple[Passage, ...]
    index: str = ""
    corrections: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.results)

    def __getitem__(self, item: Any) -> Any:
        return self.results[item]

    def __iter__(self) -> Iterator[Passage]:
        return iter(self.results)

    def to_pandas(self) -> Any:
        """Return a DataFrame, one row a passage: rank, score, title, heading, text and each leg's score."""
        from workbench.display import result_frame

        return result_frame(self)

    def _repr_html_(self) -> str:
        from workbench.display import result_html

        return result_html(self)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        from workbench.display import result_text

        printer.text(result_text(self))


@dataclass(frozen=True, slots=True)
class Comparison(Value):
    """The same query answered by several strategies, and how far they agree (each pair: 0..1)."""

    query: str
    strategies: Mapping[str, SearchResult]
    agreement: Mapping[str, Mapping[str, float]]

    def to_pandas(self) -> Any:
        """Return a DataFrame, one row a passage, one rank column a strategy."""
        from workbench.display import comparison_frame

        return comparison_frame(self)

    def plot(self) -> Any:
        """Return an Altair bump chart that joins the same passage across the strategies."""
        from workbench.display import bump_chart

        return bump_chart(self)

    def _repr_html_(self) -> str:
        from workbench.display import comparison_html

        return comparison_html(self)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        from workbench.display import comparison_text

        printer.text(comparison_text(self))


@dataclass(frozen=True, slots=True)
class IngestFailure(Value):
    """A file that could not be read, and the reason in one sentence."""

    path: str
    error: str


@dataclass(frozen=True, slots=True)
class IngestReport(Value):
    """What an ingest changed."""

    source_id: str
    added: int = 0
    updated: int = 0
    unchanged: int = 0
    failures: tuple[IngestFailure, ...] = ()
    passages: int = 0
    embedded: int = 0
    seconds: float = 0.0
    document_ids: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form of ``workbench ingest --json``."""
        return {
            "source_id": self.source_id,
            "documents": {
                "added": self.added,
                "updated": self.updated,
                "unchanged": self.unchanged,
                "failed": len(self.failures),
            },
            "passages": self.passages,
            "embedded": self.embedded,
            "seconds": round(self.seconds, 3),
            "failures": [asdict(failure) for failure in self.failures],
        }

    def _repr_html_(self) -> str:
        from workbench.display import report_html

        return report_html(self)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        from workbench.display import report_text

        printer.text(report_text(self))


@dataclass(frozen=True, slots=True)
class Progress(Value):
    """One step of long work: ``done`` of ``total`` (0 = not known yet), and what is happening now.

    ``part`` is how far what is under way is, 0..1; it is not counted in ``done``.
    """

    done: int
    total: int
    message: str = ""
    part: float = 0.0
