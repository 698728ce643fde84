"""Reader of Excel workbooks. Cells are formatted by their number formats: "#,##0.00", "0.0%", "$#,##0"."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby, takewhile

from workbench.ingestion.raw import Draft
from workbench.ingestion.readers.grid import (
    drop_empty,
    fits_table,
    format_cell,
    format_figure,
    is_amount,
    merge_header_rows,
    rows_to_text,
)
from workbench.ingestion.readers.office import (
    CHECKED_BOX,
    DAMAGED_PARTS,
    RELATION,
    UNCHECKED_BOX,
    UNDESCRIBED,
    Package,
    XmlElement,
    choose_alternatives,
    decode_escapes,
    drop_title,
    format_alt_text,
    format_graphics,
    format_link,
    format_symbols,
    is_damaged,
    list_alt_texts,
    read_core_properties,
    read_shape_text,
)
from workbench.ingestion.text import (
    HIDDEN_MARK,
    count_cut_parts,
    format_struck,
    format_subscript,
    format_superscript,
    leave_out,
    take_hidden,
)

# --- Tables of a sheet, separated by empty rows ---

MAX_CAPTION_CHARS = 120  # of the lines used as heading of a long table


def format_sheet(rows: Sequence[Sequence[str]]) -> str:
    """Return a sheet's lines and tables as Markdown. The lines above a long table become its heading."""
    parts: list[str] = []
    lines: list[str] = []
    for above, body in _find_tables(rows):
        lines += above
        if not body:
            continue
        named = merge_header_rows(drop_empty(body))
        if lines and not fits_table(named):
            lines = [f"### {' '.join(lines)[:MAX_CAPTION_CHARS]}"]
        parts += [*lines, rows_to_text(named)]
        lines = []
    return "\n\n".join([*parts, *lines])


def _find_tables(rows: Sequence[Sequence[str]]) -> list[tuple[list[str], list[list[str]]]]:
    """Return lines with a single cell, and the rows below them, in order; either may be empty.

    Rows after a gap that start with a data row continue the table before it.
    """
    tables: list[tuple[list[str], list[list[str]]]] = []
    for group in (list(map(list, group)) for is_filled, group in groupby(rows, any) if is_filled):
        leading = list(takewhile(lambda row: sum(map(bool, row)) == 1, group))
        body = group[len(leading) :]
        if tables and tables[-1][1] and not leading and any(map(is_amount, body[0])):
            tables[-1][1].extend(body)
        else:
            tables.append(([next(filter(None, row)) for row in leading], body))
    return tables


# --- Workbooks, with one section per sheet. Read leniently: only values, number formats and names are parsed ---

EAST_ASIAN_DATE_FORMATS = frozenset((*range(27, 37), *range(50, 59)))
MIDNIGHT, ISO_TIME = re.compile(r"(?<=\d)T00:00:00(?:\.0+)?Z?$"), re.compile(r"(?<!P)T(\d[\d:.]*)Z?$")  # not PT8H
# To an address outside the file, and the words that it shows.
LINK_FORMULA = re.compile(r'\s*HYPERLINK\(\s*"([^"#][^"]*)"(?:\s*[,;]\s*"([^"]+)"\s*\))?', re.IGNORECASE)
CONSTANT = re.compile(
    r'"([^"]+)"|(-?[\d.]+(?:E[+-]?\d+)?|TRUE|FALSE|\{.+\})', re.DOTALL
)  # of a defined name; others refer to cells
CELL_NAME = re.compile(r"\$?([A-Za-z]{1,3})\$?(\d+)")
MAX_REPEATED_CELLS = 100_000  # of merged cells of a sheet
MAX_GRID_CELLS = 5_000_000  # rows times columns of a sheet; a sparser one is written row by row
UNREAD_FOLDERS = {"xl/embeddings/": "embedded files", "xl/model/": "data models"}
THREAD_NOTE = "[Threaded comment]"  # at the start of the copy of a threaded comment for old programs
SCRIPTS = {"superscript": format_superscript, "subscript": format_subscript}
CellPlace = tuple[int, int]  # row and column


