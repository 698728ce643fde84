"""The sentences of passages that can be quoted: prose, in parts where it is long, and rows of tables."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from workbench.retrieval.answering.citation_marks import without_marks
from workbench.retrieval.answering.table_rows import labelled_rows
from workbench.sentences import sentence_spans
from workbench.types import Passage

MAX_QUOTE_WORDS = 58  # of a quote, its ellipses apart: a sentence of more is parted at the ends of its clauses
LONGEST = 500  # characters of a quote: a longer one is a table or a listing
SHORTEST = 20  # and a shorter one says nothing by itself
LETTERS = 0.6  # least share of letters and blanks in prose: rows of figures have less
READABLE = 0.97  # least share of letters, digits and the marks of prose: source code and tables have less
MARKS = frozenset(" ,.;:'\"()[]%-–—‘’“”$€£&?!")
LINK = re.compile(r"!?\[([^\]\n]*)\]\([^()\s]*\)")  # of which an answer shows the words
EMPHASIS = re.compile(r"(?<![\w*])(\*{1,3})(?=\S)([^*]+)(?<=\S)\1(?![\w*])")
NO_SENTENCE = re.compile(r"[#|]|\[[^\]\n]+\]:\s")  # headings, rows of tables, the targets of links
CLAUSE_ENDS = (re.compile(r";\s+"), re.compile(r"[,:)–—]\s+"))  # the better place to part a sentence first
FIELD = re.compile(r"[^:\n]{1,80}: \S")  # a line of a sheet's row that stands as "name: value" lines
FENCE = re.compile(r"^(```|~~~).*?(?:^\1|\Z)", re.DOTALL | re.MULTILINE)  # of code, or of text that is set off
POINTER = re.compile(  # "See accompanying notes to the statements.": where to read, and nothing of what is there
    r"\W*(?:please\s)?(?:see|refer to|siehe|vgl\.|voir|véase|vedi|zie)\s(?=[^;]*\b(?:notes?|pages?|sections?|items?|"
    r"parts?|tables?|figures?|exhibits?|appendix|schedules?|statements|anhang|seiten?|abschnitt|tabelle|abbildung|"
    r"annexe|tableau|notas?|página|sección|anexo|tabla|figura|pagina|nota|tabella)\b)(?:\W*\w+){1,14}\W*",
    re.IGNORECASE,
)
LINE = re.compile(r"\S.*\S")
TEXT_FENCE = re.compile(r"```te?xt\n(.+?)\n```", re.DOTALL)  # a block that says it is no code: a formula, an example
LIST_MARK = re.compile(r"(?:[-*+•]|\d{1,3}[.)])\s+")


@dataclass(frozen=True, slots=True)
class Quote:
    """A sentence of a shown passage (``number`` counts them from 1) with its span in the document, in characters.

    ``similarity`` is its cosine with the question; None: not measured. ``cells`` are those of a table's row, without
    the names of the columns that ``text`` tells; None: no row. ``shown`` is what people read where ``text``, which is
    held against the question, is not to be shown.
    """

    number: int
    text: str
    start: int
    end: int
    score: float = 0.0
    similarity: float | None = None
    cells: str | None = None
    shown: str | None = None


def quotable(passages: Sequence[Passage], headers: Mapping[int, str] | None = None) -> list[Quote]:
    """Return the sentences of prose and the rows of tables; without any prose, whatever else can be read too.

    ``headers`` are the headers of tables that begin before a passage, by its number.
    """
    sentences = [
        quote
        for number, passage in enumerate(passages, start=1)
        for quote in _sentences(number, passage)
        if not NO_SENTENCE.match(quote.text)
    ]
    rows = [
        Quote(
            number,
            _as_read(row.words),
            passage.start + row.start,
            passage.start + row.end,
            cells=row.cells,
            shown=_as_read(row.shown),
        )
        for number, passage in enumerate(passages, start=1)
        for row in labelled_rows(passage.text, (headers or {}).get(number, ""))
        if len(row.words) <= LONGEST
    ]
    prose = [
        quote for quote in sentences if _is_prose(quote.text) and not _is_fenced(quote, passages[quote.number - 1])
    ]
    every = (prose or sentences) + list(_set_off(passages)) + rows
    return [quote for quote in every if quote.cells is not None or not POINTER.fullmatch(quote.text)] or every


def _is_fenced(quote: Quote, passage: Passage) -> bool:
    place = quote.start - passage.start
    return any(block.start() <= place < block.end() for block in FENCE.finditer(passage.text))


def _set_off(passages: Sequence[Passage]) -> Iterator[Quote]:
    """Yield the lines of the blocks of text that are set off, which are no code: formulas say what prose leads to."""
    for number, passage in enumerate(passages, start=1):
        for block in TEXT_FENCE.finditer(passage.text):
            for line in LINE.finditer(passage.text, *block.span(1)):
                text = _as_read(line.group())
                if SHORTEST <= len(text) <= LONGEST and _is_lettered(text):
                    yield Quote(number, text, passage.start + line.start(), passage.start + line.end())


def _sentences(number: int, passage: Passage) -> Iterator[Quote]:
    """Yield the sentences of a passage; a part of a long one has an ellipsis where the rest is left out."""
    for sentence in sentence_spans(passage.text):
        parts = [
            part
            for half in _parted(passage.text, *sentence, CLAUSE_ENDS[0])
            for part in _parted(passage.text, *half, CLAUSE_ENDS[1])
        ]
        for place, (start, end) in enumerate(parts, start=1):
            for quote in _quotes(number, passage, start, end):
                whole = f"… {quote.text}" if place > 1 else quote.text
                yield replace(quote, text=f"{whole.rstrip(',;:–— ')} …" if place < len(parts) else whole)


def _quotes(number: int, passage: Passage, begin: int, end: int) -> Iterator[Quote]:
    """Yield the quote of a span, without the mark of a list's item; nothing where it is too short or too long."""
    item = LIST_MARK.match(passage.text, begin, end)
    start = item.end() if item else begin
    text = _as_read(without_marks(_with_dots(passage.text[start:end])))
    if SHORTEST <= len(text) <= LONGEST:
        yield Quote(number, text, passage.start + start, passage.start + end)


