"""The pages of a PDF, parsed in windows; each page is reduced at once to the parts of it that a document needs."""

from __future__ import annotations

import pickle
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from workbench.errors import UnreadableDocument
from workbench.formatting import MB
from workbench.ingestion.ocr.document import reads_scans
from workbench.ingestion.readers.pdf.charts import NO_CHARTS, PageCharts, charts_of
from workbench.ingestion.readers.pdf.layout import PageTexts, page_texts

if TYPE_CHECKING:
    from liteparse.parser import LiteParse
    from liteparse.types import DocumentMetadata, LayoutBlock, ParsedPage, ParseResult

# --- One order of heading levels for a PDF that was parsed in windows, each of which had levels of its own ---

LARGER = 0.5  # points by which a heading's print exceeds the usual one, or another size of headings
LOWEST = 6
MARK = re.compile(r"#{1,6}(?= )")


@dataclass(frozen=True, slots=True)
class HeadingSizes:
    """The size of the usual print of a window, and those of its headings by page and text, in points."""

    usual: float = 0.0
    of_headings: Mapping[tuple[int, str], float] = field(default_factory=dict[tuple[int, str], float])

    def larger(self) -> list[float]:
        """Return the sizes of headings in larger print than the usual one."""
        return [size for size in self.of_headings.values() if size > self.usual + LARGER]


def heading_sizes(pages: Sequence[ParsedPage]) -> HeadingSizes:
    """Return the sizes of print of a window of pages, parsed with their blocks."""
    letters = Counter[float]()
    for page in pages:
        for item in page.text_items:
            letters[round(item.font_size or 0.0, 1)] += len(item.text)
    usual = max(letters, key=lambda size: letters[size], default=0.0)
    return HeadingSizes(usual, {key: size for page in pages for key, size in _of_headings(page)})


def with_levels_of_all(windows: Sequence[Sequence[PageTexts]], sizes: Sequence[HeadingSizes]) -> list[list[PageTexts]]:
    """Return the pages of all windows with heading levels that mean the same in each."""
    distinct = _distinct([size for window in sizes for size in window.larger()])
    return [
        [_levelled(page, window_sizes, distinct) for page in window]
        for window, window_sizes in zip(windows, sizes, strict=True)
    ]


def _of_headings(page: ParsedPage) -> Iterator[tuple[tuple[int, str], float]]:
    for block in page.blocks or ():
        if block.kind == "heading" and block.text and (size := _size(page, block)):
            yield (page.page_num, _letters(block.text)), size


def _size(page: ParsedPage, block: LayoutBlock) -> float:
    """Return the size of most letters in a block's box; 0 where nothing is known."""
    box = block.bbox
    sizes = Counter[float]()
    for item in page.text_items if box is not None else ():
        middle = item.y + item.height / 2
        if box is not None and box.y <= middle <= box.y + box.height and box.x - 1 <= item.x <= box.x + box.width:
            sizes[item.font_size or 0.0] += len(item.text.strip())
    return max(sizes, key=lambda size: sizes[size], default=0.0)


def _distinct(sizes: Sequence[float]) -> list[float]:
    """Return the sizes from the largest down, those that are nearly alike once."""
    kept: list[float] = []
    for size in sorted(sizes, reverse=True):
        if not kept or kept[-1] - size > LARGER:
            kept.append(size)
    return kept


def _levelled(page: PageTexts, sizes: HeadingSizes, distinct: Sequence[float]) -> PageTexts:
    own = len(_distinct(sizes.larger()))

    def level(text: str) -> str:
        mark = MARK.match(text)
        size = sizes.of_headings.get((page.number, _letters(text)))
        if mark is None or size is None:
            return text
        if size > sizes.usual + LARGER:
            rank = sum(larger > size + LARGER for larger in distinct) + 1
        elif len(mark[0]) == 1 and own:  # named by the file's outline, as parts and items are
            rank = 1
        else:
            rank = len(distinct) + 1
        return "#" * min(rank, LOWEST) + text[mark.end() :]

    margins = tuple(replace(line, text=level(line.text)) for line in page.margins)
    return PageTexts(page.number, tuple(level(text) for text in page.blocks), margins)


def _letters(text: str) -> str:
    return "".join(character for character in text if character.isalnum())


# --- The numbers that pages bear: a PDF's own page labels, or those printed at the edges of its pages ---

EDGE = 2  # lines looked at from each end of a page
LEAST = 3  # pages that must bear a number
SHARE = 0.5  # of the pages with text that must bear one at the same distance from the count
PRINTED = re.compile(r"\W*(?:page|p\.|seite|pagina|página)?\s*(\d{1,4})\W*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class PageLabel:
    """A page's number from 1, its label in the file ("" for none), and the numbers printed at its edges.

    ``edges`` is None of a page without text.
    """

    number: int
    own: str
    edges: frozenset[int] | None


def label_of(page: ParsedPage) -> PageLabel:
    """Return what a page says of its number."""
    edges = frozenset(_edge_numbers(page.text)) if page.text.strip() else None
    return PageLabel(page.page_num, page.page_label or "", edges)


def page_labels(pages: Sequence[PageLabel]) -> dict[str, str]:
    """Return the labels of pages by their numbers (from 1, as text), where they differ from the numbers.

    A file's own labels win; else a number printed in the first or last two lines counts where at least half of the
    pages bear one at the same distance from the count.
    """
    own = {str(page.number): page.own for page in pages if page.own}
    labels = own or _printed(pages)
    return labels if any(number != label for number, label in labels.items()) else {}


def _printed(pages: Sequence[PageLabel]) -> dict[str, str]:
    numbers = [(page.number, page.edges) for page in pages if page.edges is not None]
    distances = Counter(page - number for page, printed in numbers for number in printed)
    if not distances:
        return {}
    distance, count = distances.most_common(1)[0]
    if count < max(LEAST, SHARE * len(numbers)):
        return {}
    return {str(page): str(page - distance) for page, printed in numbers if page - distance in printed}


def _edge_numbers(text: str) -> Iterator[int]:
    lines = [line for line in text.splitlines() if line.strip()]
    for line in (*lines[:EDGE], *lines[EDGE:][-EDGE:]):
        match = PRINTED.fullmatch(line.strip())
        if match is not None:
            yield int(match[1])


# --- Pages of a PDF whose text is turned by a quarter or a half, as wide tables are; the parser gives them no ---

MOST = 0.5  # of a page's letters that are turned alike
QUARTER = 90


def turned_pages(pages: Sequence[ParsedPage]) -> dict[int, int]:
    """Return the degrees (90, 180, 270), with the clock, by which the text of pages is turned, by their numbers."""
    turns = ((page.page_num, _turn(page)) for page in pages)
    return {number: turn for number, turn in turns if turn}


def turn_of(metadata: Mapping[str, object], number: int) -> int:
    """Return the degrees by which the text of a page (from 1) of a document is turned, by its metadata."""
    turned = metadata.get("turned_pages")
    turn = turned.get(str(number)) if isinstance(turned, Mapping) else None
    return turn if isinstance(turn, int) else 0


def _turn(page: ParsedPage) -> int:
    letters = Counter[int]()
    for item in page.text_items:
        if item.text.strip():
            letters[round(item.rotation / QUARTER) * QUARTER % 360] += len(item.text.strip())
    turn = max(letters, key=lambda degrees: letters[degrees], default=0)
    return turn if letters[turn] > MOST * letters.total() else 0


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
