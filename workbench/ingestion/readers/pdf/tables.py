"""Tables of figures without ruling lines, such as financial statements, rebuilt from word positions.

The parser merges rows that are close together, loses column names, and leaves some statements as prose. Here a row is a
line, and a column is an edge at which the figures of several lines end.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import inf
from typing import TYPE_CHECKING

from workbench.ingestion.readers.header_rows import is_data_row

if TYPE_CHECKING:
    from liteparse.types import TextItem

# --- Lines of a page as a label and figures ---

# A figure with its signs and footnote mark, a dash, or an abbreviation of "not available", "not applicable" or
# "not meaningful"
FIGURE = re.compile(r"[$€£¥]?\(?[$€£¥]?\d[\d,.]*\)?%?\)?(?:\([a-z]{1,2}\))?|[$€£¥]?[-–—]|N/?[AM]|n/?[am]")
YEAR = re.compile(r"(?:19|20)\d\d")
NOTE_MARK = re.compile(r"\(\w{1,2}\)")
LEADING_SIGN = re.compile(r"[$€£¥(]+")  # before a figure
TRAILING_SIGN = re.compile(r"[)%]+|\([a-z]{1,2}\)")  # after a figure: a bracket, a percent sign or a footnote mark
MAX_WORD_GAP = 0.6  # of a line's height; largest gap between two words of one text
MAX_LINE_OFFSET = 0.5  # of a line's height; largest difference between the middles of items on one line


@dataclass(frozen=True, slots=True)
class PlacedText:
    """A text with its left and right edges, in points."""

    text: str
    left: float
    right: float


@dataclass(frozen=True, slots=True)
class FigureRow:
    """A line of a page."""

    label: str  # the text before the figures
    figures: tuple[PlacedText, ...]  # the figures at the end of the line
    pieces: tuple[PlacedText, ...]  # all words and figures of the line
    top: float  # top in points from the top of the page
    bottom: float  # bottom in points from the top of the page

    @property
    def is_header(self) -> bool:
        """True if all its figures are years, apart from footnote marks, as in a header row."""
        others = [figure.text for figure in self.figures if not YEAR.match(figure.text) or YEAR.sub("", figure.text)]
        return len(others) < len(self.figures) and all(NOTE_MARK.fullmatch(YEAR.sub("", other)) for other in others)

    def fit(self, edges: Sequence[float], within: float) -> FigureRow:
        """Return the row with any figures before the first aligned one moved into its label."""
        count = 0
        while count < len(self.figures) and min(abs(self.figures[count].right - edge) for edge in edges) > within:
            count += 1
        if not count:
            return self
        label = " ".join([self.label, *(figure.text for figure in self.figures[:count])])
        return replace(self, label=label.strip(), figures=self.figures[count:])

    def stretches(self) -> list[PlacedText]:
        """Return its words, with adjacent words joined."""
        joined: list[PlacedText] = []
        for piece in self.pieces:
            if joined and piece.left - joined[-1].right <= MAX_WORD_GAP * (self.bottom - self.top):
                joined[-1] = PlacedText(f"{joined[-1].text} {piece.text}", joined[-1].left, piece.right)
            else:
                joined.append(piece)
        return joined

    @property
    def right(self) -> float:
        """The right edge of its label, or 0 if it has none."""
        words = self.pieces[: len(self.pieces) - len(self.figures)]
        return max((piece.right for piece in words), default=0.0)


def group_rows(items: Sequence[TextItem]) -> list[FigureRow]:
    """Return the lines of a page from the top, each split into a label and the figures at the end."""
    rows: list[FigureRow] = []
    for line in group_lines(items):
        pieces = _join_signs(word for item in line for word in split_words(item))
        top, bottom = min(item.y for item in line), max(item.y + item.height for item in line)
        figures = _find_last_figures(pieces, MAX_WORD_GAP * (bottom - top))
        label = " ".join(piece.text for piece in pieces[: len(pieces) - len(figures)])
        rows.append(FigureRow(label, tuple(figures), tuple(pieces), top, bottom))
    return rows


def group_lines(items: Sequence[TextItem]) -> list[list[TextItem]]:
    """Group items into lines by their vertical middles, each from left to right."""
    lines: list[list[TextItem]] = []
    for item in sorted((item for item in items if item.text.strip()), key=lambda item: item.y + item.height / 2):
        middle = item.y + item.height / 2
        last = lines[-1][-1] if lines else None
        if last is not None and middle - (last.y + last.height / 2) <= MAX_LINE_OFFSET * min(item.height, last.height):
            lines[-1].append(item)
        else:
            lines.append([item])
    return [sorted(line, key=lambda item: item.x) for line in lines]


def split_words(item: TextItem) -> Iterable[PlacedText]:
    """Return the words of an item, with positions estimated from the number of characters."""
    each = item.width / max(1, len(item.text))
    for match in re.finditer(r"\S+", item.text):
        yield PlacedText(match[0], item.x + match.start() * each, item.x + match.end() * each)


def _join_signs(words: Iterable[PlacedText]) -> list[PlacedText]:
    """Join signs to the figures they belong to."""
    pieces: list[PlacedText] = []
    sign: PlacedText | None = None
    for word in words:
        if LEADING_SIGN.fullmatch(word.text):
            sign = word if sign is None else PlacedText(sign.text + word.text, sign.left, word.right)
            continue
        if sign is not None:
            joiner = "" if sign.text.endswith("(") else " "
            text = sign.text + joiner + word.text if FIGURE.fullmatch(word.text) else word.text
            if text == word.text:
                pieces.append(sign)
            word, sign = PlacedText(text, word.left, word.right), None
        if TRAILING_SIGN.fullmatch(word.text) and pieces and _is_figure(pieces[-1].text):
            pieces[-1] = PlacedText(pieces[-1].text + word.text, pieces[-1].left, pieces[-1].right)
        else:
            pieces.append(word)
    return pieces if sign is None else [*pieces, sign]


def _find_last_figures(pieces: Sequence[PlacedText], close: float) -> list[PlacedText]:
    """Return the figures at the end of a line. A figure close to a word, such as a year, is part of the label."""
    count = 0
    while count < len(pieces) and _is_balanced_figure(pieces[-1 - count].text):
        count += 1
    first = len(pieces) - count
    while 0 < first < len(pieces) and pieces[first].left - pieces[first - 1].right <= close:
        first += 1
    return list(pieces[first:])


def _is_balanced_figure(text: str) -> bool:
    """Return whether a text is a figure with balanced brackets: "3)" is the end of "(Note 3)"."""
    return _is_figure(text) and text.count("(") == text.count(")")


def _is_figure(text: str) -> bool:
    return FIGURE.fullmatch(text.replace(" ", "")) is not None


EDGE_TOLERANCE_PT = 9.0  # points by which the right edges of a column may differ
MIN_TABLE_ROWS, MIN_TABLE_COLUMNS = 4, 2
MIN_DATED_ROWS = 2  # minimum rows if every column has a year as its name
MAX_ROW_GAP_LINES = 2.6  # line heights; largest gap between two lines of one table
MAX_SPANNING_NAME_CHARS = 60  # characters of a name over all columns
ESCAPED_BAR = r"\|"
MAX_LEADING_LINES = 2  # lines of words, such as a section name, above the first row of figures
MAX_HEADER_LINES = 3  # lines above the first row that may name columns


@dataclass(frozen=True, slots=True)
class FigureTable:
    """A table as Markdown, with its edges in points from the left and the top of the page."""

    markdown: str
    top: float
    bottom: float
    left: float = -inf
    right: float = inf


def find_figure_tables(rows: Sequence[FigureRow]) -> list[FigureTable]:
    """Return the tables of figures among the lines of a page, from the top."""
    tables: list[FigureTable] = []
    for run, edges in _split_sections(rows):
        if len(edges) < MIN_TABLE_COLUMNS:
            continue
        fitted = {
            place: rows[place] if _names_years(rows[place]) else rows[place].fit(edges, EDGE_TOLERANCE_PT)
            for place in run
        }
        for kept in _find_fitting_runs(fitted, edges):
            table_rows = [fitted[place] for place in kept]
            filled = _select_edges(edges, table_rows)
            if len(filled) < MIN_TABLE_COLUMNS:
                continue
            header, top = _find_header(rows, kept[0], filled)
            least = MIN_DATED_ROWS if all(YEAR.search(name) for name in header[1:]) else MIN_TABLE_ROWS
            if sum(len(row.figures) > 1 for row in table_rows) >= least:
                tables.append(
                    FigureTable(format_table(header, _make_cells(table_rows, filled)), top, rows[kept[-1]].bottom)
                )
    return tables


def _split_sections(rows: Sequence[FigureRow]) -> Iterator[tuple[list[int], list[float]]]:
    """Yield runs of lines with their edges. A line of years starts a section; a short section uses the run's edges."""
    for run in _split_runs(rows):
        around = _find_edges([rows[place] for place in run])
        section: list[int] = []
        for place in [*run, None]:
            if section and (place is None or rows[place].is_header):
                own = _find_edges([rows[inside] for inside in section])
                yield section, own if len(own) >= MIN_TABLE_COLUMNS else around
                section = []
            if place is not None:
                section.append(place)


