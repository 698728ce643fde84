"""The Markdown blocks of a page, the removal of running headers and footers, and the images of pages.

Running lines are lines in the margin that are the same on nearly every page. Lines that may carry information stay: a
heading whose number changes, the first occurrence of a repeated line, and lines outside the margin or on few pages.
"""

from __future__ import annotations

import ctypes
import re
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise, takewhile
from math import hypot, inf
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING
from unicodedata import normalize

from workbench.ingestion.ocr.document import PictureWords, ReadLine, ReadWord, mean_confidence, order_paragraphs
from workbench.ingestion.ocr.images import Box
from workbench.ingestion.readers.grid import format_cell, format_markdown_table
from workbench.ingestion.readers.pdf.tables import (
    PageBlock,
    contains_all_words,
    group_lines,
    insert_figure_tables,
    list_blocks,
)
from workbench.ingestion.text import format_subscript, format_superscript, leave_out
from workbench.types import ScannedPage, WordPlace

if TYPE_CHECKING:
    from liteparse.types import AnnotationRect, LayoutBlock, LayoutCell, ParsedPage, TextItem

# --- Prose that the parser cut into table cells ---

MIN_RUN_WORDS = 6  # of a run that is searched for in the cells; a shorter one may be a name over several columns
MIN_CUT_RUNS = 2  # number of cut runs that show that a table is prose
NO_LETTERS = re.compile(r"[\W_]+")  # all but letters and digits
CELL_TOLERANCE_PT = 1.0  # points by which a line may exceed its cell


def restore_cut_lines(page: ParsedPage, texts: Sequence[str]) -> list[str]:
    """Return the blocks of a page, one for each of ``page_blocks``, with cut lines restored."""
    blocks = list_blocks(page)
    if len(blocks) != len(texts):
        return list(texts)
    return [
        _restore_block(page, block, text) if block.kind == "table" else text
        for block, text in zip(blocks, texts, strict=True)
    ]


def _restore_block(page: ParsedPage, block: PageBlock, text: str) -> str:
    box, rows = block.box, block.rows
    if box is None:
        return text
    items = [item for item in page.text_items if item.text.strip() and _is_in_box(item, box)]
    cells = [_keep_letters(cell.text) for row in rows for cell in row]
    cut = [
        item for item in items if len(item.text.split()) >= MIN_RUN_WORDS and _is_cut(_keep_letters(item.text), cells)
    ]
    if len(cut) < MIN_CUT_RUNS:
        return text
    first = min(item.y + item.height / 2 for item in cut)
    kept = list(takewhile(lambda row: _row_bottom(row) <= first, rows))
    table = format_markdown_table([[format_cell(cell.text) for cell in row] for row in kept]) if len(kept) > 1 else ""
    below = max(map(_row_bottom, kept)) if table else box[1] - CELL_TOLERANCE_PT
    rest = [item for item in items if item.y + item.height / 2 > below]
    whole = "\n\n".join(filter(None, [table, *_split_paragraphs(rest)]))
    return whole if contains_all_words(whole, [text]) else text


def restore_fixed_width(page: ParsedPage, texts: Sequence[str]) -> list[str]:
    """Return the blocks of a page with lines in a fixed-width font as they are set, with indents and columns.

    The parser reads the columns of such a list one after another, so that no row has its figures.
    """
    blocks, result = list_blocks(page), list(texts)
    runs, before = list[dict[int, Box]](), None
    for place, block in enumerate(blocks if len(blocks) == len(texts) else ()):
        box = block.box if block.kind == "code" else None
        if box and (before is None or box[3] <= before[1]):  # a list of its own, at the top of the next column
            runs.append({})
        if box:
            runs[-1][place] = box
        before = box
    for boxes in runs:
        areas = list(boxes.values())
        items = [item for item in page.text_items if item.text.strip() and any(_is_in_box(item, box) for box in areas)]
        if not items:
            continue
        left, width = min(area[0] for area in areas), median(item.width / len(item.text) for item in items) or 1.0
        lines = [texts[min(boxes)].partition("\n")[0]]  # the fence, with the language
        for line in group_lines(items):
            lines.append("")
            for item in line:
                lines[-1] = (lines[-1] and lines[-1] + " ").ljust(round((item.x - left) / width)) + item.text
        for place in boxes:
            result[place] = "\n".join([*lines, "```"]) if place == min(boxes) else ""
    return result


