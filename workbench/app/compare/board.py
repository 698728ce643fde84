"""The board of a comparison: its columns, and the user's actions in them."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from itertools import groupby, pairwise
from string import ascii_uppercase
from typing import TYPE_CHECKING

import streamlit as st

from workbench.app.compare.columns import ComparedHits, SearchSettings, open_passage, open_why
from workbench.app.compare.judging import QuestionJudging, read_marks
from workbench.app.compare.matches import Joins, Underlines, find_same_places, join_hits, place_key
from workbench.app.state import address
from workbench.app.widgets.elements import Element, Node, TextRun, plain_text, split_code, split_into_lines, to_json
from workbench.app.widgets.looks import (
    escape_markdown,
    format_place,
    get_look,
    strategy_look,
    strategy_title,
    strip_markdown,
)
from workbench.app.widgets.markdown import parse_markdown
from workbench.app.widgets.notices import mount
from workbench.app.widgets.promoting import (
    LiveStrategy,
    PromotionCandidate,
    find_joint_evidence,
    find_live_columns,
    list_places,
    open_promotion,
)
from workbench.app.widgets.reader import has_records, is_code, is_markdown
from workbench.app.widgets.table import Column, show_table
from workbench.app.widgets.tables import add_table_header, shift_back
from workbench.errors import ScopeError, WorkbenchError
from workbench.marking import match_spans, stem
from workbench.retrieval.strategies import STRATEGIES, split_strategy
from workbench.text import WORD, language_title
from workbench.types import TOTAL, Comparison, JsonObject, JsonValue, Passage, SearchResult, Span, TimedStep

if TYPE_CHECKING:
    from workbench.workbench import Workbench

# Passages as cards: short rendered lines, cut to the part with most words of the question
# Words of the question are marked, and words that late interaction found similar to them.

# Tables on a card

HEADER_KIND, ROW_KIND = "row heading", "row"
MAX_ROWS = 2  # below the header; a card has three lines
MAX_COLUMNS = 4
MAX_COLUMNS_IF_NAMED = 3  # if the question names one; on a card 220 px wide, a fourth column is hidden
MIN_COMMON_WORDS = 2  # common first words of column names before they are shortened
MAX_CELL_CHARS = 22  # characters of a text cell in a column
MAX_ROW_CHARS = 34  # total characters of text columns, without the label

FindWords = Callable[[Element], Set[str]]


def select_rows(lines: Sequence[Element], words: FindWords) -> list[Element] | None:
    """Return the header of a table and the rows that contain the most question words.

    Each word is weighted by 1 / the number of lines that contain it; a row also gets the words of its header.

    Args:
        lines: The lines of the passage.
        words: Returns the question words in a line.

    Returns:
        The header and rows, or None if no row contains a question word or if a line outside the table scores higher.
    """
    words_by_line = [words(line) for line in lines]
    holding = Counter(word for line in words_by_line for word in line)
    scores = [sum(1 / holding[word] for word in line) for line in words_by_line]
    rows = [place for place, line in enumerate(lines) if _line_kind(line) == ROW_KIND and scores[place]]
    if not rows:
        return None
    tables = {place: _find_table(lines, place) for place in rows}
    whole = {place: scores[place] + sum(scores[start:first]) for place, (start, first, _) in tables.items()}
    best = max(rows, key=lambda place: (whole[place], -place))
    if any(score > whole[best] for place, score in enumerate(scores) if not is_row(lines[place])):
        return None
    start, first, last = tables[best]
    others = [place for place in range(first, last) if place != best]
    others.sort(key=lambda place: (-scores[place], abs(place - best), place < best))  # equal scores: the nearest first
    shown = sorted([best, *others[: MAX_ROWS - 1]])
    return [*lines[start:first], *(lines[place] for place in shown)]


def find_own_record(lines: Sequence[Element], words: FindWords) -> Element | None:
    """Return, as one line, the row with the most question words that are in no line outside tables; None without one.

    If another line scores higher than every row, such a row still has what that line lacks, for example a code.
    """
    outside = {word for line in lines if not is_row(line) for word in words(line)}
    own = {place: words(line) - outside for place, line in enumerate(lines) if _line_kind(line) == ROW_KIND}
    best = max(own, key=lambda place: (len(own[place]), len(words(lines[place])), -place), default=None)
    if best is None or not own[best]:
        return None
    start, first, _ = _find_table(lines, best)
    names = [cell for header in lines[start:first] for cell in row_cells(header)]
    return _make_record(names, row_cells(lines[best]), words)


def make_records(rows: Sequence[Element], words: FindWords) -> list[Element] | None:
    """Return each row as one line, the one with the most question words first; None if the cells fit in columns."""
    names = row_cells(rows[0]) if rows and _line_kind(rows[0]) == HEADER_KIND else []
    body = [row_cells(row) for row in rows if _line_kind(row) == ROW_KIND]
    if not _has_long_cells(body):
        return None
    made = [_make_record(names, row, words) for row in body if row]
    return sorted(made, key=lambda line: -len(words(line)))


def group_rows(lines: Sequence[Element], words: FindWords) -> list[Element]:
    """Group consecutive rows into one table element, or into one line per row if their cells are too long."""
    made: list[Element] = []
    for in_table, group in groupby(lines, key=is_row):
        rows = list(group)
        records = make_records(rows, words) if in_table else None
        if records is not None:
            made.extend(records)
        elif in_table:
            columns = _select_columns(rows, words)
            narrow = [_keep_columns(row, columns) for row in rows]
            if _line_kind(narrow[0]) == HEADER_KIND:
                narrow[0] = replace(narrow[0], children=tuple(_join_with_spaces(_shorten_names(row_cells(narrow[0])))))
            made.append(Element("p", tuple(_join_with_spaces(narrow)), {"class": "rows"}))
        else:
            made.extend(rows)
    return made


def row_cells(row: Element) -> list[Element]:
    """Return the cells of a row."""
    return [child for child in row.children if isinstance(child, Element)]


def is_row(line: Element) -> bool:
    """Return whether a line is a row or the header of a table."""
    return _line_kind(line) in (HEADER_KIND, ROW_KIND)


def add_dots(line: Element, dots: str, *, at_end: bool) -> Element:
    """Return a line with an ellipsis at its start or end; in a row, it is in the first or last cell."""
    cells = row_cells(line) if is_row(line) else []
    if cells:
        place = -1 if at_end else 0
        cells[place] = add_dots(cells[place], dots, at_end=at_end)
        return replace(line, children=tuple(_join_with_spaces(cells)))
    run = TextRun(dots, 0, 0)
    return replace(line, children=(*line.children, run) if at_end else (run, *line.children))


def _has_long_cells(rows: Sequence[Sequence[Element]]) -> bool:
    """Return whether the text cells of rows are too long for columns."""
    widest: dict[int, int] = {}
    for row in rows:
        for place, cell in enumerate(row):
            if place and "align" not in cell.attributes:
                widest[place] = max(widest.get(place, 0), len(plain_text(cell.children)))
    return max(widest.values(), default=0) > MAX_CELL_CHARS or sum(widest.values()) > MAX_ROW_CHARS


def _make_record(names: Sequence[Element], row: Sequence[Element], words: FindWords) -> Element:
    """Return a row as one line: its label, then "name: value" per cell, cells with the most question words first.

    Args:
        names: Names of the columns, if any.
        row: The cells.
        words: Returns the question words in a cell.
    """
    parts: list[Node] = [*row[0].children] if row else []
    order = sorted(range(1, len(row)), key=lambda place: (-len(words(row[place])), place))
    for place in order:
        if not plain_text(row[place].children).strip():
            continue
        if parts:
            parts.append(TextRun(" · ", 0, 0))
        if place < len(names) and plain_text(names[place].children).strip():
            parts.append(Element("span", (*names[place].children, TextRun(": ", 0, 0)), {"class": "name"}))
        parts.extend(row[place].children)
    return Element("p", tuple(parts), {"class": "record"})


def _line_kind(line: Element) -> str:
    return str(line.attributes.get("class", ""))


def _find_table(lines: Sequence[Element], place: int) -> tuple[int, int, int]:
    """Return the start of the table around a row with its header, the start of its rows, and their end."""
    first = last = place
    while first and _line_kind(lines[first - 1]) == ROW_KIND:
        first -= 1
    while last < len(lines) and _line_kind(lines[last]) == ROW_KIND:
        last += 1
    return first - (first > 0 and _line_kind(lines[first - 1]) == HEADER_KIND), first, last


def _select_columns(rows: Sequence[Element], words: FindWords) -> list[int]:
    """Return the columns to show: labels, columns that contain question words, and their neighbours.

    If no column contains one, the first columns are shown.
    """
    width = max(len(row_cells(row)) for row in rows)
    asked = {place for row in rows for place, cell in enumerate(row_cells(row)) if place and words(cell)}
    most = min(MAX_COLUMNS, max(MAX_COLUMNS_IF_NAMED, 1 + len(asked))) if asked else MAX_COLUMNS

    def far(place: int) -> int:
        return min((abs(place - one) for one in asked), default=0)

    return sorted(sorted(range(width), key=lambda place: (place > 0, far(place), place))[:most])


def _keep_columns(row: Element, columns: Sequence[int]) -> Element:
    inside = row_cells(row)
    kept = [inside[place] for place in columns if place < len(inside)]
    return Element("span", tuple(_join_with_spaces(kept)), row.attributes)


def _shorten_names(names: Sequence[Element]) -> list[Element]:
    """Return column names without the leading words that they share with a neighbour ("Year ended May 31, 2020")."""
    texts = [plain_text(name.children).split(" ") for name in names]
    made: list[Element] = []
    for place, name in enumerate(names):
        neighbours = [texts[other] for other in (place - 1, place + 1) if 0 <= other < len(texts)]
        alike = max((_count_common_words(texts[place], other) for other in neighbours), default=0)
        run = name.children[0] if len(name.children) == 1 else None
        if alike >= MIN_COMMON_WORDS and isinstance(run, TextRun):
            at = len(" ".join(texts[place][:alike])) + 1
            start = run.start + at if run.is_exact else run.start
            name = replace(name, children=(TextRun("… ", 0, 0), TextRun(run.text[at:], start, run.end)))
        made.append(name)
    return made


def _count_common_words(words: Sequence[str], others: Sequence[str]) -> int:
    """Return the number of leading words that two names share, leaving at least one word in each."""
    pairs = zip(words[:-1], others[:-1], strict=False)
    return next((place for place, (one, other) in enumerate(pairs) if one != other), min(len(words), len(others)) - 1)


def _join_with_spaces(elements: Sequence[Element]) -> list[Node]:
    """Return elements separated by spaces, for screen readers and copying."""
    return [part for element in elements for part in (TextRun(" ", 0, 0), element)][1:]


Segment = tuple[str, int]  # text, and its similarity to a word of the question, 0 to 3
MarkedPiece = tuple[bool, list[Segment]]  # is a word of the question, segments

MAX_CARD_CHARS = 420  # characters of a card's text
VISIBLE_LINES, LINE_CHARS = 3, 60  # lines of a card, and characters of each
_SENTENCE_END_PATTERN = re.compile(r"[.!?:;—·]\s|\n")


def render_card(
    query: str,
    text: str,
    headings: Sequence[str] = (),
    language: str = "english",
    likes: Mapping[Span, int] | None = None,
    document_type: str = "markdown",
    table_header: str = "",
) -> list[JsonValue]:
    """Return about ``MAX_CARD_CHARS`` characters of a passage as elements with marked pieces.

    Args:
        query: The question.
        text: The passage.
        headings: Headings to omit at the start, because the card shows them.
        language: Language of the passage, for stemming.
        likes: Spans of ``text`` similar to a word of the question, with a strength of 1 to 3.
        document_type: Type of the document.
        table_header: Markdown header of a table that starts before the passage.
    """
    marks = _Marks(text, _merge_spans(match_spans(query, text, language), text), _extend_to_words(text, likes or {}))
    made = _render_lines(text, headings, document_type, table_header)
    words = _QuestionStems(query, language)
    rows = select_rows(made, words)
    records = make_records(rows, words) if rows is not None else None
    if rows is None:
        record = find_own_record(made, words)
        others = [line for line in made if not is_row(line)] if record else made
        shown = [*([record] if record else []), *_shorten_lines(others, marks.matched, words)]
    else:
        shown = rows if records is None else _shorten_lines(records[:1], marks.matched, words)
    return to_json(group_rows(shown, words), marks.pieces)


def find_best_start(text: str, matches: Sequence[tuple[int, str]]) -> int:
    """Return the start of an excerpt: at the sentence with the most words of the question in what a card shows from it.

    Args:
        text: The text.
        matches: Positions of question words, ascending, with their stems; a repeated word counts little.
    """
    if not matches or matches[-1][0] < _visible_end(text, 0):
        return 0
    sentences = [0, *(match.end() for match in _SENTENCE_END_PATTERN.finditer(text))]
    starts = [0, *(sentences[bisect_right(sentences, hit) - 1] for hit, _ in matches)]

    def rate(start: int) -> tuple[int, bool, int, int]:
        end = _visible_end(text, start)
        inside = [word for hit, word in matches if start <= hit < end]
        return len(set(inside)), start == 0, len(inside), -start

    return max(starts, key=rate)


def _visible_end(text: str, start: int) -> int:
    """Return the end of what a narrow column shows of a text from ``start`` on: three lines, of which some wrap."""
    lines = VISIBLE_LINES
    while lines > 0 and start < len(text):
        stop = text.find("\n", start)
        shown = text[start : min(stop if stop >= 0 else len(text), start + lines * LINE_CHARS)]
        lines -= max(1, -(-len(shown) // LINE_CHARS))
        start += len(shown) + 1
    return start


def _render_lines(text: str, headings: Sequence[str], document_type: str, table_header: str) -> tuple[Element, ...]:
    if is_code(document_type):
        return split_code(text)
    whole, lead = add_table_header(text, table_header)
    tree = parse_markdown(whole, has_indented_code=is_markdown(document_type), has_records=has_records(document_type))
    return split_into_lines(shift_back(tree.blocks, lead) if lead else tree.blocks, headings)


def _shorten_lines(made: Sequence[Element], matched: Sequence[Span], stems: _QuestionStems) -> list[Element]:
    """Return the part of the lines that is shown, with an ellipsis at each omission."""
    start, end = _find_shown_span(made, matched, stems)
    is_cut = end < sum(_text_length(line) + 1 for line in made) - 1
    clipped = [line for line in _clip_nodes(made, start, end, gap=1) if isinstance(line, Element)]
    if clipped and start > 0:
        clipped[0] = add_dots(clipped[0], "… ", at_end=False)
    if clipped and is_cut:
        clipped[-1] = add_dots(clipped[-1], " …", at_end=True)
    return clipped


def _find_shown_span(made: Sequence[Element], matched: Sequence[Span], stems: _QuestionStems) -> Span:
    """Return the span of the part that is shown, in characters of the lines joined by newlines."""
    words = "\n".join(plain_text(line.children) for line in made)
    places = [
        (at + max(first, run.start) - run.start, stem)
        for at, run in _iterate_runs(made)
        if run.is_exact
        for first, last in matched
        if first < run.end and last > run.start
        for stem in stems.of(run.text[max(0, first - run.start) : last - run.start])
    ]
    start = find_best_start(words, places)
    end = len(words)
    if start + MAX_CARD_CHARS < end:
        end = start + len(re.split(r"\s+\S*\Z", words[start : start + MAX_CARD_CHARS])[0])
    return start, end


def _iterate_runs(made: Sequence[Element]) -> Iterator[tuple[int, TextRun]]:
    """Yield the runs of lines, each with its position in the joined lines."""
    at = 0
    for line in made:
        for run in _flatten_runs(line.children):
            yield at, run
            at += len(run.text)
        at += 1


def _flatten_runs(nodes: Sequence[Node]) -> Iterator[TextRun]:
    for node in nodes:
        if isinstance(node, TextRun):
            yield node
        else:
            yield from _flatten_runs(node.children)


def _text_length(node: Node) -> int:
    return len(node.text) if isinstance(node, TextRun) else len(plain_text(node.children))


def _clip_nodes(nodes: Sequence[Node], start: int, end: int, gap: int = 0) -> tuple[Node, ...]:
    """Return the part of nodes from ``start`` to ``end``, in characters of their texts with ``gap`` between them."""
    kept: list[Node] = []
    at = 0
    for node in nodes:
        length = _text_length(node)
        if at < end and at + length > start:
            kept.append(_clip_node(node, max(0, start - at), min(length, end - at)))
        at += length + gap
    return tuple(kept)


def _clip_node(node: Node, first: int, last: int) -> Node:
    if isinstance(node, Element):
        if node.span is not None:  # a formula stays whole
            return node
        return Element(node.tag, _clip_nodes(node.children, first, last), node.attributes)
    span = (node.start + first, node.start + last) if node.is_exact else (node.start, node.end)
    return TextRun(node.text[first:last], *span)


def _extend_to_words(text: str, likes: Mapping[Span, int]) -> dict[Span, int]:
    """Return the words that contain a span, each with the highest strength of its spans."""
    if not likes:
        return {}
    words = [match.span() for match in WORD.finditer(text)]
    starts = [start for start, _ in words]
    marks: dict[Span, int] = {}
    for (first, last), number in likes.items():
        place = bisect_right(starts, first) - 1
        if place >= 0 and last <= words[place][1]:
            marks[words[place]] = max(number, marks.get(words[place], 0))
    return marks


def _merge_spans(spans: Sequence[Span], text: str) -> list[Span]:
    """Merge spans separated only by white space."""
    joined: list[Span] = []
    for start, end in spans:
        if joined and not text[joined[-1][1] : start].strip():
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((start, end))
    return joined


@dataclass(frozen=True, slots=True)
class _QuestionStems:
    """Returns the stems of the question's words in a part of a passage."""

    query: str
    language: str

    def __call__(self, part: Element) -> frozenset[str]:
        return self.of(" ".join(run.text for run in _flatten_runs(part.children)))

    def of(self, text: str) -> frozenset[str]:
        """Return the stems of the question's words in a text."""
        spans = match_spans(self.query, text, self.language)
        return frozenset(stem(text[start:end].lower(), self.language) for start, end in spans)


