"""Tables rebuilt from the positions of words and rules, which replace the parser's blocks.

The parser merges rows that are close together, loses column names, leaves some statements as prose, and shifts cells
below merged ones. Here a row is a line. A column is an edge at which the figures of several lines end; a single column
is weaker evidence, so each of its rows must be one run of words with a figure far to its right, and enough figures must
look like amounts. A table of contents, whose figures are page numbers, does not qualify.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import inf
from statistics import median
from typing import TYPE_CHECKING

from workbench.ingestion.ocr.images import Box
from workbench.ingestion.readers.grid import AMOUNT_MARK, format_markdown_table, is_data_row, merge_header_rows

if TYPE_CHECKING:
    from liteparse.types import LayoutCell, ParsedPage, TextItem

# --- Blocks of a page, with each list as one ---

LIST_ITEM_KIND = "list_item"


@dataclass(frozen=True, slots=True)
class PageBlock:
    """A block of a page."""

    kind: str  # the parser's name for its kind
    rows: tuple[Sequence[LayoutCell], ...]  # rows of a table
    box: Box | None  # left, top, right and bottom in points; None if unknown


def list_blocks(page: ParsedPage) -> list[PageBlock]:
    """Return a page's blocks in order, with consecutive list items merged into one block."""
    blocks: list[PageBlock] = []
    for block in page.blocks or ():
        rows = (*([block.header] if block.header else []), *(block.rows or []))
        box = block.bbox and (
            block.bbox.x,
            block.bbox.y,
            block.bbox.x + block.bbox.width,
            block.bbox.y + block.bbox.height,
        )
        last = blocks[-1] if blocks else None
        if last is not None and block.kind == last.kind == LIST_ITEM_KIND:
            one = last.box
            both = one and box and (min(one[0], box[0]), min(one[1], box[1]), max(one[2], box[2]), max(one[3], box[3]))
            blocks[-1] = PageBlock(LIST_ITEM_KIND, (), both)
        else:
            blocks.append(PageBlock(block.kind, rows, box))
    return blocks


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
MAX_LEADING_LINES = 2  # lines of words, such as a section name, above the first row of figures
LEADERS = re.compile(r"[\s._\u2026]*(?:[._]\s?[._]|\u2026)\s*$")  # between a label and its figure
LEFT_EDGE_TOLERANCE_PT = 1.0  # points by which the left edges of a name and a figure may differ
MAX_HEADER_LINES = 3  # lines above the first row that may name columns
MAX_NAME_OFFSET = 0.3  # from the middle of its columns to that of a name over them, in half widths of the columns