def _split_runs(rows: Sequence[FigureRow]) -> list[list[int]]:
    """Return runs of lines that are close together."""
    runs: list[list[int]] = []
    for place, row in enumerate(rows):
        height = max(1.0, row.bottom - row.top)
        if runs and row.top - rows[runs[-1][-1]].bottom <= MAX_ROW_GAP_LINES * height:
            runs[-1].append(place)
        else:
            runs.append([place])
    return runs


def _find_edges(rows: Sequence[FigureRow]) -> list[float]:
    """Return the right edges at which the figures of at least three lines end, from left to right.

    Two lines are enough for a sparse column if both also end at two other edges.
    """
    ends = sorted(
        (figure.right, place) for place, row in enumerate(rows) for figure in row.figures if len(row.figures) > 1
    )
    groups: list[list[tuple[float, int]]] = []
    for end in ends:
        if groups and end[0] - groups[-1][-1][0] <= EDGE_TOLERANCE_PT:
            groups[-1].append(end)
        else:
            groups.append([end])
    usual = [group for group in groups if len(group) >= 3]
    times = Counter(place for group in usual for place in {place for _, place in group})
    kept = [
        group
        for group in groups
        if len(group) >= 3 or (len(group) == 2 and all(times[place] >= 2 for _, place in group))
    ]
    return [sum(end for end, _ in group) / len(group) for group in kept]


