"""Answers without an LLM: the sentences of the first passages that are nearest to the question, quoted and cited."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, zip_longest

import numpy as np

from workbench.marking import ROW, RULE, match_spans, split_cells, stem
from workbench.models.encoder import EncodedQuery, Encoder, FloatArray
from workbench.retrieval.stages.late_interaction import compute_max_sim, subtract_chance
from workbench.text import sentence_spans
from workbench.types import Passage

# Citation marks in an answer

_MARK = re.compile(r"\[(\d{1,3}(?:\s*[,;]\s*\d{1,3})*)\]")
_BEGUN = re.compile(r"\[[\d\s,;]{0,24}$")


def known_marks(pieces: Iterable[str], passages: int) -> Iterator[str]:
    """Pass a text on piece by piece, with marks of passages that were never shown left out, and "[1, 2]" as "[1][2]".

    Text that may still become a mark is held back until it is one or is none.
    """
    begun_mark = ""
    for piece in pieces:
        begun_mark += piece
        begun = _BEGUN.search(begun_mark)
        ready, begun_mark = (begun_mark[: begun.start()], begun_mark[begun.start() :]) if begun else (begun_mark, "")
        if ready:
            yield _checked(ready, passages)
    if begun_mark:
        yield _checked(begun_mark, passages)


def numbers_in(text: str) -> list[int]:
    """Return the passages a text cites, in the order of their first mark."""
    numbers = (int(number) for mark in _MARK.finditer(text) for number in re.split(r"\D+", mark.group(1)))
    return list(dict.fromkeys(numbers))


def without_marks(text: str) -> str:
    """Return a document's sentence without its own marks ("[12]" of a footnote), which would read as citations.

    A sentence with code keeps them: they are indexes there.
    """
    return text if "`" in text else _MARK.sub("", text)


def _checked(text: str, passages: int) -> str:
    def marks(match: re.Match[str]) -> str:
        numbers = dict.fromkeys(int(number) for number in re.split(r"\D+", match.group(1)))
        return "".join(f"[{number}]" for number in numbers if 1 <= number <= passages)

    return _MARK.sub(marks, text)


# Table rows as quotes

_SIGN = re.compile(r"[$€£¥%]")  # of a currency, alone in its cell


@dataclass(frozen=True, slots=True)
class LabelledRow:
    """A row from ``start`` to before ``end``, in characters of the text.

    ``shown`` is how people read it ("Net sales, 2024: 1,204"), ``words`` what is held against a question: the same
    without the signs. ``cells`` lacks the names of the columns as well, which every row of the table has alike.
    """

    start: int
    end: int
    words: str
    shown: str
    cells: str


def labelled_rows(text: str, header: str = "") -> Iterator[LabelledRow]:
    """Yield the rows of figures of the tables in a text that was written as Markdown.

    ``header`` is the header of a table that begins before the text. A row without a label or without any further cell
    says nothing by itself and is left out.
    """
    lines = list(ROW.finditer(text))
    columns = split_cells(next(iter(header.strip().splitlines()), ""))
    for line, following in zip_longest(lines, lines[1:]):
        if RULE.match(line.group()):
            continue
        if following is not None and following.start() == line.end() + 1 and RULE.match(following.group()):
            columns = split_cells(line.group())
            continue
        row = split_cells(line.group())
        words = _row_sentence(row, columns, "", ": ")
        if words:
            yield LabelledRow(line.start(), line.end(), words, _row_sentence(row, columns, ":", ", "), " ".join(row))


def _row_sentence(row: list[str], columns: list[str], sign: str, after_label: str) -> str:
    """Return the label, then "column value · column value"; "" without a label, or without named values or figures.

    ``sign`` stands behind a column's name, ``after_label`` behind the label where the first value has one, else ": ".
    """
    label, *values = row
    names = columns[1:] if len(columns) == len(row) else [""] * len(values)
    kept = [(name, value) for name, value in zip(names, values, strict=True) if value and not _SIGN.fullmatch(value)]
    told = [f"{name.rstrip(': ') if sign else name}{sign} {value}" if name else value for name, value in kept]
    says = any(names) or any(char.isdigit() for value in told for char in value)
    behind = after_label if kept and kept[0][0] else ": "
    return f"{label}{behind}{' · '.join(told)}" if label and told and says else ""


# Sentences that can be quoted

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
FENCE = re.compile(
    r"^ {0,3}(`{3,}|~{3,}).*?(?:^ {0,3}\1|\Z)", re.DOTALL | re.MULTILINE
)  # of code, or of text that is set off
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
    """Yield the quote of a span, without the mark of a list's item; nothing if it is too short or too long."""
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


MAX_ANSWER_SENTENCES, MAX_ANSWER_WORDS = 5, 60  # of an answer
MOST_READ = 24  # sentences that are embedded, those with most of the question's words first: about a third of a second
CLOSE = 0.1  # a further sentence must have this share of the best one's score, their places apart, or it only dilutes
CLOSE_ROW = 0.5  # and a row of a table whose cells have no word of the question this one: its neighbours are as alike

# The parts of a sentence's score, each about 0..1. Of xquad_en's 1,190 reference answers .997 stand in the six passages
# and .92 in the sentences taken; the ranks around these weights are flat.
RARITY = 0.5  # the question's words in it, each by how few of the sentences have it
HEADED = 0.5  # a word of the question that only the title, headings or columns have, against one in the sentence
MEANING = 0.3  # the cosine of sentence and question
TOKENS = 2.4  # late interaction beyond chance, which seldom exceeds .4
BESIDE = 0.3  # the better of the scores of the sentences before and after it: an answer often stands beside the match
PLACE = 1.0  # its passage's score against the first passage's, to the power STEEP: an answer comes from few passages
STEEP = 3