def _is_in_box(item: TextItem, box: Box) -> bool:
    left, top, right, bottom = box
    middle = item.y + item.height / 2
    return (
        item.x + item.width > left
        and item.x < right
        and top - CELL_TOLERANCE_PT <= middle <= bottom + CELL_TOLERANCE_PT
    )


def _is_cut(run: str, cells: Sequence[str]) -> bool:
    return not any(run in cell for cell in cells)


def _row_bottom(row: Sequence[LayoutCell]) -> float:
    """Return the bottom of a row's lowest cell, or infinity if unknown."""
    boxes = [cell.bbox for cell in row if cell.text.strip()]
    return max((inf if box is None else box.y + box.height for box in boxes), default=inf)


def _split_paragraphs(items: Sequence[TextItem]) -> Iterator[str]:
    """Yield the text of items by column and paragraph. If a line has several items, yield it line by line."""
    lines: list[ReadLine] = []
    for item in items:
        box = (item.x, item.y, item.x + item.width, item.y + item.height)
        lines.append(ReadLine((ReadWord(format_cell(item.text), 1.0, box),), box))
    for paragraph in order_paragraphs(lines):
        texts = [" ".join(line.words[0].text for line in row) for row in paragraph]
        yield (" " if all(len(row) == 1 for row in paragraph) else "\n").join(texts)


def _keep_letters(text: str) -> str:
    return NO_LETTERS.sub("", text)


MARGIN_SHARE = 0.08  # of the page's height: text starts an inch (9%) from the edge, headers half an inch
MAX_MARGIN_LINES = 2  # lines examined at each end of a page
MIN_RUNNING_PAGES = 3  # pages that must have a line
MAX_MISSING_SHARE = 0.2  # of the pages may lack it (a cover, the first page of a chapter), and always one page may
MAX_LINE_CHARS = 160  # characters of a line
NUMBER = re.compile(r"\d+")
WHOLE_NUMBER = re.compile(r"(?<![\d.])\d+(?!\.?\d)")  # not a part of "Section 1.2"
PAGE_NUMBER = re.compile(r"\W*(?:page|p\.|pp\.|seite|pagina|página)?\s*\d+(?:\s*(?:of|/|von|de|sur)\s*\d+)?\W*", re.I)


@dataclass(frozen=True, slots=True)
class MarginLine:
    """A line in the margin of a page."""

    page: int  # number of its page
    block: int  # index among the page's blocks
    edge: str  # edge of the page, top or bottom, or side for a line that the parser's blocks lack
    text: str  # the line

    def numbers(self) -> list[int]:
        """Return the whole numbers in the line, from left to right."""
        return [int(number) for number in WHOLE_NUMBER.findall(self.text)]


@dataclass(frozen=True, slots=True)
class PageTexts:
    """The text of a page."""

    number: int  # page number, from 1
    blocks: tuple[str, ...]  # its blocks as Markdown
    margins: tuple[MarginLine, ...]  # short lines in its margins, which may be running lines


def make_page_texts(page: ParsedPage, raised: Sequence[WrittenWord] = (), vertical: Sequence[str] = ()) -> PageTexts:
    """Return the texts of a page that liteparse has parsed with its blocks.

    Lines cut into cells are restored, and tables of figures are rebuilt. ``vertical`` replaces the blocks if the page
    is written vertically.
    """
    texts = page.markdown.split("\n\n")
    rebuilt = list(vertical) or insert_figure_tables(page, restore_cut_lines(page, restore_fixed_width(page, texts)))
    rebuilt = _write_words(_write_boxes(page, rebuilt), [*_find_suspended_words(page), *raised])
    # What the blocks lack: rotated lines, such as watermarks, stamps and names of axes.
    lost = find_lost_lines("\n".join(item.text for item in page.text_items), "\n".join(rebuilt))
    sides = [MarginLine(page.page_num, len(rebuilt) + place, "side", text) for place, text in enumerate(lost)]
    rebuilt = [*rebuilt, *lost, *list_form_fields(page)]
    return PageTexts(page.page_num, tuple(rebuilt), (*_find_margin_lines(page, texts), *sides))


def find_lost_lines(text: str, read: str) -> list[str]:
    """Return the lines of a text with a word that was not read, or not as often.

    A word that is only divided differently was read, because none of its letters is lacking.
    """
    text = text.replace(NO_CHARACTER, "")
    lacking = Counter(_fold(text)) - Counter(_fold(read))
    known = Counter(map(_fold, read.split() if lacking else ()))
    lines: list[str] = []
    for line in text.splitlines() if lacking else ():
        is_lost = False
        for word in map(_fold, line.split()):
            if known[word]:
                known[word] -= 1
            elif word and Counter(word) <= lacking:
                lacking -= Counter(word)
                is_lost = True
        lines += [" ".join(line.split())] if is_lost else []
    return lines