@dataclass(frozen=True, slots=True)
class _Marks:
    """The marks on a passage: its text, the spans of question words, and the strengths of similar words by span."""

    text: str
    matched: Sequence[Span]
    alike: Mapping[Span, int]

    def pieces(self, run: TextRun) -> list[MarkedPiece]:
        """Split a run at the edges of marks; adjacent question words are one piece."""
        if run.start == run.end or not run.text:
            return [(False, [(run.text, 0)])]
        inside = [span for span in (*self.matched, *self.alike) if span[0] < run.end and span[1] > run.start]
        if not run.is_exact:
            alike = max((self.alike.get(span, 0) for span in inside), default=0)
            return [(any(span in self.matched for span in inside), [(run.text, alike)])]
        edges = sorted({run.start, run.end, *(min(run.end, max(run.start, edge)) for span in inside for edge in span)})
        cut = [(self._has(first, last), self._segment(run, first, last)) for first, last in pairwise(edges)]
        return [(has, [segment for _, segment in group]) for has, group in groupby(cut, key=lambda piece: piece[0])]

    def _has(self, first: int, last: int) -> bool:
        return any(a <= first and last <= b for a, b in self.matched)

    def _segment(self, run: TextRun, first: int, last: int) -> Segment:
        like = next((number for (a, b), number in self.alike.items() if a <= first and last <= b), 0)
        return run.text[first - run.start : last - run.start], like