@dataclass(slots=True)
class SheetRows:
    """The filled cells of a sheet."""

    rows: dict[int, dict[int, str]] = field(default_factory=dict[int, dict[int, str]])  # text by column, by row number
    hidden: set[int] = field(default_factory=set[int])  # numbers of hidden rows
    hidden_columns: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])  # first and last hidden column
    margins: list[str] = field(default_factory=list[str])  # headers, footers and hints for the input


def read_xlsx(data: bytes, name: str) -> Draft:
    """Return the sheets' values as displayed, with comments. Formulas are replaced by their stored results.

    Raises:
        UnreadableDocument: It is password-protected, damaged, or has no sheets.
    """
    book = _Workbook(data, name)
    properties = read_core_properties(book)
    sections = [section for sheet in book.sheets if (section := _read_sheet(book, *sheet))]
    sections += ["Names:\n\n" + "\n".join(book.constants)] if book.constants else []
    for folder, what in UNREAD_FOLDERS.items():
        leave_out(what, sum(part.startswith(folder) for part in book.parts))
    caches = [book.parse(part) for part in book.parts if part.startswith("xl/pivotcache/pivotcachedefinition")]
    sources = [root.find("{*}cacheSource/{*}worksheetSource") for root in caches if root is not None]
    titles = [None, *(title for title, _, _ in book.sheets)]
    is_elsewhere = [one is None or one.get(RELATION + "id") or one.get("sheet") not in titles for one in sources]
    leave_out("pivot tables with data from another file or a removed sheet", sum(map(bool, is_elsewhere)))
    return Draft("\n\n".join(sections), properties.get("title", ""), drop_title(properties))


class _Workbook(Package):
    """The parts of a workbook that its sheets refer to."""

    def __init__(self, data: bytes, name: str) -> None:
        super().__init__(data, name)
        main = self.find_main_part("xl/workbook.xml")
        root = self.parse(main)
        if root is None:
            raise KeyError(main)
        settings = root.find("{*}workbookPr")
        self.epoch = datetime(1904, 1, 1) if settings is not None and _is_set(settings, "date1904") else None
        links = self.links(main)
        self.sheets: list[tuple[str, str, str]] = []  # (title, state, path)
        for sheet in root.iterfind("{*}sheets/{*}sheet"):
            relation = next((value for key, value in sheet.attrib.items() if key.endswith("}id")), "")
            kind, path = links.get(relation, ("", ""))
            if kind in ("worksheet", "chartsheet") and path in self.parts:
                self.sheets.append((sheet.get("name") or "", sheet.get("state") or "", path))
            else:
                leave_out("sheets that are missing in the file")
        names = {name.get("name"): name for name in root.iterfind("{*}definedNames/{*}definedName")}
        values = {
            key: CONSTANT.fullmatch(name.text or "") for key, name in names.items() if not _is_set(name, "hidden")
        }
        self.constants = [f"- {key}: {value[1] or value[2]}" for key, value in values.items() if value]
        self.margins: set[str] = set()  # headers and footers that were read, because sheets repeat them
        by_kind = dict(links.values())
        strings = self.read(by_kind.get("sharedStrings", "xl/sharedstrings.xml"))
        self.strings = [format_cell(_rich_text(item)) for item in _iterate(strings, "si")] if strings else []
        self.struck: set[str] = set()  # numbers of the cell styles whose text is struck through
        self.fonts: dict[str | None, str] = {}  # fonts by number of the cell style
        self.formats = self._read_formats(by_kind.get("styles", "xl/styles.xml"))

    def _read_formats(self, path: str) -> list[str]:
        """Return the number format of each cell style, and record the styles with struck text."""
        from openpyxl.styles.numbers import BUILTIN_FORMATS

        root = self.parse(path)
        if root is None:
            return []
        own = {each.get("numFmtId"): each.get("formatCode") or "" for each in root.iterfind("{*}numFmts/{*}numFmt")}
        built_in = {str(number): code for number, code in BUILTIN_FORMATS.items()}
        known = built_in | dict.fromkeys(map(str, EAST_ASIAN_DATE_FORMATS), "yyyy-mm-dd") | own
        styles = list(root.iterfind("{*}cellXfs/{*}xf"))
        fonts = {str(number): font for number, font in enumerate(root.iterfind("{*}fonts/{*}font"))}
        struck = {number for number, font in fonts.items() if _is_struck(font.find("{*}strike"))}
        names = {number: _font_name(font.find("{*}name")) for number, font in fonts.items()}
        self.fonts = {str(number): names.get(style.get("fontId") or "", "") for number, style in enumerate(styles)}
        self.struck = {str(number) for number, style in enumerate(styles) if style.get("fontId") in struck}
        return [known.get(style.get("numFmtId"), "General") for style in styles]