def _fold(text: str) -> str:
    return _keep_letters(normalize("NFKC", text))


SPREAD_WORD = re.compile(r"[^\W_]{3,40}|[^\W\d_]{2}")


def join_spread_letters(markdown: str, text: str) -> str:
    """Return Markdown with the words of a text that the parser divides if their letters have gaps: "A N N U A L"."""
    known, letters = set(SPREAD_WORD.findall(markdown)), markdown.replace(" ", "")
    for word in filter(letters.__contains__, {*SPREAD_WORD.findall(text)} - known):
        gap = " " if word.isdecimal() else " ?"  # "10 6" may be a superscript
        markdown = re.sub(rf"(?<!\w){gap.join(word)}(?!\w)", word, markdown)
    return markdown


SUSPENDED_END = re.compile(r"([^\W\d_]+)-\s*$")  # the end of a line with the first of two words that share their end
CONJUNCTION_START = re.compile(r"\s*(und|oder|and|or|bis|sowie|et|ou|y|o|en|of|to)(?!\S)")


def _find_suspended_words(page: ParsedPage) -> Iterator[WrittenWord]:
    """Yield the words whose hyphen the parser removes before a conjunction, as in "Wasser- und Gasleitungen"."""
    for item, after in pairwise(item for item in page.text_items if item.text.strip()):
        end, start = SUSPENDED_END.search(item.text), CONJUNCTION_START.match(after.text)
        if end and start and after.y > item.y:
            yield "", end[1] + start[1], f"{end[1]}- {start[1]}"


# --- Check boxes that are drawn as letters ---

CHECKED_BOX, UNCHECKED_BOX = "☒", "☐"
# Boxes and bullets of the fonts Wingdings (o to r, x, ¨, û to þ, l to à) and Wingdings 2 (O to T, £), by their codes.
WINGDINGS = dict(zip("opqrx¨ûüýþlnuvØàOPQRST£", "☐☐☐☐☒☐✗✓☒☑●■◆❖➢→✗✓☒☑☒☒☐", strict=True))
BOX_CODES = {0xF000 + ord(letter): box for letter, box in WINGDINGS.items()}  # private characters of these fonts
LISTED_BOXES = {"□": UNCHECKED_BOX, "■": CHECKED_BOX}  # boxes that the parser replaces by the bullet of a list
BOX_START = re.compile("[□❏❐❑❒☐◻]")


def decode_boxes(page: ParsedPage, glyphs: PageGlyphs) -> None:
    """Replace the letters of a page that are boxes in their font, and private characters without that of Symbol."""
    letters, others = set[str](), set[str]()
    for match in re.finditer("[\uf020-\uf0ff]|(?<!\\S)(?:[^\\W\\d_]|[¨£])(?!\\S)", glyphs.text):
        letter, name = chr(ord(match[0]) % 0xF000), glyphs.read_font(match.start())
        if "wingdings" in name and not re.search(r"wingdings[ -]?3", name):
            letters.add(letter)
        elif letter == match[0] or name:  # the private characters of each font are its own
            others.add(letter)
    letters &= WINGDINGS.keys() - others
    codes = {code: box for code, box in BOX_CODES.items() if chr(code - 0xF000) not in others}
    alone = re.compile(f"(?<!\\S)[{''.join(letters)}](?!\\S)" if letters else "(?!)")
    if not letters and not any(chr(code) in page.text for code in codes):
        return

    def decode(text: str) -> str:
        return alone.sub(lambda match: WINGDINGS[match[0]], text.translate(codes))

    page.text, page.markdown, glyphs.text = decode(page.text), decode(page.markdown), decode(glyphs.text)
    for item in page.text_items:
        item.text = decode(item.text)


def _write_boxes(page: ParsedPage, blocks: Sequence[str]) -> list[str]:
    """Return the blocks of a page with the boxes at the start of its lines that the parser has replaced by bullets."""
    joined = "\0".join(blocks)
    has_boxes = any(BOX_START.match(item.text) for item in page.text_items)
    for item, after in pairwise([*page.text_items, *page.text_items[-1:]] if has_boxes else ()):
        mark, _, rest = item.text.partition(" ")
        if mark in LISTED_BOXES:
            start = re.escape(" ".join((rest or after.text).split()[:3]))
            joined = re.sub(rf"(?m)((?:^|\0)\s*- )(?={start})", rf"\1{LISTED_BOXES[mark]} ", joined, count=1)
    return joined.split("\0")


