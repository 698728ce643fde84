"""The values by which a question can name a document: title, parts of a label, periods, source, type, metadata.

A label is a title or a file's name with a period in it, such as 3M_2018_10K: its words are names, not a sentence.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from workbench.retrieval.names.periods import Period, periods_in, without
from workbench.storage.documents import DocumentNames
from workbench.types import JsonValue

MOST_WORDS = 8  # of a value; a longer one is a text
LONGEST = 60  # characters of a value of metadata
# Metadata that a reader or a crawler writes for its own use, that is text, or a subject; none names a document.
UNSAID = frozenset(
    """
    title own_title description summary subject keywords language language_name pages page columns rows records url
    canonical_url file_name content_hash ocr_confidence scanned_pages uncertain_pages unreadable_pages created modified
    turned_pages unread_pictures lastmod lastUpdated producer creator page_labels tag tags category categories label
    labels topic topics
    """.split()  # noqa: SIM905 - a table of words reads better than a list of quotes
)
PERIODS_OF = re.compile(r"year|quarter|period", re.IGNORECASE)
DATES = ("date", "published", "datePublished", "publishDate")
TYPE_WORDS = {
    "pdf": ("PDF",),
    "docx": ("Word document",),
    "pptx": ("slides", "presentation", "PowerPoint"),
    "xlsx": ("spreadsheet", "Excel"),
    "notebook": ("notebook",),
    "epub": ("book",),
}
_WORD = re.compile(r"[^\W_]+")


def words_in(text: str) -> list[re.Match[str]]:
    """Return the words of a text, underscores between them, in their order."""
    return list(_WORD.finditer(text))


def squeezed(text: str) -> str:
    """Return the letters and figures of a text alone, folded: "10-K" and "10 k" are "10k"."""
    return "".join(match[0] for match in words_in(text)).casefold()


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


def values_of(document: DocumentNames) -> DocumentValues:
    """Return what can name a document."""
    called = [text for text in (document.title, document.file) if _is_short(text)]
    labels = [Label(text, periods) for text in called if (periods := periods_in(text))]
    told = [period for label in labels for period in label.periods]
    return DocumentValues(list(_values(document, called, labels, told)), frozenset(period.text for period in told))


def _values(
    document: DocumentNames, called: Iterable[str], labels: Iterable[Label], told: Sequence[Period]
) -> Iterator[tuple[str, str]]:
    for label in labels:
        yield from _parts(label)
    yield from (("title", text) for text in called)
    for period in told or _periods(document.metadata):
        yield period.kind, period.text
    if _is_short(document.source):
        yield "source", document.source
    for word in TYPE_WORDS.get(document.document_type, ()):
        yield "type", word
    for key, value in document.metadata.items():
        if key not in UNSAID and key not in DATES and not PERIODS_OF.search(key):
            yield from ((key, text) for text in _said(value))


def _is_short(text: str) -> bool:
    return 1 <= len(_WORD.findall(text)) <= MOST_WORDS


def _parts(label: Label) -> Iterator[tuple[str, str]]:
    """Yield what stands between a label's periods, and each of its words."""
    for part in without(label.text, label.periods).splitlines():
        words = [match[0] for match in words_in(part)]
        if len(words) > 1:
            yield "name", " ".join(words)
        yield from (("name", word) for word in words if len(word) > 1 and not (word.isdecimal() and len(word) < 3))


def _periods(metadata: Mapping[str, JsonValue]) -> list[Period]:
    """Return the periods that metadata tell, where no label does; else those of its date."""
    told: list[Period] = []
    for key, value in metadata.items():
        if PERIODS_OF.search(key) and isinstance(value, str | int) and not isinstance(value, bool):
            is_number = "quarter" in key.casefold() and str(value) in ("1", "2", "3", "4")
            told += periods_in(f"Q{value}" if is_number else str(value))
    for key in DATES if not told else ():
        if key in metadata:
            told += _date(metadata[key])
    return told


def _date(value: JsonValue) -> list[Period]:
    match = re.match(r"(\d{4})-(\d\d)\b", value) if isinstance(value, str) else None
    if match is None or not 1 <= int(match[2]) <= 12:
        return []
    return [Period("year", match[1], 0, 4), Period("quarter", f"Q{(int(match[2]) + 2) // 3}", 5, 7)]


def _said(value: JsonValue) -> Iterator[str]:
    """Yield the texts of a value that are short enough to be said, of a list each."""
    texts = (item for item in (value if isinstance(value, list) else [value]) if isinstance(item, str))
    for text in texts:
        if len(text) <= LONGEST and "://" not in text and _is_short(text) and not text.replace(".", "").isdecimal():
            yield text
