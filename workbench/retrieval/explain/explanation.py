"""The explanation of a passage's rank: its score from each leg, token matches, and the step that dropped it.

Ranks are exact over the whole scope, so a passage beyond a leg's first n also has one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from workbench.models.encoder import TOKEN_BYTES, FloatArray
from workbench.retrieval.hits import Hit
from workbench.retrieval.legs import keyword_confidence, leg_confidences
from workbench.retrieval.name_matching import compute_name_confidences
from workbench.retrieval.query import Query
from workbench.retrieval.ranker import FEATURES, compute_shares, make_weight_row
from workbench.retrieval.stages.late_interaction import (
    Match,
    align_tokens,
    compute_late_scores,
    compute_token_similarities,
    compute_token_weights,
)
from workbench.storage.database import Connection
from workbench.storage.passages import StoredPassage, fetch_token_bits, text_to_embed
from workbench.storage.postings import fetch_term_contributions
from workbench.storage.ranking import fetch_bm25_rank
from workbench.text import WORD
from workbench.types import DOCUMENT, KEYWORD, LATE, VECTOR, DocumentName, Passage, Span, Value


@dataclass(frozen=True, slots=True)
class LegView(Value):
    """A leg's score of the passage in its own unit, and its rank in the whole scope.

    ``contribution`` is its part of the final score, if the passage has one. ``vote`` is the confidence in the leg for
    this question: 1 full, 0 ignored.
    """

    score: float
    rank: int | None = None
    contribution: float | None = None
    vote: float = 1.0


@dataclass(frozen=True, slots=True)
class TermView(Value):
    """A question term in the passage: its frequency, BM25 score, and share of the passage's score (0..1)."""

    term: str
    frequency: int
    score: float
    share: float


@dataclass(frozen=True, slots=True)
class Alignment(Value):
    """A token of the question and its most similar token in the passage, with their similarity (-1..1).

    ``weight`` is the query token's weight; the weights sum to 1. ``start`` and ``end`` are in the document; None if
    the token is in the title and headings before the passage.
    """

    query_token: str
    passage_token: str
    similarity: float
    weight: float
    start: int | None = None
    end: int | None = None


@dataclass(frozen=True, slots=True)
class FeatureView(Value):
    """A feature of a learned ranker: its value in its own unit, weight and contribution.

    ``scaled`` is the value scaled to 0..1 over the question's candidates; ``share`` is its share of the score, and
    shares sum to 1. With a negative ``weight``, low values contribute most.
    """

    name: str
    title: str
    why: str
    value: float
    scaled: float
    weight: float
    share: float


@dataclass(frozen=True, slots=True)
class Step(Value):
    """One step of a strategy, as it affects one passage.

    ``count`` is the number of passages after it (None if too many to count), ``rank`` the passage's rank, ``kept``
    whether the passage was kept; ``detail`` is an additional sentence.
    """

    name: str
    title: str
    count: int | None = None
    rank: int | None = None
    kept: bool = True
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Explanation(Value):
    """The explanation of one passage's rank in one strategy's ranking.

    ``outcome`` is one of OUTCOMES (workbench.retrieval.explain.outcome), ``reason`` a sentence on it; ``elsewhere`` has
    the passage's rank by other strategies (None if not among their results). ``steps`` lead from the index to the
    results; the first that is not ``kept`` dropped the passage. ``preferring`` are the names in the question whose
    documents were preferred; ``features`` are those of a learned ranker, largest share first.
    """

    query: str
    strategy: str
    index: str
    document_id: str
    document_title: str
    outcome: str
    reason: str
    passage_id: str | None = None
    start: int = 0
    end: int = 0
    text: str = ""
    rank: int | None = None
    score: float | None = None
    legs: Mapping[str, LegView] = field(default_factory=dict)
    terms: tuple[TermView, ...] = ()
    missing_terms: tuple[str, ...] = ()
    alignment: tuple[Alignment, ...] = ()
    features: tuple[FeatureView, ...] = ()
    elsewhere: Mapping[str, int | None] = field(default_factory=dict)
    steps: tuple[Step, ...] = ()
    preferring: tuple[DocumentName, ...] = ()
    notes: tuple[str, ...] = ()