# --- Superscripts, which the parser joins to their word: read from the glyphs of PDFium, the library of the parser ---

MIN_RISE, MAX_RISE = 0.12, 0.75  # by which a superscript is above its base, as a share of the base's size
MIN_LOWERING = 0.05  # by which a subscript is below its base
MAX_RAISED_SIZE = 0.92  # of the base's size
MIN_TALLER_SHARE = 0.005  # of a line's height by which lines of one font are higher if they have superscripts
MAYBE_RAISED = re.compile(  # in the text of pages with superscripts
    r"[^\W\d_]\d{1,2}(?![\w-])|[)\]”’\"%]\d|[a-z][.;:,]\d|,\d{3}\d{1,2}(?![\d,])|\b10[-−]?[1-9]\d?\b|\b\d{5}\b"
)
SPLIT_MARK = re.compile(r"(?<!\S)(\S++)\r\n([-−]?\d{1,2})(?!\S)")
MAX_MARK_GAP = 1.5  # sizes from the start of a letter to that of its superscript
TRAILING_MARKS = ".,;:"  # after a word
NOTE_MARK = re.compile(r"[a-d]|\d{1,2}(?:,\d{1,2})+")  # of a note, after a whole word
NO_CHARACTER = "\ufffe"  # PDFium's for a hyphen at the end of a line, and for a glyph without a character
INVISIBLE_MODES = (3, 7)  # of rendering text (ISO 32000-2, table 104)
WHOLE_WORD = re.compile(r"[^\W\d_]{2}[a-z]\W*$")

# The word before it, "" at the start, or None for each occurrence; the word as the parser joins it; and as written.
WrittenWord = tuple[str | None, str, str]


def has_raised_text(page: ParsedPage) -> bool:
    """Return whether a page may have superscripts: by its text, or because its lines in one font differ in height."""
    usual: dict[tuple[str | None, float | None], float] = {}
    for item in page.text_items:
        key = (item.font_name, item.font_size)
        usual[key] = min(item.height, usual.get(key, item.height))
    return MAYBE_RAISED.search(page.text) is not None or any(
        item.height > (1 + MIN_TALLER_SHARE) * usual[item.font_name, item.font_size] for item in page.text_items
    )


class _Matrix(ctypes.Structure):
    """PDFium's transformation from text space to the page."""

    a: float
    b: float
    c: float
    d: float
    _fields_ = [(name, ctypes.c_float) for name in "abcdef"]


@cache
def _load_pdfium() -> ctypes.CDLL:
    """Return the library that liteparse loads from its own folder."""
    import liteparse

    library = ctypes.CDLL(str(next(Path(liteparse.__file__).parent.glob("*pdfium.*"))))
    for name in ("FPDF_LoadMemDocument", "FPDF_LoadPage", "FPDFText_LoadPage", "FPDFText_GetTextObject"):
        getattr(library, name).restype = ctypes.c_void_p
    library.FPDFText_GetFontSize.restype = ctypes.c_double
    library.FPDF_InitLibrary()
    return library


