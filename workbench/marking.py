"""The words of a passage that match a question, for highlighting; every interface highlights the same ones.

A word matches if the question contains the same stem; the stemmer is Snowball, as in the keyword index.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Protocol

from workbench.text import (
    find_joined,
    find_names,
    find_spellings,
    fold_word,
    gram_spans,
    is_unspaced,
    iter_spaced_words,
    split_grams,
)

_HEADINGS = re.compile(r"\A(?:\s*#{1,6}\s[^\n]*\n)+(?=.*\S)", re.DOTALL)
_FUNCTION_WORDS = """
    a about after all also am an and any are as at be because been before being but by can could did do does
    doing for from had has have having he her here him his how i if in into is it its just me my no nor not of
    off on once only or other our out over own s same she should so some such t than that the their them then
    there these they this those through to too under until up very was we were what when where which while who
    whom why will with would you your
"""
FUNCTION_WORDS = frozenset(_FUNCTION_WORDS.split())


def match_spans(query: str, text: str, language: str = "english") -> tuple[tuple[int, int], ...]:
    """Return (start, end) of the words in ``text`` that also occur in the query, in order, never overlapping.

    The language is that of the stemmer, by Snowball's name.
    """
    wanted = _stems(query, language)
    # a stem keeps the first letter of its word
    initials = {word[0] for word in wanted} if language == "english" else None
    spans = [
        word.span() for word in iter_spaced_words(text) if _is_wanted(word.group().lower(), language, wanted, initials)
    ]
    if is_unspaced(query):
        spans = sorted([*spans, *gram_spans(text, split_grams(query))])
    if names := _find_names(query, text):
        spans = [span for span in spans if not any(start <= span[0] and span[1] <= end for start, end in names)]
        spans = sorted([*spans, *names])
    return tuple(spans)


def _find_names(query: str, text: str) -> list[tuple[int, int]]:
    """Return the spans in a text of the query's names with signs (1.3.2, C++), and of other spellings of its words."""
    wanted = {name for name, _, _ in find_names(query)} | find_spellings(query).keys()
    typed = set(re.findall(r"[^\W_]+", query.lower()))
    named = [*find_names(text), *find_joined(text)]
    spans = [(start, end) for name, start, end in named if name in wanted | typed]
    if wanted:
        words = re.finditer(r"[^\W_]+", text)
        spans += [word.span() for word in words if len(word[0]) > 1 and word[0].lower() in wanted]
    longest: list[tuple[int, int]] = []
    for span in sorted(set(spans), key=lambda span: (span[0], -span[1])):
        if not longest or span[0] >= longest[-1][1]:
            longest.append(span)
    return longest


def content_stems(query: str, language: str = "english") -> set[str]:
    """Return the stems of a query's content words, and its n-grams in unspaced scripts."""
    return _stems(query, language) | split_grams(query.lower())


def _stems(query: str, language: str) -> set[str]:
    words = [word.group() for word in iter_spaced_words(query.lower())]
    return {stem(word, language) for word in [word for word in words if word not in FUNCTION_WORDS] or words}


def _is_wanted(word: str, language: str, wanted: Collection[str], initials: Collection[str] | None) -> bool:
    """Return whether a word's stem is wanted; words with other initials are skipped, as stemming takes 0.1 ms."""
    return (initials is None or word[0] in initials) and stem(word, language) in wanted


class _Stemmer(Protocol):
    def stemWord(self, word: str) -> str: ...


@cache
def stem(word: str, language: str = "english") -> str:
    """Return the stem of a lower-case word in a language that Snowball supports; otherwise the word itself."""
    stemmer = _stemmer(language)
    return stemmer.stemWord(fold_word(word)) if stemmer else fold_word(word)


@cache
def _stemmer(language: str) -> _Stemmer | None:
    import snowballstemmer

    return snowballstemmer.stemmer(language) if language in snowballstemmer.algorithms() else None