def _select_edges(edges: Sequence[float], rows: Sequence[FigureRow]) -> list[float]:
    """Return the edges at which the figures of these rows end. Other edges belong to a table above or below."""
    ends = [figure.right for row in rows for figure in row.figures]
    nearest = {min(edges, key=lambda edge: abs(end - edge)) for end in ends}
    return [edge for edge in edges if edge in nearest]


def _find_fitting_runs(rows: Mapping[int, FigureRow], edges: Sequence[float]) -> list[list[int]]:
    """Return the runs of lines that fit the columns, each without the words after its last row of figures."""
    stretches: list[list[int]] = [[]]
    for place, row in rows.items():
        if _names_years(row):
            stretches.append([])
        elif _fits_columns(row, edges):
            stretches[-1].append(place)
        else:
            stretches.append([])
    kept: list[list[int]] = []
    for stretch in stretches:
        figured = [place for place in stretch if rows[place].figures and rows[place].label]
        while figured and rows[figured[0]].is_header:
            figured.pop(0)
        if figured:
            first = figured[0]
            while (
                first - 1 in stretch
                and _is_section_name(rows[first - 1], edges)
                and figured[0] - first < MAX_LEADING_LINES
            ):
                first -= 1
            kept.append(list(range(first, figured[-1] + 1)))
    return kept


