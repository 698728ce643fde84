"""Metadata of a document: words from its file name, description, keywords, date and headings."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from email.utils import parsedate
from pathlib import PurePosixPath
from typing import cast
from unicodedata import combining, normalize

from workbench.types import JsonValue, format_left_out

OWN_TITLE_KEY = "pdf_title"  # the title property of a PDF whose first heading is used as title
# in front matter, HTML meta tags and properties
DESCRIPTION_KEYS = ("description", "summary", OWN_TITLE_KEY, "subject", "keywords")
CONTENTS_HEADINGS = frozenset(("table of contents", "contents", "index", "inhaltsverzeichnis", "inhalt"))  # not titles
UNINFORMATIVE_NAMES = frozenset(
    ("index", "readme", "document", "untitled", "main", "text", "download", "upload", "file")
)
WORD_SEPARATOR = re.compile(r"[\s_+.]+|(?<!\d)-+|-+(?!\d)|(?<=[a-z])(?=[A-Z][a-z])")  # keeps 2023-05-30 whole
RANDOM_NAME = re.compile(r"[0-9a-f]{12,}|[0-9a-f-]{36}|\d+", re.IGNORECASE)  # a hash, a UUID, a bare number
WORD = re.compile(r"[^\W_]+")
SUFFIX = re.compile(r"\.[A-Za-z][A-Za-z0-9]{0,8}")


@dataclass(frozen=True, slots=True)
class About:
    """What a document is about."""

    name: str = ""  # words of its file name, or ""
    title: str = ""  # its title, or ""
    description: str = ""  # its author's description, or ""


def about_document(title: str, path: str | None, metadata: Mapping[str, object]) -> About:
    """Return a document's names and description, without repetition."""
    name = file_name_words(path or "")
    if name and title == PurePosixPath(path or "").stem:
        return About(name, "", _join_descriptions(name, metadata))
    return About("" if _is_contained(name, title) else name, title, _join_descriptions(title, metadata))


def file_name_words(path: str) -> str:
    """Return the words of a file name: ``reports/3M_2018_10K.pdf`` gives "3M 2018 10K".

    Returns "" for a URL, a key without suffix, a hash, a number, and names such as "index" and "readme".
    """
    file = PurePosixPath(path)
    if "://" in path or not SUFFIX.fullmatch(file.suffix) or RANDOM_NAME.fullmatch(file.stem):
        return ""
    words = " ".join(word for word in WORD_SEPARATOR.split(file.stem) if word)
    return "" if words.casefold() in UNINFORMATIVE_NAMES else words


def _join_descriptions(title: str, metadata: Mapping[str, object]) -> str:
    """Join the descriptions, except those contained in the title or in another description."""
    sayings: list[str] = []
    for saying in (_value_words(metadata.get(key)) for key in DESCRIPTION_KEYS):
        if saying and not _is_contained(saying, " ".join([title, *sayings])):
            sayings.append(saying)
    return " · ".join(sayings)


def _value_words(value: object) -> str:
    if isinstance(value, str):
        return " ".join(value.split())
    if isinstance(value, Sequence):
        parts: Iterable[object] = value
        return ", ".join(" ".join(part.split()) for part in parts if isinstance(part, str))
    return ""


def _is_contained(words: str, text: str) -> bool:
    return set(WORD.findall(words.casefold())) <= set(WORD.findall(text.casefold()))


# --- Context that is embedded and searched with a passage ---

MAX_HEADER_CHARS = 160  # about 40 English tokens; with the default passage of 200 they fit MiniLM's 254
SEPARATOR = " > "
DESCRIPTION_SEPARATOR = " — "
MIN_DESCRIPTION_CHARS = 24  # characters; a shorter piece of a description is not informative
BLANKS = re.compile(r"\s+")


