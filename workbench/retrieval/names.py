"""The table of names of an index: which value of which documents a question can say, rebuilt when they change."""

from __future__ import annotations

import math
import re
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from workbench.storage.database import Connection
from workbench.storage.documents import DocumentNames, fetch_document_names, list_document_ids
from workbench.storage.passages import IndexTotals
from workbench.types import DocumentName, JsonValue, ResolvedScope

# Years and quarters in texts

_SIGN_OF_ONE = re.compile(r"\d|quart", re.IGNORECASE)  # no pattern below matches a text without it
_ORDINALS = ("first|1st|erste[ns]?", "second|2nd|zweite[ns]?", "third|3rd|dritte[ns]?", "fourth|4th|vierte[ns]?")
_YEAR = re.compile(r"(?:(?<![^\W_])FY ?['’]?(\d{4}|\d{2})|(?<![^\W_])(?<!\d[.,])((?:19|20)\d\d))(?!\d)(?![.,]\d)", re.I)
_QUARTER = re.compile(
    r"(?:(?<![^\W\d_])Q([1-4])(?:['’](\d\d))?|(?<![^\W_])([1-4])Q(\d\d)?)(?!\d)(?![^\W\d_])", re.IGNORECASE
)
_SPELT_OUT = tuple(re.compile(rf"\b(?:{ordinal})\s+(?:quarter|quartals?)\b", re.IGNORECASE) for ordinal in _ORDINALS)


@dataclass(frozen=True, slots=True)
class Period:
    """A year ("2018") or a quarter ("Q2") and the span of the text that says it."""

    kind: str
    text: str
    start: int
    end: int


def find_periods(text: str) -> list[Period]:
    """Return the years and quarters that a text says, in their order."""
    if not _SIGN_OF_ONE.search(text):
        return []
    periods = [Period("year", _complete_year(match[1] or match[2]), *match.span()) for match in _YEAR.finditer(text)]
    for match in _QUARTER.finditer(text):
        periods.append(Period("quarter", f"Q{match[1] or match[3]}", *match.span()))
        short = match[2] or match[4]
        if short:
            periods.append(Period("year", _complete_year(short), *match.span()))
    for number, pattern in enumerate(_SPELT_OUT, start=1):
        periods += [Period("quarter", f"Q{number}", *match.span()) for match in pattern.finditer(text)]
    return sorted(periods, key=lambda period: (period.start, period.kind))


def remove_periods(text: str, periods: Sequence[Period]) -> str:
    """Return the text with each period replaced by a line's end, so that no words meet that were apart."""
    for period in sorted(periods, key=lambda period: -period.start):
        text = f"{text[: period.start]}\n{text[period.end :]}"
    return text


def _complete_year(year: str) -> str:
    return year if len(year) == 4 else f"20{year}"


# Values that can name a document

MAX_NAME_WORDS = 8  # of a value; a longer one is a text
MAX_VALUE_CHARS = 60  # characters of a value of metadata
# Metadata that a reader or a crawler writes for its own use, that is text, or a subject; none names a document.
NAMELESS_METADATA = frozenset(
    """
    title own_title description summary subject keywords language language_name pages page columns rows records url
    canonical_url file_name content_hash ocr_confidence scanned_pages uncertain_pages unreadable_pages created modified
    turned_pages unread_pictures left_out hidden_parts encoding lastmod lastUpdated producer creator page_labels tag
    tags category categories label labels topic topics
    """.split()  # noqa: SIM905 - a table of words reads better than a list of quotes
)
PERIOD_KEYS = re.compile(r"year|quarter|period", re.IGNORECASE)
DATE_KEYS = ("date", "published", "datePublished", "publishDate")
TYPE_WORDS = {
    "pdf": ("PDF",),
    "docx": ("Word document",),
    "pptx": ("slides", "presentation", "PowerPoint"),
    "xlsx": ("spreadsheet", "Excel"),
    "notebook": ("notebook",),
    "epub": ("book",),
}
_WORD = re.compile(r"[^\W_]+")


def find_words(text: str) -> list[re.Match[str]]:
    """Return the words of a text, underscores between them, in their order."""
    return list(_WORD.finditer(text))


def squeeze(text: str) -> str:
    """Return the letters and figures of a text alone, folded: "10-K" and "10 k" are "10k"."""
    return "".join(match[0] for match in find_words(text)).casefold()