def _font_name(name: XmlElement | None) -> str:
    return "" if name is None else name.get("val") or ""


def _is_struck(strike: XmlElement | None) -> bool:
    return strike is not None and strike.get("val") not in ("0", "false")


def _is_hidden(element: XmlElement) -> bool:
    """Return whether a row or column is hidden, or has no height or width."""
    return _is_set(element, "hidden") or "0" in (element.get("ht"), element.get("width"))


def _is_set(element: XmlElement, name: str) -> bool:
    return (element.get(name) or "").lower() in ("1", "true", "on")


def _iterate(data: bytes, name: str, *others: str) -> Iterator[XmlElement]:
    """Yield the elements with these local names as they end, and free each one afterwards."""
    from lxml import etree  # pyright: ignore[reportAttributeAccessIssue] - it has no stubs

    tags = [f"{{*}}{each}" for each in (name, *others)]
    events = etree.iterparse(
        io.BytesIO(data), tag=tags, recover=True, huge_tree=True, resolve_entities=False, no_network=True
    )
    for _, element in events:
        yield element
        element.clear()
        while element.getprevious() is not None and element.getparent() is not None:
            del element.getparent()[0]
    count_cut_parts(events.error_log)
    leave_out(DAMAGED_PARTS, is_damaged(events.error_log))


def _rich_text(item: XmlElement) -> str:
    """Return the text of a string without phonetic guides; superscripts and struck text are kept."""
    pieces: list[str] = []
    for child in item:
        local = str(child.tag).rpartition("}")[2]
        if local == "t":
            pieces.append(child.text or "")
        elif local == "r":
            text, raised = child.findtext("{*}t") or "", child.find("{*}rPr/{*}vertAlign")
            script = raised.get("val") if raised is not None else ""
            text = format_symbols(text, _font_name(child.find("{*}rPr/{*}rFont")))
            text = format_struck(text) if _is_struck(child.find("{*}rPr/{*}strike")) else text
            write = SCRIPTS.get(script or "")
            pieces.append(write(text, "".join(pieces)) if write is not None else text)
    return decode_escapes("".join(pieces))


def _read_sheet(book: _Workbook, title: str, state: str, path: str) -> str:
    """Return a sheet as Markdown with its comments, or "" if it is empty or left out."""
    is_hidden = state.lower() in ("hidden", "veryhidden")
    if is_hidden and not take_hidden("sheets"):
        return ""
    links = book.links(path)
    sheet = _read_cells(book, book.read(path) or b"", links)
    text = _format_rows(_mark_hidden(sheet))
    parts = [text, _comments(book, links), *_read_drawings(book, links)]
    parts += [text for text in dict.fromkeys(sheet.margins) if text not in book.margins]
    book.margins.update(sheet.margins)
    body = "\n\n".join(filter(None, parts))
    return f"## {title}{' (hidden sheet)' if is_hidden else ''}\n\n{body}" if body else ""