class PageGlyphs:
    """The glyphs of a page, in the order of its text."""

    def __init__(self, library: ctypes.CDLL, page: ctypes.c_void_p) -> None:
        self._library, self._page = library, page
        count = library.FPDFText_CountChars(page)
        buffer = ctypes.create_string_buffer(2 * max(0, count) + 2)
        library.FPDFText_GetText(page, 0, count, buffer)
        self.text = buffer.raw[: 2 * count].decode("utf-16-le", "replace")
        if len(self.text) != count or "\0" in self.text:  # some glyphs have no or several characters
            self.text = "".join(chr(library.FPDFText_GetUnicode(page, at)) for at in range(count))

    @property
    def is_mixed(self) -> bool:
        """True if it has visible and invisible text."""
        return {self._mode(match.start()) in INVISIBLE_MODES for match in re.finditer(r"\S+", self.text)} == {
            True,
            False,
        }

    def find_unmapped(self) -> list[str]:
        """Return the words and glyphs without a character: in the map of their font, or because it has none."""
        marks = (match.start() for match in re.finditer(NO_CHARACTER, self.text))
        unmapped = [self.text[at] for at in marks if not self._library.FPDFText_IsHyphen(self._page, at)]
        words = re.finditer(r"[^\s\0-\x1f]+", self.text)  # control characters count anyway
        is_lost = self._library.FPDFText_HasUnicodeMapError
        return unmapped + [word[0] for word in words if is_lost(self._page, word.start()) == 1]

    def read_font(self, at: int) -> str:
        """Return the name of a glyph's font in lower case."""
        name = ctypes.create_string_buffer(64)
        self._library.FPDFText_GetFontInfo(self._page, at, name, len(name), None)
        return name.value.decode("latin-1").lower()

    def _mode(self, at: int) -> int:
        run = ctypes.c_void_p(self._library.FPDFText_GetTextObject(self._page, at))
        return self._library.FPDFTextObj_GetTextRenderMode(run)

    def is_smaller(self, at: int, other: int) -> bool:
        """Return whether a glyph has a smaller size than another."""
        return self._size(at) < self._size(other)

    def _size(self, at: int) -> float:
        return self._library.FPDFText_GetFontSize(self._page, at)

    def measure(self, at: int) -> tuple[float, float]:
        """Return the size of a glyph, and the height of its baseline in the direction of its text, in points."""
        matrix = _Matrix()
        self._library.FPDFText_GetMatrix(self._page, at, ctypes.byref(matrix))
        scale = hypot(matrix.c, matrix.d) or 1.0
        x, y = self._origin(at)
        return self._size(at) * scale, (x * matrix.c + y * matrix.d) / scale

    def locate(self, first: int, last: int) -> tuple[float, tuple[float, float], tuple[float, float]]:
        """Return the size of the first glyph of a line, and the origins of it and the last one, from the lower left."""
        return self.measure(first)[0], self._origin(first), self._origin(last)

    def _origin(self, at: int) -> tuple[float, float]:
        x, y = ctypes.c_double(), ctypes.c_double()
        self._library.FPDFText_GetCharOrigin(self._page, at, ctypes.byref(x), ctypes.byref(y))
        return x.value, y.value


def read_glyphs(data: bytes, numbers: Iterable[int]) -> Iterator[tuple[int, PageGlyphs]]:
    """Yield pages of a PDF with their glyphs, each valid until the next one."""
    library = _load_pdfium()
    file = ctypes.c_void_p(library.FPDF_LoadMemDocument(data, len(data), None))
    try:
        for number in numbers:
            page = ctypes.c_void_p(library.FPDF_LoadPage(file, number - 1))
            text = ctypes.c_void_p(library.FPDFText_LoadPage(page))
            yield number, PageGlyphs(library, text)
            library.FPDFText_ClosePage(text)
            library.FPDF_ClosePage(page)
    finally:
        library.FPDF_CloseDocument(file)


def find_raised_words(page: PageGlyphs) -> list[WrittenWord]:
    """Return the words with superscripts."""
    found: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    before = ""
    for match in re.finditer(r"\S+", page.text):
        word, (first, end) = match[0], match.span()
        whole = text = word.rstrip(TRAILING_MARKS)
        if len(whole) > 1 and (MAYBE_RAISED.search(word) or page.is_smaller(first + len(whole) - 1, first)):
            text = _write_raised(word, [page.measure(at) for at in range(first, end)]).removesuffix(word[len(whole) :])
        found[whole][before].add(text)
        before = word if _keep_letters(word) else before
    words: list[WrittenWord] = []
    for word, places in reversed(found.items()):  # the word before is not yet replaced
        if len(every := set[str]().union(*places.values())) == 1:
            words += [(None, word, text) for text in every - {word}]
        else:
            words[:0] = [(before, word, text) for before, texts in places.items() for text in texts - {word}]
    return [*words, *_find_split_words(page)]


def _find_split_words(page: PageGlyphs) -> Iterator[WrittenWord]:
    """Yield the words whose superscript is on a line of its own for PDFium, as in some cells."""
    for match in SPLIT_MARK.finditer(page.text):
        word, last, first = match[1] + match[2], match.end(1) - 1, match.start(2)
        size, (left, _), (right, _) = page.locate(last, first)
        text = _write_raised(
            word, [page.measure(at) for at in (*range(match.start(), last + 1), *range(first, match.end()))]
        )
        if text != word and 0 < right - left < MAX_MARK_GAP * size:
            yield None, f"{match[1]} {match[2]}", text