@dataclass(frozen=True, slots=True)
class Label:
    """A title or a file's name with the periods in it, at least one."""

    text: str
    periods: list[Period]


@dataclass(frozen=True, slots=True)
class DocumentValues:
    """(kind, text) of every value that can name a document, and the years and quarters that its labels tell.

    A date alone makes no report of a quarter, so it tells none.
    """

    values: list[tuple[str, str]]
    told: frozenset[str]


def collect_values(document: DocumentNames) -> DocumentValues:
    """Return what can name a document."""
    called = [text for text in (document.title, document.file) if _is_short(text)]
    labels = [Label(text, periods) for text in called if (periods := find_periods(text))]
    told = [period for label in labels for period in label.periods]
    return DocumentValues(list(_iter_values(document, called, labels, told)), frozenset(period.text for period in told))


def _iter_values(
    document: DocumentNames, called: Iterable[str], labels: Iterable[Label], told: Sequence[Period]
) -> Iterator[tuple[str, str]]:
    for label in labels:
        yield from _iter_label_parts(label)
    yield from (("title", text) for text in called)
    for period in told or _metadata_periods(document.metadata):
        yield period.kind, period.text
    if _is_short(document.source):
        yield "source", document.source
    for word in TYPE_WORDS.get(document.document_type, ()):
        yield "type", word
    for key, value in document.metadata.items():
        if key not in NAMELESS_METADATA and key not in DATE_KEYS and not PERIOD_KEYS.search(key):
            yield from ((key, text) for text in _iter_short_texts(value))


def _is_short(text: str) -> bool:
    return 1 <= len(_WORD.findall(text)) <= MAX_NAME_WORDS


def _iter_label_parts(label: Label) -> Iterator[tuple[str, str]]:
    """Yield what stands between a label's periods, and each of its words."""
    for part in remove_periods(label.text, label.periods).splitlines():
        words = [match[0] for match in find_words(part)]
        if len(words) > 1:
            yield "name", " ".join(words)
        yield from (("name", word) for word in words if len(word) > 1 and not (word.isdecimal() and len(word) < 3))


def _metadata_periods(metadata: Mapping[str, JsonValue]) -> list[Period]:
    """Return the periods that metadata tell, if no label does; else those of its date."""
    told: list[Period] = []
    for key, value in metadata.items():
        if PERIOD_KEYS.search(key) and isinstance(value, str | int) and not isinstance(value, bool):
            is_number = "quarter" in key.casefold() and str(value) in ("1", "2", "3", "4")
            told += find_periods(f"Q{value}" if is_number else str(value))
    for key in DATE_KEYS if not told else ():
        if key in metadata:
            told += _date_periods(metadata[key])
    return told


def _date_periods(value: JsonValue) -> list[Period]:
    match = re.match(r"(\d{4})-(\d\d)\b", value) if isinstance(value, str) else None
    if match is None or not 1 <= int(match[2]) <= 12:
        return []
    return [Period("year", match[1], 0, 4), Period("quarter", f"Q{(int(match[2]) + 2) // 3}", 5, 7)]


def _iter_short_texts(value: JsonValue) -> Iterator[str]:
    """Yield the texts of a value that are short enough to be said, of a list each."""
    texts = (item for item in (value if isinstance(value, list) else [value]) if isinstance(item, str))
    for text in texts:
        if (
            len(text) <= MAX_VALUE_CHARS
            and "://" not in text
            and _is_short(text)
            and not text.replace(".", "").isdecimal()
        ):
            yield text


QUICK_BUILD_S = 0.05  # seconds; a table that is made within this time is rebuilt at each change
MIN_CAPITAL_LETTERS = 4  # letters; 'of' and 'the' are written small in names, too
MAX_CACHED_SCOPES = 32  # whose documents are kept
STALENESS_FACTOR = 20  # times as long as it took to make it a slower table serves although documents have changed


FULL_SCOPE = ResolvedScope()