def _read_cells(book: _Workbook, data: bytes, links: Mapping[str, tuple[str, str]]) -> SheetRows:
    """Return the cells that have a value or a link, regardless of the size the sheet declares."""
    sheet, formulas = SheetRows(), _Formulas()
    merged: list[tuple[CellPlace, CellPlace]] = []  # first and last cell
    number = last = 0
    kinds = ("row", "col", "headerFooter", "hyperlink", "mergeCell", "dataValidation")
    for element in _iterate(data, *kinds) if data else ():
        local = str(element.tag).rpartition("}")[2]
        if local == "dataValidation":  # a formula with quotes is the list of allowed values, others refer to cells
            allowed = element.findtext("{*}formula1") or ""
            texts = [element.get(key) for key in ("promptTitle", "prompt", "errorTitle", "error")]
            hint = format_cell(" ".join(filter(None, [*texts, allowed[1:-1] if allowed.startswith('"') else ""])))
            sheet.margins += [f"{element.get('sqref') or element.findtext('{*}sqref')}: {hint}"] if hint else []
            continue
        if local == "col":
            if _is_hidden(element) and (element.get("min") or "").isdecimal():
                first = int(element.get("min") or 0)
                sheet.hidden_columns.append((first, int(element.get("max") or first)))
            continue
        if local == "headerFooter":
            sheet.margins += [text for each in element if (text := _margin_text(each.text or ""))]
            continue
        if local == "mergeCell":
            start, end = map(_find_cell, (element.get("ref") or "").partition(":")[::2])
            merged += [(start, end)] if start and end else []
            continue
        if local == "hyperlink":
            key = next((value for name, value in element.attrib.items() if name.endswith("}id")), "")
            place, address = _find_cell((element.get("ref") or "").partition(":")[0]), links.get(key, ("", ""))[1]
            if place is not None and address and not address.startswith("#"):
                formulas.links[place] = address
            continue
        given = element.get("r") or ""
        number = int(given) if given.isdecimal() else number + 1
        if element.find("{*}c/*") is not None and (cells := _row_cells(book, element, number, formulas)):
            is_repeated = not cells.keys().isdisjoint(sheet.rows.get(number, {}))
            number = last + 1 if is_repeated else number
            last = max(last, number)
            sheet.rows.setdefault(number, {}).update(cells)
            if _is_hidden(element):
                sheet.hidden.add(number)
    leave_out("formulas without a stored value", formulas.without_value)
    leave_out("scenarios", data.count(b"<scenario "))
    for (number, column), address in formulas.links.items():
        cells = sheet.rows.setdefault(number, {})
        cells[column] = format_link(cells[column], address) if column in cells else address
    _repeat_merged(sheet.rows, merged)
    return sheet


def _repeat_merged(rows: Mapping[int, dict[int, str]], merged: Sequence[tuple[CellPlace, CellPlace]]) -> None:
    """Repeat the values of cells merged downwards, but not in header rows, which have cells merged sideways too."""
    wide = {first for (first, left), (last, right) in merged if first == last and left < right}
    count = 0
    for (first, column), (last, _) in merged:
        text = "" if first in wide else rows.get(first, {}).get(column, "")
        for number in range(first + 1, last + 1):
            if not text or column in rows.get(number, {column: ""}) or count == MAX_REPEATED_CELLS:
                break
            rows[number][column] = text
            count += 1


MARGIN_SECTION = re.compile(r"&[LCR]", re.IGNORECASE)
MARGIN_CODE = re.compile(r"&(?:\"[^\"]*\"|K(?:[0-9A-F]{6}|\d\d[+-]\d{3})|\d{1,3}|[A-Z])", re.IGNORECASE)
PAGE_CODE = re.compile(r"&[PN]", re.IGNORECASE)
MAX_PAGE_WORDS = 2  # of a section with a page number: "Page 1 of 2" has no more


def _margin_text(written: str) -> str:
    """Return a header or footer without the codes of fonts, page numbers and dates; "" if there is nothing else."""
    texts: list[str] = []
    for section in MARGIN_SECTION.split(written):
        words = MARGIN_CODE.sub("", section.replace("&&", "\0")).replace("\0", "&").split()
        most = MAX_PAGE_WORDS if PAGE_CODE.search(section) else 0
        texts += [" ".join(words)] if sum(any(map(str.isalpha, word)) for word in words) > most else []
    return " ".join(texts)


def _row_cells(book: _Workbook, row: XmlElement, number: int, formulas: _Formulas) -> dict[int, str]:
    cells: dict[int, str] = {}
    column = 0
    for cell in row.iterfind("{*}c"):
        place = _find_cell(cell.get("r") or "")
        column = place[1] if place else column + 1
        text = formulas.text(cell, number, column) or _cell_text(book, cell)
        if text and cell.get("t"):  # not a figure
            text = format_symbols(text, book.fonts.get(cell.get("s") or "0", ""))
        if text:
            cells[column] = format_struck(text) if cell.get("s") in book.struck and "~~" not in text else text
    return cells