def _format_table(rows: Sequence[Sequence[str]]) -> str:
    header, _, *lines = format_markdown_table(rows).split("\n")
    return "\n".join([header, "|" + "---|" * len(rows[0]), *lines])  # the rule that the parser writes


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
        fitted = {place: rows[place].fit(edges, EDGE_TOLERANCE_PT) for place in run}
        for kept in _find_fitting_runs(fitted, edges):
            table_rows = [fitted[place] for place in kept]
            filled = _select_edges(edges, table_rows)
            if len(filled) < MIN_TABLE_COLUMNS:
                continue
            header, top = _find_header(rows, kept[0], filled)
            least = MIN_DATED_ROWS if all(YEAR.search(name) for name in header[1:]) else MIN_TABLE_ROWS
            if sum(len(row.figures) > 1 for row in table_rows) >= least:
                tables.append(
                    FigureTable(_format_table([header, *_make_cells(table_rows, filled)]), top, rows[kept[-1]].bottom)
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
        if _fits_columns(row, edges):
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
            lines[-1] = [
                f"{lines[-1][0]} {LEADERS.sub('', row.label)}",
                *(cells if row.figures else lines[-1][1:]),
            ]
        else:
            lines.append([LEADERS.sub("", row.label), *cells])
    return lines


def _continues_label(line: Sequence[str], row: FigureRow) -> bool:
    """Return whether a row continues the label of the row before it: "at December 31," and "2020"."""
    if any(line[1:]) and row.figures:
        return False
    return row.label[:1].islower() or (line[0].endswith(",") and YEAR.fullmatch(row.label) is not None)


def _find_header(rows: Sequence[FigureRow], first: int, edges: Sequence[float]) -> tuple[list[str], float]:
    """Return the column names from the lines above the first row, and the top of the header."""
    names = [""] * (len(edges) + 1)
    first_columns = {
        figure.left: min(range(len(edges)), key=lambda column, end=figure.right: abs(end - edges[column]))
        for figure in next(row.figures for row in rows[first:] if row.figures)
    }
    top, middle = rows[first].top, (rows[first].pieces[0].left + rows[first].pieces[-1].right) / 2
    for place in range(first - 1, max(-1, first - 1 - MAX_HEADER_LINES), -1):
        row = rows[place]
        cells = _column_names(row, edges, middle, first_columns)
        if cells is None or is_data_row(cells) or top - row.bottom > MAX_ROW_GAP_LINES * (row.bottom - row.top):
            break
        names = [" ".join(filter(None, (above, below))) for above, below in zip(cells, names, strict=True)]
        top = row.top
    return names, top


def _column_names(
    row: FigureRow, edges: Sequence[float], middle: float, first_columns: Mapping[float, int]
) -> list[str] | None:
    """Return a line's words by column, the label's first, or None if it does not name columns.

    A text that starts at the left edge of a figure of the first row names its column (``first_columns`` by left edge).
    A single text over the columns, such as "Year ended December 31,", applies to all of them, and texts centred over
    equal groups of columns, such as years over quarters, to each of their group.
    """
    pitch = min((right - left for left, right in pairwise(edges)), default=edges[0] - middle)
    bounds = [edges[0] - pitch, *edges[:-1]]
    groups: list[list[str]] = [[] for _ in range(len(edges) + 1)]
    stretches = row.stretches()
    over = [stretch for stretch in stretches if stretch.left >= bounds[0] - EDGE_TOLERANCE_PT]
    for stretch in stretches:
        own = (at + 1 for left, at in first_columns.items() if abs(left - stretch.left) <= LEFT_EDGE_TOLERANCE_PT)
        groups[next(own, bisect_right(bounds, (stretch.left + stretch.right) / 2))].append(stretch.text)
    named = [group for group in groups[1:] if group]
    if len(over) == 1 and len(stretches) == 1 and len(over[0].text) <= MAX_SPANNING_NAME_CHARS:
        return ["", *([over[0].text] * len(edges))]
    per_name, rest = divmod(len(edges), max(1, len(over)))
    if len(over) > 1 and per_name > 1 and not rest and not any(name.text.endswith("-") for name in over):
        starts, ends = bounds[::per_name], edges[per_name - 1 :: per_name]
        offsets = [
            abs(stretch.left + stretch.right - start - end) / (end - start)
            for stretch, start, end in zip(over, starts, ends, strict=True)
        ]
        if max(offsets) <= MAX_NAME_OFFSET:
            return [" ".join(groups[0]), *(stretch.text for stretch in over for _ in range(per_name))]
    if len(edges) == 1 and len(over) != 1:  # a line of prose that ends near the figures
        return None
    if len(named) < max(min(MIN_TABLE_COLUMNS, len(edges)), len(edges) / 2):
        return None
    return [" ".join(group) for group in groups]


# --- Tables with one column of figures ---

RIGHT_EDGE_TOLERANCE_PT = 4.0  # points by which the figures' right edges may differ
MIN_GAP_LINES = 1.5  # line heights; minimum gap between a label and its figure, and between two runs of words
MIN_SINGLE_COLUMN_ROWS = 4
MIN_AMOUNT_SHARE = 0.5  # of the figures that must look like amounts: "$ 1,204", "5 %"
MIN_WHOLE_LABEL_SHARE = 0.8  # of the labels that must be one run of words


def find_single_column_tables(rows: Sequence[FigureRow], taken: Sequence[FigureTable]) -> list[FigureTable]:
    """Return the tables with one column of figures that are not part of the ``taken`` tables."""
    rows = [_use_year_as_label(row) for row in rows]
    free = [all(row.bottom <= table.top or row.top >= table.bottom for table in taken) for row in rows]
    found: list[FigureTable] = []
    run: list[int] = []
    for place in range(len(rows) + 1):
        if place < len(rows) and free[place] and _continues_table(rows, run, place):
            run.append(place)
            continue
        found += _tables_in_run(rows, run)
        run = [place] if place < len(rows) and free[place] and _is_row(rows[place]) else []
    return found


def _use_year_as_label(row: FigureRow) -> FigureRow:
    """Return a line with a year and a figure as a row labelled by the year, as in a table of debt maturities."""
    if row.label or len(row.figures) != 2 or not YEAR.fullmatch(row.figures[0].text):
        return row
    return replace(row, label=row.figures[0].text, figures=row.figures[1:])


def _is_row(row: FigureRow) -> bool:
    """Return whether a line is a label with one figure far to its right."""
    if len(row.figures) != 1 or not LEADERS.sub("", row.label) or row.is_header:
        return False
    return row.figures[0].left - row.right > MIN_GAP_LINES * (row.bottom - row.top)


def _continues_table(rows: Sequence[FigureRow], run: Sequence[int], place: int) -> bool:
    """Return whether a line continues a table: an aligned row, or words left of the figures."""
    if not run:
        return False
    row, before = rows[place], rows[place - 1]
    if row.top - before.bottom > MAX_ROW_GAP_LINES * (row.bottom - row.top):
        return False
    figures = [rows[inside].figures[0] for inside in run if rows[inside].figures]
    edge = median(figure.right for figure in figures)
    if row.figures:
        return _is_row(row) and abs(row.figures[0].right - edge) <= RIGHT_EDGE_TOLERANCE_PT
    worded = 0
    for inside in reversed(run):
        if rows[inside].figures:
            break
        worded += 1
    return worded < MAX_LEADING_LINES and row.right < min(figure.left for figure in figures)


def _tables_in_run(rows: Sequence[FigureRow], run: Sequence[int]) -> list[FigureTable]:
    """Return the table formed by a run of lines, if any."""
    places = list(run)
    while places and not rows[places[-1]].figures:
        places.pop()
    figured = [rows[place] for place in places if rows[place].figures]
    if len(figured) < MIN_SINGLE_COLUMN_ROWS:
        return []
    marked = sum(AMOUNT_MARK.search(row.figures[0].text) is not None for row in figured)
    whole = sum(_is_one_run(row) for row in figured)
    if marked < MIN_AMOUNT_SHARE * len(figured) or whole < MIN_WHOLE_LABEL_SHARE * len(figured):
        return []
    edges = [median(row.figures[0].right for row in figured)]
    header, top = _find_header(rows, places[0], edges)
    cells = _make_cells([rows[place] for place in places], edges)
    return [FigureTable(_format_table([header, *cells]), top, rows[places[-1]].bottom)]


def _is_one_run(row: FigureRow) -> bool:
    """Return whether the label is one run of words. Two runs are cells of two columns."""
    words = [piece for piece in row.pieces[: len(row.pieces) - len(row.figures)] if piece.text.strip("._\u2026")]
    gaps = (after.left - before.right for before, after in pairwise(words))
    return all(gap <= MIN_GAP_LINES * (row.bottom - row.top) for gap in gaps)


# --- Tables with rules around their cells, read with merged cells ---

RULE_TOLERANCE_PT = 3.0  # points by which rules of one edge may differ, and by which they may miss each other
MAX_RULES = 400  # rules of a page; drawings have more
MIN_RULED_CELLS = 4  # cells with text
MAX_ALIGNED_LINES = 2  # lines in every cell of a row; more are rows without rules between them

Rule = tuple[float, float, float]  # position, start and end in points
Cell = tuple[int, int]  # row and column of the grid


def find_ruled_tables(page: ParsedPage) -> list[FigureTable]:
    """Return the tables whose cells are surrounded by rules. A merged cell applies to each row and column it spans."""
    graphics = page.vector_graphics
    if graphics is None or not 4 <= len(graphics.lines) <= MAX_RULES:
        return []
    lines = [(line.x1, line.y1, line.x2, line.y2) for line in graphics.lines if line.stroke]
    for shape in graphics.shapes:
        x, y, width, height = shape.bbox
        if shape.fill and min(width, height) <= RULE_TOLERANCE_PT:
            middle = (y + height / 2, x + width / 2)
            lines.append(
                (x, middle[0], x + width, middle[0]) if width > height else (middle[1], y, middle[1], y + height)
            )
    across = _join_rules([(y1, min(x1, x2), max(x1, x2)) for x1, y1, x2, y2 in lines if abs(y1 - y2) <= 1])
    down = _join_rules([(x1, min(y1, y2), max(y1, y2)) for x1, y1, x2, y2 in lines if abs(x1 - x2) <= 1])
    tables = (_read_grid(page, *group) for group in _group_rules(across, down))
    return [table for table in tables if table is not None]


def _join_rules(rules: Sequence[Rule]) -> list[Rule]:
    """Join rules that continue each other."""
    joined: list[Rule] = []
    for position, start, end in sorted(rules, key=lambda rule: (round(rule[0] / RULE_TOLERANCE_PT), rule[1])):
        last = joined[-1] if joined else None
        if last is not None and abs(last[0] - position) <= RULE_TOLERANCE_PT and start <= last[2] + RULE_TOLERANCE_PT:
            joined[-1] = (last[0], min(last[1], start), max(last[2], end))
        elif end - start > RULE_TOLERANCE_PT:
            joined.append((position, start, end))
    return joined


def _group_rules(across: Sequence[Rule], down: Sequence[Rule]) -> list[tuple[list[Rule], list[Rule]]]:
    """Return groups of horizontal and vertical rules that touch each other."""
    groups: list[tuple[list[Rule], list[Rule]]] = [([rule], []) for rule in across]
    for rule in down:
        touched = [group for group in groups if any(_touch(other, rule) for other in group[0])]
        if touched:
            groups = [group for group in groups if group not in touched]
            groups.append(
                (
                    [one for group in touched for one in group[0]],
                    [*(one for group in touched for one in group[1]), rule],
                )
            )
    return groups


def _touch(across: Rule, down: Rule) -> bool:
    return (
        across[1] - RULE_TOLERANCE_PT <= down[0] <= across[2] + RULE_TOLERANCE_PT
        and down[1] - RULE_TOLERANCE_PT <= across[0] <= down[2] + RULE_TOLERANCE_PT
    )


def _distinct_positions(positions: Sequence[float]) -> list[float]:
    distinct: list[float] = []
    for position in sorted(positions):
        if not distinct or position - distinct[-1] > RULE_TOLERANCE_PT:
            distinct.append(position)
    return distinct


def _read_grid(page: ParsedPage, across: Sequence[Rule], down: Sequence[Rule]) -> FigureTable | None:
    """Return the table in a group of rules, or None if it is not one (a frame or an axis, for example)."""
    if len(across) < 2 or not down:
        return None
    left, right = min(rule[1] for rule in across), max(rule[2] for rule in across)
    top, bottom = min(rule[1] for rule in down), max(rule[2] for rule in down)
    columns = _distinct_positions([left, right, *(rule[0] for rule in down)])
    rows = _distinct_positions([top, bottom, *(rule[0] for rule in across)])
    if len(columns) < 3 or len(rows) < 3:
        return None
    areas = _merge_cells(columns, rows, across, down)
    texts = _place_words(page, columns, rows, areas)
    filled = {area for area in areas.values() if texts.get(area)}
    if len(filled) < MIN_RULED_CELLS or _lacks_row_rules(rows, areas, texts):
        return None
    grid = [[areas[row, column] for column in range(len(columns) - 1)] for row in range(len(rows) - 1)]
    return FigureTable(_format_grid(grid, texts), top, bottom, left, right)


def _merge_cells(
    columns: Sequence[float], rows: Sequence[float], across: Sequence[Rule], down: Sequence[Rule]
) -> dict[Cell, Cell]:
    """Return, for each cell, the first cell of its area: the one before it or above it unless a rule divides them."""
    areas: dict[Cell, Cell] = {}
    for row, (upper, lower) in enumerate(pairwise(rows)):
        for column, (left, right) in enumerate(pairwise(columns)):
            areas[row, column] = row, column
            if column and not _has_rule(down, left, (upper + lower) / 2):
                areas[row, column] = areas[row, column - 1]
            elif row and not _has_rule(across, upper, (left + right) / 2):
                areas[row, column] = areas[row - 1, column]
    return areas


def _has_rule(rules: Sequence[Rule], position: float, middle: float) -> bool:
    return any(abs(rule[0] - position) <= RULE_TOLERANCE_PT and rule[1] <= middle <= rule[2] for rule in rules)


def _place_words(
    page: ParsedPage, columns: Sequence[float], rows: Sequence[float], areas: Mapping[Cell, Cell]
) -> dict[Cell, list[str]]:
    """Return the lines of text in each area."""
    lines: dict[Cell, list[tuple[float, list[str]]]] = {}
    for line in group_lines(page.text_items):
        for item in line:
            middle = item.y + item.height / 2
            row = bisect_right(rows, middle) - 1
            whole = bisect_right(columns, item.x + 1) == bisect_right(columns, item.x + item.width - 1)
            pieces = [PlacedText(item.text.strip(), item.x, item.x + item.width)] if whole else split_words(item)
            for piece in pieces:
                area = areas.get((row, bisect_right(columns, (piece.left + piece.right) / 2) - 1))
                if area is None:
                    continue
                own = lines.setdefault(area, [])
                if own and middle - own[-1][0] <= item.height / 2:
                    own[-1][1].append(piece.text)
                else:
                    own.append((middle, [piece.text]))
    return {area: [" ".join(words) for _, words in own] for area, own in lines.items()}


def _lacks_row_rules(rows: Sequence[float], areas: Mapping[Cell, Cell], texts: Mapping[Cell, Sequence[str]]) -> bool:
    """Return whether a row of the grid contains several rows of text without rules between them."""
    for row in range(len(rows) - 1):
        counts = {len(texts.get(area, ())) for cell, area in areas.items() if cell[0] == row}
        if len(counts - {0}) == 1 and max(counts) > MAX_ALIGNED_LINES:
            return True
    return False


def _format_grid(grid: Sequence[Sequence[Cell]], texts: Mapping[Cell, Sequence[str]]) -> str:
    """Return a grid as Markdown, preceded by the single-cell rows above it."""
    titles: list[str] = []
    first = 0
    while first < len(grid) - 1 and len(set(grid[first])) == 1:
        titles.append(" ".join(texts.get(grid[first][0], ())))
        first += 1
    lines: list[list[str]] = []
    for areas in grid[first:]:
        cells = [" ".join(texts.get(area, ())) for area in areas]
        lines.append([cells[0], *([""] * (len(cells) - 1))] if len(set(areas)) == 1 else cells)
    names = grid[first]
    depth = max(sum(area in row for row in grid[first:]) for area in names)
    depth = max(depth, 2 if len(set(names)) < len(names) and len(lines) > 2 else 1)
    merged = merge_header_rows(lines, min(depth, len(lines) - 1) if depth > 1 else None) if len(lines) > 2 else lines
    table = _format_table(merged)
    return "\n\n".join([*filter(None, dict.fromkeys(titles)), table])


# --- Replacement of the parser's blocks by rebuilt tables ---

WORD = re.compile(r"[^\W_]+")
DIVIDED_WORD = re.compile(
    r"(?<=[^\W\d_])[-\u2010]\s+(?=[^\W\d_])"
)  # a word divided at a line end, which the parser joins
MIN_OVERLAP_PT = 3.0  # points by which a block must overlap a table


def insert_figure_tables(page: ParsedPage, texts: Sequence[str]) -> list[str]:
    """Return the blocks of a page with each rebuilt table in place of the blocks that it covers.

    Args:
        page: A page that was parsed with its blocks.
        texts: Its blocks as Markdown, one for each of ``list_blocks``. If the counts differ, no block is replaced.
    """
    boxes = [block.box for block in list_blocks(page) if block.box is not None]
    if len(boxes) != len(texts):
        return list(texts)
    result = list(texts)
    rows = group_rows(page.text_items)
    for tables, covered in _group_tables(_find_tables(page, rows), boxes):
        own = [boxes[place] for place in covered]
        others = [box for place, box in enumerate(boxes) if place not in covered]
        for excluded in (others, []):  # a block may be inside the box of another, which then has its words too
            text = _text_in_blocks(rows, tables, own, excluded)
            if contains_all_words(text, [texts[place] for place in covered]):
                result[covered[0]] = text
                for place in covered[1:]:
                    result[place] = ""
                break
    return result


def _find_tables(page: ParsedPage, rows: Sequence[FigureRow]) -> list[FigureTable]:
    ruled = find_ruled_tables(page)
    tables = [
        table
        for table in find_figure_tables(rows)
        if all(table.bottom <= other.top or table.top >= other.bottom for other in ruled)
    ]
    return [*ruled, *tables, *find_single_column_tables(rows, [*ruled, *tables])]


def _group_tables(tables: Sequence[FigureTable], boxes: Sequence[Box]) -> list[tuple[list[FigureTable], list[int]]]:
    """Return tables with the indexes of the blocks they overlap; tables that share a block are in one group."""
    groups: list[tuple[list[FigureTable], list[int]]] = []
    for table in tables:
        covered = {
            place
            for place, box in enumerate(boxes)
            if box[1] < table.bottom - MIN_OVERLAP_PT
            and box[3] > table.top + MIN_OVERLAP_PT
            and box[0] < table.right
            and box[2] > table.left
        }
        if not covered:
            continue
        shared = [group for group in groups if covered & set(group[1])]
        groups = [group for group in groups if group not in shared]
        together = [item for group in shared for item in group[0]]
        groups.append(([*together, table], sorted(covered.union(*(group[1] for group in shared)))))
    return groups


def _text_in_blocks(
    rows: Sequence[FigureRow], tables: Sequence[FigureTable], own: Sequence[Box], others: Sequence[Box]
) -> str:
    """Return the tables, and the words between them that are in ``own`` blocks and not in ``others``."""
    inside = [row for row in rows if _is_beside_box(row, own) and not _is_beside_box(row, others)]
    top = -inf
    parts: list[str] = []
    for table in sorted(tables, key=lambda table: table.top):
        parts += [_words_between(inside, top, table.top), table.markdown]
        top = table.bottom
    return "\n\n".join(filter(None, [*parts, _words_between(inside, top, inf)]))


def _is_beside_box(row: FigureRow, boxes: Sequence[Box]) -> bool:
    """Return whether the middle of a line is level with one of the boxes."""
    middle = (row.top + row.bottom) / 2
    return any(box[1] - 1 <= middle < box[3] + 1 for box in boxes)


def _words_between(rows: Sequence[FigureRow], top: float, bottom: float) -> str:
    """Return the words of the lines whose middles are between two heights."""
    lines = (row for row in rows if top - 1 <= (row.top + row.bottom) / 2 < bottom + 1)
    return " ".join(piece.text for row in lines for piece in row.pieces)


def contains_all_words(text: str, texts: Sequence[str]) -> bool:
    """Return whether a text contains every word of ``texts``, whole or hyphenated at a line break."""
    known_words = {*WORD.findall(text), *WORD.findall(DIVIDED_WORD.sub("", text))}
    return known_words.issuperset(WORD.findall(" ".join(texts)))
