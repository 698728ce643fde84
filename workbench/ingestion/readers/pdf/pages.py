"""The pages of a PDF, parsed in windows to bound memory."""

from __future__ import annotations

import pickle
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from string import ascii_lowercase
from typing import TYPE_CHECKING
from unicodedata import normalize

from workbench.errors import UnreadableDocument
from workbench.formatting import KB, MB
from workbench.ingestion.readers.pdf.layout import (
    NO_CHARTS,
    PageCharts,
    PageGlyphs,
    PageTexts,
    decode_boxes,
    find_charts,
    find_lost_lines,
    find_raised_words,
    has_raised_text,
    join_spread_letters,
    make_page_texts,
    order_vertical_text,
    read_glyphs,
)

if TYPE_CHECKING:
    from liteparse.parser import LiteParse
    from liteparse.types import DocumentMetadata, ParsedPage, ParseResult


# --- Page labels: from the file, or printed on its pages ---

EDGE_LINES = 2  # lines examined at each end of a page
MIN_LABELLED_PAGES = 3  # pages that must have a printed number
MIN_LABELLED_SHARE = 0.5  # of the pages with text whose printed number must have the same offset from the page count
PRINTED_NUMBER = re.compile(r"\W*(?:page|p\.|seite|pagina|página)?\s*(\d{1,4})\W*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class PageLabel:
    """Data about a page's label."""

    number: int  # page number, from 1
    own: str  # its label in the file, or ""
    edges: frozenset[int] | None  # numbers printed at its edges; None if the page has no text


def read_label(page: ParsedPage) -> PageLabel:
    """Return data about a page's label."""
    edges = frozenset(_edge_numbers(page.text)) if page.text.strip() else None
    return PageLabel(page.page_num, page.page_label or "", edges)


def choose_labels(pages: Sequence[PageLabel]) -> dict[str, str]:
    """Return page labels by page number (from 1, as text) if they differ from the numbers.

    The file's labels come first. A printed number in the first or last two lines is used if at least half of the pages
    have one with the same offset from the page number.
    """
    own = {str(page.number): page.own for page in pages if page.own}
    labels = own or _read_page_labels(pages)
    return labels if any(number != label for number, label in labels.items()) else {}


def _read_page_labels(pages: Sequence[PageLabel]) -> dict[str, str]:
    numbers = [(page.number, page.edges) for page in pages if page.edges is not None]
    distances = Counter(page - number for page, printed in numbers for number in printed)
    if not distances:
        return {}
    distance, count = distances.most_common(1)[0]
    if count < max(MIN_LABELLED_PAGES, MIN_LABELLED_SHARE * len(numbers)):
        return {}
    return {str(page): str(page - distance) for page, printed in numbers if page - distance in printed}


def _edge_numbers(text: str) -> Iterator[int]:
    lines = [line for line in text.splitlines() if line.strip()]
    for line in (*lines[:EDGE_LINES], *lines[EDGE_LINES:][-EDGE_LINES:]):
        match = PRINTED_NUMBER.fullmatch(line.strip())
        if match is not None:
            yield int(match[1])


# --- Pages with rotated text ---

MIN_ROTATED_SHARE = 0.5  # of a page's letters with the same rotation
QUARTER_DEG = 90


def find_rotated_pages(pages: Sequence[ParsedPage]) -> dict[int, int]:
    """Return the rotation of the text (90, 180 or 270 degrees clockwise) by page number."""
    turns = ((page.page_num, _find_rotation(page)) for page in pages)
    return {number: turn for number, turn in turns if turn}


def page_rotation(metadata: Mapping[str, object], number: int) -> int:
    """Return the rotation of a page's text in degrees clockwise, from the document's metadata."""
    turned = metadata.get("turned_pages")
    turn = turned.get(str(number)) if isinstance(turned, Mapping) else None
    return turn if isinstance(turn, int) else 0


def _find_rotation(page: ParsedPage) -> int:
    letters = Counter[int]()
    for item in page.text_items:
        if item.text.strip():
            letters[round(item.rotation / QUARTER_DEG) * QUARTER_DEG % 360] += len(item.text.strip())
    turn = max(letters, key=lambda degrees: letters[degrees], default=0)
    return turn if letters[turn] > MIN_ROTATED_SHARE * letters.total() else 0


PDF_SIGNATURE = b"%PDF-"
MAX_SIGNATURE_OFFSET_BYTES = 4 * KB  # bytes; most PDF programs accept 1 KB of leading junk
MAX_PAGES = 1_000_000  # read of a file; the parser stops after 1,000 by default
WINDOW_PAGES = 250  # pages parsed at once, which bounds memory
MAX_WINDOW_ITEMS = (
    40_000  # text items parsed at once: each takes 4 kB until its page is packed; filings have 34 to 130 per page
)
SAMPLE_EVERY_PAGES = 25  # one page in this many is sampled for its number of items
SMALL_FILE_BYTES = MB // 10  # bytes; smaller files never have that many items
# Characters that fonts with a wrong or no map have for letters, without the space and the bullets of symbol fonts.
UNDECODABLE_CHARACTER = re.compile(
    "[\x00-\x08\x0b\x0e-\x1f\x7f-\x84\x86-\x9f\ufffd"
    "\ue000-\uf01f\uf021-\uf0a6\uf0a8-\uf0b6\uf0b8-\uf8ff\U000f0000-\U0010ffff]"
)
# What a font gives that maps all its glyphs to one letter.
REPEATED_LETTER = re.compile(r"([^\W\d_])\1(?:\s*\1){3,}")
# Of the letters a to z, 56 % and more on 2,890 pages of reports, and 53 % and more in 11 of 13 other languages; with
# the alphabet in another order less than 45 % on 94 % of the pages. In Welsh they are 38 %, but words have vowels.
USUAL_LETTERS = "eainorst"
MIN_USUAL_SHARE = 0.45
ANY_WORD = re.compile(r"(?=\d*[^\W\d_])[^\W_]{3,}")
VOWEL = re.compile("[aeiouyw]")
MIN_VOWELLESS_SHARE = 0.02  # of the words; of 98 % of the pages with the letters in another order have more
MIN_JUDGED_LETTERS = 60
MIN_GARBLED_CHARS = 4  # of the longest line; bullets and signs are shorter
# Without digits, which numbers of parts have, and with a small letter, which most abbreviations lack.
PLAIN_WORD = re.compile(r"(?<!\w)(?=[^\W\d_]*[a-z])[^\W\d_]{3,}(?!\w)")
BOUNDS_TOLERANCE_PT = 2.0  # points by which content may exceed the page
MAX_BOUNDS_PAGES = 10  # page sizes; printed web pages have the background of the whole document on each page
MAX_DRAWN_SHARE = 0.3  # of a page that is covered by images; a scan with margins or in strips has more
MIN_PAGE_CHARS = 100  # letters and digits; a page image with fewer has only a stamp


@dataclass(frozen=True, slots=True)
class PdfPage:
    """A parsed page."""

    number: int  # page number, from 1
    size: tuple[float, float]  # width and height in points
    label: PageLabel  # data about its label
    has_text: bool  # false if its text is blank
    lacks_text: bool  # true if it has no readable text, or only a stamp next to an image that covers the page
    undecodable: int  # number of undecodable characters
    is_garbled: bool  # true if its fonts have no or a wrong Unicode map, so that its text is meaningless
    may_be_scan: bool  # true if images cover much of it
    exceeds: bool  # true if it has content outside the visible area
    is_mixed: bool  # true if it has visible and invisible text
    unseen: tuple[str, ...]  # lines that the parser drops, which are tiny, or outside the page or a clipping path
    texts: PageTexts  # its text in blocks
    charts: PageCharts = NO_CHARTS  # its images


@dataclass(frozen=True, slots=True)
class PdfPages:
    """The pages of a file."""

    pages: tuple[PdfPage, ...]  # the pages that were read
    total: int  # number of pages in the file
    failed: tuple[int, ...]  # numbers of the pages that failed
    facts: DocumentMetadata | None  # the file's metadata; None if unknown
    # Rotation of the text in degrees clockwise, by page number. These pages were read upright.
    turned: Mapping[int, int]
    # XML of an XFA form by the name of its part; empty for other files.
    xfa: Mapping[str, str] = field(default_factory=dict[str, str])


def trim_preamble(data: bytes) -> bytes:
    """Return a PDF without bytes before its signature, such as a line break or a message header."""
    return data[max(0, data.find(PDF_SIGNATURE, 0, MAX_SIGNATURE_OFFSET_BYTES)) :]


def read_pages(
    data: bytes,
    name: str,
    left_out: Collection[int] = (),
    window: int | None = None,
    on_page: Callable[[int, int, bool], None] | None = None,
) -> PdfPages:
    """Read the pages of a PDF.

    Args:
        data: Contents of the file.
        name: File name for messages.
        left_out: Pages that failed before; they are skipped and reported as failed.
        window: Pages parsed at once; by default 250, or fewer if pages have very many text items.
        on_page: Called after each page; may raise to stop.

    Raises:
        UnreadableDocument: The file is encrypted or damaged.
    """
    packed: list[bytes] = []
    failed = set(left_out)
    turned: dict[int, int] = {}
    total, facts = 0, None
    xfa: dict[str, str] = {}
    window = window or _choose_window(data, left_out)
    for result in _parse_windows(data, name, frozenset(left_out), window):
        total, facts = result.total_pages, facts or result.doc_meta
        xfa = xfa or {packet.name or "": packet.content or "" for packet in result.xfa_packets or ()}
        failed.update(error.page_num for error in result.page_errors)
        if on_side := find_rotated_pages(result.pages):
            numbers = [page.page_num for page in result.pages]
            result = _parse(_make_parser(_format_ranges(numbers), on_side), data, name)
            turned |= on_side
        pages, odd = _pack_pages(result, data, on_page)
        failed.update(odd)
        packed += pages
        del result  # frees its memory before the next window is parsed
    return PdfPages(tuple(map(pickle.loads, packed)), total, tuple(sorted(failed)), facts, turned, xfa)


def parse_trial_pages(data: bytes, name: str, first: int, last: int) -> int:
    """Parse some pages to see whether they crash the process; return the number of pages in the file.

    Raises:
        UnreadableDocument: The file is encrypted or damaged.
    """
    data = trim_preamble(data)
    result = _parse(_make_parser(f"{first}-{last}"), data, name)
    _pack_pages(result, data)
    return result.total_pages


def _choose_window(data: bytes, left_out: Collection[int]) -> int:
    """Return how many pages to parse at once, estimated from the text items on every 25th page."""
    from liteparse.parser import LiteParse
    from liteparse.types import ParseError

    if len(data) < SMALL_FILE_BYTES:
        return WINDOW_PAGES
    sampled = [number for number in range(1, 100 * SAMPLE_EVERY_PAGES, SAMPLE_EVERY_PAGES) if number not in left_out]
    parser = LiteParse(
        ocr_enabled=False, quiet=True, image_mode="off", output_format="text", continue_on_page_error=True,
        target_pages=_format_ranges(sampled),
    )  # fmt: skip
    try:
        pages = parser.parse(data).pages
    except ParseError:  # reported when the pages are read
        return WINDOW_PAGES
    pieces = sum(len(page.text_items) for page in pages)
    return max(1, min(WINDOW_PAGES, MAX_WINDOW_ITEMS * len(pages) // pieces)) if pieces else WINDOW_PAGES


def _parse_windows(data: bytes, name: str, left_out: frozenset[int], window: int) -> Iterator[ParseResult]:
    """Yield the parser's results, window by window."""
    first, total = 1, window
    while first <= total:
        last = first + window - 1
        chosen = [number for number in range(first, last + 1) if number not in left_out]
        if chosen:
            result = _parse(_make_parser(_format_ranges(chosen)), data, name)
            total = result.total_pages
            yield result
            del result
        first = last + 1


def _parse(parser: LiteParse, data: bytes, name: str) -> ParseResult:
    from liteparse.types import ParseError

    try:
        return parser.parse(data)
    except ParseError as error:
        if "password" in str(error).lower():
            raise UnreadableDocument(f"'{name}' is password-protected. Save a copy without a password.") from error
        raise UnreadableDocument(f"'{name}' is not a valid PDF. Download or export it again.") from error


def _format_ranges(numbers: list[int]) -> str:
    """Return ascending numbers in the parser's notation: "1-6,8-250"."""
    starts = [number for number in numbers if number - 1 not in numbers]
    ends = [number for number in numbers if number + 1 not in numbers]
    return ",".join(f"{start}-{end}" for start, end in zip(starts, ends, strict=True))


def _make_parser(pages: str | None = None, turned: Mapping[int, int] | None = None) -> LiteParse:
    from liteparse.parser import LiteParse

    return LiteParse(
        ocr_enabled=False,
        output_format="markdown",
        image_mode="off",
        quiet=True,
        continue_on_page_error=True,
        keep_headers_footers=True,  # its rule mistakes headings like "Chapter 1", "Chapter 2" for running headers
        extract_blocks=True,
        extract_document_metadata=True,
        extract_vector_graphics=True,
        extract_form_fields=True,
        extract_xfa_packets=True,
        extract_content_bounds=True,
        include_complexity=True,
        target_pages=pages,
        max_pages=MAX_PAGES,
        page_orientation_corrections=list(turned.items()) if turned else None,
    )


def _pack_pages(
    result: ParseResult, data: bytes, on_page: Callable[[int, int, bool], None] | None = None
) -> tuple[list[bytes], list[int]]:
    """Return the packed pages of a window, and the numbers of pages that failed.

    Small Python objects among the parser's keep memory from being released: 36 MB for a filing of 179 pages. A
    packed page is a single block.
    """
    pages: list[bytes] = []
    odd: list[int] = []
    numbers = [page.page_num for page in result.pages]
    for page, (_, glyphs) in zip(result.pages, read_glyphs(data, numbers), strict=True):
        try:
            pages.append(pickle.dumps(_make_page(page, glyphs), pickle.HIGHEST_PROTOCOL))
        except Exception:  # noqa: BLE001 - any error loses only this page
            odd.append(page.page_num)
        if on_page is not None:
            on_page(page.page_num, result.total_pages, False)
    return pages, odd


def _make_page(page: ParsedPage, glyphs: PageGlyphs) -> PdfPage:
    decode_boxes(page, glyphs)
    page.markdown = join_spread_letters(page.markdown, glyphs.text)
    letters = sum(character.isalnum() for character in page.text)
    covered = page.complexity is not None and page.complexity.full_page_image
    lost = glyphs.find_unmapped()
    undecodable, unmapped = len(UNDECODABLE_CHARACTER.findall(page.text)), sum(map(len, lost))
    complexity = page.complexity
    garbled = (
        max(undecodable, 2 * unmapped) > letters
        or _is_improbable(page.text, letters)
        or (complexity is not None and complexity.is_garbled and _lacks_vowels(ANY_WORD.findall(page.text)))
    )
    charts = find_charts(page, find_garbled_lines(page, set(lost)))
    lacks_text = garbled or charts.drawn > letters or (letters < MIN_PAGE_CHARS and (covered or not letters))
    return PdfPage(
        number=page.page_num,
        size=(page.width, page.height),
        label=read_label(page),
        has_text=bool(page.text.strip()),
        lacks_text=lacks_text,
        undecodable=undecodable + unmapped,
        is_garbled=garbled,
        may_be_scan=covered or (complexity is not None and complexity.image_coverage > MAX_DRAWN_SHARE),
        exceeds=_exceeds_page(page),
        is_mixed=glyphs.is_mixed,
        unseen=() if garbled or covered else tuple(find_lost_lines(glyphs.text, page.text)),
        texts=make_page_texts(
            page, find_raised_words(glyphs) if has_raised_text(page) else (), order_vertical_text(glyphs)
        ),
        charts=charts,
    )


def find_garbled_lines(page: ParsedPage, lost: Collection[str]) -> list[str]:
    """Return the texts of a page in fonts whose text is meaningless, and those made of ``lost`` words."""
    fonts: dict[str | None, list[str]] = defaultdict(list)
    for item in page.text_items:
        fonts[item.font_name].append(item.text)
    written = {name: " ".join(texts) for name, texts in fonts.items()}
    wrong = {name for name, text in written.items() if _is_meaningless(text) and text.strip("Xx \n")}  # XXXX stays
    lines = [
        item.text
        for item in page.text_items
        if item.font_name in wrong or 2 * sum(word in lost for word in item.text.split()) > len(item.text.split())
    ]
    return lines if max((len(line.strip()) for line in lines), default=0) >= MIN_GARBLED_CHARS else []


def _is_meaningless(text: str) -> bool:
    letters = sum(character.isalnum() for character in text)
    return len(UNDECODABLE_CHARACTER.findall(text)) > letters or _is_improbable(text, letters)


def _is_improbable(text: str, letters: int) -> bool:
    """Return whether a text is mostly one letter, or the usual letters and the vowels are rare in it."""
    repeated = sum(len(match[0]) for match in REPEATED_LETTER.finditer(text))
    words = PLAIN_WORD.findall(text)
    counts = Counter(normalize("NFKD", "".join(words)).lower())
    plain, usual = (sum(counts[letter] for letter in several) for several in (ascii_lowercase, USUAL_LETTERS))
    is_plain = plain >= MIN_JUDGED_LETTERS and 2 * plain > letters  # else it is in another script, or a table
    is_rare = usual < MIN_USUAL_SHARE * plain and _lacks_vowels(words)
    return 2 * repeated > letters or (is_plain and is_rare)


def _lacks_vowels(words: Sequence[str]) -> bool:
    """Return whether there are words without a vowel."""
    vowelless = sum(VOWEL.search(normalize("NFKD", word).lower()) is None for word in words)
    return vowelless > MIN_VOWELLESS_SHARE * len(words) or not words


def _exceeds_page(page: ParsedPage) -> bool:
    left, top, width, height = page.content_bounds or (0.0, 0.0, 0.0, 0.0)
    if max(width / (page.width or 1), height / (page.height or 1)) > MAX_BOUNDS_PAGES:
        return False
    return min(left, top, page.width - left - width, page.height - top - height) < -BOUNDS_TOLERANCE_PT