def _find_cell(name: str) -> CellPlace | None:
    """Return the row and column of a cell's name, such as B3; None if it is not one."""
    from openpyxl.utils import column_index_from_string

    match = CELL_NAME.fullmatch(name)
    return (int(match.group(2)), column_index_from_string(match.group(1).upper())) if match else None


class _Formulas:
    """Formulas without a stored result, which are shown as formulas, and the addresses in formulas of links."""

    def __init__(self) -> None:
        self.without_value = 0
        self.links: dict[tuple[int, int], str] = {}  # addresses by row and column
        self._shared: dict[str | None, tuple[str, str]] = {}  # formula and cell of its origin by id

    def text(self, cell: XmlElement, row: int, column: int) -> str:
        """Return the formula of a cell without a stored result, else ""."""
        formula = cell.find("{*}f")
        if formula is None:
            return ""
        from openpyxl.utils import get_column_letter

        place, written = f"{get_column_letter(column)}{row}", (formula.text or "").strip()
        if formula.get("t") == "shared" and written:
            self._shared[formula.get("si")] = written, place
        if link := LINK_FORMULA.match(written):
            self.links[row, column] = link[1]
        stored = cell.find("{*}v")
        if stored is not None and (stored.text or (cell.get("t") == "str" and not link)):
            return ""
        if link and link[2]:
            return format_cell(link[2])
        self.without_value += 1
        if not written and formula.get("si") in self._shared:
            from openpyxl.formula.translate import Translator, TranslatorError

            origin, source = self._shared[formula.get("si")]
            try:
                return Translator(f"={origin}", source).translate_formula(place)
            except (TranslatorError, ValueError):
                return f"={origin}"
        return f"={written}" if written else ""


def _cell_text(book: _Workbook, cell: XmlElement) -> str:
    """Return a cell's value on one line as the sheet displays it."""
    kind, value = cell.get("t") or "n", (cell.findtext("{*}v") or "").strip()
    if kind == "inlineStr" or not value:
        inline = cell.find("{*}is")
        return format_cell(value if inline is None else _rich_text(inline))
    if kind == "s":
        place = int(value) if value.isdecimal() else -1
        if not 0 <= place < len(book.strings):
            leave_out("cells whose text is missing in the file")
            return ""
        return book.strings[place]
    if kind == "e" and cell.get("vm") is not None:  # an image stored as a value, which old programs show as #VALUE!
        leave_out("images in cells")
        return ""
    if kind == "b":
        return str(value not in ("0", "false"))
    if kind == "d":
        return ISO_TIME.sub(r" \1", MIDNIGHT.sub("", value)).strip()
    if kind != "n":
        return format_cell(decode_escapes(value))
    if len(value) > 15 and value.isdecimal():  # digits of a number, such as that of a card
        return value
    try:
        figure = float(value)
    except ValueError:
        return format_cell(value)
    style = cell.get("s") or "0"
    place = int(style) if style.isdecimal() else 0
    return format_figure(figure, book.formats[place] if place < len(book.formats) else "General", book.epoch)


def _mark_hidden(sheet: SheetRows) -> dict[int, dict[int, str]]:
    """Return the rows with hidden rows and columns marked, or without them."""
    rows = sheet.rows
    if sheet.hidden and not take_hidden("rows", len(sheet.hidden)):
        rows = {number: cells for number, cells in rows.items() if number not in sheet.hidden}
    else:
        for number in sheet.hidden:
            first = min(rows[number])
            rows[number][first] += "" if is_amount(rows[number][first]) else HIDDEN_MARK
    used = {column for cells in rows.values() for column in cells}
    hidden = {column for first, last in sheet.hidden_columns for column in used if first <= column <= last}
    if hidden and not take_hidden("columns", len(hidden)):
        return {n: {c: text for c, text in cells.items() if c not in hidden} for n, cells in rows.items()}
    for column in hidden:
        first = min(number for number, cells in rows.items() if column in cells)
        rows[first][column] += "" if is_amount(rows[first][column]) else HIDDEN_MARK
    return rows