# The data of the board

OTHER_STAGE = "other"  # time of a search outside the measured steps
MAX_LABEL_CHARS = 120  # characters of a passage for its label
MAX_SCOPES_OFFERED = 200  # sources offered in a column whose strategy needs a scope


@dataclass(frozen=True, slots=True)
class _BoardContext:
    """Everything besides the hit itself that its data depends on."""

    query: str  # the question
    ranks: Mapping[str, Mapping[str, int]]  # rank by column and joined text
    joined: Joins  # data shared by hits of the same text
    labels: Mapping[str, str]  # label of each joined text
    likes: Underlines  # words to underline, keyed by hit
    spoken: Collection[str]  # indexes in several languages, whose hits show their language
    letters: Mapping[str, str]  # letter of each column's index
    headers: Mapping[str, str]  # headers of tables that start before a hit, keyed by hit
    sources: Mapping[str, str]  # title of the source by document, for documents whose title is not enough
    texts: dict[tuple[str, str], list[JsonValue]] = field(default_factory=dict)  # cache of ``text``

    def text(self, passage: Passage) -> list[JsonValue]:
        """Return the text of a passage's card, computed once for all columns that show it."""
        key = passage.passage_id, passage.text
        if key not in self.texts:
            self.texts[key] = render_card(
                self.query,
                passage.text,
                [passage.document_title, *passage.headings],
                str(passage.metadata.get("language", "english")),
                self.likes.get(place_key(passage)),
                str(passage.metadata.get("document_type", "")),
                self.headers.get(place_key(passage), ""),
            )
        return self.texts[key]


