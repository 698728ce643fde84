"""Why a passage stands where it stands: what each leg says of it, word by word, and where it fell out.

Ranks here are exact ones over the whole scope, so that a passage beyond a leg's first n has one too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from workbench.models.encoder import TOKEN_BYTES
from workbench.retrieval.keyword import Words, read_words
from workbench.retrieval.late_interaction import Match, align
from workbench.retrieval.request import Hit, Request
from workbench.retrieval.rerank import late_scores, token_weights
from workbench.storage.rows import StoredPassage
from workbench.storage.standing import bm25_standing, vector_standing
from workbench.types import Value


@dataclass(frozen=True, slots=True)
class LegView(Value):
    """One way of matching: its score in its own unit and the passage's rank in the whole scope.

    ``contribution`` is its part of the final score, where the passage has one.
    """

    score: float
    rank: int | None = None
    contribution: float | None = None


@dataclass(frozen=True, slots=True)
class TermView(Value):
    """A term of the question in the passage: how often, its BM25 score, and its share of the passage's (0..1)."""

    term: str
    frequency: int
    score: float
    share: float


@dataclass(frozen=True, slots=True)
class Alignment(Value):
    """A token of the question and the passage's token that is most like it (-1..1).

    ``weight`` is what the query token counts, all summing to 1. ``start`` and ``end`` are in the document; None where
    the token stands in the title and headings before the passage.
    """

    query_token: str
    passage_token: str
    similarity: float
    weight: float
    start: int | None = None
    end: int | None = None


@dataclass(frozen=True, slots=True)
class Explanation(Value):
    """Why one passage stands where it stands in one strategy's ranking.

    ``fate`` is one of FATES (workbench.retrieval.fate), ``reason`` says it in a sentence; ``elsewhere`` holds the
    passage's rank by the other strategies (None: not among the first that were asked for).
    """

    query: str
    strategy: str
    index: str
    document_id: str
    document_title: str
    fate: str
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
    elsewhere: Mapping[str, int | None] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def leg_views(request: Request, connection: Any, query: str, passage: StoredPassage) -> dict[str, LegView]:
    """Return what each leg says of a passage, with its exact rank in the scope; "late" has none over a whole scope."""
    index, words = request.store.index.name, read_words(request, connection, query)
    vector = vector_standing(connection, index, request.encoded(query).vector, request.scope, passage.id)
    views = {"vector": LegView(*vector)}
    worded = bm25_standing(connection, index, words.weights, request.scope, passage.id)
    if worded is not None:
        views["keyword"] = LegView(*worded)
    late = late_scores(request, connection, query, words, [Hit(passage.id, 0.0, {})])
    if passage.id in late:
        views["late"] = LegView(late[passage.id])
    return views


def term_views(
    request: Request, connection: Any, words: Words, passage: StoredPassage
) -> tuple[tuple[TermView, ...], tuple[str, ...]]:
    """Return the question's terms that the passage has, most telling first, and those it lacks."""
    found = request.store.term_shares(connection, words.weights, passage.id)
    total = sum(score for _, _, score in found) or 1.0
    views = tuple(TermView(term, frequency, score, score / total) for term, frequency, score in found)
    held = {view.term for view in views}
    positions = {term.position for term in words.terms if term.term in held}
    common = words.totals.passages / 2  # a stop word of most passages is a term to the few in another language
    lacking = [
        term.term
        for term in words.terms
        if term.term not in held and term.position not in positions and term.passages >= common
    ]
    return views, tuple(dict.fromkeys(lacking))


def alignment(
    request: Request, connection: Any, query: str, words: Words, passage: StoredPassage
) -> tuple[Alignment, ...]:
    """Return for each token of the question its like in the passage; nothing where there are no token vectors."""
    return alignments(request, connection, query, words, [passage]).get(passage.node_id, ())


def alignments(
    request: Request, connection: Any, query: str, words: Words, passages: Sequence[StoredPassage]
) -> dict[str, tuple[Alignment, ...]]:
    """Return passage id -> its alignment, for those that have token vectors."""
    encoded = request.encoded(query)
    if encoded.token_axes is None:
        return {}
    weights = token_weights(query, encoded.token_spans, words)
    shares = weights / (float(weights.sum()) or 1.0)
    kept = request.store.token_bits(connection, [passage.id for passage in passages])
    found = {}
    for passage in passages:
        context = str(passage.metadata.get("context", ""))
        before = f"{context}\n\n" if context else ""
        text, bits = before + passage.text, kept.get(passage.id, b"")
        spans = request.encoder.token_spans(text)[: request.encoder.max_tokens]
        if spans and len(bits) == TOKEN_BYTES * len(spans):
            asked = [
                (query[start:end], float(share))
                for (start, end), share in zip(encoded.token_spans, shares, strict=True)
            ]
            matches = align(encoded.token_axes, bits)
            offset = int(passage.metadata["start"]) - len(before)
            found[passage.node_id] = tuple(
                _aligned(*of_query, match, text, spans[match.token], len(before), offset)
                for of_query, match in zip(asked, matches, strict=True)
            )
    return found


def _aligned(
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
