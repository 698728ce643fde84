"""The table of names of an index: which value of which documents a question can say, made anew when they change."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial

from workbench.retrieval.names.document_values import MOST_WORDS, squeezed, values_of, words_in
from workbench.retrieval.names.periods import periods_in
from workbench.storage.database import Connection
from workbench.storage.documents import DocumentNames, documents_listed, names_of_documents
from workbench.storage.passages import IndexTotals
from workbench.types import Name, ResolvedScope

QUICK = 0.05  # seconds; a table that is made within this time is made anew at each change
LONG = 4  # letters; 'of' and 'the' are written small in names, too
KEPT_SCOPES = 32  # whose documents are kept
PATIENCE = 20  # times as long as it took to make it a slower table serves although documents have changed


EVERYTHING = ResolvedScope()


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

    name: Name
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
            said = values_of(document)
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

    def weight(self, name: Name) -> float:
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
        said = periods_in(question)
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
        key = f"={text}" if kind in ("year", "quarter") else squeezed(text)
        self._entries.setdefault(key, _Entry()).add(document, kind, text)

    def _entry(self, key: str) -> _Entry | None:
        entry = self._entries.get(key)
        return entry if entry is None or self._within is None else entry.within(self._within)

    def _periods(self, question: str) -> Iterable[Mention]:
        for period in periods_in(question):
            entry = self._entry(f"={period.text}")
            if entry is not None:
                name = Name(period.text, period.kind, len(entry.written))
                yield Mention(name, frozenset(entry.written), period.start, period.end)

    def _phrases(self, question: str, telling: Collection[str], lower: bool) -> Iterable[Mention]:
        words = words_in(question)
        for first in range(len(words)):
            key = ""
            for last in range(first, min(len(words), first + MOST_WORDS)):
                key += words[last][0].casefold()
                entry = self._entry(key)
                said = [word[0] for word in words[first : last + 1]]
                if entry is None or not _may_name(said, entry, telling, lower):
                    continue
                start, end = words[first].start(), words[last].end()
                name = Name(_shown(entry, question[start:end]), entry.kind, len(entry.written))
                yield Mention(name, frozenset(entry.written), start, end)


@dataclass(slots=True)
class KeptNames:
    """The table of one index and the documents of its last scopes, until documents change; for several threads."""

    _table: NamesTable | None = None
    _version: object = None
    _made_at: float = 0.0
    _seconds: float = 0.0
    _scopes: dict[ResolvedScope, tuple[object, frozenset[str]]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def table_of(
        self, connection: Connection, index: str, totals: IndexTotals, scope: ResolvedScope = EVERYTHING
    ) -> NamesTable:
        """Return the table of the documents of an index that lie in a scope as it is now, by the index's totals."""
        version = (totals.passages, totals.average_length, totals.changed)
        table = self.table(version, partial(names_of_documents, connection, index))
        place = scope.place
        if place.is_everything:
            return table
        known = self._scopes.get(place)
        if known is None or known[0] != version:
            known = (version, documents_listed(connection, index, place))
            with self._lock:
                self._scopes.pop(place, None)
                self._scopes[place] = known
                while len(self._scopes) > KEPT_SCOPES:
                    self._scopes.pop(next(iter(self._scopes)))
        return table.within(known[1])

    def table(self, version: object, load: Callable[[], Iterable[DocumentNames]]) -> NamesTable:
        """Return the table of a version of the documents.

        Where making it takes long, it may be as old as twenty times that, so that a growing corpus is not read
        for every question.
        """
        with self._lock:
            now = time.monotonic()
            patient = self._seconds > QUICK and now - self._made_at < PATIENCE * self._seconds
            if self._table is None or (version != self._version and not patient):
                is_first = self._table is None
                self._table = NamesTable(load())
                self._version, self._made_at = version, time.monotonic()
                self._seconds = 0.0 if is_first else self._made_at - now  # the first is made beside a start's imports
            return self._table


def _may_name(said: Sequence[str], entry: _Entry, telling: Collection[str], lower: bool) -> bool:
    """Tell whether words of a question name something, and are not just those words.

    A title of one word is often the subject of many documents; how much of a title is said is judged apart.
    """
    told = sum(word.casefold() in telling for word in said)
    if told < (2 if entry.kind == "title" else 1) or len("".join(said)) < 2:
        return False
    return lower or not entry.proper or _is_proper(" ".join(said))


def _is_proper(text: str) -> bool:
    """Tell whether a text is written as a proper noun: each word of letters with a capital, but for short ones."""
    words = [word[0] for word in words_in(text)]
    return all(word[:1].isupper() for word in words if len(word) >= LONG or len(words) == 1)


def _shown(entry: _Entry, said: str) -> str:
    """Return a name as people write it: as the question does, where the document runs its words together."""
    return " ".join(said.split()) if entry.kind == "name" else entry.text
