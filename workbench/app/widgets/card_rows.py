"""The rows of a table on a card: below their columns' names, those that say most of the question."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence, Set
from dataclasses import replace
from itertools import groupby

from workbench.app.widgets.rendered.elements import Element, Node, TextRun, shown_text

NAMES, ROW = "row heading", "row"
MOST_ROWS = 2  # below the names: three lines have room
MOST_COLUMNS = 4
ASKED_COLUMNS = 3  # where the question names one: four columns of a card that is 220 pixels wide hide the last
LEAST_ALIKE = 2  # words that names begin with alike before they are left out
LONGEST_CELL = 22  # characters of a cell of words that stands in a column of a card
WIDEST = 34  # characters that the columns of words beside the label may take together

SaidWords = Callable[[Element], Set[str]]


def telling_rows(lines: Sequence[Element], words: SaidWords) -> list[Element] | None:
    """Return the names of a table and its rows with most of the question's words.

    ``words`` gives a line's words that the question has. A word counts by how few lines have it, and a row has the
    words of its columns' names, too. Returns None where no row has any, or another line says more.
    """
    said = [words(line) for line in lines]
    holding = Counter(word for line in said for word in line)
    scores = [sum(1 / holding[word] for word in line) for line in said]
    rows = [place for place, line in enumerate(lines) if _kind(line) == ROW and scores[place]]
    if not rows:
        return None
    whole = {place: scores[place] + _names_score(lines, scores, place) for place in rows}
    best = max(rows, key=lambda place: (whole[place], -place))
    if any(score > whole[best] for place, score in enumerate(scores) if _kind(lines[place]) not in (NAMES, ROW)):
        return None
    first, last = _table(lines, best)
    others = sorted(
        (place for place in range(first, last) if place != best), key=lambda place: _rank(scores, best, place)
    )
    shown = sorted([best, *others[: MOST_ROWS - 1]])
    names = [lines[first - 1]] if first and _kind(lines[first - 1]) == NAMES else []
    return [*names, *(lines[place] for place in shown)]


def as_records(rows: Sequence[Element], words: SaidWords) -> list[Element] | None:
    """Return rows whose cells are too long for columns as a line each, the one with most of the question's words first.

    Returns None where columns hold them.
    """
    names = cells(rows[0]) if rows and _kind(rows[0]) == NAMES else []
    body = [cells(row) for row in rows if _kind(row) == ROW]
    if not _is_wordy(body):
        return None
    made = [_record(names, row, words) for row in body if row]
    return sorted(made, key=lambda line: -len(words(line)))


def with_tables(lines: Sequence[Element], words: SaidWords) -> list[Element]:
    """Return lines in which rows that follow each other are one element, whose cells a browser puts into columns.

    Rows whose cells are too long for that are a line each.
    """
    made: list[Element] = []
    for is_row, group in groupby(lines, key=lambda line: _kind(line) in (NAMES, ROW)):
        rows = list(group)
        records = as_records(rows, words) if is_row else None
        if records is not None:
            made.extend(records)
        elif is_row:
            columns = _columns(rows, words)
            narrow = [_narrow(row, columns) for row in rows]
            if _kind(narrow[0]) == NAMES:
                narrow[0] = replace(narrow[0], children=tuple(_spaced(_told_apart(cells(narrow[0])))))
            made.append(Element("p", tuple(_spaced(narrow)), {"class": "rows"}))
        else:
            made.extend(rows)
    return made


def cells(row: Element) -> list[Element]:
    """Return the cells of a line that is a row."""
    return [child for child in row.children if isinstance(child, Element)]


def is_row(line: Element) -> bool:
    """Tell whether a line is a row of a table, or its columns' names."""
    return _kind(line) in (NAMES, ROW)


def with_dots(row: Element, place: int, dots: TextRun) -> Element:
    """Return a row with dots at the beginning (``place`` 0) or the end (-1) of the cell there."""
    inside = list(cells(row))
    if not inside:
        return row
    children = inside[place].children
    inside[place] = replace(inside[place], children=(*children, dots) if place else (dots, *children))
    return replace(row, children=tuple(_spaced(inside)))


