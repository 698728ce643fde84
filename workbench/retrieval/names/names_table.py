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
from workbench.storage.rows import IndexTotals
from workbench.storage.said_names import DocumentNames, names_of_documents
from workbench.types import Name

QUICK = 0.05  # seconds; a table that is made within this time is made anew at each change
LONG = 4  # letters; 'of' and 'the' are written small in names, too
PATIENCE = 20  # times as long as it took to make it a slower table serves although documents have changed


@dataclass(slots=True)
class _Entry:
    """One value: as a document writes it, the documents that have it, and whether each writes it as a proper noun."""

    kind: str
    text: str
    documents: set[str] = field(default_factory=set)
    proper: bool = True


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
        self.documents = 0
        for document in documents:
            self.documents += 1
            said = values_of(document)
            if said.told:
                self._periods_told[document.id] = said.told
            for kind, text in said.values:
                self._add(kind, text, document.id)

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

        return frozenset(document for document, told in self._periods_told.items() if is_other(told))

    def _add(self, kind: str, text: str, document: str) -> None:
        key = f"={text}" if kind in ("year", "quarter") else squeezed(text)
        entry = self._entries.setdefault(key, _Entry(kind, text))
        entry.documents.add(document)
        entry.proper = entry.proper and _is_proper(text)

    def _periods(self, question: str) -> Iterable[Mention]:
        for period in periods_in(question):
            entry = self._entries.get(f"={period.text}")
            if entry is not None:
                name = Name(period.text, period.kind, len(entry.documents))
                yield Mention(name, frozenset(entry.documents), period.start, period.end)

    def _phrases(self, question: str, telling: Collection[str], lower: bool) -> Iterable[Mention]:
        words = words_in(question)
        for first in range(len(words)):
            key = ""
            for last in range(first, min(len(words), first + MOST_WORDS)):
                key += words[last][0].casefold()
                entry = self._entries.get(key)
                said = [word[0] for word in words[first : last + 1]]
                if entry is None or not _may_name(said, entry, telling, lower):
                    continue
                start, end = words[first].start(), words[last].end()
                name = Name(_shown(entry, question[start:end]), entry.kind, len(entry.documents))
                yield Mention(name, frozenset(entry.documents), start, end)


@dataclass(slots=True)
class KeptNames:
    """The table of one index, kept until its documents change; safe to use from several threads."""

    _table: NamesTable | None = None
    _version: object = None
    _made_at: float = 0.0
    _seconds: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def table_of(self, connection: Connection, index: str, totals: IndexTotals) -> NamesTable:
        """Return the table of an index as it is now, by its totals."""
        version = (totals.passages, totals.average_length, totals.changed)
        return self.table(version, partial(names_of_documents, connection, index))

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