@dataclass(slots=True)
class _Entry:
    """One value: its kind and text as each document has it, by document id, and whether all write a proper noun."""

    written: dict[str, tuple[str, str]] = field(default_factory=dict)
    proper: bool = True

    @property
    def kind(self) -> str:
        """The kind that the first document gives it."""
        return next(iter(self.written.values()))[0]

    @property
    def text(self) -> str:
        """The text as the first document writes it."""
        return next(iter(self.written.values()))[1]

    def add(self, document: str, kind: str, text: str) -> None:
        """Add a document that has the value."""
        self.written.setdefault(document, (kind, text))
        self.proper = self.proper and _is_proper(text)

    def within(self, documents: Collection[str]) -> _Entry | None:
        """Return the value as given documents have it; None if none of them has it."""
        written = {document: value for document, value in self.written.items() if document in documents}
        return _Entry(written, all(_is_proper(text) for _, text in set(written.values()))) if written else None


@dataclass(frozen=True, slots=True)
class Mention:
    """A name with its documents and the span of the question that says it."""

    name: DocumentName
    documents: frozenset[str]
    start: int
    end: int


class NamesTable:
    """The values of an index's documents, by what is left of them when spaces and signs are taken out."""

    def __init__(self, documents: Iterable[DocumentNames]) -> None:
        """Read the documents' values."""
        self._entries: dict[str, _Entry] = {}
        self._periods_told: dict[str, frozenset[str]] = {}
        self._within: frozenset[str] | None = None
        self.documents = 0
        for document in documents:
            self.documents += 1
            said = collect_values(document)
            if said.told:
                self._periods_told[document.id] = said.told
            for kind, text in said.values:
                self._add(kind, text, document.id)

    def within(self, documents: frozenset[str]) -> NamesTable:
        """Return the table of some of its documents alone: no name, text or number of another one is in it."""
        table = NamesTable(())
        table._entries, table._periods_told, table._within = self._entries, self._periods_told, documents
        table.documents = len(documents)
        return table

    def weight(self, name: DocumentName) -> float:
        """Return how far a name alone picks one document out of all, 0..1: its idf by that of a single document."""
        if self.documents < 2:
            return 0.0
        return min(1.0, math.log(self.documents / name.documents) / math.log(self.documents))

    def mentions(self, question: str, telling: Collection[str]) -> list[Mention]:
        """Return the names that a question says, in its order, a longer one in place of those within it.

        ``telling`` are the folded words of the question that are no stop words: a name of one word is one of them. A
        proper noun is said by a word with a capital, unless the question has none. A name that more than half of the
        documents have tells nothing and is left out.
        """
        lower = question == question.lower()
        said = [
            mention
            for mention in (*self._periods(question), *self._phrases(question, telling, lower))
            if mention.name.documents * 2 <= self.documents
        ]
        apart: list[Mention] = []
        for mention in sorted(said, key=lambda mention: (mention.start - mention.end, mention.start)):
            if all(mention.end <= other.start or other.end <= mention.start for other in apart) or any(
                (mention.start, mention.end) == (other.start, other.end) and mention.name.kind != other.name.kind
                for other in apart
            ):
                apart.append(mention)
        return sorted(apart, key=lambda mention: (mention.start, mention.name.kind))

    def of_other_periods(self, question: str) -> frozenset[str]:
        """Return the documents whose labels tell another period than the question does.

        That is a quarter where it says a year alone, none of the quarters that it says, or none of its years.
        """
        said = find_periods(question)
        if not said or not self._periods_told:
            return frozenset()
        quarters = {period.text for period in said if period.kind == "quarter"}
        years = {period.text for period in said if period.kind == "year"}

        def is_other(told: frozenset[str]) -> bool:
            own = {text for text in told if text.startswith("Q")}
            return (not quarters & own if quarters else bool(own)) or bool(years and told - own and not years & told)

        within = self._within
        return frozenset(
            document
            for document, told in self._periods_told.items()
            if (within is None or document in within) and is_other(told)
        )

    def _add(self, kind: str, text: str, document: str) -> None:
        key = f"={text}" if kind in ("year", "quarter") else squeeze(text)
        self._entries.setdefault(key, _Entry()).add(document, kind, text)

    def _entry(self, key: str) -> _Entry | None:
        entry = self._entries.get(key)
        return entry if entry is None or self._within is None else entry.within(self._within)

    def _periods(self, question: str) -> Iterable[Mention]:
        for period in find_periods(question):
            entry = self._entry(f"={period.text}")
            if entry is not None:
                name = DocumentName(period.text, period.kind, len(entry.written))
                yield Mention(name, frozenset(entry.written), period.start, period.end)

    def _phrases(self, question: str, telling: Collection[str], lower: bool) -> Iterable[Mention]:
        words = find_words(question)
        for first in range(len(words)):
            key = ""
            for last in range(first, min(len(words), first + MAX_NAME_WORDS)):
                key += words[last][0].casefold()
                entry = self._entry(key)
                said = [word[0] for word in words[first : last + 1]]
                if entry is None or not _can_name(said, entry, telling, lower):
                    continue
                start, end = words[first].start(), words[last].end()
                name = DocumentName(_display_name(entry, question[start:end]), entry.kind, len(entry.written))
                yield Mention(name, frozenset(entry.written), start, end)