def build_board_data(
    comparison: Comparison,
    likes: Underlines | None = None,
    spoken: Collection[str] = (),
    headers: Mapping[str, str] | None = None,
    sources: Mapping[str, str] | None = None,
) -> JsonObject:
    """Return the columns; the page fills in ``judging`` and ``serving``.

    Args:
        comparison: The comparison.
        likes: Words to underline, keyed by hit.
        spoken: Indexes in several languages, whose hits show their language.
        headers: Headers of tables that start before a hit, keyed by hit.
        sources: Title of the source by document, for documents whose title is not enough.
    """
    joined = join_hits(comparison)
    ranks: dict[str, dict[str, int]] = {name: {} for name in comparison.strategies}
    for name, result in comparison.strategies.items():
        for passage in result:
            ranks[name].setdefault(joined[name, passage.passage_id], passage.rank)
    shared, own = sort_notes(comparison)
    letters = assign_index_letters(comparison)
    of_column = {name: letters.get(result.index, "") for name, result in comparison.strategies.items()}
    labels = label_texts(comparison, joined)
    whole = _BoardContext(
        comparison.query, ranks, joined, labels, likes or {}, spoken, of_column, headers or {}, sources or {}
    )
    return {
        "columns": [
            _build_column(whole, name, result) | {"notes": own[name]} for name, result in comparison.strategies.items()
        ],
        "notes": shared,
        "judging": None,
        "serving": None,
        "slowest": max(map(_total_ms, comparison.strategies.values()), default=0.0),
    }


