"""The facts that a document tells of itself apart from its text: file name in words, description, keywords."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import PurePosixPath

from workbench.types.json import JsonValue

OWN_TITLE = "own_title"  # the title that a PDF has among its properties, where its first heading is its title
SAYING = ("description", "summary", OWN_TITLE, "subject", "keywords")  # of front matter, HTML meta and properties
CONTENTS = frozenset(("table of contents", "contents", "index", "inhaltsverzeichnis", "inhalt"))  # headings, no titles
NOTHING_SAYING = frozenset(("index", "readme", "document", "untitled", "main", "text", "download", "upload", "file"))
APART = re.compile(r"[\s_+.]+|(?<!\d)-+|-+(?!\d)|(?<=[a-z])(?=[A-Z][a-z])")  # 2023-05-30 stays in one
RANDOM = re.compile(r"[0-9a-f]{12,}|[0-9a-f-]{36}|\d+", re.IGNORECASE)  # a hash, a UUID, a bare number
WORD = re.compile(r"[^\W_]+")
SUFFIX = re.compile(r"\.[A-Za-z][A-Za-z0-9]{0,8}")


@dataclass(frozen=True, slots=True)
class About:
    """A document's file name in words, its title, and its author's description of it; "" where there is none."""

    name: str = ""
    title: str = ""
    says: str = ""


def about_document(title: str, path: str | None, metadata: Mapping[str, object]) -> About:
    """Return what names and describes a document, each thing said once."""
    name = file_words(path or "")
    if name and title == PurePosixPath(path or "").stem:
        return About(name, "", _sayings(name, metadata))
    return About("" if _within(name, title) else name, title, _sayings(title, metadata))


def file_words(path: str) -> str:
    """Return a file's name as words: ``reports/3M_2018_10K.pdf`` is "3M 2018 10K".

    Returns "" for an address, a key without a suffix, a hash, a number, and names such as "index" and "readme".
    """
    file = PurePosixPath(path)
    if "://" in path or not SUFFIX.fullmatch(file.suffix) or RANDOM.fullmatch(file.stem):
        return ""
    words = " ".join(word for word in APART.split(file.stem) if word)
    return "" if words.casefold() in NOTHING_SAYING else words


def _sayings(title: str, metadata: Mapping[str, object]) -> str:
    """Join the sayings, one that is in the title or in another one left out."""
    sayings: list[str] = []
    for saying in (_words(metadata.get(key)) for key in SAYING):
        if saying and not _within(saying, " ".join([title, *sayings])):
            sayings.append(saying)
    return " · ".join(sayings)


def _words(value: object) -> str:
    if isinstance(value, str):
        return " ".join(value.split())
    if isinstance(value, Sequence):
        parts: Iterable[object] = value
        return ", ".join(" ".join(part.split()) for part in parts if isinstance(part, str))
    return ""


def _within(words: str, text: str) -> bool:
    return set(WORD.findall(words.casefold())) <= set(WORD.findall(text.casefold()))


# --- The context put before a passage for embedding and keyword search: its document, the headings and what ---

HEADER_CHARACTERS = 160  # about 40 tokens of English: of MiniLM's 254 the default passage of 200 and its header fit
SEPARATOR = " > "
SAYS = " — "
LEAST_SAID = 24  # characters; a shorter piece of a description says nothing
BLANKS = re.compile(r"\s+")


def context_header(title: str, heading_path: Sequence[str], budget: int = HEADER_CHARACTERS) -> str:
    """Join title and headings, outermost first, in at most ``budget`` characters.

    Where they do not fit, middle headings go first (an ellipsis marks them), then the ends are cut. A heading that
    repeats the one before it, or the title, is said once. Returns "" for no title and no heading.
    """
    parts = _without_repeats([title, *heading_path])
    if not parts or budget <= 0:
        return ""
    header = SEPARATOR.join(parts)
    if len(header) <= budget:
        return header
    for dropped in range(1, max(1, len(parts) - 1)):
        header = SEPARATOR.join([parts[0], "…", *parts[1 + dropped :]])
        if len(header) <= budget:
            return header
    if len(parts) == 1:
        return _cut(parts[0], budget)
    half = max(1, (budget - len(SEPARATOR)) // 2)
    last = _cut(parts[-1], max(half, budget - len(SEPARATOR) - len(parts[0])))
    first = _cut(parts[0], max(0, budget - len(SEPARATOR) - len(last)))
    return f"{first}{SEPARATOR}{last}"[:budget].strip()


def with_sayings(header: str, sayings: str, budget: int = HEADER_CHARACTERS) -> str:
    """Put a document's description after the header, both in ``budget`` characters, where it is worth a few words."""
    room = budget - len(header) - len(SAYS)
    if not sayings or room < LEAST_SAID:
        return header
    ending = _cut(sayings, room).strip()
    return f"{header}{SAYS}{ending}" if header else ending


