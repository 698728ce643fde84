"""The explanation of a passage's rank: legs, words, and the steps of the strategy with the one that dropped it.

Ranks are exact over the whole scope, so a passage beyond a leg's first n also has one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np

from workbench.models.encoder import TOKEN_BYTES, FloatArray
from workbench.retrieval.hits import Hit
from workbench.retrieval.legs import RERANKERS, keyword_confidence, leg_confidences, leg_kind
from workbench.retrieval.name_matching import compute_name_confidences
from workbench.retrieval.query import Query
from workbench.retrieval.ranker import FEATURES, compute_shares, make_weight_row
from workbench.retrieval.stages.late_interaction import (
    align_tokens,
    compute_late_scores,
    compute_token_similarities,
    compute_token_weights,
)
from workbench.retrieval.stages.stage import RETRIEVED_STEP
from workbench.retrieval.strategy import Strategy
from workbench.storage.database import Connection
from workbench.storage.passages import StoredPassage, fetch_token_bits, text_to_embed
from workbench.storage.postings import fetch_term_contributions
from workbench.storage.ranking import fetch_bm25_rank
from workbench.text import WORD
from workbench.types import DOCUMENT, KEYWORD, LATE, LEARNED, VECTOR, DocumentName, Passage, Span, Value


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

    ``outcome`` is one of the outcomes below, ``reason`` a sentence on it; ``elsewhere`` has the passage's rank by other
    strategies (None if not among their results). ``steps`` lead from the index to the results; the first that is not
    ``kept`` dropped the passage. ``preferring`` are the names in the question whose documents were preferred;
    ``features`` are those of a learned ranker, largest share first.
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


@dataclass(frozen=True, slots=True)
class _EmbeddedPassage:
    """A passage as it was embedded: ``before`` is its title and headings, ``spans`` and ``bits`` its tokens."""

    passage: StoredPassage
    before: str
    spans: Sequence[Span]
    bits: bytes

    @property
    def text(self) -> str:
        return self.before + self.passage.text


def _read_tokens(
    query: Query, connection: Connection, passages: Sequence[StoredPassage]
) -> Iterator[tuple[_EmbeddedPassage, FloatArray]]:
    """Yield the passages with token vectors, and the question's token vectors."""
    encoder, axes = query.request.encoder, query.encoded.token_axes
    if axes is None:
        return
    stored_bits = fetch_token_bits(connection, query.request.index.name, [passage.id for passage in passages])
    for passage in passages:
        context, bits = str(passage.metadata.get("context", "")), stored_bits.get(passage.id, b"")
        spans = encoder.token_spans(text_to_embed(context, passage.text))[: encoder.max_tokens]
        if spans and len(bits) == TOKEN_BYTES * len(spans):
            yield _EmbeddedPassage(passage, f"{context}\n\n" if context else "", spans, bits), axes


def align_passages(
    query: Query, connection: Connection, passages: Sequence[StoredPassage]
) -> dict[str, tuple[Alignment, ...]]:
    """Return {passage id: the best match for each question token} for passages with token vectors."""
    text, asked_spans = query.text, query.encoded.token_spans
    if query.encoded.token_axes is None:
        return {}
    weights = compute_token_weights(text, asked_spans, query.read_words(connection), 1 - keyword_confidence(query))
    shares = weights / (float(weights.sum()) or 1.0)
    by_passage: dict[str, tuple[Alignment, ...]] = {}
    for embedded, axes in _read_tokens(query, connection, passages):
        offset, alignment = embedded.passage.span[0] - len(embedded.before), list[Alignment]()
        for asked, share, match in zip(asked_spans, shares, align_tokens(axes, embedded.bits), strict=True):
            first, last = embedded.spans[match.token]
            place = (first + offset, last + offset) if first >= len(embedded.before) else (None, None)
            token = embedded.text[first:last]
            alignment.append(Alignment(text[slice(*asked)], token, match.similarity, float(share), *place))
        by_passage[embedded.passage.node_id] = tuple(alignment)
    return by_passage


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
    question, context = query.text, str(passage.metadata.get("context", ""))
    before, words = f"{context}\n\n" if context else "", ()
    for embedded, axes in _read_tokens(query, connection, [passage]):
        weights = compute_token_weights(question, query.encoded.token_spans, query.read_words(connection))
        matrix = compute_token_similarities(axes, embedded.bits)
        of_passage = _group_tokens_by_word(embedded.text, embedded.spans)
        words = _match_question_words(question, query.encoded.token_spans, weights, matrix, of_passage)
    language = str(passage.metadata.get("language", "english"))
    return WordComparison(question, before + passage.text, before, language, words)


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