def build_failures_data(wb: Workbench, failures: Mapping[str, WorkbenchError]) -> list[JsonObject]:
    """Return the columns that failed, with the error and, if the strategy needs a scope, the scopes to choose from."""
    data: list[JsonObject] = []
    for name, error in failures.items():
        strategy, scopes = name.partition("@")[0], {}
        if isinstance(error, ScopeError) and strategy in STRATEGIES and STRATEGIES[strategy].needs_scope:
            projects, sources = wb.projects.list(), wb.sources.list()[:MAX_SCOPES_OFFERED]
            scopes = {
                "project": [{"id": project.id, "title": project.title} for project in projects],
                "source": [{"id": source.id, "title": source.title} for source in sources],
            }
        data.append({**strategy_look(name), "strategy": strategy, "text": str(error), "scopes": scopes})
    return data


def _build_column(whole: _BoardContext, name: str, result: SearchResult) -> JsonObject:
    strategy, _, own_index = name.partition("@")
    return {
        **strategy_look(name),
        "strategy": strategy_title(strategy),
        "index": result.index,
        "cut": own_index,
        "summary": STRATEGIES[strategy].summary if strategy in STRATEGIES else "",
        "dash": get_look(strategy).dash,
        "total": _total_ms(result),
        "stages": _list_stages(result),
        "close": result.evidence.close,
        "hits": [_build_hit(whole, name, passage, spoken=result.index in whole.spoken) for passage in result],
        "letter": whole.letters[name],
    }


