"""Rankings of the vector and keyword legs over a scope, each with the least reading."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice

import numpy as np
from numpy.typing import NDArray
from psycopg.sql import SQL

from workbench.storage.database import Connection, Database, Row, clean, numbers_value, only_row
from workbench.storage.graph import EXACT_UP_TO
from workbench.storage.passages import (
    IndexTotals,
    QueryTerm,
    TermWeights,
    read,
    scope_parameters,
    scope_statement,
    vector_value,
)
from workbench.storage.postings import (
    AT_ONCE,
    NOTHING,
    Ids,
    ScoredPassages,
    TermRanking,
    best_of_everything,
    best_of_listed,
    cosines,
    postings_of_passages,
    postings_of_terms,
    scored,
    scores_of,
)
from workbench.storage.statements import statement
from workbench.types import Index, ResolvedScope
from workbench.types.results import DocumentSpan, Span

DEEP, DEEPER = 2, 4  # ranking depth in a large scope, as a multiple of the limit, and its growth if that is too little

Rows = list[Row]


@dataclass(frozen=True, slots=True)
class LegRanking:
    """The passages that a leg retrieves."""

    scores: dict[int, float]  # by internal passage id, best first, in the leg's own unit
    others: dict[int, float] = field(default_factory=dict)  # the other leg's scores of these passages, if requested
    known: ScoredPassages | None = None  # the leg's scores of all passages in scope, if it has read them all


def scope_size(connection: Connection, index: str, scope: ResolvedScope) -> int:
    """Return the number of passages in a scope, counted only up to ``EXACT_UP_TO`` + 1."""
    parameters = {**scope_parameters(scope), "cap": EXACT_UP_TO + 1, "index": index}
    rows = read(connection, index, "count_in_scope", parameters, scope=scope_statement(scope))
    return min(int(rows[0]["n"]), EXACT_UP_TO + 1)


def documents_within(database: Database, scope: ResolvedScope, ids: Sequence[str]) -> list[str]:
    """Return those of given documents that are in a scope, whether or not an index has them."""
    if scope.is_empty or not ids:
        return []
    if scope.is_everything:
        return list(ids)
    query = statement("documents_within", scope=scope_statement(scope))
    return [row["document_id"] for row in database.rows(query, {"ids": list(ids), **scope_parameters(scope)})]


def in_scope(connection: Connection, index: str, scope: ResolvedScope, ids: Sequence[int]) -> set[int]:
    """Return those of the given passages that are in a scope."""
    if scope.is_empty:
        return set()
    parameters = {"ids": numbers_value(ids), **scope_parameters(scope)}
    return {row["id"] for row in read(connection, index, "ids_in_scope", parameters, scope=scope_statement(scope))}


def ids_of(connection: Connection, index: str, scope: ResolvedScope) -> Ids:
    """Return the sorted ids of the passages in a scope of at most ``EXACT_UP_TO``."""
    if scope.is_empty:
        return np.empty(0, np.int64)
    parameters = scope_parameters(scope)
    row = read(connection, index, "ids_of_scope", parameters, scope=scope_statement(scope))[0]
    return np.sort(np.frombuffer(row["ids"] or b"", ">i8").astype(np.int64))


def nearest(
    connection: Connection,
    index: str,
    vector: NDArray[np.float32],
    scope: ResolvedScope,
    limit: int,
    size: int,
    terms: TermWeights | None = None,
) -> LegRanking:
    """Return the passages in scope nearest to a vector by cosine, with their BM25 scores if ``terms`` are given.

    ``size`` is the result of ``scope_size``. Up to ``EXACT_UP_TO`` every distance is computed.
    """
    rows = _nearest_rows(connection, index, vector, scope, limit, size)
    scores = {row["id"]: float(row["score"]) for row in rows}
    others = scores_of(connection, index, terms, list(scores)) if terms is not None else {}
    return LegRanking(scores, {key: others[key] for key in scores if key in others})


def best_by_terms(
    connection: Connection,
    index: str,
    terms: TermWeights,
    scope: ResolvedScope,
    limit: int,
    size: int,
    vector: NDArray[np.float32] | None = None,
    at_once: int = AT_ONCE,
) -> LegRanking:
    """Return the passages in scope with the highest BM25 scores, with their cosines if a ``vector`` is given.

    ``size`` is the result of ``scope_size``; ``at_once`` as in ``best_of_everything``.
    """
    ranking = _best(connection, index, terms, scope, limit, size, at_once)
    scores = ranking.best
    others = dict[int, float]()
    if vector is not None and scores:
        others = cosines(connection, index, vector, list(scores))
    return LegRanking(scores, {key: others[key] for key in scores if key in others}, ranking.known)


def _nearest_rows(
    connection: Connection,
    index: str,
    vector: NDArray[np.float32],
    scope: ResolvedScope,
    limit: int,
    size: int,
) -> Rows:
    if scope.is_empty:
        return []
    parameters = {"vector": vector_value(vector), "limit": limit, "index": index}
    if scope.is_everything and size > EXACT_UP_TO:
        return read(connection, index, "vector_everything", parameters, breadth="breadth_by_size")
    predicate = scope_statement(scope)
    parameters |= scope_parameters(scope)
    if size <= EXACT_UP_TO:
        return read(connection, index, "vector_exact", parameters, scope=predicate)
    parts = {"scope": predicate, "breadth": "breadth_by_size"}
    rows = read(connection, index, "vector_filtered", parameters, **parts)
    if len(rows) < limit:  # the graph walk ended outside the scope
        return read(connection, index, "vector_exact", parameters, scope=predicate)
    return rows


def _best(
    connection: Connection,
    index: str,
    terms: TermWeights,
    scope: ResolvedScope,
    limit: int,
    size: int,
    at_once: int,
) -> TermRanking:
    if scope.is_empty or not terms.ids:
        return NOTHING
    if scope.is_everything:
        return best_of_everything(connection, index, terms, limit, at_once)
    if size <= EXACT_UP_TO:
        ids = ids_of(connection, index, scope)
        return best_of_listed(connection, index, terms, ids, limit, at_once)
    return _best_of_many(connection, index, terms, scope, limit, at_once)


def _best_of_many(
    connection: Connection, index: str, terms: TermWeights, scope: ResolvedScope, limit: int, at_once: int
) -> TermRanking:
    """Rank everything, deep enough for ``limit`` passages of a large scope, which is cheaper than listing the scope."""
    depth = DEEP * limit
    while True:
        ranking = best_of_everything(connection, index, terms, depth, at_once)
        scores = ranking.best
        inside = in_scope(connection, index, scope, list(scores))
        kept = {key: score for key, score in scores.items() if key in inside}
        if len(kept) >= limit or len(scores) < depth:
            return TermRanking(dict(islice(kept.items(), limit)), ranking.known)
        depth *= DEEPER


# The lexicon: terms of an index and of a scope

Version = tuple[int, int, int]
LOOKED_AT = (50, 5_000, 10**9)  # passages of a term to check against a large scope, step by step up to all


@dataclass(frozen=True, slots=True)
class KnownTerm:
    """A term of the lexicon; ``df`` is the number of passages of the index with the term."""

    term: str
    id: int
    df: int


def query_terms(connection: Connection, index: str, query: str) -> tuple[IndexTotals, tuple[QueryTerm, ...]]:
    """Return the index's statistics and the query's terms in each of its languages."""
    rows = read(connection, index, "query_terms", {"index": index, "query": query})
    first = rows[0]
    totals = IndexTotals(
        int(first["all_passages"]), float(first["average_length"]), tuple(first["languages"]), first["changed"]
    )
    terms = tuple(
        QueryTerm(row["term"], row["id"], int(row["df"]), int(row["position"] or 0), int(row["passages"]))
        for row in rows
        if row["term"] is not None
    )
    return totals, terms


def lexicon_version(connection: Connection, index: str) -> Version:
    """Return a value that changes whenever terms may have been added to an index."""
    row = only_row(connection.execute(statement("lexicon_version", index), {"index": index}))
    return int(row["newest"]), int(row["passages"]), int(row["terms"])


def lexicon_terms(connection: Connection, index: str) -> list[str]:
    """Return all terms that an index has ever had."""
    return list(only_row(connection.execute(statement("lexicon_all", index)))["terms"])


def terms_by_name(
    connection: Connection, index: str, terms: Sequence[str], scope: ResolvedScope, size: int
) -> dict[str, KnownTerm]:
    """Return the lexicon's entries of given terms that occur in a scope; ``size`` as in ``terms_in_scope``."""
    rows = connection.execute(statement("terms_by_name", index), {"terms": clean(list(terms))}).fetchall()
    held = terms_in_scope(connection, index, [row["id"] for row in rows], scope, size)
    return {row["term"]: KnownTerm(row["term"], row["id"], row["df"]) for row in rows if row["id"] in held}