# Outcomes, by name

IS_FOUND = "found"
IS_SHOWN_WITHIN = "shown within another"
COPY = "a copy of another"
NOT_INDEXED = "not in the index"
NOT_IN_SCOPE = "not in scope"
NOT_RETRIEVED = "not retrieved"
LOST_IN_FUSION = "dropped in fusion"
LOST_IN_RERANK = "dropped in rerank"
LOST_IN_STAGE = "dropped in a later stage"


# Reasons

_LEGS = {VECTOR: "by similarity", KEYWORD: "by BM25"}


@dataclass(frozen=True, slots=True)
class PipelineTrace:
    """The record of a traced request: ids after each step, all fused candidates, the limit and a leg's pool size."""

    strategy: Strategy
    passed: Mapping[str, tuple[int, ...]]
    fused: tuple[int, ...]
    limit: int
    pool: int


def find_outcome(passage: int, way: PipelineTrace, legs: Mapping[str, LegView]) -> tuple[str, str]:
    """Return (outcome, reason) of a passage in scope that is not among the results."""
    retrieved = way.passed.get(RETRIEVED_STEP, ())
    if passage not in retrieved:
        if passage in way.fused:
            rank = way.fused.index(passage) + 1
            first = len(retrieved)
            return LOST_IN_FUSION, f"Rank {rank} of {len(way.fused)} after fusion; the first {first} continued."
        return NOT_RETRIEVED, f"{describe_leg_ranks(legs)}; {describe_pool(way)}."
    steps = list(way.passed.items())
    dropped = find_drop(passage, way)
    if dropped is not None:
        before, name = dropped
        earlier, later = way.passed[before], way.passed[name]
        outcome = LOST_IN_RERANK if name in RERANKERS else LOST_IN_STAGE
        return outcome, _describe_ranks(passage, [(before, earlier), (name, later)], way.limit)
    last, order = steps[-1]
    if last == RETRIEVED_STEP or (passage not in order and len(steps) < 2):
        return LOST_IN_FUSION, _describe_ranks(passage, steps[-1:], way.limit)
    reranked = any(name in RERANKERS for name, _ in steps)
    return (LOST_IN_RERANK if reranked else LOST_IN_STAGE), _describe_ranks(passage, steps, way.limit)


def find_drop(passage: int, way: PipelineTrace) -> tuple[str, str] | None:
    """Return the two consecutive steps between which a passage left the first ``limit``; None if it did not."""
    for (before, earlier), (name, later) in pairwise(way.passed.items()):
        if passage in earlier[: way.limit] and passage not in later[: way.limit]:
            return before, name
    return None


def _describe_ranks(passage: int, steps: Sequence[tuple[str, tuple[int, ...]]], limit: int) -> str:
    ranks = ", ".join(
        f"{f'rank {order.index(passage) + 1}' if passage in order else 'dropped'} {describe_step(name)}"
        for name, order in steps
    )
    return f"{ranks[0].upper()}{ranks[1:]}; the limit was {limit}."


def describe_step(name: str) -> str:
    """Return a phrase such as "after the first stage"."""
    if name == RETRIEVED_STEP:
        return "after the first stage"
    if name == LEARNED:
        return "by the learned weights"
    return "after rerank" if name in RERANKERS else f"after {name}"


def describe_leg_ranks(legs: Mapping[str, LegView]) -> str:
    """Return a passage's ranks in the whole scope by similarity and BM25, as the start of a sentence."""
    parts = [
        f"rank {legs[name].rank} {phrase} ({legs[name].score:.3f})"
        if name in legs and legs[name].rank
        else f"no match {phrase}"
        for name, phrase in _LEGS.items()
    ]
    text = " and ".join(parts)
    return text[0].upper() + text[1:]


def describe_pool(way: PipelineTrace) -> str:
    """Return a clause on how many passages the first stage of a strategy returns."""
    strategy = way.strategy
    if strategy.is_one_leg:
        return f"{strategy.name} returns the top {way.limit}"
    return f"each leg returns its top {way.pool}" if strategy.pools else "the strategy's first stage did not return it"


