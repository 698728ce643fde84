"""A passage as a card shows it: rendered in short lines, cut where most of the question's words are in sight.

Two kinds of mark: words that the question has too, and words that late interaction found like one of the question's.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise

from workbench.app.widgets.card_rows import as_records, is_row, telling_rows, with_dots, with_tables
from workbench.app.widgets.reader_data import has_records, is_code, is_markdown
from workbench.app.widgets.rendered.continued_tables import moved_back, with_table_header
from workbench.app.widgets.rendered.elements import Element, Node, TextRun, drawn, shown_text
from workbench.app.widgets.rendered.lines import code_lines, lines
from workbench.app.widgets.rendered.markdown_tree import markdown_tree
from workbench.languages import WORD
from workbench.marking import matched_spans, stem
from workbench.types.json import JsonValue
from workbench.types.results import Span

Segment = tuple[str, int]  # a stretch, and how like a word of the question it is, from 0 to 3
MarkedPiece = tuple[bool, list[Segment]]  # whether the question has its words

LENGTH = 420  # characters of a card's text
_SENTENCE_END = re.compile(r"[.!?:;—·]\s|\n")


def card_text(
    query: str,
    text: str,
    headings: Sequence[str] = (),
    language: str = "english",
    likes: Mapping[Span, int] | None = None,
    document_type: str = "markdown",
    table_header: str = "",
) -> list[JsonValue]:
    """Return about ``LENGTH`` characters of a passage as elements around pieces.

    ``likes`` are spans of ``text`` with how like a word of the question they are, 1 to 3. Opening headings that
    ``headings`` names are left out. ``table_header`` is the Markdown of the header of a table that begins before it.
    """
    marks = _Marks(text, _joined(matched_spans(query, text, language), text), _whole_words(text, likes or {}))
    made = _lines(text, headings, document_type, table_header)
    words = _QuestionStems(query, language)
    rows = telling_rows(made, words)
    records = as_records(rows, words) if rows is not None else None
    if records is not None:
        shown = _cut(records[:1], marks.matched)
    else:
        shown = _cut(made, marks.matched) if rows is None else rows
    return drawn(with_tables(shown, words), marks.pieces)


def best_start(text: str, matches: Sequence[int], length: int) -> int:
    """Return the character where a cut of ``length`` characters begins: at the sentence with most matches after it."""
    visible = length // 2  # three lines of a narrow column
    if not matches or matches[-1] < visible:
        return 0
    sentences = [0, *(match.end() for match in _SENTENCE_END.finditer(text))]
    starts = [sentences[bisect_right(sentences, hit) - 1] for hit in matches]
    return max(starts, key=lambda start: (sum(start <= hit < start + visible for hit in matches), -start))


def _lines(text: str, headings: Sequence[str], document_type: str, table_header: str) -> tuple[Element, ...]:
    if is_code(document_type):
        return code_lines(text)
    whole, lead = with_table_header(text, table_header)
    tree = markdown_tree(whole, has_indented_code=is_markdown(document_type), has_records=has_records(document_type))
    return lines(moved_back(tree.blocks, lead) if lead else tree.blocks, headings)


def _cut(made: Sequence[Element], matched: Sequence[Span]) -> list[Element]:
    """Return the part of the lines that is shown, with three dots where they go on."""
    start, end = _part(made, matched)
    is_cut = end < sum(_length(line) + 1 for line in made) - 1
    return _with_dots(_clipped(made, start, end), before=start > 0, after=is_cut)


def _part(made: Sequence[Element], matched: Sequence[Span]) -> Span:
    """Return the part of the lines that is shown, in characters of their words joined by newlines."""
    words = "\n".join(shown_text(line.children) for line in made)
    starts = [first for first, _ in matched]
    places = [
        at + first - run.start
        for at, run in _places(made)
        if run.is_exact
        for first in starts[bisect_right(starts, run.start - 1) : bisect_right(starts, run.end - 1)]
    ]
    start = best_start(words, places, LENGTH)
    end = len(words)
    if start + LENGTH < end:
        end = start + len(re.split(r"\s+\S*\Z", words[start : start + LENGTH])[0])
    return start, end


def _places(made: Sequence[Element]) -> Iterator[tuple[int, TextRun]]:
    """Yield the runs of lines, each with its place among the words of all."""
    at = 0
    for line in made:
        for run in _runs(line.children):
            yield at, run
            at += len(run.text)
        at += 1


def _runs(nodes: Sequence[Node]) -> Iterator[TextRun]:
    for node in nodes:
        if isinstance(node, TextRun):
            yield node
        else:
            yield from _runs(node.children)


def _length(node: Node) -> int:
    return len(node.text) if isinstance(node, TextRun) else len(shown_text(node.children))


def _clipped(nodes: Sequence[Element], start: int, end: int) -> list[Element]:
    """Return the lines from ``start`` to before ``end``, each line's end counting one."""
    kept: list[Element] = []
    at = 0
    for line in nodes:
        length = _length(line)
        if at < end and at + length > start:
            kept.append(Element(line.tag, _inside(line.children, start - at, end - at), line.attributes))
        at += length + 1
    return kept


def _inside(nodes: Sequence[Node], start: int, end: int) -> tuple[Node, ...]:
    kept: list[Node] = []
    at = 0
    for node in nodes:
        length = _length(node)
        if at < end and at + length > start:
            kept.append(_inside_one(node, max(0, start - at), min(length, end - at)))
        at += length
    return tuple(kept)


def _inside_one(node: Node, first: int, last: int) -> Node:
    if isinstance(node, Element):
        if node.span is not None:  # a formula stays whole
            return node
        return Element(node.tag, _inside(node.children, first, last), node.attributes)
    span = (node.start + first, node.start + last) if node.is_exact else (node.start, node.end)
    return TextRun(node.text[first:last], *span)


def _with_dots(shown: Sequence[Element], *, before: bool, after: bool) -> list[Element]:
    """Return the lines with three dots where the text goes on."""
    made = list(shown)
    dots = TextRun("… ", 0, 0), TextRun(" …", 0, 0)
    if before and made:
        line = made[0]
        made[0] = with_dots(line, 0, dots[0]) if is_row(line) else replace(line, children=(dots[0], *line.children))
    if after and made:
        line = made[-1]
        made[-1] = with_dots(line, -1, dots[1]) if is_row(line) else replace(line, children=(*line.children, dots[1]))
    return made


def _whole_words(text: str, likes: Mapping[Span, int]) -> dict[Span, int]:
    """Return the words of which a stretch is marked, each with the greatest number of its stretches."""
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


def _joined(spans: Sequence[Span], text: str) -> list[Span]:
    """Make one mark of neighbours with nothing but blanks between them."""
    joined: list[Span] = []
    for start, end in spans:
        if joined and not text[joined[-1][1] : start].strip():
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((start, end))
    return joined


@dataclass(frozen=True, slots=True)
class _QuestionStems:
    """The question's words in a part of a passage, by their stems."""

    query: str
    language: str

    def __call__(self, part: Element) -> frozenset[str]:
        runs = " ".join(run.text for run in _runs(part.children))
        spans = matched_spans(self.query, runs, self.language)
        return frozenset(stem(runs[start:end].lower(), self.language) for start, end in spans)


@dataclass(frozen=True, slots=True)
class _Marks:
    """The marks on a passage, in its characters."""

    text: str
    matched: Sequence[Span]
    alike: Mapping[Span, int]

    def pieces(self, run: TextRun) -> list[MarkedPiece]:
        """Return a run cut where a mark begins or ends; neighbours that the question has are one piece."""
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