def _write_raised(word: str, places: Sequence[tuple[float, float]]) -> str:
    """Return a word with its superscripts as plain text, given the size and the baseline of each of its characters."""
    text = mark = ""
    size, base = places[0]
    for character, (own_size, own_base) in zip(word, places, strict=True):
        rise = (own_base - base) / (size or 1.0)
        if text and own_size <= MAX_RAISED_SIZE * size and MIN_RISE <= rise <= MAX_RISE:
            mark += character
        else:
            is_letter = character.isalpha() and mark.isalpha()  # as in the logo of LaTeX
            text += mark if is_letter else _format_mark(mark, text)
            is_lowered = own_size <= MAX_RAISED_SIZE * size and -MAX_RISE <= rise <= -MIN_LOWERING
            text += format_subscript(character, text) if is_lowered else character
            mark, size, base = "", own_size, own_base
    return text + _format_mark(mark, text)


def _format_mark(mark: str, before: str) -> str:
    if NOTE_MARK.fullmatch(mark) and WHOLE_WORD.search(before):
        return f"[{mark}]"
    is_plain = not _keep_letters(mark) or (len(mark) > 1 and mark.isalpha())
    return mark if is_plain else format_superscript(mark, before)


def _write_words(blocks: Sequence[str], words: Sequence[WrittenWord]) -> list[str]:
    """Return blocks with words as they are written: everywhere, after the word before it, or if it occurs only once."""
    joined = "\0".join(blocks)
    for before, word, text in words:
        start = "" if before is None else (re.escape(before) or r"\A") + r"[\W_]*"
        whole = rf"(?<!\w){re.escape(word)}(?!\w)"
        joined, count = re.subn(rf"({start}){whole}", lambda match, text=text: match[1] + text, joined)
        if not count:
            places = [match.span() for match in re.finditer(whole, joined)]
            if len(places) == 1:
                joined = joined[: places[0][0]] + text + joined[places[0][1] :]
            leave_out("superscripts and hyphens joined to the word before them", len(places) > 1)
    return joined.split("\0")


# --- Values of forms ---

PASSWORD_FLAG = 1 << 13  # of a text field (ISO 32000-2, table 231)


def list_form_fields(page: ParsedPage) -> list[str]:
    """Return a block with the check boxes of a page and the form values missing from its text; [] if there are none."""
    lines: list[str] = []
    for one in page.form_fields or ():
        name, value = (" ".join((text or "").split()) for text in (one.alternate_name or one.name, one.value))
        if one.type == "checkbox" or (one.type == "radio" and one.checked):
            chosen = f": {value}" if one.checked and value not in ("Yes", "On") else ""
            lines.append(f"{CHECKED_BOX if one.checked else UNCHECKED_BOX} {name}{chosen}")
        elif one.type in ("text", "combobox", "listbox") and not one.field_flags & PASSWORD_FLAG:
            value = ", ".join(one.selected_options) or value
            is_drawn = one.type != "listbox" and value in _read_area(page, one.rect)  # which draws all its options
            lines += [f"{name}: {value}" if name else value] if value and not is_drawn else []
    return ["\n".join(f"- {line}" for line in lines)] if lines else []


def _read_area(page: ParsedPage, area: AnnotationRect | None) -> str:
    """Return the text of a page on the lines of an area, or of the whole page."""
    lines = (
        item.text
        for item in page.text_items
        if area is None
        or (
            area.y <= item.y + item.height / 2 <= area.y + area.height
            and item.x < area.x + area.width
            and item.x + item.width > area.x
        )
    )
    return " ".join(" ".join(lines).split())


# --- Vertical writing of Chinese and Japanese ---

MIN_VERTICAL_SHARE = 0.7  # of the CJK characters of a page that must be in vertical lines
MIN_VERTICAL_CHARS = 20
MAX_VERTICAL_GAP = 1.5  # character heights from one character of a column to the next
CJK_LETTER = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")


def order_vertical_text(page: PageGlyphs) -> list[str]:
    """Return the columns of a vertically written page, from the right, and its other lines; [] for other pages."""
    letters = len(CJK_LETTER.findall(page.text))
    if letters < MIN_VERTICAL_CHARS:
        return []
    columns: list[tuple[float, float, float, str]] = []
    others: list[str] = []
    for match in re.finditer(r"[^\r\n]+", page.text):
        size, (left, top), (right, bottom) = page.locate(match.start(), match.end() - 1)
        if top - bottom > abs(right - left) or (len(match[0]) == 1 and CJK_LETTER.match(match[0])):
            columns.append((-round(left / (size or 1.0)), -top, MAX_VERTICAL_GAP * size - bottom, match[0]))
        else:
            others.append(match[0])
    if len(CJK_LETTER.findall("".join(text for *_, text in columns))) < MIN_VERTICAL_SHARE * letters:
        return []
    text, end = "", inf
    for _, top, reached, line in sorted(columns):
        text += "\n\n" + line if top > end else line
        end = reached
    return [*text.split("\n\n"), *others]