INDEXED_STEP, SCOPE_STEP, LEGS_STEP, FUSED_STEP, SHOWN_STEP = "index", "scope", "legs", "fused", "shown"
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")  # word boundary in a stage's class name
_TITLES = {
    INDEXED_STEP: "In the index",
    SCOPE_STEP: "In scope",
    LEGS_STEP: "Found",
    FUSED_STEP: "Fused",
    SHOWN_STEP: "Shown",
}


@dataclass(frozen=True, slots=True)
class FinalRank:
    """A passage's outcome, and its rank among the results (None if not shown)."""

    outcome: str
    rank: int | None
    legs: Mapping[str, LegView]


def trace_stages(
    passage: int, way: PipelineTrace, standing: FinalRank, *, index: int | None, scope: int | None, shown: int
) -> tuple[Step, ...]:
    """Return the steps of a traced request for one passage; from the step that dropped it onwards, none is ``kept``.

    Args:
        index: Passages in the index; None for a search within a scope, so that nothing outside it is revealed.
        scope: Passages in scope; None if too many to count.
        shown: Number of results.
    """
    steps = [
        *([] if index is None else [Step(INDEXED_STEP, _TITLES[INDEXED_STEP], index)]),
        Step(SCOPE_STEP, _TITLES[SCOPE_STEP], scope),
        *_stage_steps(passage, way, standing),
        Step(SHOWN_STEP, _TITLES[SHOWN_STEP], shown, standing.rank, detail=f"The first {way.limit} are returned."),
    ]
    lost = _find_dropping_step(passage, way, standing)
    names = [step.name for step in steps]
    kept_steps = names.index(lost) if lost in names else len(steps)
    return tuple(
        replace(step, rank=step.rank if place <= kept_steps else None, kept=place < kept_steps)
        for place, step in enumerate(steps)
    )


def trace_unindexed(index_passages: int) -> tuple[Step, ...]:
    return (Step(INDEXED_STEP, _TITLES[INDEXED_STEP], index_passages, kept=False),)


def trace_out_of_scope(scope_passages: int | None) -> tuple[Step, ...]:
    return (Step(SCOPE_STEP, _TITLES[SCOPE_STEP], scope_passages, kept=False),)


def _stage_steps(passage: int, way: PipelineTrace, standing: FinalRank) -> list[Step]:
    passed = dict(way.passed)
    retrieved = passed.pop(RETRIEVED_STEP, ())
    detail = f"{describe_leg_ranks(standing.legs)}; {describe_pool(way)}."
    steps = [Step(LEGS_STEP, _TITLES[LEGS_STEP], len(way.fused or retrieved), detail=detail)]
    if way.fused:
        detail = f"The first {len(retrieved)} of {len(way.fused)} continue." if len(retrieved) < len(way.fused) else ""
        steps.append(
            Step(FUSED_STEP, _TITLES[FUSED_STEP], len(retrieved), _find_rank(passage, way.fused), detail=detail)
        )
    for name, order in passed.items():
        rank, title = _find_rank(passage, order), leg_kind(name).title
        detail = f"Only the first {way.limit} are returned." if rank is not None and rank > way.limit else ""
        title = f"Reranked: {title.lower()}" if name in RERANKERS else _CAMEL.sub(" ", title).capitalize()
        steps.append(Step(name, title, len(order), rank, detail=detail))
    return steps


def _find_rank(passage: int, order: tuple[int, ...]) -> int | None:
    return order.index(passage) + 1 if passage in order else None


def _find_dropping_step(passage: int, way: PipelineTrace, standing: FinalRank) -> str | None:
    """Return the name of the step that dropped a passage."""
    if standing.outcome in (IS_FOUND, IS_SHOWN_WITHIN):
        return None
    if standing.outcome == NOT_IN_SCOPE:
        return SCOPE_STEP
    if standing.outcome == NOT_RETRIEVED:
        return LEGS_STEP
    later = [name for name in way.passed if name != RETRIEVED_STEP]
    if standing.outcome == LOST_IN_FUSION or not later:
        return FUSED_STEP if way.fused else SHOWN_STEP
    dropped = find_drop(passage, way)
    if dropped is not None:
        return dropped[1]
    reranked = [name for name in later if name in RERANKERS]
    return (reranked if standing.outcome == LOST_IN_RERANK and reranked else later)[-1]
