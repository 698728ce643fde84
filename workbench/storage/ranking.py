"""The rankings of the two legs over a scope, each got with the least reading."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from workbench.storage.database import Connection, Database, Row, numbers_value
from workbench.storage.graph import EXACT_UP_TO
from workbench.storage.postings import Ids
from workbench.storage.rows import TermWeights, read, scope_parameters, scope_statement, vector_value
from workbench.storage.scores import cosines
from workbench.storage.statements import statement
from workbench.storage.term_ranking import (
    AT_ONCE,
    NOTHING,
    ScoredPassages,
    TermRanking,
    best_of_everything,
    best_of_listed,
    scores_of,
)
from workbench.types import ResolvedScope

DEEP, DEEPER = 2, 4  # passages ranked for each asked for in a large scope, and how much more where that was not enough

Rows = list[Row]


@dataclass(frozen=True, slots=True)
class LegRanking:
    """The passages a leg brings: its ``scores`` by internal passage id, best first, in the leg's own unit.

    ``others`` are the other leg's scores of the same passages, where they were asked for and there are some. ``known``
    are the leg's scores of every passage in scope (and maybe others) that has one, where it has read them all.
    """

    scores: dict[int, float]
    others: dict[int, float] = field(default_factory=dict)
    known: ScoredPassages | None = None


def scope_size(connection: Connection, index: str, scope: ResolvedScope) -> int:
    """Return how many passages a scope holds, counted no further than one more than ``EXACT_UP_TO``."""
    parameters = {**scope_parameters(scope), "cap": EXACT_UP_TO + 1, "index": index}
    rows = read(connection, index, "count_in_scope", parameters, scope=scope_statement(scope))
    return min(int(rows[0]["n"]), EXACT_UP_TO + 1)


def documents_within(database: Database, scope: ResolvedScope, ids: Sequence[str]) -> list[str]:
    """Return those of given documents that lie in a scope, whether an index holds them or not."""
    if scope.is_empty or not ids:
        return []
    if scope.is_everything:
        return list(ids)
    query = statement("documents_within", scope=scope_statement(scope))
    return [row["document_id"] for row in database.rows(query, {"ids": list(ids), **scope_parameters(scope)})]


def in_scope(connection: Connection, index: str, scope: ResolvedScope, ids: Sequence[int]) -> set[int]:
    """Return which of the given passages lie in a scope."""
    if scope.is_empty:
        return set()
    parameters = {"ids": numbers_value(ids), **scope_parameters(scope)}
    return {row["id"] for row in read(connection, index, "ids_in_scope", parameters, scope=scope_statement(scope))}


def ids_of(connection: Connection, index: str, scope: ResolvedScope) -> Ids:
    """Return the passages in a scope, sorted: for scopes of no more than ``EXACT_UP_TO``."""
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
    """Return the passages in scope nearest to a vector: cosine, and BM25 where ``terms`` are given.

    ``size`` is what ``scope_size`` says of the scope. Up to ``EXACT_UP_TO`` every distance is computed.
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
    """Return the passages in scope with the highest BM25 scores; their cosines too where a ``vector`` is given.

    ``size`` is as for ``nearest``, ``at_once`` as for ``best_of_everything``.
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
    if len(rows) < limit:  # the graph was walked to its bound and the scope lay elsewhere
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
    """Rank everything, as deep as it takes to have enough that lie in a scope of many: cheaper than listing it."""
    depth = DEEP * limit
    while True:
        ranking = best_of_everything(connection, index, terms, depth, at_once)
        scores = ranking.best
        inside = in_scope(connection, index, scope, list(scores))
        kept = {key: score for key, score in scores.items() if key in inside}
        if len(kept) >= limit or len(scores) < depth:
            return TermRanking(dict(islice(kept.items(), limit)), ranking.known)
        depth *= DEEPER