def _as_read(text: str) -> str:
    """Return a text on one line, its links as their words and without the stars of Markdown's emphasis."""
    return " ".join(EMPHASIS.sub(r"\2", LINK.sub(r"\1", text)).split())


def _with_dots(text: str) -> str:
    """Return a text whose lines are all "name: value" with a dot between two, as rows of tables are quoted."""
    lines = text.splitlines()
    return " · ".join(lines) if len(lines) > 1 and all(map(FIELD.match, lines)) else text


def _parted(text: str, start: int, end: int, clause_end: re.Pattern[str]) -> Iterator[tuple[int, int]]:
    """Part a span of more than MOST_WORDS words into the fewest runs of clauses that have no more."""
    begin = last = start
    for match in clause_end.finditer(text, start, end) if _count_words(text, start, end) > MAX_QUOTE_WORDS else ():
        if last > begin and _count_words(text, begin, match.end()) > MAX_QUOTE_WORDS:
            yield begin, last
            begin = last
        last = match.end()
    if last > begin and _count_words(text, begin, end) > MAX_QUOTE_WORDS:
        yield begin, last
        begin = last
    yield begin, end


def _count_words(text: str, start: int, end: int) -> int:
    return len(text[start:end].split())


def _is_prose(text: str) -> bool:
    readable = sum(char.isalnum() or char in MARKS for char in text)
    return _is_lettered(text) and readable >= READABLE * len(text)


def _is_lettered(text: str) -> bool:
    return sum(char.isalpha() or char == " " for char in text) >= LETTERS * len(text)
