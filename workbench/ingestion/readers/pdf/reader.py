"""The PDF reader: Markdown with headings and tables, page by page, parsed with liteparse."""

from __future__ import annotations

import io
import re
from collections.abc import Collection
from pathlib import PurePath
from typing import Any

from workbench.errors import Cancelled, UnreadableDocument
from workbench.ingestion.metadata import CONTENTS, NOTHING_SAYING, OWN_TITLE
from workbench.ingestion.ocr.document import (
    ADVICE,
    OnPage,
    PictureWords,
    ReadScans,
    picture_words,
    read_scans,
    reads_scans,
)
from workbench.ingestion.ocr.images import PDF, page_picture
from workbench.ingestion.raw import Draft
from workbench.ingestion.readers.pdf.charts import largest, placed_words, with_picture_words
from workbench.ingestion.readers.pdf.layout import without_running
from workbench.ingestion.readers.pdf.pages import PdfPages, page_labels, read_pages
from workbench.ingestion.readers.plain_text import first_heading
from workbench.ingestion.text import normalise

# --- Document properties that describe the contents ---

PROPERTIES = ("title", "author", "subject", "keywords")
LETTERS = re.compile(r"[^\W\d_]{2}")  # a bare registration number is not informative
PRINTED_FROM = re.compile(r"microsoft (?:word|excel|powerpoint) - ", re.IGNORECASE)
FILE = re.compile(r"\S+\.(?:docx?|pptx?|xlsx?|pdf|indd|tex|dvi|rtf|odt|html?)", re.IGNORECASE)
NOBODY = frozenset(("anonymous", "unknown", "user", "admin", "administrator", "owner", "author"))
APART = re.compile(r"\s*[;,]\s*")
UNSAID = frozenset(("unspecified", "unknown", "none", "n/a"))  # placeholders written by programs
LONGEST = 1_000  # characters of a property
LONGEST_TITLE = 300


def pdf_properties(data: bytes) -> dict[str, str]:
    """Return the informative properties of a PDF, or none if they cannot be read.

    Titles that are file names and texts without a word are left out.
    """
    from pypdf import PdfReader

    try:
        facts = PdfReader(io.BytesIO(data)).metadata or {}
        told = {name: str(facts.get(f"/{name.title()}") or "") for name in PROPERTIES}
    except Exception:  # noqa: BLE001 - damaged object tables; the text can still be read
        return {}
    told = {name: " ".join(text.split())[:LONGEST] for name, text in told.items()}
    told["title"] = _title(told["title"])
    told["keywords"] = ", ".join(word for word in APART.split(told["keywords"]) if LETTERS.search(word))
    for name, unsaid in (("author", NOBODY), ("subject", UNSAID), ("keywords", UNSAID)):
        if told[name].casefold() in unsaid:
            told[name] = ""
    return {name: text for name, text in told.items() if LETTERS.search(text)}


def _title(text: str) -> str:
    words = PRINTED_FROM.sub("", text)
    is_file = words != text or FILE.fullmatch(words) is not None
    return "" if is_file or words.casefold() in NOTHING_SAYING else words[:LONGEST_TITLE]


# --- Choice of the title ---

WORD = re.compile(r"[^\W\d_]{3,}")
YEAR = re.compile(r"(?<!\d)(?:19|20)\d\d(?!\d)")
NO_LETTER = re.compile(r"[\W\d_]+")


def title_of(name: str, heading: str, own_title: str) -> str:
    """Return the title of a PDF, or "" if its file name is better than its heading and title property.

    File names may contain the company and the year ("HARBOUR_2023_report.pdf"). A heading without any of these words
    may be
    boilerplate, such as the name of an authority.
    """
    stem = PurePath(name).stem
    words = [word.casefold() for word in WORD.findall(stem)]
    if not words or not YEAR.search(stem):
        return heading or own_title
    return next((title for title in (heading, own_title) if _shares(title, words)), "")


def _shares(title: str, words: list[str]) -> bool:
    """Return whether a title contains one of the words, also if it writes the word as two."""
    letters = NO_LETTER.sub("", title.casefold())
    return any(word in letters for word in words)


SIGNATURE = b"%PDF-"
CHART_DOTS = 110  # dots per inch: chart text is rarely small, and half the dots take half the memory
SIGNATURE_WITHIN = 1024  # bytes; PDF readers accept this much leading junk
DATE = re.compile(r"D:(\d{4})(\d{2})?(\d{2})?")