def _names_years(row: FigureRow) -> bool:
    """Return whether a line contains only years, as at the top of a table."""
    return row.is_header and not row.label


def _is_section_name(row: FigureRow, edges: Sequence[float]) -> bool:
    """Return whether a line is a section name. A line that ends with a year or is above columns is a header."""
    if row.figures or YEAR.fullmatch(row.pieces[-1].text):
        return False
    return row.right <= edges[0] or len(row.stretches()) == 1


def _fits_columns(row: FigureRow, edges: Sequence[float]) -> bool:
    """Return whether a line is a row of these columns, or words that end left of the last one."""
    if not edges:
        return False
    if row.figures:
        return all(min(abs(figure.right - edge) for edge in edges) <= EDGE_TOLERANCE_PT for figure in row.figures)
    return row.right < edges[-1]


def _make_cells(rows: Sequence[FigureRow], edges: Sequence[float]) -> list[list[str]]:
    """Return the cells of each row; labels that continue on the next line are joined."""
    lines: list[list[str]] = []
    for row in rows:
        cells = [""] * len(edges)
        for figure in row.figures:
            cells[min(range(len(edges)), key=lambda column: abs(figure.right - edges[column]))] = figure.text
        if lines and _continues_label(lines[-1], row):
            lines[-1] = [f"{lines[-1][0]} {row.label}", *(cells if row.figures else lines[-1][1:])]
        else:
            lines.append([row.label, *cells])
    return lines


def format_table(header: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Return a table as Markdown."""

    def drawn(cells: Sequence[str]) -> str:
        return f"| {' | '.join(cell.replace('|', ESCAPED_BAR) for cell in cells)} |"

    return "\n".join([drawn(header), "|" + "---|" * len(header), *map(drawn, lines)])


def _continues_label(line: Sequence[str], row: FigureRow) -> bool:
    """Return whether a row continues the label of the line before it."""
    return row.label[:1].islower() and not (any(line[1:]) and row.figures)


def _find_header(rows: Sequence[FigureRow], first: int, edges: Sequence[float]) -> tuple[list[str], float]:
    """Return the column names from the lines above the first row, and the top of the header."""
    names = [""] * (len(edges) + 1)
    top = rows[first].top
    for place in range(first - 1, max(-1, first - 1 - MAX_HEADER_LINES), -1):
        row = rows[place]
        cells = _column_names(row, edges)
        if cells is None or is_data_row(cells) or top - row.bottom > MAX_ROW_GAP_LINES * (row.bottom - row.top):
            break
        names = [" ".join(filter(None, (above, below))) for above, below in zip(cells, names, strict=True)]
        top = row.top
    return names, top


def _column_names(row: FigureRow, edges: Sequence[float]) -> list[str] | None:
    """Return a line's words by column, the label's first, or None if it does not name columns.

    A single text over the columns, such as "Year ended December 31,", applies to all of them.
    """
    pitch = min(right - left for left, right in pairwise(edges))
    bounds = [edges[0] - pitch, *edges[:-1]]
    groups: list[list[str]] = [[] for _ in range(len(edges) + 1)]
    stretches = row.stretches()
    over = [stretch for stretch in stretches if stretch.left >= bounds[0] - EDGE_TOLERANCE_PT]
    for stretch in stretches:
        groups[bisect_right(bounds, (stretch.left + stretch.right) / 2)].append(stretch.text)
    named = [group for group in groups[1:] if group]
    if len(over) == 1 and len(stretches) == 1 and len(over[0].text) <= MAX_SPANNING_NAME_CHARS:
        return ["", *([over[0].text] * len(edges))]
    if len(named) < max(MIN_TABLE_COLUMNS, len(edges) / 2):
        return None
    return [" ".join(group) for group in groups]