def _format_rows(rows: Mapping[int, Mapping[int, str]]) -> str:
    columns = sorted({column for cells in rows.values() for column in cells})
    if len(rows) * len(columns) > MAX_GRID_CELLS and len(rows) * len(columns) > 20 * sum(map(len, rows.values())):
        return "\n".join(" | ".join(cells.values()) for _, cells in sorted(rows.items()))
    grid: list[list[str]] = []
    last = 0
    for number, cells in sorted(rows.items()):
        if last and number > last + 1:
            grid.append([])
        grid.append([cells.get(column, "") for column in columns])
        last = number
    return format_sheet(grid)


def _comments(book: _Workbook, links: Mapping[str, tuple[str, str]]) -> str:
    """Return the comments of a sheet as a list, each with its cell."""
    found: list[tuple[str, str]] = []
    kinds = {kind for kind, _ in links.values()}
    for kind, path in links.values():
        root = book.parse(path) if kind in ("comments", "threadedComment") else None
        if root is None:
            continue
        for comment in root.iterfind(".//{*}threadedComment" if kind == "threadedComment" else ".//{*}comment"):
            content = comment.find("{*}text")
            text = "" if content is None else format_cell(content.text if kind != "comments" else _rich_text(content))
            is_copy = kind == "comments" and "threadedComment" in kinds and text.startswith(THREAD_NOTE)
            if text and not is_copy and take_hidden("comments"):
                found.append((comment.get("ref") or "", text))
    return "Comments:\n\n" + "\n".join(f"- {cell}: {text}" for cell, text in found) if found else ""


def _read_drawings(book: _Workbook, links: Mapping[str, tuple[str, str]]) -> Iterator[str]:
    """Yield the texts of form controls, boxes, charts and diagrams, and the alternative texts of images."""
    controls: dict[str, str] = {}
    for kind, path in links.values():
        root = book.parse(path) if kind == "vmlDrawing" else None
        controls |= _read_controls(root) if root is not None else {}
    yield "\n".join(controls.values())
    for kind, path in links.values():
        root = book.parse(path) if kind == "drawing" else None
        if root is None:
            continue
        choose_alternatives(root)
        for shape in root.iterfind(".//{*}sp"):
            text, is_hidden = read_shape_text(shape), shape.find("{*}nvSpPr/{*}cNvPr[@hidden='1']") is not None
            if text and text not in controls and (not is_hidden or take_hidden("shapes")):
                yield f"{text}{HIDDEN_MARK}" if is_hidden else text
        yield from list_alt_texts(root)
        pictures = root.iterfind(".//{*}pic")
        leave_out(UNDESCRIBED, sum(not list_alt_texts(picture) for picture in pictures))
        targets = {key: part for key, (_, part) in book.links(path).items()}
        yield from format_graphics(root, lambda key, targets=targets: book.parse(targets.get(key, "")))


def _read_controls(root: XmlElement) -> dict[str, str]:
    """Return the form controls of a sheet by label, each with its state, and alternative texts of old drawings."""
    texts: dict[str, str] = {}
    for shape in root.iter("{*}shape", "{*}rect", "{*}oval", "{*}roundrect", "{*}group"):
        data = shape.find("{*}ClientData")
        kind = "" if data is None else data.get("ObjectType") or ""
        if kind == "Note":  # a comment, which has its own part
            continue
        boxes = (part for box in shape.iterfind("{*}textbox") for part in box.iter())
        label = format_cell(" ".join(f"{part.text or ''} {part.tail or ''}" for part in boxes))
        alt = format_alt_text(shape.get("alt"))
        if data is not None and kind in ("Checkbox", "Radio"):
            checked = data.findtext("{*}Checked") not in (None, "0")
            texts[label] = f"{CHECKED_BOX if checked else UNCHECKED_BOX} {label}".strip()
        elif label or alt:
            texts[label or alt] = label or alt
        elif shape.find("{*}imagedata") is not None:
            leave_out(UNDESCRIBED)
        elif kind in ("Drop", "List", "Edit", "Spin", "Scroll"):
            leave_out("form fields")
    return texts