def find_own_word(query: str, term: str, language: str = "english") -> str:
    """Return the question's own word for a folded and stemmed term of the index."""
    words = [match.group() for match in iter_spaced_words(query)]
    return next((word for word in words if term in (word.lower(), stem(word.lower(), language))), term)


def split_matches(query: str, text: str) -> list[tuple[str, bool]]:
    """Split a text into (piece, whether it matched); joined, the pieces are the text."""
    marks: list[tuple[str, bool]] = []
    at = 0
    for start, end in match_spans(query, text):
        if start > at:
            marks.append((text[at:start], False))
        marks.append((text[start:end], True))
        at = end
    if at < len(text):
        marks.append((text[at:], False))
    return marks


def excerpt(query: str, text: str, length: int) -> str:
    """Return about ``length`` characters of a text, starting shortly before its densest matches.

    Leading headings are omitted, since every view of a passage shows its heading path.
    """
    clean = " ".join(_HEADINGS.sub("", text).split())
    if len(clean) <= length:
        return clean
    starts = [start for start, _ in match_spans(query, clean)]
    best = max(starts, key=lambda at: (sum(at <= other < at + length for other in starts), -at), default=0)
    begin = max(0, min(best - length // 5, len(clean) - length))
    begin = clean.find(" ", begin) + 1 if begin else 0
    end = clean.rfind(" ", begin, begin + length) if begin + length < len(clean) else len(clean)
    return (
        ("… " if begin else "")
        + clean[begin : end if end > begin else begin + length]
        + (" …" if end < len(clean) else "")
    )


# Table rows that match a question best

ROW = re.compile(r"^\|.*\|[ \t]*$", re.MULTILINE)
RULE = re.compile(r"^\|(?:\s*:?-+:?\s*\|)+\s*$")
CELL = re.compile(r"(?<!\\)\|")  # an escaped bar is part of the cell
HEADING = re.compile(r"\s*#{1,6}\s")
FIGURE = re.compile(r"[^\w]*(?:\d[\d.,' ]*\W*(?:\([a-z]{1,2}\))?|[-–—])")
MAX_ROWS_SHOWN = 4
MAX_COLUMNS_SHOWN = 6
MIN_PROSE_LETTERS = 20  # of prose next to a table


@dataclass(frozen=True, slots=True)
class TableExcerpt:
    """Some columns and rows of a table."""

    names: tuple[str, ...]  # of the columns, empty if unnamed
    rows: tuple[tuple[str, ...], ...]  # in their order

    def lines(self) -> list[str]:
        """Return each row as one line: "Net sales, 2024: 1,204 · 2023: 1,180"."""
        return [_line(self.names, row) for row in self.rows]

    def is_figures(self, column: int) -> bool:
        """Return whether all non-empty cells of a column are figures, which are right-aligned."""
        filled = [row[column] for row in self.rows if row[column]]
        return bool(filled) and all(map(FIGURE.fullmatch, filled))


@dataclass(frozen=True, slots=True)
class _Line:
    """A line of a text."""

    words: frozenset[str]  # words of the question in the line
    about: frozenset[str] = frozenset()  # words of the question in the column names and the line before the table
    cells: tuple[str, ...] = ()  # if it is a row of a table
    names: tuple[str, ...] = ()  # of the row's columns
    table: int = 0  # number of the row's table


def split_cells(row: str) -> list[str]:
    """Return the cells of a Markdown table row, stripped."""
    return [" ".join(cell.replace("\\|", "|").split()) for cell in CELL.split(row.strip().strip("|"))]


def table_excerpt(query: str, text: str, header: str = "") -> TableExcerpt | None:
    """Return the rows of a passage's table that match a question best, at most 4 rows and 6 columns.

    None if no table row contains a question word, or if a line of prose contains more of them. For a passage that
    consists only of a table, its first rows. ``header`` is that of a table that the passage continues.
    """
    lines = _lines(query, text, header)
    holding = Counter(word for line in lines for word in line.words)
    scores = [sum(1 / holding[word] for word in line.words) for line in lines]
    named = [
        score + sum(1 / max(1, holding[word]) for word in line.about) for score, line in zip(scores, lines, strict=True)
    ]
    rows = [place for place, line in enumerate(lines) if line.cells and named[place]]
    if not rows and not _has_prose(ROW.sub("", text)):
        rows = [place for place, line in enumerate(lines) if line.cells]
    if not rows:
        return None
    best = max(rows, key=lambda place: (named[place], -place))
    if any(score > named[best] for score, line in zip(scores, lines, strict=True) if not line.cells):
        return None
    near = [place for place, line in enumerate(lines) if line.cells and line.table == lines[best].table]
    near.sort(key=lambda place: (place != best, -scores[place], abs(place - best)))
    shown = [lines[place] for place in sorted(near[:MAX_ROWS_SHOWN])]
    width = max(len(line.cells) for line in shown)
    names = _pad_row(lines[best].names, width) if len(lines[best].names) == width else [""] * width
    bodies = [_pad_row(line.cells, width) for line in shown]
    kept = _columns(query, [names, *bodies])
    return TableExcerpt(tuple(names[at] for at in kept), tuple(tuple(body[at] for at in kept) for body in bodies))


def remove_rows(text: str) -> str:
    """Return a passage without its table rows; all of it if there is nothing else."""
    prose = ROW.sub("", text)
    prose_lines = "".join(line for line in prose.splitlines() if not HEADING.match(line))
    return prose if _has_prose(prose_lines) else text


def _has_prose(prose: str) -> bool:
    """Return whether text next to a table is more than a page number or a few words."""
    return sum(character.isalpha() for character in prose) >= MIN_PROSE_LETTERS


def _lines(query: str, text: str, header: str) -> list[_Line]:
    """Return the non-empty lines of a text; table rows without their header rows."""
    found: list[_Line] = []
    names, lead = tuple(split_cells(next(iter(header.strip().splitlines()), ""))), ""
    table = 0
    lines = [line for line in text.splitlines() if line.strip() and not HEADING.match(line)]
    for line, following in pairwise([*lines, ""]):
        if RULE.match(line):
            continue
        if not ROW.match(line):
            leads = line.rstrip().endswith(":") and ROW.match(following)
            names, lead, table = (), line if leads else "", table + 1
            if not leads:
                found.append(_Line(_words(query, line)))
        elif RULE.match(following):
            names, table = tuple(split_cells(line)), table + 1
        else:
            about = _words(query, " ".join([lead, *names]))
            found.append(_Line(_words(query, line), about, tuple(split_cells(line)), names, table))
    return found


def _words(query: str, text: str) -> frozenset[str]:
    return frozenset(stem(text[start:end].lower()) for start, end in match_spans(query, text))


def _pad_row(row: Sequence[str], width: int) -> list[str]:
    return [*row[:width], *([""] * (width - len(row)))]


def _columns(query: str, rows: Sequence[Sequence[str]]) -> list[int]:
    """Return the columns to show: labels, columns that contain question words, and their neighbours."""
    columns = [place for place in range(len(rows[0])) if not place or any(row[place] for row in rows[1:])]
    asked = [place for place in columns if place and any(_words(query, row[place]) for row in rows)]

    def far(place: int) -> tuple[bool, int, int]:
        return place > 0, min((abs(place - one) for one in asked), default=0), place

    return sorted(sorted(columns, key=far)[:MAX_COLUMNS_SHOWN])


def _line(names: Sequence[str], row: Sequence[str]) -> str:
    """Return a row's label, followed by each further cell with its column name."""
    cells = [f"{name}: {cell}" if name else cell for name, cell in zip(names[1:], row[1:], strict=True) if cell]
    between = (", " if names[1:] and names[1] else ": ") if row[0] and cells else ""
    return f"{row[0]}{between}{' · '.join(cells)}"
