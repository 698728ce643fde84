"""The pages of a PDF, parsed in windows; each page is reduced at once to the parts of it that a document needs."""

from __future__ import annotations

import pickle
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from workbench.errors import UnreadableDocument
from workbench.ingestion.readers.heading_levels import HeadingSizes, heading_sizes, with_levels_of_all
from workbench.ingestion.readers.page_charts import NO_CHARTS, PageCharts, charts_of
from workbench.ingestion.readers.page_labels import PageLabel, label_of
from workbench.ingestion.readers.running_headers import PageTexts, page_texts
from workbench.ingestion.readers.turned_pages import turned_pages
from workbench.ingestion.scans.extra import reads_scans
from workbench.sizes import MB

if TYPE_CHECKING:
    from liteparse.parser import LiteParse
    from liteparse.types import DocumentMetadata, ParsedPage, ParseResult

WINDOW = 250  # pages parsed at once: memory grows with them, and each window has heading levels of its own
PIECES = 40_000  # of text, parsed at once: each takes 4 kB until its page is packed; filings have 34 to 130 a page
SAMPLED = 25  # pages of which one is asked for its pieces
SMALL = MB // 10  # bytes of a file that has fewer pieces whatever it says
FEW = 100  # letters and digits: a page of a picture that has fewer says no more than a stamp does


@dataclass(frozen=True, slots=True)
class PdfPage:
    """A page: its number from 1, its size in points, its labels, and its text in blocks.

    ``has_text`` is false of a page whose text is blank; ``lacks_text`` is true where there is none, or no more than a
    stamp beside a picture that covers the page.
    """

    number: int
    size: tuple[float, float]
    label: PageLabel
    has_text: bool
    lacks_text: bool
    texts: PageTexts
    charts: PageCharts = NO_CHARTS


@dataclass(frozen=True, slots=True)
class PdfPages:
    """The pages of a file that could be read, how many it has, which failed, and its facts (None where unknown).

    ``turned`` are the degrees with the clock by which the text of some pages is turned; they were read upright.
    """

    pages: tuple[PdfPage, ...]
    total: int
    failed: tuple[int, ...]
    facts: DocumentMetadata | None
    turned: Mapping[int, int]


def read_pages(data: bytes, name: str, left_out: Collection[int] = (), window: int | None = None) -> PdfPages:
    """Read the pages of a PDF but those in ``left_out``, which failed before and count as failed again.

    ``window`` is how many pages are parsed at once; by default 250, fewer of a file with very many pieces a page.

    Raises:
        UnreadableDocument: it is encrypted or damaged.
    """
    packed: list[list[bytes]] = []
    sizes: list[HeadingSizes] = []
    failed = set(left_out)
    turned: dict[int, int] = {}
    total, facts = 0, None
    window = window or _window(data, left_out)
    for result in _windows(data, name, frozenset(left_out), window):
        total, facts = result.total_pages, facts or result.doc_meta
        failed.update(error.page_num for error in result.page_errors)
        if on_side := turned_pages(result.pages):
            numbers = [page.page_num for page in result.pages]
            result = _parsed(_parser(_ranges(numbers), on_side), data, name)
            turned |= on_side
        pages, odd = _pages(result)
        failed.update(odd)
        packed.append(pages)
        if total > window:
            sizes.append(heading_sizes(result.pages))
        del result  # before the next window is parsed
    windows: list[list[PdfPage]] = [[pickle.loads(page) for page in window_pages] for window_pages in packed]
    if len(windows) > 1:
        levelled = with_levels_of_all([[page.texts for page in pages] for pages in windows], sizes)
        windows = [
            [replace(page, texts=texts) for page, texts in zip(*pair, strict=True)]
            for pair in zip(windows, levelled, strict=True)
        ]
    return PdfPages(tuple(page for pages in windows for page in pages), total, tuple(sorted(failed)), facts, turned)


def try_pages(data: bytes, name: str, first: int, last: int) -> int:
    """Read some pages as ``read_pages`` does, to see whether the process outlives it; returns how many there are.

    Raises:
        UnreadableDocument: it is encrypted or damaged.
    """
    result = _parsed(_parser(f"{first}-{last}"), data, name)
    _pages(result)
    return result.total_pages