def sort_notes(comparison: Comparison) -> tuple[list[list[str]], dict[str, list[list[str]]]]:
    """Return the notes of all columns, and the others by column; each is a sentence, and lines with its details."""
    notes = {
        name: [note.split(": ", 1) if note == result.nothing_close else [note] for note in result.remarks]
        for name, result in comparison.strategies.items()
    }
    held = Counter(sentence for own in notes.values() for sentence, *_ in own)
    shared = {sentence: [sentence] for sentence, columns in held.items() if columns == len(notes) > 1}
    for sentence, note in shared.items():
        details = {strategy_title(name): more[-1] for name, own in notes.items() for more in own if more[0] == sentence}
        distinct = {*details.values()} - {sentence}
        note.extend(distinct if len(distinct) < 2 else map(": ".join, details.items()))
    return [*shared.values()], {name: [note for note in own if note[0] not in shared] for name, own in notes.items()}


def _list_stages(result: SearchResult) -> list[JsonObject]:
    """Return the time of each step in milliseconds; the rest is "other"."""
    shared = _find_uncharged_step(result)
    times = {
        step.value: round(result.timings_ms[step], 2)
        for step in TimedStep
        if step in result.timings_ms and step is not shared
    }
    rest = _total_ms(result) - sum(times.values())
    return [{"name": name, "ms": ms} for name, ms in (*times.items(), (OTHER_STAGE, round(max(0.0, rest), 2)))]


def _total_ms(result: SearchResult) -> float:
    """Return the time of a whole search in milliseconds."""
    shared = _find_uncharged_step(result)
    return round(result.timings_ms.get(TOTAL, 0.0) - (result.timings_ms.get(shared, 0.0) if shared else 0.0), 1)


def _find_uncharged_step(result: SearchResult) -> TimedStep | None:
    """Return the embedding of the question if the column ranks by keywords alone: it only shows similarities then."""
    steps = {step for step in (TimedStep.KEYWORD, TimedStep.VECTOR, TimedStep.FRAMEWORK) if step in result.timings_ms}
    return TimedStep.EMBED if steps == {TimedStep.KEYWORD} else None


def _build_hit(whole: _BoardContext, name: str, passage: Passage, *, spoken: bool) -> JsonObject:
    joined, place = whole.joined[name, passage.passage_id], place_key(passage)
    language = str(passage.metadata.get("language", "english"))
    headings = passage.headings
    where = format_place(passage, headings) or passage.path or passage.url or ""
    parts = (where, whole.sources.get(passage.document_id), language_title(language) if spoken else "")
    return {
        "id": joined,
        "passage": passage.passage_id,
        "key": place,
        "document": passage.document_id,
        "start": passage.start,
        "end": passage.end,
        "rank": passage.rank,
        "score": f"{passage.score:.3f}",
        "share": round(passage.score, 4),
        "title": passage.document_title,
        "label": whole.labels[joined],
        "place": " · ".join(filter(None, parts)),
        "path": passage.path or passage.url or "",
        "text": whole.text(passage),
        "copies": [[copy.document_title, copy.path or copy.url or ""] for copy in passage.copies],
        "others": [_build_other(whole, passage, joined, other) for other in whole.ranks if other != name],
    }


