"""The question and the passage as the why panel draws them, cut where a mark begins or ends; Markdown is rendered."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from itertools import pairwise
from typing import TYPE_CHECKING

from workbench.app.compare.likeness import FROM
from workbench.app.widgets.rendered.continued_tables import moved_back, with_table_header
from workbench.app.widgets.rendered.elements import TextRun, drawn
from workbench.app.widgets.rendered.markdown_tree import markdown_tree
from workbench.marking import FUNCTION_WORDS, matched_spans
from workbench.types.results import Span

if TYPE_CHECKING:
    from workbench.retrieval.explain.explanation import QuestionWord, WordByWord
    from workbench.types.json import JsonValue

SURE = 0.75  # a similarity from which on a like is drawn in full

QuestionPiece = tuple[str, int | None]  # a stretch of the question, and the place of the word it is
TextPiece = tuple[str, bool, int, dict[str, float]]  # a stretch, has the question it, underline 0 to 3, word -> 0..1


def question_pieces(compared: WordByWord) -> list[QuestionPiece]:
    """Return the question in stretches; words that count have their place among ``compared.words``."""
    pieces: list[QuestionPiece] = []
    at = 0
    for place, word in enumerate(compared.words):
        if counts(compared, word):
            pieces += [(compared.question[at : word.start], None), (compared.question[word.start : word.end], place)]
            at = word.end
    return [piece for piece in (*pieces, (compared.question[at:], None)) if piece[0]]


def counts(compared: WordByWord, word: QuestionWord) -> bool:
    """Tell whether a word of the question is worth pointing at."""
    return word.weight > 0 and compared.question[word.start : word.end].lower() not in FUNCTION_WORDS


def text_pieces(compared: WordByWord) -> tuple[list[TextPiece], list[TextPiece]]:
    """Return the title and headings, and the passage, in stretches."""
    matched = matched_spans(compared.question, compared.text, compared.language)
    likes = _similarities_by_span(compared)
    context = len(compared.context)
    return (
        _cut(compared.text, (0, len(compared.context.rstrip())), matched, likes),
        _cut(compared.text, (context, len(compared.text)), matched, likes),
    )


def rendered_text(text: str, compared: WordByWord | None, table_header: str = "") -> list[JsonValue]:
    """Return a passage of Markdown as elements, its texts in the pieces that ``text_pieces`` cuts.

    ``table_header`` is the Markdown of the header of a table that begins before it.
    """
    whole, lead = with_table_header(text, table_header)
    blocks = moved_back(markdown_tree(whole).blocks, lead) if lead else markdown_tree(text).blocks
    if compared is None:
        return drawn(blocks, lambda run: [run.text])
    matched = matched_spans(compared.question, compared.text, compared.language)
    likes, context = _similarities_by_span(compared), len(compared.context)

    def pieces(run: TextRun) -> list[TextPiece]:
        if run.start == run.end or not run.text:
            return [(run.text, False, 0, {})]
        cut = _cut(compared.text, (context + run.start, context + run.end), matched, likes)
        if run.is_exact:  # a code span's line end is shown as a blank
            return cut if len(cut) > 1 else [(run.text, *cut[0][1:])]
        words = {word: value for piece in cut for word, value in piece[3].items()}
        return [(run.text, any(piece[1] for piece in cut), max(piece[2] for piece in cut), words)]

    return drawn(blocks, pieces)


def strength(similarity: float) -> float:
    """Return how strongly a like is drawn, 0..1."""
    return round(min(1.0, max(0.1, (similarity - FROM[0]) / (SURE - FROM[0]))), 2)


def _similarities_by_span(compared: WordByWord) -> dict[Span, dict[int, float]]:
    """Return the stretches of the text that are like a word of the question that counts, each with its likenesses."""
    likes: dict[Span, dict[int, float]] = {}
    for place, word in enumerate(compared.words):
        if counts(compared, word):
            for like in word.likes:
                if compared.text[like.start : like.end].lower() not in FUNCTION_WORDS:
                    likes.setdefault((like.start, like.end), {})[place] = like.similarity
    return likes


def _cut(text: str, whole: Span, matched: Iterable[Span], likes: dict[Span, dict[int, float]]) -> list[TextPiece]:
    start, end = whole
    marks = [span for span in (*matched, *likes) if span[0] < end and span[1] > start]
    edges = sorted({start, end, *(min(end, max(start, edge)) for span in marks for edge in span)})
    matched = list(matched)
    pieces: list[TextPiece] = []
    for first, last in pairwise(edges):
        is_matched = any(a <= first and last <= b for a, b in matched)
        alike = next((by_word for (a, b), by_word in likes.items() if a <= first and last <= b), {})
        underline = bisect_right(FROM, max(alike.values(), default=0.0))
        pieces.append(
            (text[first:last], is_matched, underline, {str(word): strength(value) for word, value in alike.items()})
        )
    return pieces