def strip_running_lines(pages: Sequence[PageTexts]) -> list[str]:
    """Return the Markdown of pages without running headers and footers."""
    groups: dict[tuple[str, str], list[MarginLine]] = defaultdict(list)
    for line in (line for page in pages for line in page.margins):
        groups[line.edge, line.text].append(line)
        if NUMBER.search(line.text) and not line.text.startswith("#"):
            groups[line.edge, NUMBER.sub("#", line.text)].append(line)
    numbers = [page.number for page in pages]
    dropped = {(line.page, line.block) for group in groups.values() for line in _select_running(group, numbers)}
    return [
        "\n\n".join(text for index, text in enumerate(page.blocks) if text and (page.number, index) not in dropped)
        for page in pages
    ]


def _find_margin_lines(page: ParsedPage, blocks: Sequence[str]) -> Iterator[MarginLine]:
    """Yield the short lines in the margins, from each end inwards up to the first block that is not a short line."""
    seen_blocks = page.blocks or ()  # None if the page failed
    for edge, step in (("top", 1), ("bottom", -1)):
        for depth in range(min(MAX_MARGIN_LINES, len(blocks), len(seen_blocks))):
            index = depth if step == 1 else len(blocks) - 1 - depth
            block = seen_blocks[depth if step == 1 else -1 - depth]
            text = blocks[index]
            if not _is_line(text, block) or not _in_margin(edge, block, page.height):
                break
            yield MarginLine(page.page_num, index, edge, text)


def _is_line(text: str, block: LayoutBlock) -> bool:
    """Return whether a block of Markdown is one short line with the same text as the parser's block."""
    same = _keep_letters(text) == _keep_letters(block.text or "")
    return same and block.bbox is not None and "\n" not in text and 0 < len(text) <= MAX_LINE_CHARS


def _in_margin(edge: str, block: LayoutBlock, height: float) -> bool:
    box = block.bbox
    if box is None:
        return False
    return box.y + box.height <= MARGIN_SHARE * height if edge == "top" else box.y >= (1 - MARGIN_SHARE) * height


def _select_running(group: Sequence[MarginLine], pages: Sequence[int]) -> Sequence[MarginLine]:
    """Return the lines with the same text to leave out: all but the first, or all if they are page numbers."""
    sides = {line.page % 2 for line in group}  # books have different headers on left and right pages
    expected = sum(page % 2 in sides for page in pages)
    if len(group) < MIN_RUNNING_PAGES or expected - len(group) > max(1, MAX_MISSING_SHARE * expected):
        return ()
    if len({line.text for line in group}) == 1:
        return group[1:]
    if not _counts_pages(group):
        return ()
    return group if all(PAGE_NUMBER.fullmatch(line.text) for line in group) else group[1:]


def _counts_pages(group: Sequence[MarginLine]) -> bool:
    """Return whether a number increases with the pages, as page numbers do and years do not."""
    columns = zip(*(line.numbers() for line in group), strict=True)
    offsets = ([number - line.page for number, line in zip(column, group, strict=True)] for column in columns)
    return any(len(set(values)) == 1 for values in offsets)


# --- Images on pages that have text: which pages to read with OCR, and where their words belong ---