def _without_repeats(parts: Sequence[str]) -> list[str]:
    distinct: list[str] = []
    for part in (BLANKS.sub(" ", part).strip() for part in parts):
        if part and (not distinct or part.casefold() not in (distinct[-1].casefold(), distinct[0].casefold())):
            distinct.append(part)
    return distinct


def _cut(text: str, budget: int) -> str:
    """Cut to ``budget`` characters, at a word's end where one is near."""
    if len(text) <= budget:
        return text
    if budget <= 1:
        return "…"[:budget]
    piece = text[: budget - 1]
    space = len(piece) if text[budget - 1] == " " else piece.rfind(" ")
    return (piece[:space] if space > budget // 2 else piece).rstrip() + "…"


# --- The date that a document says of itself ---


def date_of(metadata: Mapping[str, object]) -> date | None:
    """Return the date a document says of itself, where it says one that can be read."""
    names = ("date", "lastUpdated", "lastmod", "modified", "published", "created")
    for value in itertools.chain.from_iterable((metadata.get(name),) for name in names):
        if isinstance(value, str):
            try:
                return date.fromisoformat(value[:10])
            except ValueError:
                continue
    return None


# --- Sentences on the pages of a document that could not be read, or that OCR may have misread ---

SHOWN = 20  # page numbers named in a sentence


def page_notes(name: str, metadata: Mapping[str, JsonValue]) -> tuple[str, ...]:
    """Return a sentence each for pages that failed, pictures that did, and pages of little confidence, by metadata."""
    notes: list[str] = []
    if pages := _pages(metadata.get("unreadable_pages")):
        notes.append(f"{name}: {pages} could not be read.")
    if pages := _pages(metadata.get("unread_pictures")):
        notes.append(f"{name}: words in the pictures of {pages} could not be read; the text beside them was.")
    if pages := _pages(metadata.get("uncertain_pages")):
        notes.append(f"{name}: OCR is not sure of {pages}; compare with the picture.")
    return tuple(notes)


def scan_note(metadata: Mapping[str, JsonValue]) -> str:
    """Return which pages OCR read, and how sure it is: "pages 1, 2 read by OCR, 99 % sure"; "" where it read none."""
    pages, sure = _pages(metadata.get("scanned_pages")), metadata.get("ocr_confidence")
    if not pages:
        return ""
    return f"{pages} read by OCR" + (f", {100 * sure:.0f} % sure" if isinstance(sure, int | float) else "")


def _pages(numbers: JsonValue) -> str:
    """Return "page 3" or "pages 3, 4 and 2 more"; "" where there are none."""
    if not isinstance(numbers, list) or not numbers:
        return ""
    named = ", ".join(str(number) for number in numbers[:SHOWN])
    more = f" and {len(numbers) - SHOWN:,} more" if len(numbers) > SHOWN else ""
    return f"{'page' if len(numbers) == 1 else 'pages'} {named}{more}"
