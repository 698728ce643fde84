"""The rows of a passage's table that say most of a question, for places with little room."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from workbench.marking import matched_spans, stem

ROW = re.compile(r"^\|.*\|[ \t]*$", re.MULTILINE)
RULE = re.compile(r"^\|(?:\s*:?-+:?\s*\|)+\s*$")
CELL = re.compile(r"(?<!\\)\|")  # a bar behind a backslash belongs to the cell
HEADING = re.compile(r"\s*#{1,6}\s")
FIGURE = re.compile(r"[^\w]*(?:\d[\d.,' ]*\W*(?:\([a-z]{1,2}\))?|[-–—])")
MOST_ROWS = 4
MOST_COLUMNS = 6
LEAST_LETTERS = 20  # of prose beside a table


@dataclass(frozen=True, slots=True)
class TableExcerpt:
    """The names of some columns of a table, blank where they have none, and some of its rows in their order."""

    names: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def lines(self) -> list[str]:
        """Return each row as one line: "Net sales, 2024: 1,204 · 2023: 1,180"."""
        return [_line(self.names, row) for row in self.rows]

    def is_figures(self, column: int) -> bool:
        """Tell whether the cells of a column that say something are figures, which stand to the right."""
        said = [row[column] for row in self.rows if row[column]]
        return bool(said) and all(map(FIGURE.fullmatch, said))


@dataclass(frozen=True, slots=True)
class _Line:
    """A line of a text: the question's words in it, and the cells of a row with those that name its columns.

    ``about`` are the question's words in these names and in the line that leads to the table.
    """

    words: frozenset[str]
    about: frozenset[str] = frozenset()
    cells: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    table: int = 0


def cells(row: str) -> list[str]:
    """Return the cells of a row of Markdown, stripped."""
    return [" ".join(cell.replace("\\|", "|").split()) for cell in CELL.split(row.strip().strip("|"))]


def table_excerpt(query: str, text: str, header: str = "") -> TableExcerpt | None:
    """Return the rows of a passage's table that say most of a question, at most 4 with 6 columns.

    ``header`` is that of a table which the passage goes on with. Returns None where there is no row of a table with
    a word of the question, or a line of prose has more of them; a passage that is a table alone shows its first rows.
    """
    lines = _lines(query, text, header)
    holding = Counter(word for line in lines for word in line.words)
    scores = [sum(1 / holding[word] for word in line.words) for line in lines]
    named = [
        score + sum(1 / max(1, holding[word]) for word in line.about) for score, line in zip(scores, lines, strict=True)
    ]
    rows = [place for place, line in enumerate(lines) if line.cells and named[place]]
    if not rows and not _says_something(ROW.sub("", text)):
        rows = [place for place, line in enumerate(lines) if line.cells]
    if not rows:
        return None
    best = max(rows, key=lambda place: (named[place], -place))
    if any(score > named[best] for score, line in zip(scores, lines, strict=True) if not line.cells):
        return None
    near = [place for place, line in enumerate(lines) if line.cells and line.table == lines[best].table]
    near.sort(key=lambda place: (place != best, -scores[place], abs(place - best)))
    shown = [lines[place] for place in sorted(near[:MOST_ROWS])]
    width = max(len(line.cells) for line in shown)
    names = _filled(lines[best].names, width) if len(lines[best].names) == width else [""] * width
    bodies = [_filled(line.cells, width) for line in shown]
    kept = _columns(query, [names, *bodies])
    return TableExcerpt(tuple(names[at] for at in kept), tuple(tuple(body[at] for at in kept) for body in bodies))


def without_rows(text: str) -> str:
    """Return a passage without the rows of its tables; all of it where nothing else is said."""
    prose = ROW.sub("", text)
    said = "".join(line for line in prose.splitlines() if not HEADING.match(line))
    return prose if _says_something(said) else text


def _says_something(prose: str) -> bool:
    """Tell whether there is more beside a table than a page number or a few words."""
    return sum(character.isalpha() for character in prose) >= LEAST_LETTERS


def _lines(query: str, text: str, header: str) -> list[_Line]:
    """Return the lines of a text that say something, rows of figures without those that name columns."""
    found: list[_Line] = []
    names, lead = tuple(cells(next(iter(header.strip().splitlines()), ""))), ""
    table = 0
    said = [line for line in text.splitlines() if line.strip() and not HEADING.match(line)]
    for line, following in pairwise([*said, ""]):
        if RULE.match(line):
            continue
        if not ROW.match(line):
            leads = line.rstrip().endswith(":") and ROW.match(following)
            names, lead, table = (), line if leads else "", table + 1
            if not leads:
                found.append(_Line(_words(query, line)))
        elif RULE.match(following):
            names, table = tuple(cells(line)), table + 1
        else:
            about = _words(query, " ".join([lead, *names]))
            found.append(_Line(_words(query, line), about, tuple(cells(line)), names, table))
    return found


def _words(query: str, text: str) -> frozenset[str]:
    return frozenset(stem(text[start:end].lower()) for start, end in matched_spans(query, text))


def _filled(row: Sequence[str], width: int) -> list[str]:
    return [*row[:width], *([""] * (width - len(row)))]


def _columns(query: str, rows: Sequence[Sequence[str]]) -> list[int]:
    """Return the columns that are shown: the labels, those with words of the question, and those beside them."""
    said = [place for place in range(len(rows[0])) if not place or any(row[place] for row in rows[1:])]
    asked = [place for place in said if place and any(_words(query, row[place]) for row in rows)]

    def far(place: int) -> tuple[bool, int, int]:
        return place > 0, min((abs(place - one) for one in asked), default=0), place

    return sorted(sorted(said, key=far)[:MOST_COLUMNS])


def _line(names: Sequence[str], row: Sequence[str]) -> str:
    """Return a row's label, and each further cell behind the name of its column."""
    told = [f"{name}: {cell}" if name else cell for name, cell in zip(names[1:], row[1:], strict=True) if cell]
    between = (", " if names[1:] and names[1] else ": ") if row[0] and told else ""
    return f"{row[0]}{between}{' · '.join(told)}"