MIN_IMAGE_SHARE = 0.04  # smallest share of the page covered by an image that is read; logos are smaller
CAPTION = re.compile(r"\W*(?:figure|fig\.|chart|exhibit|graph|abbildung|abb\.|figura|图|圖|図)\s*\d", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class PageCharts:
    """The images of a page that has text."""

    share: float  # fraction (0..1) of the page covered by its largest image
    text: tuple[Box, ...]  # boxes of the page's own text, in shares of the page
    # (index among the page's blocks, middle as a share of the page's height) of each caption.
    captions: tuple[tuple[int, float], ...]
    garbled: tuple[str, ...] = ()  # lines in fonts with no or a wrong Unicode map, which are read like images
    drawn: int = 0  # letters drawn as curves, which are read like images


NO_CHARTS = PageCharts(0.0, (), ())


def find_charts(page: ParsedPage, garbled: Collection[str] = ()) -> PageCharts:
    """Return data about the images of a page that was parsed with its complexity, and its ``garbled`` lines."""
    share = page.complexity.largest_image_coverage if page.complexity is not None else 0.0
    drawn = _count_drawn_letters(page)
    share = 1.0 if garbled or drawn else share
    if share < MIN_IMAGE_SHARE or not page.width or not page.height:
        return NO_CHARTS
    boxes = tuple(
        (
            item.x / page.width,
            item.y / page.height,
            (item.x + item.width) / page.width,
            (item.y + item.height) / page.height,
        )
        for item in page.text_items
        if item.text.strip() and item.text not in garbled
    )
    blocks, texts = list_blocks(page), page.markdown.split("\n\n")
    captions = tuple(
        (place, (block.box[1] + block.box[3]) / 2 / page.height)
        for place, (block, text) in enumerate(zip(blocks, texts, strict=False))
        if len(blocks) == len(texts) and block.box is not None and CAPTION.match(text)
    )
    return PageCharts(share, boxes, captions, tuple(garbled), drawn)


MIN_LETTER_PT, MAX_LETTER_PT = 2, 40  # height of letters that are drawn as curves
MIN_DRAWN_LETTERS = 12  # in a line; the marks of a chart have one size, or are fewer
MIN_LETTER_SIZES = 5
EDGES_PER_LETTER = 3  # vertical ones: an "o" has none, an "m" eight


def _count_drawn_letters(page: ParsedPage) -> int:
    """Return the number of letters drawn as curves, outside the text.

    They are filled shapes of several sizes in a line, or one shape with the edges of all stems of a line.
    """
    if (graphics := page.vector_graphics) is None:
        return 0
    count = 0
    texts: dict[int, list[tuple[float, float, float, float]]] = defaultdict(list)  # by each row that they are in
    for item in page.text_items:
        for row in range(int(item.y), int(min(item.y + item.height, page.height)) + 1):
            texts[row].append((item.x, item.y, item.width, item.height))
    edges = sorted((edge.y1, edge.x1) for edge in graphics.lines if edge.fill and edge.x1 == edge.x2)
    lines: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for shape in graphics.shapes:
        left, top, width, height = shape.bbox
        middle = (left + width / 2, top + height / 2)
        if not (shape.fill and shape.has_curve and MIN_LETTER_PT <= height <= MAX_LETTER_PT):
            continue
        if any(_is_inside(middle, box) for box in texts.get(int(middle[1]), ())):
            continue
        if width <= MAX_LETTER_PT:
            lines[round(top + height)].append((round(10 * width), round(10 * height)))
        else:
            within = edges[bisect_left(edges, (top,)) : bisect_right(edges, (top + height, inf))]
            letters = sum(left <= x <= left + width for _, x in within) // EDGES_PER_LETTER
            count += letters if letters >= MIN_DRAWN_LETTERS else 0
    return count + sum(
        len(line) for line in lines.values() if len(line) >= MIN_DRAWN_LETTERS and len(set(line)) >= MIN_LETTER_SIZES
    )


def _is_inside(point: tuple[float, float], area: tuple[float, float, float, float]) -> bool:
    left, top, width, height = area
    return left <= point[0] <= left + width and top <= point[1] <= top + height


MIN_REMOVED_CHARS = 4  # of a garbled line; shorter ones may be words elsewhere on the page


def insert_picture_words(texts: PageTexts, charts: PageCharts, words: Sequence[PictureWords]) -> PageTexts:
    """Return a page's texts with the words of its images, each group after the nearest caption.

    Without a caption they become the last block. Garbled lines are removed if there are words.
    """
    blocks = list(texts.blocks)
    for line in (line.strip() for line in charts.garbled if words):
        if len(line) >= MIN_REMOVED_CHARS:
            whole = re.compile(rf"(?<!\S){re.escape(line)}(?!\S)")
            blocks = [whole.sub("", block).strip() for block in blocks]
    for group in words:
        if charts.captions:
            place = min(charts.captions, key=lambda caption: abs(caption[1] - group.middle))[0]
            between = "\n\n" if blocks[place].startswith("#") else " · "
            blocks[place] = f"{blocks[place]}{between}{group.text}"
        else:
            blocks.append(group.text)
    return PageTexts(texts.number, tuple(blocks), texts.margins)


def place_picture_words(text: str, number: int, words: Sequence[PictureWords]) -> ScannedPage | None:
    """Return the words of a page's images with their positions in its text, or None if it contains none of them."""
    places: list[WordPlace] = []
    after: dict[str, int] = {}  # of two images with the same words, the second comes after the first
    for group in words:
        start = text.find(group.text, after.get(group.text, 0))
        if start < 0:
            continue
        after[group.text] = start + len(group.text)
        places += [place.shift(start) for place in group.places]
    if not places:
        return None
    places.sort(key=lambda place: place.start)
    return ScannedPage(number, mean_confidence(places), tuple(places))