def best_sentences(
    query: str,
    encoded: EncodedQuery | None,
    encoder: Encoder,
    passages: Sequence[Passage],
    headers: Mapping[int, str] | None = None,
) -> list[Quote]:
    """Return the best sentences, at most 5 with 60 words together, in the order of the passages and of reading.

    ``encoded`` None leaves meaning out: the words and the passages' order decide. ``headers`` as in ``quotable``.
    """
    every = list({quote.text: quote for quote in reversed(quotable(passages, headers))}.values())[::-1]
    every, common = _asked_rows(every, [_shared_words(query, quote.cells or quote.text) for quote in every])
    headed = [_shared_words(query, " ".join([passage.document_title, *passage.headings])) for passage in passages]
    above = [
        headed[quote.number - 1] | (set() if quote.cells is None else _shared_words(query, quote.text))
        for quote in every
    ]
    shares = _rarity_shares(common, above)
    likely = sorted(range(len(every)), key=lambda place: -shares[place])[:MOST_READ]
    chosen = sorted(likely, key=lambda place: (every[place].number, every[place].start))
    if not chosen:
        return []
    quotes = [every[place] for place in chosen]
    scores = RARITY * np.asarray([shares[place] for place in chosen])
    if encoded is not None:
        cosines, likeness = _likeness(encoded, encoder, quotes)
        quotes = [replace(quote, similarity=cosine) for quote, cosine in zip(quotes, cosines, strict=True)]
        scores = scores + likeness
    best = max(passage.score for passage in passages)
    places = [(passages[quote.number - 1].score / best) ** STEEP if best > 0 else 0.0 for quote in quotes]
    scores = scores + BESIDE * _beside(quotes, scores.tolist())
    placed = scores + PLACE * np.asarray(places)
    least = [CLOSE if every[place].cells is None or common[place] else CLOSE_ROW for place in chosen]
    return sorted(
        _within_limits(quotes, scores.tolist(), placed.tolist(), least), key=lambda quote: (quote.number, quote.start)
    )


def _asked_rows(every: Sequence[Quote], common: Sequence[set[str]]) -> tuple[list[Quote], list[set[str]]]:
    """Leave out the rows whose cells share no word with the question where another row of their passage does."""
    asked = {quote.number for quote, words in zip(every, common, strict=True) if quote.cells is not None and words}
    kept = [
        (quote, words)
        for quote, words in zip(every, common, strict=True)
        if quote.cells is None or words or quote.number not in asked
    ]
    return [quote for quote, _ in kept], [words for _, words in kept]


def _beside(quotes: Sequence[Quote], scores: Sequence[float]) -> FloatArray:
    """Return for each sentence the better score of those before and after it in its passage, 0 for a lone one.

    A row of a table stands alone: each tells of a thing of its own, and rows much alike would praise each other.
    """
    better = [0.0] * len(quotes)
    for place, (before, after) in enumerate(pairwise(quotes)):
        if before.number == after.number and before.cells is None and after.cells is None:
            better[place] = max(better[place], scores[place + 1])
            better[place + 1] = scores[place]
    return np.asarray(better, dtype=np.float32)


def _rarity_shares(common: Sequence[set[str]], headed: Sequence[set[str]]) -> list[float]:
    """Return which share of the question's words each sentence has, 0..1, a word counting by its rarity among them.

    Words that only its title, headings and names of columns have (``headed``) count HEADED times that: what a section
    or a table is about is not repeated in each of its sentences or rows.
    """
    holding = Counter(word for words in common for word in words)
    every = set().union(*common, *headed)
    weights = {word: math.log(1 + len(common) / (holding[word] + 0.5)) for word in sorted(every)}
    whole = sum(weights.values()) or 1.0
    return [
        (sum(weights[word] for word in words) + HEADED * sum(weights[word] for word in above - words)) / whole
        for words, above in zip(common, headed, strict=True)
    ]


def _likeness(encoded: EncodedQuery, encoder: Encoder, quotes: Sequence[Quote]) -> tuple[list[float], FloatArray]:
    """Return the sentences' cosines, and their likeness by meaning and, where the model has vectors of them, tokens."""
    texts = encoder.encode([quote.text for quote in quotes])
    cosines = texts.vectors @ encoded.vector
    likeness: FloatArray = np.float32(MEANING) * cosines
    if encoded.token_axes is not None and texts.token_bits is not None:
        tokens = subtract_chance(compute_max_sim(encoded.token_axes, texts.token_bits), texts.token_bits)
        likeness = (likeness + np.float32(TOKENS) * tokens).astype(np.float32)
    return cosines.tolist(), likeness


def _within_limits(
    quotes: Sequence[Quote], own: Sequence[float], scores: Sequence[float], least: Sequence[float]
) -> Iterator[Quote]:
    """Yield the sentence of the best score, then the next ones that fit in and by themselves are close to the best.

    ``least`` is the share of the best one's own score that each must have.
    """
    order = sorted(range(len(quotes)), key=lambda place: -scores[place])
    sentences = words = 0
    for place in order:
        length = len(quotes[place].text.split())
        fits = sentences < MAX_ANSWER_SENTENCES and words + length <= MAX_ANSWER_WORDS
        if sentences and not (fits and own[place] >= least[place] * max(own)):
            continue
        sentences, words = sentences + 1, words + length
        yield replace(quotes[place], score=scores[place])


def quoted(quotes: Sequence[Quote]) -> str:
    """Return the sentences as one text, each with its mark."""
    return " ".join(f"{quote.shown or quote.text} [{quote.number}]" for quote in quotes)


def _shared_words(query: str, text: str) -> set[str]:
    """Return the stems of the question's words that stand in a text."""
    return {stem(text[start:end].lower()) for start, end in match_spans(query, text)}