def covers(hit: Passage, passage: StoredPassage) -> bool:
    """Return whether a result's text contains a passage of the same document."""
    start, end = passage.span
    return hit.document_id == passage.document_id and hit.start <= start and end <= hit.end


def view_legs(query: Query, connection: Connection, passage: StoredPassage) -> dict[str, LegView]:
    """Return each leg's score of a passage, with its exact rank in the scope; "late" has no rank."""
    request, words = query.request, query.read_words(connection)
    index = request.index.name
    vector = request.store.fetch_vector_rank(connection, query.encoded.vector, request.scope, passage.id)
    views = {} if vector is None else {VECTOR: LegView(*vector)}
    worded = fetch_bm25_rank(connection, index, words.weights, request.scope, passage.id)
    if worded is not None:
        views[KEYWORD] = LegView(*worded)
    late = compute_late_scores(query, connection, [Hit(passage.id, 0.0, {})])
    if passage.id in late:
        views[LATE] = LegView(late[passage.id])
    name_shares = compute_name_confidences(query, connection, {passage.id: passage.document_id})
    if passage.id in name_shares:
        views[DOCUMENT] = LegView(name_shares[passage.id])
    counts = leg_confidences(query)
    return {name: replace(view, vote=counts.get(name, 1.0)) for name, view in views.items()}


def view_terms(
    query: Query, connection: Connection, passage: StoredPassage
) -> tuple[tuple[TermView, ...], tuple[str, ...]]:
    """Return the question's terms that are in the passage, highest score first, and the missing ones."""
    words = query.read_words(connection)
    names = {term.id: term.term for term in words.terms}
    shares = fetch_term_contributions(connection, query.request.index.name, words.weights, passage.id)
    total = sum(score for _, _, score in shares) or 1.0
    views = tuple(TermView(names[term], frequency, score, score / total) for term, frequency, score in shares)
    terms = {view.term for view in views}
    positions = {term.position for term in words.terms if term.term in terms}
    common = words.totals.passages / 2  # a stop word in most passages may be a term in a few of another language
    lacking = [
        term.term
        for term in words.terms
        if term.term not in terms and term.position not in positions and term.passages >= common
    ]
    return views, tuple(dict.fromkeys(lacking))


def align_passage(query: Query, connection: Connection, passage: StoredPassage) -> tuple[Alignment, ...]:
    """Return the best match in the passage for each question token; empty without token vectors."""
    return align_passages(query, connection, [passage]).get(passage.node_id, ())


def align_passages(
    query: Query, connection: Connection, passages: Sequence[StoredPassage]
) -> dict[str, tuple[Alignment, ...]]:
    """Return {passage id: alignment} for passages with token vectors."""
    request, encoded = query.request, query.encoded
    if encoded.token_axes is None:
        return {}
    words = query.read_words(connection)
    weights = compute_token_weights(query.text, encoded.token_spans, words, 1 - keyword_confidence(query))
    shares = weights / (float(weights.sum()) or 1.0)
    stored_bits = fetch_token_bits(connection, request.index.name, [passage.id for passage in passages])
    by_passage = {}
    for passage in passages:
        context = str(passage.metadata.get("context", ""))
        before = f"{context}\n\n" if context else ""
        text, bits = before + passage.text, stored_bits.get(passage.id, b"")
        spans = request.encoder.token_spans(text_to_embed(context, passage.text))[: request.encoder.max_tokens]
        if spans and len(bits) == TOKEN_BYTES * len(spans):
            query_tokens = [
                (query.text[start:end], float(share))
                for (start, end), share in zip(encoded.token_spans, shares, strict=True)
            ]
            matches = align_tokens(encoded.token_axes, bits)
            offset = passage.span[0] - len(before)
            by_passage[passage.node_id] = tuple(
                _make_alignment(*of_query, match, text, spans[match.token], len(before), offset)
                for of_query, match in zip(query_tokens, matches, strict=True)
            )
    return by_passage


def _make_alignment(
    query_token: str, weight: float, match: Match, text: str, span: tuple[int, int], before: int, offset: int
) -> Alignment:
    first, last = span
    inside = first >= before
    return Alignment(
        query_token=query_token,
        passage_token=text[first:last],
        similarity=match.similarity,
        weight=weight,
        start=first + offset if inside else None,
        end=last + offset if inside else None,
    )


