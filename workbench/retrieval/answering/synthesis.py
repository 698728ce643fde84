"""Answers from passages: by an LLM with citations, else extracts; refused if nothing relevant is found."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, pairwise, zip_longest

import numpy as np
from llama_index.core.base.response.schema import Response
from llama_index.core.llms import MockLLM
from llama_index.core.response_synthesizers.no_text import NoText
from llama_index.core.schema import NodeWithScore, QueryBundle

from workbench.errors import ModelError
from workbench.marking import ROW, RULE, match_spans, split_cells, stem
from workbench.models.encoder import EncodedQuery, Encoder, FloatArray
from workbench.retrieval.evidence import find_refusal_threshold, is_sentence_evidence, judge_evidence
from workbench.retrieval.llm_prompts import ANSWER, ANSWER_SYSTEM, REFUSAL, number_passages, quote_turns
from workbench.retrieval.nodes import to_passages
from workbench.retrieval.query import Query, Request
from workbench.retrieval.stages.late_interaction import compute_max_sim, subtract_chance
from workbench.storage.ranking import fetch_document_slices
from workbench.text import sentence_spans
from workbench.types import Evidence, Passage, TimedStep, as_integer, as_items

# Answers without an LLM

# Citation marks in an answer

_MARK = re.compile(r"\[(\d{1,3}(?:\s*[,;]\s*\d{1,3})*)\]")
_PARTIAL_MARK = re.compile(r"\[[\d\s,;]{0,24}$")


def filter_marks(pieces: Iterable[str], passages: int) -> Iterator[str]:
    """Filter a streamed text: remove marks of unknown passages, and write "[1, 2]" as "[1][2]".

    Text that may be the start of a mark is held back until it is complete.
    """
    begun_mark = ""
    for piece in pieces:
        begun_mark += piece
        begun = _PARTIAL_MARK.search(begun_mark)
        ready, begun_mark = (begun_mark[: begun.start()], begun_mark[begun.start() :]) if begun else (begun_mark, "")
        if ready:
            yield _drop_unknown_marks(ready, passages)
    if begun_mark:
        yield _drop_unknown_marks(begun_mark, passages)


def find_cited_numbers(text: str) -> list[int]:
    """Return the numbers of the cited passages, in the order of their first mark."""
    numbers = (int(number) for mark in _MARK.finditer(text) for number in re.split(r"\D+", mark.group(1)))
    return list(dict.fromkeys(numbers))


def remove_marks(text: str) -> str:
    """Return a document's sentence without its own marks (such as the footnote "[12]"), which look like citations.

    A sentence with code keeps them, as they are indexes.
    """
    return text if "`" in text else _MARK.sub("", text)


def _drop_unknown_marks(text: str, passages: int) -> str:
    def marks(match: re.Match[str]) -> str:
        numbers = dict.fromkeys(int(number) for number in re.split(r"\D+", match.group(1)))
        return "".join(f"[{number}]" for number in numbers if 1 <= number <= passages)

    return _MARK.sub(marks, text)


# Table rows as quotes

_SIGN = re.compile(r"[$€£¥%]")  # a currency sign alone in its cell


@dataclass(frozen=True, slots=True)
class LabelledRow:
    """A row from ``start`` to before ``end``, in characters.

    ``shown`` is for display ("Net sales, 2024: 1,204"), ``words`` for matching with a question: the same without
    punctuation. ``cells`` also lacks the column names, which all rows share.
    """

    start: int
    end: int
    words: str
    shown: str
    cells: str


def iter_labelled_rows(text: str, header: str = "") -> Iterator[LabelledRow]:
    """Yield the table rows in a Markdown text that contain figures.

    ``header`` is the header of a table that starts before the text. Rows without a label or other cells
    are omitted.
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
    """Return the label and "column value · column value"; "" without a label, or without named values or figures."""
    label, *values = row
    names = columns[1:] if len(columns) == len(row) else [""] * len(values)
    kept = [(name, value) for name, value in zip(names, values, strict=True) if value and not _SIGN.fullmatch(value)]
    pairs = [f"{name.rstrip(': ') if sign else name}{sign} {value}" if name else value for name, value in kept]
    is_informative = any(names) or any(char.isdigit() for value in pairs for char in value)
    behind = after_label if kept and kept[0][0] else ": "
    return f"{label}{behind}{' · '.join(pairs)}" if label and pairs and is_informative else ""