@dataclass(slots=True)
class NamesCache:
    """The table of one index and the documents of its last scopes, until documents change; for several threads."""

    _table: NamesTable | None = None
    _version: object = None
    _made_at: float = 0.0
    _seconds: float = 0.0
    _scopes: dict[ResolvedScope, tuple[object, frozenset[str]]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def table_of(
        self, connection: Connection, index: str, totals: IndexTotals, scope: ResolvedScope = FULL_SCOPE
    ) -> NamesTable:
        """Return the table of the documents of an index that lie in a scope as it is now, by the index's totals."""
        version = (totals.passages, totals.average_length, totals.changed)
        table = self.table(version, partial(fetch_document_names, connection, index))
        place = scope.place
        if place.is_everything:
            return table
        known = self._scopes.get(place)
        if known is None or known[0] != version:
            known = (version, list_document_ids(connection, index, place))
            with self._lock:
                self._scopes.pop(place, None)
                self._scopes[place] = known
                while len(self._scopes) > MAX_CACHED_SCOPES:
                    self._scopes.pop(next(iter(self._scopes)))
        return table.within(known[1])

    def table(self, version: object, load: Callable[[], Iterable[DocumentNames]]) -> NamesTable:
        """Return the table of a version of the documents.

        If making it takes long, it may be as old as twenty times that, so that a growing corpus is not read
        for every question.
        """
        with self._lock:
            now = time.monotonic()
            patient = self._seconds > QUICK_BUILD_S and now - self._made_at < STALENESS_FACTOR * self._seconds
            if self._table is None or (version != self._version and not patient):
                is_first = self._table is None
                self._table = NamesTable(load())
                self._version, self._made_at = version, time.monotonic()
                self._seconds = 0.0 if is_first else self._made_at - now  # the first is made beside a start's imports
            return self._table


def _can_name(said: Sequence[str], entry: _Entry, telling: Collection[str], lower: bool) -> bool:
    """Return whether words of a question name something, and are not just those words.

    A title of one word is often the subject of many documents; how much of a title is said is judged apart.
    """
    told = sum(word.casefold() in telling for word in said)
    if told < (2 if entry.kind == "title" else 1) or len("".join(said)) < 2:
        return False
    return lower or not entry.proper or _is_proper(" ".join(said))


def _is_proper(text: str) -> bool:
    """Return whether a text is written as a proper noun: each word of letters with a capital, but for short ones."""
    words = [word[0] for word in find_words(text)]
    return all(word[:1].isupper() for word in words if len(word) >= MIN_CAPITAL_LETTERS or len(words) == 1)


def _display_name(entry: _Entry, said: str) -> str:
    """Return a name as people write it: as the question does, if the document runs its words together."""
    return " ".join(said.split()) if entry.kind == "name" else entry.text


# Names in a question


@dataclass(frozen=True, slots=True)
class MatchedName:
    """Of a document that name, its title or its file's, of which a question says most: the ``share`` 0..1, by idf."""

    document_id: str
    name: str = ""
    share: float = 0.0


@dataclass(frozen=True, slots=True)
class QuestionNames:
    """The names that a question says and that are not ignored; ``asked`` is the question without the ignored ones.

    ``strengths`` say how far the names together pick each document out of all, 0..1, by document id; ``others`` are
    documents whose labels tell another period than the question.
    """

    asked: str
    mentions: tuple[Mention, ...] = ()
    strengths: Mapping[str, float] | None = None
    others: frozenset[str] = frozenset()

    def documents_of_all(self) -> frozenset[str] | None:
        """Return the documents that have a name of each kind that the question says; None if it says none."""
        kinds: dict[str, frozenset[str]] = {}
        for mention in self.mentions:
            kinds[mention.name.kind] = kinds.get(mention.name.kind, frozenset()) | mention.documents
        return frozenset.intersection(*kinds.values()) if kinds else None