def terms_of_variants(connection: Connection, index: str, variants: Sequence[str]) -> set[str]:
    """Return the lexicon's terms for any of many spellings of a word."""
    query, values = statement("terms_of_variants", index), {"index": index, "variants": clean(" ".join(variants))}
    return {row["term"] for row in connection.execute(query, values).fetchall()}


def terms_of_words(connection: Connection, words: Sequence[tuple[str, str]]) -> dict[tuple[str, str], set[str]]:
    """Return the terms of (word, language) pairs, as the keyword index makes them."""
    terms: dict[tuple[str, str], set[str]] = {}
    values = {"words": clean([word for word, _ in words]), "languages": [language for _, language in words]}
    for row in connection.execute(statement("terms_of_words"), values).fetchall():
        terms.setdefault((row["word"], row["language"]), set()).add(row["term"])
    return terms


def stop_words(connection: Connection, words: Sequence[str]) -> dict[str, int]:
    """Return the number of stop words among the words, by language (Postgres' names); languages without any omitted."""
    rows = connection.execute(statement("stop_words"), {"words": clean(list(words))}).fetchall()
    return {row["language"]: row["words"] for row in rows}


def terms_in_scope(
    connection: Connection, index: str, terms: Sequence[int], scope: ResolvedScope, size: int
) -> set[int]:
    """Return the given terms (ids) that occur in a scope; ``size`` is the result of ``scope_size``."""
    if scope.is_everything:
        return set(terms)
    if scope.is_empty or not terms:
        return set()
    if size <= EXACT_UP_TO:
        ids = ids_of(connection, index, scope)
        return set(postings_of_passages(connection, index, terms, ids))
    return _found_in(connection, index, terms, scope)


