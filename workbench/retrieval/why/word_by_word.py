"""Word by word: the question's words, and the words of a passage that late interaction finds like each of them.

The similarity of two words is the mean, over the tokens of the question's word, of the best token of the passage's
word (MaxSim within the pair; see workbench.retrieval.stages.late_interaction).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from workbench.languages import WORD
from workbench.models.encoder import TOKEN_BYTES, FloatArray
from workbench.retrieval.question_words import Words
from workbench.retrieval.request import Request
from workbench.retrieval.stages.late_interaction import token_similarities
from workbench.retrieval.stages.rerank import token_weights
from workbench.storage.database import Connection
from workbench.storage.passages import StoredPassage, embedded_text, token_bits
from workbench.types import Value
from workbench.types.results import Span

ALIKE = 0.3  # below that a similarity of stored token vectors is chance (measured on the sample corpus)
MOST_LIKES = 12  # of one word


@dataclass(frozen=True, slots=True)
class Like(Value):
    """A word of the passage's text from ``start`` to ``end``, and its similarity (-1..1) to the question's word."""

    start: int
    end: int
    similarity: float


@dataclass(frozen=True, slots=True)
class QuestionWord(Value):
    """A word of the question from ``start`` to ``end``, what it counts (all sum to 1), and its likes, best first."""

    start: int
    end: int
    weight: float
    likes: tuple[Like, ...] = ()


@dataclass(frozen=True, slots=True)
class WordByWord(Value):
    """A question beside the text that the model read of a passage: ``context`` (title, headings), then the passage.

    ``words`` is empty where the index keeps no token vectors; spans of likes are in ``text``.
    """

    question: str
    text: str
    context: str
    language: str
    words: tuple[QuestionWord, ...] = ()


def word_by_word(
    request: Request, connection: Connection, question: str, words: Words, passage: StoredPassage
) -> WordByWord:
    """Hold each word of the question against each word of a passage, by the stored token vectors."""
    context = str(passage.metadata.get("context", ""))
    before = f"{context}\n\n" if context else ""
    text = before + passage.text
    compared = WordByWord(question, text, before, str(passage.metadata.get("language", "english")))
    encoded = request.encoded(question)
    bits = token_bits(connection, request.index.name, [passage.id]).get(passage.id, b"")
    spans = request.encoder.token_spans(embedded_text(context, passage.text))[: request.encoder.max_tokens]
    if encoded.token_axes is None or not spans or len(bits) != TOKEN_BYTES * len(spans):
        return compared
    weights = token_weights(question, encoded.token_spans, words)
    matrix = token_similarities(encoded.token_axes, bits)
    return WordByWord(
        question,
        text,
        before,
        compared.language,
        _question_words(question, encoded.token_spans, weights, matrix, _words_of(text, spans)),
    )


def _question_words(
    question: str,
    spans: Sequence[Span],
    weights: FloatArray,
    matrix: FloatArray,
    words: Sequence[tuple[Span, list[int]]],
) -> tuple[QuestionWord, ...]:
    total = float(weights.sum()) or 1.0
    compared: list[QuestionWord] = []
    for (start, end), tokens in _words_of(question, spans):
        likes = [
            Like(first, last, float(matrix[np.ix_(of_word, tokens)].max(axis=0).mean()))
            for (first, last), of_word in words
        ]
        best = sorted((like for like in likes if like.similarity >= ALIKE), key=lambda like: -like.similarity)
        weight = float(weights[tokens].sum()) / total
        compared.append(QuestionWord(start, end, weight, tuple(best[:MOST_LIKES])))
    return tuple(compared)


def _words_of(text: str, spans: Sequence[Span]) -> list[tuple[Span, list[int]]]:
    """Return the words of a text that tokens stand in, each with the places of its tokens."""
    words: list[tuple[Span, list[int]]] = []
    place = 0
    for match in WORD.finditer(text):
        start, end = match.span()
        while place < len(spans) and spans[place][1] <= start:
            place += 1
        tokens = [at for at in range(place, min(place + end - start, len(spans))) if spans[at][0] < end]
        if tokens:
            words.append(((start, end), tokens))
    return words
