"""The table of an index's names: values that identify documents in a question. It is rebuilt when documents change."""

from __future__ import annotations

import math
import re
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise

from workbench.retrieval.bm25 import idf
from workbench.storage.database import Connection
from workbench.storage.documents import DocumentNames, fetch_document_names, list_document_ids
from workbench.storage.passages import ScopeTotals
from workbench.types import DocumentName, JsonValue, ResolvedScope

# Years and quarters in texts

_SIGN_OF_ONE = re.compile(r"\d|quart", re.IGNORECASE)  # quick check before the patterns below
_ORDINALS = ("first|1st|erste[ns]?", "second|2nd|zweite[ns]?", "third|3rd|dritte[ns]?", "fourth|4th|vierte[ns]?")
_YEAR = re.compile(r"(?:(?<![^\W_])FY ?['’]?(\d{4}|\d{2})|(?<![^\W_])(?<!\d[.,])((?:19|20)\d\d))(?!\d)(?![.,]\d)", re.I)
_QUARTER = re.compile(
    r"(?:(?<![^\W\d_])Q([1-4])(?:['’](\d\d))?|(?<![^\W_])([1-4])Q(\d\d)?)(?!\d)(?![^\W\d_])", re.IGNORECASE
)
_SPELT_OUT = tuple(re.compile(rf"\b(?:{ordinal})\s+(?:quarter|quartals?)\b", re.IGNORECASE) for ordinal in _ORDINALS)


@dataclass(frozen=True, slots=True)
class Period:
    """A year ("2018") or a quarter ("Q2") and its span in the text."""

    kind: str
    text: str
    start: int
    end: int


def find_periods(text: str) -> list[Period]:
    """Return the years and quarters in a text, in order."""
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
    """Return the text with each period replaced by a line break, so that separate words do not become neighbours."""
    for period in sorted(periods, key=lambda period: -period.start):
        text = f"{text[: period.start]}\n{text[period.end :]}"
    return text


def _complete_year(year: str) -> str:
    return year if len(year) == 4 else f"20{year}"


# Values that identify documents

MAX_NAME_WORDS = 8  # longer values are texts
PERIOD_KEYS = re.compile(r"year|quarter|period", re.IGNORECASE)
DATE_KEYS = ("date", "published", "datePublished", "publishDate")
_WORD = re.compile(r"[^\W_]+")


def find_words(text: str) -> list[re.Match[str]]:
    """Return the words of a text, joined by underscores."""
    return list(_WORD.finditer(text))


def squeeze(text: str) -> str:
    """Return only the letters and digits of a text, folded: "10-K" and "10 k" become "10k"."""
    return "".join(match[0] for match in find_words(text)).casefold()


@dataclass(frozen=True, slots=True)
class DocumentValues:
    """(kind, text) of every value that can identify a document, and the years and quarters in its labels.

    A date gives only a year, not a quarter.
    """

    values: list[tuple[str, str]]
    label_periods: frozenset[str]


def collect_values(document: DocumentNames) -> DocumentValues:
    """Return the values that can identify a document: title and file name, their periods, and the remaining parts."""
    labels = {text: find_periods(text) for text in (document.title, document.file) if _is_short(text)}
    periods = [period for periods in labels.values() for period in periods]
    values = [part for text, periods in labels.items() if periods for part in _iter_label_parts(text, periods)]
    values += [("title", text) for text in labels]
    values += [(period.kind, period.text) for period in periods or _metadata_periods(document.metadata)]
    return DocumentValues(values, frozenset(period.text for period in periods))


def _is_short(text: str) -> bool:
    return 1 <= len(_WORD.findall(text)) <= MAX_NAME_WORDS


def _iter_label_parts(label: str, periods: Sequence[Period]) -> Iterator[tuple[str, str]]:
    """Yield the parts of a title or file name between its periods, and each word of them."""
    for part in remove_periods(label, periods).splitlines():
        words = [match[0] for match in find_words(part)]
        if len(words) > 1:
            yield "name", " ".join(words)
        yield from (("name", word) for word in words if len(word) > 1 and not (word.isdecimal() and len(word) < 3))