def read_pdf(data: bytes, name: str, on_page: OnPage | None = None, left_out: Collection[int] = ()) -> Draft:
    """Return the pages that have text. Pages without text are read by OCR if the extra ``ocr`` is installed.

    Pages in ``left_out`` failed before and are reported as failed.

    Raises:
        UnreadableDocument: The file is encrypted, damaged, or without text on any page.
    """
    if SIGNATURE not in data[:SIGNATURE_WITHIN]:
        raise UnreadableDocument(f"'{name}' is not a PDF file despite its suffix. Check its source.")
    file = read_pages(data, name, left_out)
    scans = _scans(data, file, on_page) if reads_scans() else ReadScans({})
    # The Markdown of a page without text is an empty fence, so check the plain text.
    with_text = [page for page in file.pages if page.has_text and page.number not in scans.pages]
    numbers = (page.number for page in with_text)
    chart_words, unread_pictures = _chart_words(data, file, on_page) if reads_scans() else ({}, [])
    page_texts = [with_picture_words(page.texts, page.charts, chart_words.get(page.number, ())) for page in with_text]
    texts = dict(zip(numbers, map(normalise, without_running(page_texts)), strict=True))
    pictures = [placed_words(texts[number], number, words) for number, words in chart_words.items()]
    texts |= {number: page.text for number, page in scans.pages.items()}
    if not texts:
        advice = "OCR found none either." if reads_scans() else f"It is probably scanned. {ADVICE}"
        raise UnreadableDocument(f"'{name}' has no text on any page. {advice}")
    pages = tuple(sorted(texts.items()))
    headings = (first_heading(page) for _, page in pages[:2])
    heading = next((heading for heading in headings if heading and heading.casefold() not in CONTENTS), "")
    properties = pdf_properties(data)
    own_title = properties.pop("title", "")
    title = title_of(name, heading, own_title)
    if own_title and own_title != title:
        properties[OWN_TITLE] = own_title
    return Draft(
        title=title,
        pages=pages,
        scans=(*(page.scan for page in scans.pages.values()), *filter(None, pictures)),
        metadata=properties | _metadata(file, scans, unread_pictures) | scans.metadata(),
    )


def _scans(data: bytes, file: PdfPages, on_page: OnPage | None) -> ReadScans:
    """Read the pages that lack text by OCR."""
    sizes = {page.number: page.size for page in file.pages if page.lacks_text}
    return read_scans(sizes, file.total, lambda number: page_picture(data, PDF, number, sizes[number]), on_page)


def _chart_words(
    data: bytes, file: PdfPages, on_page: OnPage | None
) -> tuple[dict[int, list[PictureWords]], list[int]]:
    """Read the words in images on pages that have text; return them by page, and the pages that failed."""
    pages = {page.number: page for page in file.pages if page.has_text and not page.lacks_text}
    words: dict[int, list[PictureWords]] = {}
    failed: list[int] = []
    for number in largest((number, page.charts) for number, page in pages.items()):
        page = pages[number]
        if on_page is not None:
            on_page(number, file.total)
        try:
            picture = page_picture(data, PDF, number, page.size, file.turned.get(number, 0), CHART_DOTS)
            words[number] = picture_words(picture, page.charts.text)
        except Cancelled:
            raise
        except Exception:  # noqa: BLE001 - decoders and models raise any exception; the text stays
            failed.append(number)
    return words, sorted(failed)


def _metadata(file: PdfPages, scans: ReadScans, unread_pictures: list[int]) -> dict[str, Any]:
    metadata: dict[str, Any] = {"pages": file.total}
    labels = page_labels([page.label for page in file.pages])
    if labels:
        metadata["page_labels"] = labels
    if file.turned:
        metadata["turned_pages"] = {str(number): turn for number, turn in file.turned.items()}
    failed = sorted({*file.failed, *scans.failed})
    if failed:
        metadata["unreadable_pages"] = failed
    if unread_pictures:
        metadata["unread_pictures"] = unread_pictures
    properties = file.facts
    for key, value in (
        (("created", properties.creation_date), ("modified", properties.mod_date)) if properties is not None else ()
    ):
        match = DATE.match(value or "")
        if match:
            metadata[key] = "-".join(part for part in match.groups() if part)
    return metadata