# Features of a learned score


def view_features(query: Query, passage: int) -> tuple[FeatureView, ...]:
    """Return a passage's features in a finished request with a ranker, largest share first.

    Empty if the strategy has no ranker, or the passage was not a candidate.
    """
    sheet, ranker = query.sheet, query.request.ranker
    if sheet is None or ranker is None or passage not in sheet.ids:
        return ()
    row, weights = sheet.ids.index(passage), make_weight_row(ranker.weights)
    parts = compute_shares(sheet.scaled, weights)[row]
    total = float(parts.sum()) or 1.0
    views = [
        FeatureView(
            name=feature.name,
            title=feature.title,
            why=feature.why,
            value=float(sheet.raw[row, column]),
            scaled=float(sheet.scaled[row, column]),
            weight=float(weights[column]),
            share=float(parts[column]) / total,
        )
        for column, feature in enumerate(FEATURES)
    ]
    return tuple(sorted(views, key=lambda view: -view.share))


# Token matches by word

MIN_TOKEN_SIMILARITY = 0.3  # lower similarities of stored token vectors are chance (measured on the sample corpus)
MAX_MATCHES = 12  # per word


@dataclass(frozen=True, slots=True)
class WordMatch(Value):
    """A word of the passage from ``start`` to ``end``, and its similarity (-1..1) to the question's word."""

    start: int
    end: int
    similarity: float


@dataclass(frozen=True, slots=True)
class QuestionWord(Value):
    """A word of the question from ``start`` to ``end``, its weight (weights sum to 1), and its matches, best first."""

    start: int
    end: int
    weight: float
    likes: tuple[WordMatch, ...] = ()


@dataclass(frozen=True, slots=True)
class WordComparison(Value):
    """A question and the text of a passage as embedded: ``context`` (title, headings), then the passage.

    ``words`` is empty if the index has no token vectors; spans of matches are in ``text``.
    """

    question: str
    text: str
    context: str
    language: str
    words: tuple[QuestionWord, ...] = ()


def compare_words(query: Query, connection: Connection, passage: StoredPassage) -> WordComparison:
    """Compare each word of the question with each word of a passage, using the stored token vectors."""
    request, question = query.request, query.text
    context = str(passage.metadata.get("context", ""))
    before = f"{context}\n\n" if context else ""
    text = before + passage.text
    compared = WordComparison(question, text, before, str(passage.metadata.get("language", "english")))
    encoded = query.encoded
    bits = fetch_token_bits(connection, request.index.name, [passage.id]).get(passage.id, b"")
    spans = request.encoder.token_spans(text_to_embed(context, passage.text))[: request.encoder.max_tokens]
    if encoded.token_axes is None or not spans or len(bits) != TOKEN_BYTES * len(spans):
        return compared
    weights = compute_token_weights(question, encoded.token_spans, query.read_words(connection))
    matrix = compute_token_similarities(encoded.token_axes, bits)
    return WordComparison(
        question,
        text,
        before,
        compared.language,
        _match_question_words(question, encoded.token_spans, weights, matrix, _group_tokens_by_word(text, spans)),
    )


def _match_question_words(
    question: str,
    spans: Sequence[Span],
    weights: FloatArray,
    matrix: FloatArray,
    words: Sequence[tuple[Span, list[int]]],
) -> tuple[QuestionWord, ...]:
    total = float(weights.sum()) or 1.0
    compared: list[QuestionWord] = []
    for (start, end), tokens in _group_tokens_by_word(question, spans):
        likes = [
            WordMatch(first, last, float(matrix[np.ix_(of_word, tokens)].max(axis=0).mean()))
            for (first, last), of_word in words
        ]
        best = sorted(
            (like for like in likes if like.similarity >= MIN_TOKEN_SIMILARITY), key=lambda like: -like.similarity
        )
        weight = float(weights[tokens].sum()) / total
        compared.append(QuestionWord(start, end, weight, tuple(best[:MAX_MATCHES])))
    return tuple(compared)


def _group_tokens_by_word(text: str, spans: Sequence[Span]) -> list[tuple[Span, list[int]]]:
    """Group tokens by the word of the text that contains them; each word has its tokens' positions."""
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
