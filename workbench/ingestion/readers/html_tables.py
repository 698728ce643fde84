"""Tables of HTML before they become Markdown: each cell in its column, one row of names, no table within a cell."""

from __future__ import annotations

from copy import deepcopy
from itertools import takewhile
from typing import TYPE_CHECKING

from workbench.ingestion.readers.grid import one_line
from workbench.ingestion.readers.header_rows import with_one_header

if TYPE_CHECKING:
    from lxml.html import HtmlElement

ROWS = "./tr | ./thead/tr | ./tbody/tr | ./tfoot/tr"
PROSE = ".//h1 | .//h2 | .//h3 | .//h4 | .//ul | .//ol | .//pre | .//table"  # in a table that lays out a page
MOST_SPAN = 60  # cells; a larger span is a mistake
INNER_CHARACTERS = 600  # of a table within a cell that becomes the cell's text


def set_tables_right(root: HtmlElement) -> None:
    """Change a tree's tables so that Markdown can say them; those that lay out a page stay as they are."""
    for table in reversed(list(root.iter("table"))):
        if any(True for _ in table.iterancestors("td", "th")):
            _flatten(table)
        elif not table.xpath(PROSE):
            _straighten(table)
            _set_head(table)


def _flatten(table: HtmlElement) -> None:
    """Put the words of a table within a cell in its place: cells apart by commas, rows by semicolons."""
    if table.xpath(PROSE) or len(table.text_content()) > INNER_CHARACTERS:
        return
    rows = (", ".join(filter(None, (one_line(cell.text_content()) for cell in row))) for row in table.xpath(ROWS))
    words, tail = "; ".join(filter(None, rows)), table.tail
    table.clear()
    table.tag, table.text, table.tail = "span", f" {words} ", tail


def _straighten(table: HtmlElement) -> None:
    """Give every row as many cells as there are columns, and the table one row of names."""
    rows = table.xpath(ROWS)
    cells = [list(row.iterchildren("td", "th")) for row in rows]
    spans = any(_span(cell, name) > 1 for row in cells for cell in row for name in ("rowspan", "colspan"))
    empty = [row for row, own in zip(rows, cells, strict=True) if not "".join(row.itertext()).strip() or not own]
    if not spans:
        for row in empty[: len(rows) - 1]:
            row.drop_tree()
        return
    named = [row.getparent().tag == "thead" or _is_named(own) for row, own in zip(rows, cells, strict=True)]
    grid = _grid(cells)
    texts = [["" if cell is None else one_line(cell.text_content()) for cell in row] for row in grid]
    names = with_one_header(texts, len(list(takewhile(bool, named))) or None)
    dropped = len(grid) - len(names)
    for place, (row, own) in enumerate(zip(rows, grid, strict=True)):
        for cell in row.xpath("./td | ./th"):
            row.remove(cell)
        if place < dropped or row in empty:
            row.drop_tree()
            continue
        for cell, name in zip(own, names[0], strict=True):
            row.append(_has_name(row, name) if dropped and place == dropped else _copy(row, cell))


def _set_head(table: HtmlElement) -> None:
    """Put the first row below a caption into a head: without one, its rule would be left out of the Markdown."""
    rows = table.xpath(ROWS)
    if rows and table.find("caption") is not None and table.find("thead") is None:
        head = table.makeelement("thead")
        table.find("caption").addnext(head)
        head.append(rows[0])


def _is_named(cells: list[HtmlElement]) -> bool:
    return bool(cells) and all(cell.tag == "th" for cell in cells)


def _grid(cells: list[list[HtmlElement]]) -> list[list[HtmlElement | None]]:
    """Return rows of one length: a cell that spans rows stands in each of them, one that spans columns in the first."""
    grid: list[dict[int, HtmlElement | None]] = [{} for _ in cells]
    for place, row in enumerate(cells):
        column = 0
        for cell in row:
            while column in grid[place]:
                column += 1
            for below in range(place, min(len(grid), place + _span(cell, "rowspan"))):
                for beside in range(_span(cell, "colspan")):
                    grid[below][column + beside] = None if beside else cell
    width = max((column + 1 for row in grid for column in row), default=0)
    return [[row.get(column) for column in range(width)] for row in grid]


def _span(cell: HtmlElement, name: str) -> int:
    value = cell.get(name, "1").strip()
    return min(max(1, int(value)), MOST_SPAN) if value.isascii() and value.isdigit() else 1


def _copy(row: HtmlElement, cell: HtmlElement | None) -> HtmlElement:
    if cell is None:
        return row.makeelement("td")
    copied = deepcopy(cell)
    copied.tail = None
    for name in ("rowspan", "colspan"):
        copied.attrib.pop(name, None)
    return copied


def _has_name(row: HtmlElement, name: str) -> HtmlElement:
    cell = row.makeelement("th")
    cell.text = name
    return cell