# Sentences that can be quoted

MAX_QUOTE_WORDS = 58  # per quote, without ellipses: longer sentences are split at clause ends
MAX_SENTENCE_CHARS = 500  # longer ones are tables or listings
MIN_SENTENCE_CHARS = 20  # shorter ones are uninformative
MIN_LETTER_SHARE = 0.6  # minimum share of letters and spaces in prose: rows of figures have less
MIN_READABLE_SHARE = 0.97  # minimum share of letters, digits and punctuation of prose: source code and tables have less
READABLE_MARKS = frozenset(" ,.;:'\"()[]%-–—‘’“”$€£&?!")
LINK = re.compile(r"!?\[([^\]\n]*)\]\([^()\s]*\)")  # replaced by its words
EMPHASIS = re.compile(r"(?<![\w*])(\*{1,3})(?=\S)([^*]+)(?<=\S)\1(?![\w*])")
NO_SENTENCE = re.compile(r"[#|]|\[[^\]\n]+\]:\s")  # headings, table rows, link targets
CLAUSE_ENDS = (re.compile(r";\s+"), re.compile(r"[,:)–—]\s+"))  # preferred split points first
FIELD = re.compile(r"[^:\n]{1,80}: \S")  # a spreadsheet row as "name: value" lines
FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,}).*?(?:^ {0,3}\1|\Z)", re.DOTALL | re.MULTILINE)  # of code or quoted text
POINTER = re.compile(  # a reference without content: "See accompanying notes to the statements."
    r"\W*(?:please\s)?(?:see|refer to|siehe|vgl\.|voir|véase|vedi|zie)\s(?=[^;]*\b(?:notes?|pages?|sections?|items?|"
    r"parts?|tables?|figures?|exhibits?|appendix|schedules?|statements|anhang|seiten?|abschnitt|tabelle|abbildung|"
    r"annexe|tableau|notas?|página|sección|anexo|tabla|figura|pagina|nota|tabella)\b)(?:\W*\w+){1,14}\W*",
    re.IGNORECASE,
)
LINE = re.compile(r"\S.*\S")
TEXT_FENCE = re.compile(r"```te?xt\n(.+?)\n```", re.DOTALL)  # a block that is not code: a formula, an example
LIST_MARK = re.compile(r"(?:[-*+•]|\d{1,3}[.)])\s+")


@dataclass(frozen=True, slots=True)
class Quote:
    """A sentence of a passage (``number`` from 1) with its span in the document, in characters.

    ``similarity`` is its cosine with the question; None if not computed. ``cells`` holds the cells of a table row,
    without the column names that are in ``text``; None for other sentences. ``text`` is for matching and ``shown`` for
    display.
    """

    number: int
    text: str
    start: int
    end: int
    score: float = 0.0
    similarity: float | None = None
    cells: str | None = None
    shown: str | None = None


