"""Rendered tables: aligned figures, records of sheets as tables, and headers for passages within a table."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby

from workbench.app.widgets.elements import Element, Node, TextRun, plain_text

# Headers for passages within a table

ROW_PATTERN = re.compile(r"\|.*\|[ \t]*(?:\n|\Z)")
DELIMITER_PATTERN = re.compile(r"\|(?:[ \t]*:?-+:?[ \t]*\|)+[ \t]*(?:\n|\Z)")
CELL_END_PATTERN = re.compile(r"(?<!\\)\|")


def add_table_header(text: str, header: str) -> tuple[str, int]:
    """Put the header before a text that starts with table rows; also return the number of added characters.

    Without a ``header``, the column names are empty. Other texts are returned unchanged.
    """
    first = ROW_PATTERN.match(text)
    if first is None or DELIMITER_PATTERN.match(text, first.end()):
        return text, 0
    lines = header.strip().splitlines()
    names = lines[0] if lines else ""
    columns = _count_columns(first.group())
    if _count_columns(names) != columns:
        names = "|" + " |" * columns
    lead = f"{names}\n|{'---|' * columns}\n"
    return lead + text, len(lead)


def shift_back(nodes: Sequence[Node], lead: int) -> tuple[Node, ...]:
    """Return nodes with spans shifted back by ``lead`` characters; nodes within the lead lose their spans."""
    return tuple(_shift_node(node, lead) for node in nodes)


def _shift_node(node: Node, lead: int) -> Node:
    if isinstance(node, TextRun):
        inside = node.start >= lead
        return replace(node, start=node.start - lead, end=node.end - lead) if inside else TextRun(node.text, 0, 0)
    span = node.span
    moved = (span[0] - lead, span[1] - lead) if span is not None and span[0] >= lead else None
    return replace(node, children=shift_back(node.children, lead), span=moved)


def _count_columns(row: str) -> int:
    return max(0, len(CELL_END_PATTERN.findall(row.strip())) - 1)


FIGURE_PATTERN = re.compile(r"[$€£¥(+\-–−]*\s*[$€£¥]?\s*\d[\d.,'’\s]*[)%]*")
EMPTY_FIGURES = frozenset(("", "-", "–", "—", "−", "n/a", "N/A", "*"))
MAX_NAME_CHARS = 80  # characters of a name in "name: value"

Record = dict[
    str, tuple[tuple[Node, ...], tuple[Node, ...]]
]  # text of the name -> nodes of the name, nodes of the value


def align_figures(table: Element) -> Element:
    """Return a table with columns of figures aligned right, unless the text sets an alignment."""
    rows = [row for part in _child_elements(table) for row in _child_elements(part)]
    if any("align" in cell.attributes for row in rows for cell in _child_elements(row)):
        return table
    body = [_child_elements(row) for row in rows if any(cell.tag == "td" for cell in _child_elements(row))]
    width = max(map(len, body), default=0)
    figures = {
        place
        for place in range(1, width)
        if _are_figures([plain_text(row[place].children).strip() for row in body if place < len(row)])
    }
    parts = (
        replace(part, children=tuple(_align_row(row, figures) for row in _child_elements(part)))
        for part in _child_elements(table)
    )
    return replace(table, children=tuple(parts)) if figures else table


def convert_records(blocks: Sequence[Node]) -> tuple[Node, ...]:
    """Return blocks with consecutive paragraphs of "name: value" lines converted to a table.

    Readers of sheets write rows in this way if they are too many or too wide for Markdown.
    """
    made: list[Node] = []
    records = [_parse_record(block) for block in blocks]
    for is_record, group in groupby(range(len(blocks)), key=lambda place: bool(records[place])):
        if is_record:
            made.append(_make_table([records[place] for place in group]))
        else:
            made.extend(blocks[place] for place in group)
    return tuple(made)


def _child_elements(node: Element) -> list[Element]:
    return [child for child in node.children if isinstance(child, Element)]


def _are_figures(cells: Sequence[str]) -> bool:
    figures = [cell for cell in cells if cell not in EMPTY_FIGURES]
    return bool(figures) and all(FIGURE_PATTERN.fullmatch(cell) for cell in figures)


def _align_row(row: Element, figures: set[int]) -> Element:
    cells = (
        replace(cell, attributes={**cell.attributes, "align": "right"}) if place in figures else cell
        for place, cell in enumerate(_child_elements(row))
    )
    return replace(row, children=tuple(cells))


def _parse_record(block: Node) -> Record:
    """Return the cells of a paragraph of at least two "name: value" lines, or {}."""
    if isinstance(block, TextRun) or block.tag != "p":
        return {}
    record: Record = {}
    for is_end, nodes in groupby(block.children, key=lambda node: isinstance(node, TextRun) and node.text == "\n"):
        if is_end:
            continue
        name, value = _split_at_colon(list(nodes))
        words = " ".join(plain_text(name).split())
        if not words or not value or words in record or len(words) > MAX_NAME_CHARS:
            return {}
        record[words] = (tuple(name), tuple(value))
    return record if len(record) > 1 else {}


def _split_at_colon(nodes: Sequence[Node]) -> tuple[list[Node], list[Node]]:
    """Return the nodes before and after the first ": "; the second list is empty without one."""
    for place, node in enumerate(nodes):
        if isinstance(node, TextRun) and ": " in node.text and node.is_exact:
            at = node.text.index(": ")
            name = TextRun(node.text[:at], node.start, node.start + at)
            value = TextRun(node.text[at + 2 :], node.start + at + 2, node.end)
            return [*nodes[:place], name], [*([value] if value.text else []), *nodes[place + 1 :]]
    return list(nodes), []


def _make_table(records: Sequence[Record]) -> Element:
    names = dict(_iterate_names(records))
    head = Element("tr", tuple(Element("th", name) for name in names.values()))
    rows = (Element("tr", tuple(_make_cell(record, words) for words in names)) for record in records)
    return align_figures(Element("table", (Element("thead", (head,)), Element("tbody", tuple(rows)))))


def _make_cell(record: Mapping[str, tuple[tuple[Node, ...], tuple[Node, ...]]], words: str) -> Element:
    return Element("td", record[words][1] if words in record else ())


def _iterate_names(records: Sequence[Record]) -> Iterator[tuple[str, tuple[Node, ...]]]:
    """Yield the column names in sheet order; a new name comes before the next known name in its row."""
    order: list[str] = []
    for record in records:
        place = len(order)
        for words in reversed(record):
            if words not in order:
                order.insert(place, words)
            place = order.index(words)
    for words in order:
        yield words, next(record[words][0] for record in records if words in record)