def _metadata_periods(metadata: Mapping[str, JsonValue]) -> list[Period]:
    """Return the periods in metadata, used if no label has any; else those of its date."""
    periods: list[Period] = []
    for key, value in metadata.items():
        if PERIOD_KEYS.search(key) and isinstance(value, str | int) and not isinstance(value, bool):
            is_number = "quarter" in key.casefold() and str(value) in ("1", "2", "3", "4")
            periods += find_periods(f"Q{value}" if is_number else str(value))
    for key in DATE_KEYS if not periods else ():
        if key in metadata:
            periods += _date_periods(metadata[key])
    return periods


def _date_periods(value: JsonValue) -> list[Period]:
    match = re.match(r"(\d{4})-(\d\d)\b", value) if isinstance(value, str) else None
    if match is None or not 1 <= int(match[2]) <= 12:
        return []
    return [Period("year", match[1], 0, 4), Period("quarter", f"Q{(int(match[2]) + 2) // 3}", 5, 7)]


QUICK_BUILD_S = 0.05  # a table built within this time is rebuilt on every change
MIN_CAPITAL_LETTERS = 4  # 'of' and 'the' are lower-case in names too
MAX_CACHED_SCOPES = 32  # with cached documents
STALENESS_FACTOR = 20  # a slower table may be stale for this multiple of its build time


FULL_SCOPE = ResolvedScope()


@dataclass(slots=True)
class _Entry:
    """One value: its kind and text by document id, and whether it is a proper noun in all of them."""

    written: dict[str, tuple[str, str]] = field(default_factory=dict)
    proper: bool = True

    @property
    def kind(self) -> str:
        return next(iter(self.written.values()))[0]

    @property
    def text(self) -> str:
        return next(iter(self.written.values()))[1]

    def add(self, document: str, kind: str, text: str) -> None:
        self.written.setdefault(document, (kind, text))
        self.proper = self.proper and _is_proper(text)

    def within(self, documents: Collection[str]) -> _Entry | None:
        """Return the value restricted to documents; None if none of them has it."""
        written = {document: value for document, value in self.written.items() if document in documents}
        return _Entry(written, all(_is_proper(text) for _, text in set(written.values()))) if written else None


@dataclass(frozen=True, slots=True)
class Mention:
    """A name with its documents and its span in the question."""

    name: DocumentName
    documents: frozenset[str]
    start: int
    end: int