def select_quotable(passages: Sequence[Passage], headers: Mapping[int, str] | None = None) -> list[Quote]:
    """Return the sentences of prose and the table rows; if there is no prose, any other readable text.

    ``headers`` are the headers of tables that start before a passage, by its number.
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
            _to_plain_line(row.words),
            passage.start + row.start,
            passage.start + row.end,
            cells=row.cells,
            shown=_to_plain_line(row.shown),
        )
        for number, passage in enumerate(passages, start=1)
        for row in iter_labelled_rows(passage.text, (headers or {}).get(number, ""))
        if len(row.words) <= MAX_SENTENCE_CHARS
    ]
    prose = [
        quote for quote in sentences if _is_prose(quote.text) and not _is_fenced(quote, passages[quote.number - 1])
    ]
    every = (prose or sentences) + list(_iter_block_lines(passages)) + rows
    return [quote for quote in every if quote.cells is not None or not POINTER.fullmatch(quote.text)] or every


def _is_fenced(quote: Quote, passage: Passage) -> bool:
    place = quote.start - passage.start
    return any(block.start() <= place < block.end() for block in FENCE.finditer(passage.text))


def _iter_block_lines(passages: Sequence[Passage]) -> Iterator[Quote]:
    for number, passage in enumerate(passages, start=1):
        for block in TEXT_FENCE.finditer(passage.text):
            for line in LINE.finditer(passage.text, *block.span(1)):
                text = _to_plain_line(line.group())
                if MIN_SENTENCE_CHARS <= len(text) <= MAX_SENTENCE_CHARS and _is_lettered(text):
                    yield Quote(number, text, passage.start + line.start(), passage.start + line.end())


def _sentences(number: int, passage: Passage) -> Iterator[Quote]:
    """Yield the sentences of a passage; parts of a long sentence have ellipses."""
    for sentence in sentence_spans(passage.text):
        parts = [
            part
            for half in _split_clauses(passage.text, *sentence, CLAUSE_ENDS[0])
            for part in _split_clauses(passage.text, *half, CLAUSE_ENDS[1])
        ]
        for place, (start, end) in enumerate(parts, start=1):
            for quote in _quotes(number, passage, start, end):
                whole = f"… {quote.text}" if place > 1 else quote.text
                yield replace(quote, text=f"{whole.rstrip(',;:–— ')} …" if place < len(parts) else whole)


def _quotes(number: int, passage: Passage, begin: int, end: int) -> Iterator[Quote]:
    """Yield the quote of a span, without a list marker; nothing if it is too short or too long."""
    item = LIST_MARK.match(passage.text, begin, end)
    start = item.end() if item else begin
    text = _to_plain_line(remove_marks(_join_fields(passage.text[start:end])))
    if MIN_SENTENCE_CHARS <= len(text) <= MAX_SENTENCE_CHARS:
        yield Quote(number, text, passage.start + start, passage.start + end)


def _to_plain_line(text: str) -> str:
    return " ".join(EMPHASIS.sub(r"\2", LINK.sub(r"\1", text)).split())


def _join_fields(text: str) -> str:
    lines = text.splitlines()
    return " · ".join(lines) if len(lines) > 1 and all(map(FIELD.match, lines)) else text


def _split_clauses(text: str, start: int, end: int, clause_end: re.Pattern[str]) -> Iterator[tuple[int, int]]:
    """Split a span of more than MAX_QUOTE_WORDS words into the fewest runs of clauses within the limit."""
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
    readable = sum(char.isalnum() or char in READABLE_MARKS for char in text)
    return _is_lettered(text) and readable >= MIN_READABLE_SHARE * len(text)


def _is_lettered(text: str) -> bool:
    return sum(char.isalpha() or char == " " for char in text) >= MIN_LETTER_SHARE * len(text)


MAX_ANSWER_SENTENCES, MAX_ANSWER_WORDS = 5, 60  # of an answer
# sentences to embed, those with most of the question's words first: takes about a third of a second
MAX_EMBEDDED_SENTENCES = 24
MIN_SCORE_SHARE = 0.1  # further sentences need this share of the best score, without the place component
# a table row whose cells have no question words needs this one, as neighbouring rows are similar
MIN_ROW_SCORE_SHARE = 0.5

# The components of a sentence's score, each about 0..1. Of xquad_en's 1,190 reference answers .997 are in the six
# passages and .92 in the selected sentences; results are flat around these weights.
RARITY_WEIGHT = 0.5  # the question's words in it, weighted by rarity among the sentences
HEADING_WORD_WEIGHT = 0.5  # relative weight of question words only in title, headings or column names
MEANING_WEIGHT = 0.3  # cosine of sentence and question
TOKEN_WEIGHT = 2.4  # late interaction beyond chance, which rarely exceeds .4
NEIGHBOUR_WEIGHT = 0.3  # best score of the adjacent sentences: an answer is often next to the match
PLACE_WEIGHT = 1.0  # its passage's score relative to the first passage's, to the power PLACE_EXPONENT
PLACE_EXPONENT = 3  # high, because answers come from few passages


def best_sentences(
    query: str,
    encoded: EncodedQuery | None,
    encoder: Encoder,
    passages: Sequence[Passage],
    headers: Mapping[int, str] | None = None,
) -> list[Quote]:
    """Return the best sentences, at most 5 with 60 words in total, in passage and reading order.

    Without ``encoded``, sentences are ranked by words and passage order. ``headers`` is as in ``select_quotable``.
    """
    every = list({quote.text: quote for quote in reversed(select_quotable(passages, headers))}.values())[::-1]
    every, common = _select_asked_rows(every, [_find_shared_words(query, quote.cells or quote.text) for quote in every])
    headed = [_find_shared_words(query, " ".join([passage.document_title, *passage.headings])) for passage in passages]
    above = [
        headed[quote.number - 1] | (set() if quote.cells is None else _find_shared_words(query, quote.text))
        for quote in every
    ]
    shares = _rarity_shares(common, above)
    likely = sorted(range(len(every)), key=lambda place: -shares[place])[:MAX_EMBEDDED_SENTENCES]
    chosen = sorted(likely, key=lambda place: (every[place].number, every[place].start))
    if not chosen:
        return []
    quotes = [every[place] for place in chosen]
    scores = RARITY_WEIGHT * np.asarray([shares[place] for place in chosen])
    if encoded is not None:
        cosines, likeness = _compute_similarities(encoded, encoder, quotes)
        quotes = [replace(quote, similarity=cosine) for quote, cosine in zip(quotes, cosines, strict=True)]
        scores = scores + likeness
    best = max(passage.score for passage in passages)
    places = [(passages[quote.number - 1].score / best) ** PLACE_EXPONENT if best > 0 else 0.0 for quote in quotes]
    scores = scores + NEIGHBOUR_WEIGHT * _neighbour_scores(quotes, scores.tolist())
    placed = scores + PLACE_WEIGHT * np.asarray(places)
    least = [
        MIN_SCORE_SHARE if every[place].cells is None or common[place] else MIN_ROW_SCORE_SHARE for place in chosen
    ]
    return sorted(
        _select_within_limits(quotes, scores.tolist(), placed.tolist(), least),
        key=lambda quote: (quote.number, quote.start),
    )


def _select_asked_rows(every: Sequence[Quote], common: Sequence[set[str]]) -> tuple[list[Quote], list[set[str]]]:
    """Drop rows whose cells share no word with the question, if another row of the passage does."""
    asked = {quote.number for quote, words in zip(every, common, strict=True) if quote.cells is not None and words}
    kept = [
        (quote, words)
        for quote, words in zip(every, common, strict=True)
        if quote.cells is None or words or quote.number not in asked
    ]
    return [quote for quote, _ in kept], [words for _, words in kept]


def _neighbour_scores(quotes: Sequence[Quote], scores: Sequence[float]) -> FloatArray:
    """Return, for each sentence, the best score of its neighbours in the passage; 0 if it has none.

    Table rows have no neighbours: each has its own subject, and similar rows would raise each other.
    """
    better = [0.0] * len(quotes)
    for place, (before, after) in enumerate(pairwise(quotes)):
        if before.number == after.number and before.cells is None and after.cells is None:
            better[place] = max(better[place], scores[place + 1])
            better[place + 1] = scores[place]
    return np.asarray(better, dtype=np.float32)


def _rarity_shares(common: Sequence[set[str]], headed: Sequence[set[str]]) -> list[float]:
    """Return the share (0..1) of the question's words in each sentence, weighted by rarity among the sentences.

    Words found only in its title, headings or column names (``headed``) count HEADING_WORD_WEIGHT times as much,
    because not every sentence or row repeats the subject of its section or table.
    """
    holding = Counter(word for words in common for word in words)
    every = set().union(*common, *headed)
    weights = {word: math.log(1 + len(common) / (holding[word] + 0.5)) for word in sorted(every)}
    whole = sum(weights.values()) or 1.0
    return [
        (sum(weights[word] for word in words) + HEADING_WORD_WEIGHT * sum(weights[word] for word in above - words))
        / whole
        for words, above in zip(common, headed, strict=True)
    ]


def _compute_similarities(
    encoded: EncodedQuery, encoder: Encoder, quotes: Sequence[Quote]
) -> tuple[list[float], FloatArray]:
    """Return the sentences' cosines, and their scores, which include token matches if the model has token vectors."""
    texts = encoder.encode([quote.text for quote in quotes])
    cosines = texts.vectors @ encoded.vector
    likeness: FloatArray = np.float32(MEANING_WEIGHT) * cosines
    if encoded.token_axes is not None and texts.token_bits is not None:
        tokens = subtract_chance(compute_max_sim(encoded.token_axes, texts.token_bits), texts.token_bits)
        likeness = (likeness + np.float32(TOKEN_WEIGHT) * tokens).astype(np.float32)
    return cosines.tolist(), likeness