def _found_in(connection: Connection, index: str, terms: Sequence[int], scope: ResolvedScope) -> set[int]:
    """Return the terms that occur in a large scope: some passages of each are checked, then more if none is in it."""
    held = set[int]()
    left = {
        term: postings["passage"].astype(np.int64)
        for term, postings in postings_of_terms(connection, index, terms).items()
    }
    for most in LOOKED_AT:
        looked = {term: passages[:: -(-len(passages) // most)] for term, passages in left.items()}
        if not looked:
            break
        inside = in_scope(connection, index, scope, np.unique(np.concatenate(list(looked.values()))).tolist())
        held |= {term for term, passages in looked.items() if not inside.isdisjoint(passages.tolist())}
        left = {term: passages for term, passages in left.items() if term not in held and len(passages) > most}
    return held


# Exact score and rank of one passage, for explanations

ScoreAndRank = tuple[float, int]  # score and rank, from 1


def vector_standing(
    connection: Connection, index: str, vector: NDArray[np.float32], scope: ResolvedScope, passage: int
) -> ScoreAndRank:
    """Return a passage's cosine and its rank among all passages in the scope."""
    values = {"vector": vector_value(vector), "passage": passage, **scope_parameters(scope)}
    query = statement("vector_standing", index, scope=scope_statement(scope))
    row = only_row(connection.execute(query, values))
    return float(row["score"]), int(row["rank"])


def bm25_standing(
    connection: Connection, index: str, terms: TermWeights, scope: ResolvedScope, passage: int
) -> ScoreAndRank | None:
    """Return a passage's BM25 score and its rank among all passages in the scope; None if it has none of the terms."""
    found = scored(postings_of_terms(connection, index, terms.ids), terms)
    place = int(np.searchsorted(found.ids, passage))
    if place == len(found.ids) or found.ids[place] != passage:
        return None
    score = found.scores[place]
    ahead = found.ids[(found.scores > score) | ((found.scores == score) & (found.ids < passage))]
    others = len(ahead) if scope.is_everything else len(in_scope(connection, index, scope, ahead.tolist()))
    return float(score), 1 + others


# Context of passages: neighbours, sections, pages and terms


@dataclass(frozen=True, slots=True)
class FoundTerm:
    """A term of some passages."""

    id: int
    term: str
    df: int  # in the whole index
    share: float  # sum of its shares of the passages' terms
    passages: int


def spans_around(
    connection: Connection, index: Index, passages: Sequence[tuple[str, int]], reach: int
) -> list[Span | None]:
    """Return for each (document, ordinal) the span from ``reach`` passages before it to ``reach`` after it."""
    return _spans(
        connection, statement("spans_around", index.name), _ordinals(passages) | {"reach": reach}, len(passages)
    )


def spans_of_sections(
    connection: Connection, index: Index, passages: Sequence[tuple[str, int]], reach: int
) -> list[Span | None]:
    """Return for each (document, ordinal) the span of its section: the neighbours with the same heading.

    It extends at most ``reach`` passages in both directions; None for a passage without a heading.
    """
    return _spans(
        connection, statement("spans_of_sections", index.name), _ordinals(passages) | {"reach": reach}, len(passages)
    )


def spans_of_pages(connection: Connection, places: Sequence[DocumentSpan]) -> list[Span | None]:
    """Return for each span of a document the span of its pages; None if the document has no pages."""
    return _spans(connection, statement("spans_of_pages"), _stretches(places), len(places))


def document_slices(connection: Connection, index: str, places: Sequence[DocumentSpan]) -> list[str | None]:
    """Return the text of given spans of documents; None if the index holds another version of the document."""
    rows = connection.execute(statement("document_slices"), {"index": index} | _stretches(places)).fetchall()
    texts = {int(row["place"]): str(row["text"]) for row in rows}
    return [texts.get(place) for place in range(1, len(places) + 1)]


def terms_of_passages(connection: Connection, index: str, ids: Sequence[int]) -> list[FoundTerm]:
    """Return every term of the given passages."""
    rows = connection.execute(statement("terms_of_passages", index), {"ids": list(ids)}).fetchall()
    return [FoundTerm(int(r["id"]), r["term"], int(r["df"]), float(r["share"]), int(r["passages"])) for r in rows]


def _ordinals(passages: Sequence[tuple[str, int]]) -> dict[str, object]:
    return {"document_ids": [document for document, _ in passages], "ordinals": [ordinal for _, ordinal in passages]}


def _stretches(places: Sequence[DocumentSpan]) -> dict[str, object]:
    documents, starts, ends = zip(*places, strict=True) if places else ((), (), ())
    return {"document_ids": list(documents), "starts": list(starts), "ends": list(ends)}


def _spans(connection: Connection, query: SQL, parameters: dict[str, object], places: int) -> list[Span | None]:
    """Return the span of each given place; None if the database has none."""
    rows = connection.execute(query, parameters).fetchall()
    spans = {int(row["place"]): (int(row["first"]), int(row["last"])) for row in rows}
    return [spans.get(place) for place in range(1, places + 1)]