def context_header(title: str, heading_path: Sequence[str], budget: int = MAX_HEADER_CHARS) -> str:
    """Join title and headings, outermost first, in at most ``budget`` characters.

    If they do not fit, middle headings are replaced by an ellipsis, then the ends are cut. Repeated headings are
    dropped. Returns "" if there is neither a title nor a heading.
    """
    parts = _drop_repeats([title, *heading_path])
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
        return _cut_text(parts[0], budget)
    half = max(1, (budget - len(SEPARATOR)) // 2)
    last = _cut_text(parts[-1], max(half, budget - len(SEPARATOR) - len(parts[0])))
    first = _cut_text(parts[0], max(0, budget - len(SEPARATOR) - len(last)))
    return f"{first}{SEPARATOR}{last}"[:budget].strip()


def append_description(header: str, sayings: str, budget: int = MAX_HEADER_CHARS) -> str:
    """Append a document's description to its header within ``budget`` characters, if a few words fit."""
    room = budget - len(header) - len(DESCRIPTION_SEPARATOR)
    if not sayings or room < MIN_DESCRIPTION_CHARS:
        return header
    ending = _cut_text(sayings, room).strip()
    return f"{header}{DESCRIPTION_SEPARATOR}{ending}" if header else ending


def _drop_repeats(parts: Sequence[str]) -> list[str]:
    distinct: list[str] = []
    for part in (BLANKS.sub(" ", part).strip() for part in parts):
        if part and (not distinct or part.casefold() not in (distinct[-1].casefold(), distinct[0].casefold())):
            distinct.append(part)
    return distinct


def _cut_text(text: str, budget: int) -> str:
    """Cut to ``budget`` characters, at the end of a word if possible."""
    if len(text) <= budget:
        return text
    if budget <= 1:
        return "…"[:budget]
    piece = text[: budget - 1]
    space = len(piece) if text[budget - 1] == " " else piece.rfind(" ")
    return (piece[:space] if space > budget // 2 else piece).rstrip() + "…"


# --- Date of a document ---


# Metadata with a date by order of trust, in lower case without separators and endings such as "At" and "Date".
DATE_KEYS = (
    "date",
    "lastupdated", "lastupdate", "updated", "update", "dctermsmodified", "articlemodified", "lastmod", "lastmodified",
    "modified", "revised", "revision", "lastrevised", "lastreviewed", "reviewed", "edited", "lastedited", "changed",
    "published", "pub", "publish", "publication", "posted", "post", "released", "release", "articlepublished", "dc",
    "dcterms", "dctermsissued", "issued",
    "created", "creation", "dctermscreated", "written",
    "time", "timestamp", "datum", "fecha", "effective",
)  # fmt: skip
DATE_ENDING = re.compile(r"(?<=.)(?:at|on|date|time|datetime|day)$|^(?:date|og|dcterms|dc|citation|article)(?=.)")
DATE_FORMS = tuple(map(re.compile, (  # a number and another one may be in either order
    r"(?:D:)?(?P<year>[1-9]\d{3})([-/.:]) ?(?P<month>\d{1,2})\2 ?(?P<day>\d{1,2})(?!\d)",
    r"(?:D:)?(?P<year>[1-9]\d{3})(?P<month>\d\d)(?P<day>\d\d)(?:\d{6})?(?!\d)",
    r"(?P<day>\d{1,2})\. ?(?P<month>\d{1,2})\. ?(?P<year>\d{4})(?!\d)",
    r"(?P<one>\d{1,2})([-/]) ?(?P<other>\d{1,2})\2 ?(?P<year>\d{4})(?!\d)",
    r"(?P<year>\d{4})\.? (?P<month>[^\W\d_]{3,12})\.? (?P<day>\d{1,2})\b",  # Hungarian
    r"(?:[^\W\d_]+,? )?(?P<day>\d{1,2})(?:st|nd|rd|th|er|o|\.)?[ /-](?:de |of )?(?P<month>[^\W\d_]{3,12})"
    r"\.?,?[ /-](?:de )?(?P<year>\d{4})\b",
    r"(?:[^\W\d_]+,? )?(?P<month>[^\W\d_]{3,12})\.?[ -](?P<day>\d{1,2})(?:st|nd|rd|th)?,?[ -](?P<year>\d{4})\b",
    r"(?P<year>(?:19|20)\d\d)(?:[-/.](?P<month>\d\d?))?\Z",
    r"(?P<year>(?:19|20)\d\d) ?[年년](?: ?(?P<month>\d\d?)(?: ?[月월](?: ?(?P<day>\d\d?) ?[日일].*)?)?)?\Z",
    r"(?P<month>\d{1,2}(?=[-/.])|[^\W\d_]{3,12}(?=\.? ))\D{1,2}(?P<year>\d{4})\Z",
)))  # fmt: skip
WEEK_YEAR = re.compile(r"(?:KW|CW|W|Week) ?(\d{1,2})(?:[/-]|,? )(\d{4})", re.IGNORECASE)
DASH = re.compile("[\u2010-\u2015\u2212]")
ERAS = {"令和": 2018, "平成": 1988, "昭和": 1925, "民國": 1911, "民国": 1911}  # the year before the first one
ERA_YEAR = re.compile(rf"({'|'.join(ERAS)}) ?(\d{{1,3}}|元) ?年")
ISO_WEEK = re.compile(r"\d{4}-?W\d\d(?:-?\d)?")
UNREAD_DATES = "dates that are ambiguous or not understood"  # a document with one has no date, not that of its file
DATE_LIKE = re.compile(r"(?:19|20)\d\d|\d{1,2}[-. ][^\W\d_]{3,}[-. ]\d{2}|\d{1,2}([-/.])\d{1,2}\1\d{2}")
EPOCH_DIGITS = (9, 10, 13)  # of seconds or milliseconds since 1970; fewer could be a year or a day
NAME_DATE = re.compile(
    r"(?<![0-9])(?:(?:19|20)\d\d([-_.]?)(?:0[1-9]|1[0-2])\1(?:0[1-9]|[12]\d|3[01])"
    r"|(?:0[1-9]|[12]\d|3[01])\.(?:0[1-9]|1[0-2])\.(?:19|20)\d\d)(?![0-9])"
)
MONTHS = (  # first letters without accents, in 20 languages of Europe; the longest start of a name decides
    ("jan", "ene", "gen", "sty", "янв", "tam", "led", "oca", "ιαν", "ian"),
    ("feb", "fev", "lut", "фев", "hel", "uno", "suba", "φεβ"),
    ("mar", "mrz", "maa", "mrt", "мар", "bre", "μαρ"),
    ("apr", "avr", "abr", "kwi", "апр", "huh", "dube", "dubn", "nis", "απρ"),
    ("may", "mai", "mei", "mag", "maj", "маи", "мая", "tou", "kve", "μαι"),
    ("jun", "juin", "giu", "cze", "июн", "kes", "cerv", "cvn", "haz", "ιουν", "iun", "lipnj"),
    ("jul", "juil", "lug", "lip", "июл", "hei", "cervenc", "cvc", "tem", "ιουλ", "iul", "srpnj"),
    ("aug", "aou", "ago", "sie", "авг", "elo", "srp", "agu", "αυγ"),
    ("sep", "set", "wrz", "сен", "syy", "zar", "eyl", "sze", "σεπ"),
    ("oct", "okt", "ott", "out", "paz", "окт", "lok", "rij", "eki", "οκτ"),
    ("nov", "lis", "ноя", "marr", "kas", "νοε", "noi"),
    ("dec", "dez", "dic", "des", "gru", "дек", "jou", "prosi", "ara", "δεκ"),
)  # fmt: skip


def document_date(metadata: Mapping[str, object], name: str = "") -> date | None:
    """Return the date in a document's metadata, or else in its file name; None if there is none that can be parsed."""
    values = _date_values(metadata)
    dates = (_parse_date_value(values[key]) for key in DATE_KEYS if key in values)
    found = next((each for each in dates if each is not None), None)
    dated = NAME_DATE.search(name) if found is None else None
    return parse_written_date(dated[0].replace("_", "-")) if dated else found


def has_unread_date(metadata: Mapping[str, object]) -> bool:
    """Return whether the metadata has what looks like a date but is ambiguous or not understood, and no other date."""
    values = _date_values(metadata)
    written = [str(values[key]) for key in DATE_KEYS if key in values]
    return document_date(metadata) is None and any(DATE_LIKE.search(text) for text in written)


def _date_values(metadata: Mapping[str, object]) -> dict[str, object]:
    """Return the values of the metadata that may be dates, by key as in ``DATE_KEYS``, and others."""
    values: dict[str, object] = {}
    for key, value in metadata.items():
        entries = value.items() if isinstance(value, Mapping) else ()
        values.setdefault(_fold_key(key), value)
        if _fold_key(key) in DATE_KEYS:  # a mapping, such as last_update: {date: 2030-03-05}
            for inner, own in cast("Iterable[tuple[object, object]]", entries):
                folded = _fold_key(str(inner))
                values.setdefault(_fold_key(key) if folded == "date" else folded, own)
                values[_fold_key(key)] = own if folded == "date" else values[_fold_key(key)]
    return values


def _fold_key(key: str) -> str:
    folded = re.sub(r"[\W_]", "", key.lower())
    while folded not in DATE_KEYS and (shorter := DATE_ENDING.sub("", folded)) != folded:
        folded = shorter
    return folded


def _parse_date_value(value: object) -> date | None:
    """Return the date of a value in metadata: a text, or the seconds or milliseconds since 1970."""
    if isinstance(value, list) and value:
        value = cast("list[object]", value)[0]
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    text = str(int(value)) if isinstance(value, float) and value.is_integer() else str(value).strip()
    if text.isdecimal() and len(text) in EPOCH_DIGITS:
        seconds = int(text) // (1000 if len(text) == max(EPOCH_DIGITS) else 1)
        return datetime.fromtimestamp(seconds, UTC).date()
    return parse_written_date(text)


def parse_written_date(text: str) -> date | None:
    """Return the date at the start of a text, or None. A month or a year alone is its first day.

    It may be ISO 8601, 2030/03/05, 05.03.2030, 5 March 2030, March 5, 2030, 2030年3月5日, 令和12年3月5日 or KW 10
    2030 (its Monday). 05/03/2030 is only a date if one of the numbers is not a month, because countries differ.
    """
    text = DASH.sub("-", normalize("NFKC", " ".join(text.split())))  # 2030‑03‑05 and full-width digits and signs
    text = WEEK_YEAR.sub(lambda week: f"{week[2]}-W{week[1]:0>2}", text)
    text = ERA_YEAR.sub(lambda era: f"{ERAS[era[1]] + int(era[2].replace('元', '1'))}年", text)
    found = next(filter(None, (form.match(text) for form in DATE_FORMS)), None)
    parts = found.groupdict("1") if found else {}
    if "one" in parts:
        parts["month"], parts["day"] = sorted((parts["one"], parts["other"]), key=int)
        if int(parts["day"]) <= 12 and parts["day"] != parts["month"]:
            return None
    year, month, day = (parsedate(text) or (0, 0, 0))[:3]  # Tue Mar 5 10:00:00 2030
    if found:
        year, month, day = int(parts["year"]), _month_number(parts["month"]), int(parts.get("day", 1))
    try:
        return date.fromisoformat(text) if ISO_WEEK.fullmatch(text) else date(year, month, day)
    except (ValueError, OverflowError):
        return None


def _month_number(name: str) -> int:
    """Return the number of a month by its number, name or abbreviation, 0 if unknown."""
    if name.isdecimal():
        return int(name)
    folded = "".join(letter for letter in normalize("NFKD", name.lower()) if not combining(letter))
    starts = (
        (len(start), number)
        for number, several in enumerate(MONTHS, 1)
        for start in several
        if folded.startswith(start)
    )
    return max(starts, default=(0, 0))[1]


# --- Notes about pages that failed or are uncertain ---

PAGE_NOTES = {  # by key of the metadata
    "unreadable_pages": "{} could not be read",
    "damaged_pages": "{} could be read only in part, because the file is damaged",
    "unread_pictures": "images on {} could not be read; the text was",
    "uncertain_pages": "OCR is uncertain about {}; compare with the page image",
    "garbled_pages": "fonts on {} have no or a wrong Unicode map; compare with the page image",
}
MAX_PAGES_SHOWN = 20  # page numbers listed in a note


def page_notes(name: str, metadata: Mapping[str, JsonValue]) -> tuple[str, ...]:
    """Return one sentence each on failed pages, failed images, uncertain pages, and what was left out."""
    listed = {key: _format_pages(metadata.get(key)) for key in PAGE_NOTES}
    notes = [f"{name}: {PAGE_NOTES[key].format(pages)}." for key, pages in listed.items() if pages]
    if sentence := left_out_note(metadata):
        notes.append(f"{name}: {sentence}.")
    if counts := _counts(metadata, "hidden_parts"):
        notes.append(f"{name}: comments or hidden parts that were read: {format_left_out(counts)}.")
    return tuple(notes)


def left_out_counts(metadata: Mapping[str, JsonValue]) -> dict[str, int]:
    """Return how many parts of each kind a reader left out, keyed by plural noun."""
    return _counts(metadata, "left_out")


def _counts(metadata: Mapping[str, JsonValue], key: str) -> dict[str, int]:
    counts = metadata.get(key)
    if not isinstance(counts, Mapping):
        return {}
    return {what: count for what, count in counts.items() if isinstance(count, int)}  # front matter may use the key


def left_out_note(metadata: Mapping[str, JsonValue]) -> str:
    """Return what a reader left out of a document: "not fully read: comments (12)", or ""."""
    counts = left_out_counts(metadata)
    return f"not fully read: {format_left_out(counts)}" if counts else ""


def scan_note(metadata: Mapping[str, JsonValue]) -> str:
    """Describe which pages OCR read and its confidence: "pages 1, 2 read by OCR, 99% confidence", or ""."""
    pages, sure = _format_pages(metadata.get("scanned_pages")), metadata.get("ocr_confidence")
    if not pages:
        return ""
    return f"{pages} read by OCR" + (f", {100 * sure:.0f}% confidence" if isinstance(sure, int | float) else "")


def _format_pages(numbers: JsonValue) -> str:
    """Return "page 3" or "pages 3, 4 and 2 more", or "" for no pages."""
    if not isinstance(numbers, list) or not numbers:
        return ""
    named = ", ".join(str(number) for number in numbers[:MAX_PAGES_SHOWN])
    more = f" and {len(numbers) - MAX_PAGES_SHOWN:,} more" if len(numbers) > MAX_PAGES_SHOWN else ""
    return f"{'page' if len(numbers) == 1 else 'pages'} {named}{more}"