def _window(data: bytes, left_out: Collection[int]) -> int:
    """Return how many pages of a file may be parsed at once, by the pieces of text of one page in twenty-five."""
    from liteparse.parser import LiteParse
    from liteparse.types import ParseError

    if len(data) < SMALL:
        return WINDOW
    sampled = [number for number in range(1, 100 * SAMPLED, SAMPLED) if number not in left_out]
    parser = LiteParse(
        ocr_enabled=False, quiet=True, image_mode="off", output_format="text", continue_on_page_error=True,
        target_pages=_ranges(sampled),
    )  # fmt: skip
    try:
        pages = parser.parse(data).pages
    except ParseError:  # it is told of by whoever reads the pages
        return WINDOW
    pieces = sum(len(page.text_items) for page in pages)
    return max(1, min(WINDOW, PIECES * len(pages) // pieces)) if pieces else WINDOW


def _windows(data: bytes, name: str, left_out: frozenset[int], window: int) -> Iterator[ParseResult]:
    """Yield the results of the parser, window by window."""
    if not left_out:
        yield from _batches(data, name, window)
        return
    first, total = 1, window
    while first <= total:
        last = first + window - 1
        chosen = [number for number in range(first, last + 1) if number not in left_out]
        if chosen:
            result = _parsed(_parser(_ranges(chosen)), data, name)
            total = result.total_pages
            yield result
        first = last + 1


def _batches(data: bytes, name: str, window: int) -> Iterator[ParseResult]:
    from liteparse.types import ParseError

    try:
        for batch in _parser().parse_batches(data, window):
            result = batch.result
            result.total_pages = batch.total_pages
            yield result
            del batch, result
    except ParseError as error:
        raise _unreadable(name, error) from error


def _parsed(parser: LiteParse, data: bytes, name: str) -> ParseResult:
    from liteparse.types import ParseError

    try:
        return parser.parse(data)
    except ParseError as error:
        raise _unreadable(name, error) from error


def _unreadable(name: str, error: Exception) -> UnreadableDocument:
    if "password" in str(error).lower():
        return UnreadableDocument(f"'{name}' is protected by a password. Save a copy without one.")
    return UnreadableDocument(f"'{name}' is damaged and cannot be opened as PDF. Fetch or export it anew.")


def _ranges(numbers: list[int]) -> str:
    """Return numbers in ascending order as the parser takes them: "1-6,8-250"."""
    starts = [number for number in numbers if number - 1 not in numbers]
    ends = [number for number in numbers if number + 1 not in numbers]
    return ",".join(f"{start}-{end}" for start, end in zip(starts, ends, strict=True))


def _parser(pages: str | None = None, turned: Mapping[int, int] | None = None) -> LiteParse:
    from liteparse.parser import LiteParse

    return LiteParse(
        ocr_enabled=False,
        output_format="markdown",
        image_mode="off",
        quiet=True,
        continue_on_page_error=True,
        keep_headers_footers=True,  # its own rule takes headings like "Chapter 1", "Chapter 2" for running headers
        extract_blocks=True,
        extract_document_metadata=True,
        include_complexity=reads_scans(),
        target_pages=pages,
        page_orientation_corrections=list(turned.items()) if turned else None,
    )


def _pages(result: ParseResult) -> tuple[list[bytes], list[int]]:
    """Return the pages of a window, packed, and the numbers of those that are of too odd a form to be read.

    Small objects among the parser's own keep the memory around them from going back when those are freed: 36 MB of a
    filing of 179 pages. Packed, a page is one piece, and its parts are made anew when they are gone.
    """
    pages: list[bytes] = []
    odd: list[int] = []
    for page in result.pages:
        try:
            pages.append(pickle.dumps(_page(page), pickle.HIGHEST_PROTOCOL))
        except Exception:  # noqa: BLE001 - whatever a page holds, it costs that page
            odd.append(page.page_num)
    return pages, odd


def _page(page: ParsedPage) -> PdfPage:
    letters = sum(character.isalnum() for character in page.text)
    covered = page.complexity is not None and page.complexity.full_page_image
    return PdfPage(
        number=page.page_num,
        size=(page.width, page.height),
        label=label_of(page),
        has_text=bool(page.text.strip()),
        lacks_text=letters < FEW and (covered or not letters),
        texts=page_texts(page),
        charts=charts_of(page),
    )