def _is_wordy(rows: Sequence[Sequence[Element]]) -> bool:
    """Tell whether rows, given by their cells, would be cut in columns; figures stand to the right and are short."""
    widest: dict[int, int] = {}
    for row in rows:
        for place, cell in enumerate(row):
            if place and "align" not in cell.attributes:
                widest[place] = max(widest.get(place, 0), len(shown_text(cell.children)))
    return max(widest.values(), default=0) > LONGEST_CELL or sum(widest.values()) > WIDEST


def _record(names: Sequence[Element], row: Sequence[Element], words: SaidWords) -> Element:
    """Return a row as one line: its label, then each cell after its column's name, those that say most first.

    ``names`` is empty where the columns have none; ``words`` gives the question's words in a cell.
    """
    parts: list[Node] = [*row[0].children] if row else []
    order = sorted(range(1, len(row)), key=lambda place: (-len(words(row[place])), place))
    for place in order:
        if not shown_text(row[place].children).strip():
            continue
        if parts:
            parts.append(TextRun(" · ", 0, 0))
        if place < len(names) and shown_text(names[place].children).strip():
            parts.append(Element("span", (*names[place].children, TextRun(": ", 0, 0)), {"class": "name"}))
        parts.extend(row[place].children)
    return Element("p", tuple(parts), {"class": "record"})


def _kind(line: Element) -> str:
    return str(line.attributes.get("class", ""))


def _names_score(lines: Sequence[Element], scores: Sequence[float], place: int) -> float:
    first, _ = _table(lines, place)
    return scores[first - 1] if first and _kind(lines[first - 1]) == NAMES else 0.0


def _table(lines: Sequence[Element], place: int) -> tuple[int, int]:
    """Return where the rows around a row begin, and where they end."""
    first = last = place
    while first and _kind(lines[first - 1]) == ROW:
        first -= 1
    while last < len(lines) and _kind(lines[last]) == ROW:
        last += 1
    return first, last


def _rank(scores: Sequence[float], best: int, place: int) -> tuple[float, int, bool]:
    """Return the key that sorts further rows: those that say most first, then those beside the best one."""
    return -scores[place], abs(place - best), place < best


def _columns(rows: Sequence[Element], words: SaidWords) -> list[int]:
    """Return the columns that are shown: the labels, those with words of the question, and those beside them.

    Where some are asked for they are few enough to stand on a narrow card; else the first ones are shown.
    """
    width = max(len(cells(row)) for row in rows)
    asked = {place for row in rows for place, cell in enumerate(cells(row)) if place and words(cell)}
    most = min(MOST_COLUMNS, max(ASKED_COLUMNS, 1 + len(asked))) if asked else MOST_COLUMNS

    def far(place: int) -> int:
        return min((abs(place - one) for one in asked), default=0)

    return sorted(sorted(range(width), key=lambda place: (place > 0, far(place), place))[:most])


def _narrow(row: Element, columns: Sequence[int]) -> Element:
    inside = cells(row)
    kept = [inside[place] for place in columns if place < len(inside)]
    return Element("span", tuple(_spaced(kept)), row.attributes)


def _told_apart(names: Sequence[Element]) -> list[Element]:
    """Return the names of columns without the words that neighbours begin with alike ("Year ended May 31, 2020")."""
    texts = [shown_text(name.children).split(" ") for name in names]
    made: list[Element] = []
    for place, name in enumerate(names):
        beside = [texts[other] for other in (place - 1, place + 1) if 0 <= other < len(texts)]
        alike = max((_alike(texts[place], other) for other in beside), default=0)
        run = name.children[0] if len(name.children) == 1 else None
        if alike >= LEAST_ALIKE and isinstance(run, TextRun):
            at = len(" ".join(texts[place][:alike])) + 1
            start = run.start + at if run.is_exact else run.start
            name = replace(name, children=(TextRun("… ", 0, 0), TextRun(run.text[at:], start, run.end)))
        made.append(name)
    return made


def _alike(words: Sequence[str], others: Sequence[str]) -> int:
    """Return how many words both begin with, one left over in each."""
    pairs = zip(words[:-1], others[:-1], strict=False)
    return next((place for place, (one, other) in enumerate(pairs) if one != other), min(len(words), len(others)) - 1)


def _spaced(elements: Sequence[Element]) -> list[Node]:
    """Return elements with a blank between two, for those who hear or copy them."""
    return [part for element in elements for part in (TextRun(" ", 0, 0), element)][1:]