def _select_within_limits(
    quotes: Sequence[Quote], own: Sequence[float], scores: Sequence[float], least: Sequence[float]
) -> Iterator[Quote]:
    """Yield the best sentence, then the next ones that fit the limits and have a score close to the best.

    ``least`` is the required share of the best sentence's score.
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


def format_quotes(quotes: Sequence[Quote]) -> str:
    """Return the sentences as one text, each with its citation mark."""
    return " ".join(f"{quote.shown or quote.text} [{quote.number}]" for quote in quotes)


def _find_shared_words(query: str, text: str) -> set[str]:
    return {stem(text[start:end].lower()) for start, end in match_spans(query, text)}


# Headers of tables that start before a passage


def fetch_table_headers(request: Request, passages: Sequence[Passage]) -> dict[int, str]:
    """Return the headers as Markdown by passage number (from 1), for passages that need one."""
    spans = {number: as_items(hit.metadata.get("table_header")) for number, hit in enumerate(passages, start=1)}
    places = {
        number: (passages[number - 1].document_id, as_integer(span[0]), as_integer(span[1]))
        for number, span in spans.items()
        if span and as_integer(span[0]) < passages[number - 1].start
    }
    if not places:
        return {}
    with request.store.reading() as connection:
        texts = fetch_document_slices(connection, request.index.name, list(places.values()))
    return {number: text for number, text in zip(places, texts, strict=True) if text is not None}


REFUSAL_TEXT = "Nothing in the documents answers this question."


@dataclass(slots=True)
class AnswerDraft:
    """A streamed answer: iterate over ``pieces`` once; the other fields are complete afterwards.

    ``kind`` is "llm", "extracts" or "refused"; an LLM may still refuse in its first words. Without evidence, a refused
    answer has no passages.
    """

    kind: str
    pieces: Iterator[str]
    passages: tuple[Passage, ...]
    quotes: tuple[Quote, ...] = ()
    text: str = field(default="", init=False)

    def __iter__(self) -> Iterator[str]:
        for piece in self.pieces:
            self.text += piece
            yield piece

    @property
    def citation_numbers(self) -> list[int]:
        """The numbers of the passages that the text cites."""
        if self.kind == "extracts":
            return list(dict.fromkeys(quote.number for quote in self.quotes))
        return find_cited_numbers(self.text) if self.kind == "llm" else []


def draft_answer(query: Query, passages: Sequence[Passage], evidence: Evidence) -> AnswerDraft:
    """Start an answer from passages, best first; it is refused without evidence in the passages or their sentences.

    Raises:
        ModelError: During iteration, if the LLM fails in the middle of its answer.
    """
    request, sources = query.request, tuple(passages)
    quotes = _find_quotes(query, sources) if sources and not (evidence.close and request.llm) else []
    similarities = (quote.similarity for quote in quotes)
    if not sources or not (evidence.close or is_sentence_evidence(query, similarities)):
        return AnswerDraft("refused", iter([REFUSAL_TEXT]), (), tuple(quotes))
    if request.llm is not None:
        prompt = ANSWER.format(query=quote_turns(request.history, query.typed), passages=number_passages(sources))
        try:
            return _start_llm_answer(request.llm.stream(ANSWER_SYSTEM, prompt), sources)
        except ModelError as error:
            request.trace.note(f"answer: {error} These are extracts instead.")
    return _quote_answer(quotes or _find_quotes(query, sources), sources)


def find_threshold(query: Query, passages: Sequence[Passage], draft: AnswerDraft) -> float:
    """Return the threshold of the index up to which a question is answered; 0 if it was refused with evidence."""
    if draft.kind == "refused" and draft.passages:
        return 0.0
    quotes = draft.quotes or _find_quotes(query, passages)
    return find_refusal_threshold(query, [quote.similarity for quote in quotes])


def _find_quotes(query: Query, passages: Sequence[Passage]) -> list[Quote]:
    request = query.request
    try:
        encoded = query.encoded if query.can_read else None
    except ModelError:  # already noted by the search
        encoded = None
    with request.trace.stage(TimedStep.EXTRACT):
        return best_sentences(query.text, encoded, request.encoder, passages, fetch_table_headers(request, passages))


def _quote_answer(quotes: Sequence[Quote], passages: tuple[Passage, ...]) -> AnswerDraft:
    if not quotes:
        return AnswerDraft("refused", iter([REFUSAL_TEXT]), passages)
    return AnswerDraft("extracts", iter([format_quotes(quotes)]), passages, tuple(quotes))


def _start_llm_answer(pieces: Iterator[str], passages: tuple[Passage, ...]) -> AnswerDraft:
    """Read enough of the answer to detect a refusal."""
    start = ""
    for piece in pieces:
        start += piece
        if not REFUSAL.startswith(start.strip()[: len(REFUSAL)]) or len(start.strip()) >= len(REFUSAL):
            break
    if not start.strip() or start.strip().startswith(REFUSAL):
        return AnswerDraft("refused", iter([REFUSAL_TEXT]), passages)
    return AnswerDraft("llm", filter_marks(chain([start], pieces), len(passages)), passages)


class CitingSynthesizer(NoText):
    """The same answers, for LlamaIndex query engines; ``source_nodes`` are in the order of citation numbers."""

    def __init__(self, request: Request) -> None:
        super().__init__(llm=MockLLM())
        self._request = request

    def synthesize(
        self,
        query: str | QueryBundle,
        nodes: list[NodeWithScore],
        additional_source_nodes: Sequence[NodeWithScore] | None = None,
        **response_kwargs: object,
    ) -> Response:
        asked = self._request.question(query)
        answer = draft_answer(asked, to_passages(nodes, self._request.draw_page), judge_evidence(asked, nodes))
        text = "".join(answer)
        sources = [*nodes, *(additional_source_nodes or ())]
        return Response(text, source_nodes=sources, metadata={"kind": answer.kind, "cited": answer.citation_numbers})

    async def asynthesize(
        self,
        query: str | QueryBundle,
        nodes: list[NodeWithScore],
        additional_source_nodes: Sequence[NodeWithScore] | None = None,
        **response_kwargs: object,
    ) -> Response:
        import asyncio

        return await asyncio.to_thread(self.synthesize, query, nodes, additional_source_nodes)