class NamesTable:
    """The values of an index's documents, keyed by their letters and digits."""

    def __init__(self, documents: Iterable[DocumentNames]) -> None:
        self._entries: dict[str, _Entry] = {}
        self._label_periods: dict[str, frozenset[str]] = {}
        self._within: frozenset[str] | None = None
        self.documents = 0
        for document in documents:
            self.documents += 1
            found = collect_values(document)
            if found.label_periods:
                self._label_periods[document.id] = found.label_periods
            for kind, text in found.values:
                self._add(kind, text, document.id)

    def within(self, documents: frozenset[str]) -> NamesTable:
        """Return the table for a subset of its documents, without any name, text or count from others."""
        table = NamesTable(())
        table._entries, table._label_periods, table._within = self._entries, self._label_periods, documents
        table.documents = len(documents)
        return table

    def weight(self, name: DocumentName) -> float:
        """Return how well a name identifies a single document, 0..1: its idf relative to the idf of a unique name."""
        if self.documents < 2:
            return 0.0
        return min(1.0, math.log(self.documents / name.documents) / math.log(self.documents))

    def mentions(self, question: str, significant_words: Collection[str]) -> list[Mention]:
        """Return the names in a question, in order; a longer name replaces those within it.

        ``significant_words`` are the folded words of the question that are not stop words: a one-word name must be one
        of them. A proper noun only matches capitalised words, unless the question has none. A name shared by more than
        half of the documents is omitted.
        """
        lower = question == question.lower()
        found = [
            mention
            for mention in (*self._periods(question), *self._phrases(question, significant_words, lower))
            if mention.name.documents * 2 <= self.documents
        ]
        apart: list[Mention] = []
        for mention in sorted(found, key=lambda mention: (mention.start - mention.end, mention.start)):
            if all(mention.end <= other.start or other.end <= mention.start for other in apart) or any(
                (mention.start, mention.end) == (other.start, other.end) and mention.name.kind != other.name.kind
                for other in apart
            ):
                apart.append(mention)
        return sorted(apart, key=lambda mention: (mention.start, mention.name.kind))

    def of_other_periods(self, question: str) -> frozenset[str]:
        """Return the documents whose labels have different periods from the question.

        These are labels with a quarter if the question has only a year, and labels without its quarters or years.
        """
        asked = find_periods(question)
        if not asked or not self._label_periods:
            return frozenset()
        quarters = {period.text for period in asked if period.kind == "quarter"}
        years = {period.text for period in asked if period.kind == "year"}

        def is_other(periods: frozenset[str]) -> bool:
            own = {text for text in periods if text.startswith("Q")}
            return (not quarters & own if quarters else bool(own)) or bool(
                years and periods - own and not years & periods
            )

        within = self._within
        return frozenset(
            document
            for document, periods in self._label_periods.items()
            if (within is None or document in within) and is_other(periods)
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

    def _phrases(self, question: str, significant_words: Collection[str], lower: bool) -> Iterable[Mention]:
        words = find_words(question)
        for first in range(len(words)):
            key = ""
            for last in range(first, min(len(words), first + MAX_NAME_WORDS)):
                key += words[last][0].casefold()
                entry = self._entry(key)
                phrase = [word[0] for word in words[first : last + 1]]
                if entry is None or not _can_name(phrase, entry, significant_words, lower):
                    continue
                start, end = words[first].start(), words[last].end()
                written = " ".join(question[start:end].split())  # as in the question, if the document joins its words
                shown = written if entry.kind == "name" else entry.text
                name = DocumentName(shown, entry.kind, len(entry.written))
                yield Mention(name, frozenset(entry.written), start, end)


@dataclass(frozen=True, slots=True)
class _ScopeNames:
    """What is cached for one scope of an index."""

    version: object  # of the index's documents
    documents: frozenset[str] | None  # ids of the documents in the scope; None for everything
    weights: dict[str, float] = field(default_factory=dict)  # idf of terms of names in the scope
    names: dict[str, tuple[tuple[str, tuple[str, ...]], ...]] = field(default_factory=dict)  # with terms, by document


@dataclass(slots=True)
class NamesCache:
    """Thread-safe cache of an index's table, and of the documents and term weights of its last scopes."""

    _table: NamesTable | None = None
    _version: object = None
    _made_at: float = 0.0
    _seconds: float = 0.0
    _scopes: dict[ResolvedScope, _ScopeNames] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def table_in_scope(
        self, connection: Connection, index: str, totals: ScopeTotals, scope: ResolvedScope = FULL_SCOPE
    ) -> NamesTable:
        """Return the current table of the documents of an index in a scope, versioned by the index's totals."""
        version = totals.version
        table = self.table(version, partial(fetch_document_names, connection, index))
        place = scope.place
        known = self._scopes.get(place)
        if known is None or known.version != version:
            documents = None if place.is_everything else list_document_ids(connection, index, place)
            known = _ScopeNames(version, documents)
            with self._lock:
                self._scopes.pop(place, None)
                self._scopes[place] = known
                while len(self._scopes) > MAX_CACHED_SCOPES:
                    self._scopes.pop(next(iter(self._scopes)))
        return table if known.documents is None else table.within(known.documents)

    def match_names(
        self,
        totals: ScopeTotals,
        scope: ResolvedScope,
        documents: Collection[str],
        asked: frozenset[str],
        load: Callable[[Sequence[str]], Mapping[str, Sequence[tuple[str, Sequence[str]]]]],
        count: Callable[[Collection[str]], Mapping[str, int]],
    ) -> dict[str, MatchedName]:
        """Return the name of each document of which a question has the largest share by idf; the title wins ties.

        Documents without any of the terms in their names are omitted. The names of earlier questions' documents and
        the weights of their terms are kept.

        Args:
            asked: The question's terms.
            load: Returns the names of documents, each with its terms.
            count: Returns the document frequencies of terms in the scope.
        """
        kept = self._scopes.get(scope.place)
        if kept is None or kept.version != totals.version:
            kept = _ScopeNames(totals.version, None)
        missing = [document for document in documents if document not in kept.names]
        loaded = load(missing) if missing else {}
        for document in missing:
            kept.names[document] = tuple((text, tuple(own)) for text, own in loaded.get(document, ()))
        touched = [
            (document, text, own)
            for document in documents
            for text, own in kept.names[document]
            if not asked.isdisjoint(own)
        ]
        unknown = list(dict.fromkeys(term for _, _, own in touched for term in own if term not in kept.weights))
        counted = count(unknown) if unknown else {}
        kept.weights.update((term, idf(counted.get(term, 0), totals.passages)) for term in unknown)
        best: dict[str, MatchedName] = {}
        for document, text, own in touched:
            total = sum([kept.weights[term] for term in own])
            share = sum([kept.weights[term] for term in own if term in asked]) / total if total else 0.0
            if share > (best[document].share if document in best else 0.0):
                best[document] = MatchedName(document, text, share)
        return best

    def table(self, version: object, load: Callable[[], Iterable[DocumentNames]]) -> NamesTable:
        """Return the table of a version of the documents.

        The table may be stale for up to twenty times as long as it takes to build, so that a growing corpus is not read
        for every question.
        """
        with self._lock:
            now = time.monotonic()
            patient = self._seconds > QUICK_BUILD_S and now - self._made_at < STALENESS_FACTOR * self._seconds
            if self._table is None or (version != self._version and not patient):
                is_first = self._table is None
                self._table = NamesTable(load())
                self._version, self._made_at = version, time.monotonic()
                self._seconds = 0.0 if is_first else self._made_at - now  # the first is built during imports
            return self._table


def _can_name(phrase: Sequence[str], entry: _Entry, significant_words: Collection[str], lower: bool) -> bool:
    """Return whether words of a question are a name, rather than ordinary words.

    A one-word title is often the subject of many documents; matched shares of titles are computed separately.
    """
    significant = sum(word.casefold() in significant_words for word in phrase)
    if significant < (2 if entry.kind == "title" else 1) or len("".join(phrase)) < 2:
        return False
    return lower or not entry.proper or _is_proper(" ".join(phrase))


def _is_proper(text: str) -> bool:
    """Return whether a text is a proper noun: all words are capitalised except short ones."""
    words = [word[0] for word in find_words(text)]
    return all(word[:1].isupper() for word in words if len(word) >= MIN_CAPITAL_LETTERS or len(words) == 1)


# Names in a question

MAX_JOINED_WORDS = 60  # neighbouring words are joined in questions up to this length; longer ones are texts
_POSSESSIVE = re.compile(r"['’]s\b", re.IGNORECASE)
_FISCAL = re.compile(r"fy(\d{2}|\d{4})", re.IGNORECASE)


def normalize_for_names(query: str) -> str:
    """Return a question's words, with fiscal years as years, plus each pair of adjacent words joined."""
    words = [_expand_fiscal_year(word) for word in _WORD.findall(_POSSESSIVE.sub("", query))]
    joined = [first + second for first, second in pairwise(words)] if len(words) <= MAX_JOINED_WORDS else []
    return " ".join([*words, *joined])


def _expand_fiscal_year(word: str) -> str:
    fiscal = _FISCAL.fullmatch(word)
    return word if fiscal is None else fiscal[1].rjust(4, "_").replace("__", "20")


@dataclass(frozen=True, slots=True)
class MatchedName:
    """The title or file name of a document with the largest matched ``share`` (0..1, by idf)."""

    document_id: str
    name: str = ""
    share: float = 0.0


@dataclass(frozen=True, slots=True)
class QuestionNames:
    """The names in a question that are not ignored; ``asked`` is the question without the ignored ones.

    ``strengths`` are the confidences (0..1) that a document is meant, by document id; ``others`` are documents whose
    labels have different periods from the question.
    """

    asked: str
    mentions: tuple[Mention, ...] = ()
    strengths: Mapping[str, float] | None = None
    others: frozenset[str] = frozenset()

    def documents_of_all(self) -> frozenset[str] | None:
        """Return the documents that have a name of each kind in the question; None without names."""
        kinds: dict[str, frozenset[str]] = {}
        for mention in self.mentions:
            kinds[mention.name.kind] = kinds.get(mention.name.kind, frozenset()) | mention.documents
        return frozenset.intersection(*kinds.values()) if kinds else None