def _build_other(whole: _BoardContext, passage: Passage, joined: str, other: str) -> JsonObject:
    """Return the rank of the same text in another column; ``moved`` is positive if it ranks better there."""
    rank = whole.ranks[other].get(joined)
    return {
        **strategy_look(other),
        "rank": rank,
        "moved": None if rank is None else passage.rank - rank,
        "letter": whole.letters[other],
    }


def label_texts(comparison: Comparison, joined: Joins) -> dict[str, str]:
    """Return a label for each joined text: what no other text shares of its section, title, first words and file."""
    texts = {joined[name, hit.passage_id]: hit for name, result in comparison.strategies.items() for hit in result}
    labels = {key: _list_labels(hit) for key, hit in texts.items()}
    shared = [Counter(names[place] for names in labels.values()) for place in range(4)]
    return {
        key: next((name for place, name in enumerate(names) if name and shared[place][name] == 1), names[2])
        for key, names in labels.items()
    }


def _list_labels(hit: Passage) -> tuple[str, ...]:
    """Return the section, the title, the first words and the file or URL of a passage."""
    *_, section = ("", *hit.headings)
    text = hit.text.removeprefix(f"# {hit.document_title}")
    words = strip_markdown(text[:MAX_LABEL_CHARS])
    words = f"{words}…" if words and len(text) > MAX_LABEL_CHARS else words or hit.document_title
    return section or hit.document_title, hit.document_title, words, hit.path or hit.url or ""


def assign_index_letters(comparison: Comparison) -> dict[str, str]:
    """Return index -> A, B, C, D if the columns search several indexes, else {}."""
    names = list(dict.fromkeys(result.index for result in comparison.strategies.values()))
    return dict(zip(names, ascii_uppercase, strict=False)) if len(names) > 1 else {}


_STORED_MARKS_KEY = "marks_kept"  # number of the last mark of this session that was stored
_TOAST_KEY = "marks_toast"
_SHOWN_GRADES_KEY = "marks_shown"  # what the board is about, and the grades that it shows


def show_board(
    wb: Workbench, hits: ComparedHits, asking: SearchSettings, serving: LiveStrategy, judging: QuestionJudging | None
) -> None:
    """Show the columns."""
    if _TOAST_KEY in st.session_state:
        st.toast(escape_markdown(st.session_state.pop(_TOAST_KEY)))
    comparison = hits.comparison
    spoken, sources = _find_multilingual_indexes(wb, comparison), find_sources_of_twins(wb, comparison)
    data = build_board_data(comparison, hits.likes, spoken, hits.headers, sources) | {
        "failures": build_failures_data(wb, hits.failures)
    }
    if judging is not None:
        grades = _load_grades(judging)
        st.session_state[_SHOWN_GRADES_KEY] = (judging.about, grades)
        data["judging"] = {
            "about": judging.about,
            "title": judging.test_set.title,
            "scale": judging.scale,
            "grades": grades,
            "same": find_same_places(comparison, grades),
            "kept": st.session_state.get(_STORED_MARKS_KEY, 0),
        }

    columns = find_live_columns(serving, comparison, asking.parameters)
    data["serving"] = {"columns": columns, "badge": serving.badge, "reason": serving.reason}
    result = mount(
        "compare/board",
        "board",
        data,
        "promote",
        "scope",
        "reset",
        marks=lambda: _store_marks(comparison, judging),
        open=lambda: _open("open", lambda hit: open_passage(hit, str(hit["cut"]))),
        why=lambda: _open("why", lambda hit: open_why(str(hit["column"]), str(hit["passage"]))),
    )
    _apply_remedy(result.scope, result.reset)
    if result.promote and result.promote in comparison.strategies and result.promote not in columns:
        _open_promotion(wb, asking, str(result.promote), serving)


def _open(trigger: str, show: Callable[[Mapping[str, object]], None]) -> None:
    """Open the inspector at the passage that the browser sent."""
    state = st.session_state.get("board")
    hit = state.get(trigger) if isinstance(state, Mapping) else None
    if isinstance(hit, Mapping):
        show(hit)


def show_figures(comparison: Comparison) -> None:
    """Show how much the rankings agree, and the time of each step."""
    if len(comparison.strategies) > 1:
        unit = "documents" if assign_index_letters(comparison) else "passages"
        st.html(f"<h3>Agreement</h3><p>Same {unit}: Jaccard similarity. Same order: rank-biased overlap, in which top "
                "ranks count most. Both are 0 to 1.</p>")  # fmt: skip
        same, order = (comparison.agreement[measure] for measure in ("jaccard", "rbo"))
        columns = (Column("pair", "Strategies"), *(_figure_column(name) for name in (f"Same {unit}", "Same order")))
        rows = [
            {"pair": " · ".join(map(strategy_title, pair.split("|")))}
            | {columns[1].name: _figure(same[pair], 2), columns[2].name: _figure(order[pair], 2)}
            for pair in same
        ]
        _show_figures("Agreement", columns, rows)
    st.html(
        "<h3>Time per stage</h3><p>In milliseconds. The question is embedded once for all columns with vectors.</p>"
    )
    stages = {name: {one["name"]: one["ms"] for one in _list_stages(result)}
              for name, result in comparison.strategies.items()}  # fmt: skip
    columns = (Column("stage", "Stage"), *(_figure_column(name, strategy_title(name)) for name in stages))
    names = [name for name in (*TimedStep, OTHER_STAGE) if any(name in times for times in stages.values())]
    rows = [{"stage": str(stage)} | {name: _figure(times.get(stage), 1) for name, times in stages.items()}
            for stage in names]  # fmt: skip
    totals = {name: _figure(_total_ms(result), 1) for name, result in comparison.strategies.items()}
    _show_figures("Time per stage", columns, [*rows, {"stage": "total", **totals}])


def _figure_column(name: str, label: str = "") -> Column:
    return Column(name, label or name, "shown", align="right", narrow=True)


def _figure(value: object, digits: int) -> dict[str, object]:
    known = isinstance(value, float | int)
    return {"text": f"{value:.{digits}f}" if known else "–", "order": value if known else None}


def _show_figures(label: str, columns: Sequence[Column], rows: Sequence[Mapping[str, object]]) -> None:
    listed = [{"id": str(place), "name": str(place), "cells": row} for place, row in enumerate(rows)]
    show_table(f"figures_{label}", columns, listed, label=label, noun="rows", filters=False)


def find_sources_of_twins(wb: Workbench, comparison: Comparison) -> dict[str, str]:
    """Return the title of the source of each found document whose title is also found in another source."""
    hits = [hit for result in comparison.strategies.values() for hit in result]
    places = {(hit.document_title, hit.source_id) for hit in hits}
    titles = Counter(title for title, _ in places)
    twins = [hit for hit in hits if titles[hit.document_title] > 1]
    sources = wb.sources.titles() if twins else {}
    return {hit.document_id: sources.get(hit.source_id, "") for hit in twins}


def _find_multilingual_indexes(wb: Workbench, comparison: Comparison) -> set[str]:
    """Return the compared indexes that hold passages in several languages."""
    names = {result.index for result in comparison.strategies.values()}
    return {name for name in names if len(wb.indexes.languages(name)) > 1}


def _open_promotion(wb: Workbench, asking: SearchSettings, name: str, serving: LiveStrategy) -> None:
    """Open the dialog that promotes a column."""
    strategy, own_index = split_strategy(name, None)
    parameters = asking.parameters.get(name, asking.parameters.get(strategy)) or {}
    candidate = PromotionCandidate(strategy, parameters, own_index or asking.index)
    open_promotion(wb, candidate, list_places(wb, asking.scope), [find_joint_evidence(wb, candidate, serving)])


def _apply_remedy(scope: Mapping[str, str] | None, reset: str | None) -> None:
    """Apply the scope, or remove the strategy, that the user chose in a failed column."""
    if scope and scope.get("kind") in ("project", "source"):
        address.put(**{str(scope["kind"]): str(scope["id"])})
        st.rerun()
    if reset:
        names = [name for name in address.get_all("s") if name != reset]
        address.put(s=names or None, set=[item for item in address.get_all("set") if not item.startswith(f"{reset}.")])
        st.rerun()


def _load_grades(judging: QuestionJudging) -> dict[str, int]:
    try:
        return judging.grades()
    except WorkbenchError:  # reported by _keep, and by the control on the next visit
        return {}


def _store_marks(comparison: Comparison, judging: QuestionJudging | None) -> None:
    """Store the new marks from the browser; after a failure the board shows the stored marks."""
    marks = read_marks(st.session_state.get("board"), st.session_state.get(_STORED_MARKS_KEY, 0))
    if not marks or judging is None:
        return
    about, shown = st.session_state.get(_SHOWN_GRADES_KEY, ("", {}))
    try:
        replaced = judging.keep(comparison, marks, shown if about == judging.about else None)
        if replaced:
            st.session_state[_TOAST_KEY] = f"Replaced a grade from another browser: {'; '.join(replaced)}."
        shown.update((place, grade) for _, place, grade in marks)
    except WorkbenchError as error:
        st.session_state[_TOAST_KEY] = str(error)  # a callback cannot show anything
    st.session_state[_STORED_MARKS_KEY] = max(number for number, _, _ in marks)
