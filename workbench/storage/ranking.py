"""The rankings of the two legs over a scope: each by the statement that gets there with the least reading."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from workbench.storage.database import Connection, Row
from workbench.storage.rows import LegRanking, TermWeights, read, scope_parameters, scope_statement, vector_value
from workbench.types import ResolvedScope

# Up to this many passages in scope every distance is computed: exact, and faster than walking the graph past
# what the scope excludes (measured: 10,000 passages of 384 dimensions in about 15 ms).
EXACT_UP_TO = 10_000
# Postings of the rarest terms that are read before the keyword leg sets its bar, for each passage asked for: enough to
# find that many good ones. At 100,000 passages the leg took 6.5, 5.8, 7.1 ms with 4, 10, 20 (55 ms without a bar).
PROBED = 10
BRIEF = 12_000  # postings of all the question's terms together that are simply read, which takes about 3 ms
HEAVY = 10  # times as many postings as are to be probed: a term with more is not read for it
DEEP, DEEPER = 2, 4  # passages ranked for each asked for in a large scope, and how much more where that was not enough
LONG = 30  # terms; a question with more is answered without a bar: 100 terms took .5 s so and 1.1 s with one

Rows = list[Row]


@dataclass(frozen=True, slots=True)
class _Reader:
    """One search's way to an index's statements; ``outer`` names a statement that holds every ranking it reads."""

    connection: Connection
    index: str
    outer: str = ""
    more: Mapping[str, object] = field(default_factory=dict)

    def rows(self, name: str, parameters: Mapping[str, object], **parts: str) -> Rows:
        if not self.outer:
            return read(self.connection, self.index, name, parameters, **parts)
        return read(self.connection, self.index, self.outer, {**parameters, **self.more}, ranking=name, **parts)


def scope_size(connection: Connection, index: str, scope: ResolvedScope) -> int:
    """Return how many passages a scope holds, counted no further than one more than ``EXACT_UP_TO``."""
    parameters = {**scope_parameters(scope), "cap": EXACT_UP_TO + 1}
    return read(connection, index, "count_in_scope", parameters, scope=scope_statement(scope))[0]["n"]


def in_scope(connection: Connection, index: str, scope: ResolvedScope, ids: Sequence[int]) -> set[int]:
    """Return which of the given passages lie in a scope."""
    if scope.is_empty:
        return set()
    parameters = {"ids": list(ids), **scope_parameters(scope)}
    return {row["id"] for row in read(connection, index, "ids_in_scope", parameters, scope=scope_statement(scope))}


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

    ``size`` is what ``scope_size`` says of the scope; it is not looked at where the scope is everything.
    """
    reader = _Reader(connection, index)
    if terms is not None and terms.ids:
        reader = _Reader(connection, index, "nearest_with_bm25", terms.parameters())
    return _ranking(_nearest_rows(reader, vector, scope, limit, size))


def best_by_terms(
    connection: Connection,
    index: str,
    terms: TermWeights,
    scope: ResolvedScope,
    limit: int,
    size: int,
    vector: NDArray[np.float32] | None = None,
    brief: int = BRIEF,
) -> LegRanking:
    """Return the passages in scope with the highest BM25 scores; their cosines too where a ``vector`` is given.

    ``size`` is as for ``nearest``. Up to ``brief`` postings of all terms together are read without a bar.
    """
    reader = _Reader(connection, index)
    if vector is not None:
        reader = _Reader(connection, index, "best_with_cosine", {"vector": vector_value(vector)})
    return _ranking(_best_rows(reader, terms, scope, limit, size, brief))


def _nearest_rows(reader: _Reader, vector: NDArray[np.float32], scope: ResolvedScope, limit: int, size: int) -> Rows:
    if scope.is_empty:
        return []
    parameters = {"vector": vector_value(vector), "limit": limit}
    if scope.is_everything:
        return reader.rows("vector_everything", parameters)
    predicate = scope_statement(scope)
    parameters |= scope_parameters(scope)
    if size <= EXACT_UP_TO:
        return reader.rows("vector_exact", parameters, scope=predicate)
    rows = reader.rows("vector_filtered", parameters, scope=predicate)
    if len(rows) < limit:  # the graph was walked to its bound and the scope lay elsewhere
        return reader.rows("vector_exact", parameters, scope=predicate)
    return rows


def _best_rows(reader: _Reader, terms: TermWeights, scope: ResolvedScope, limit: int, size: int, brief: int) -> Rows:
    if scope.is_empty or not terms.ids:
        return []
    if scope.is_everything:
        return _best_of_everything(reader, terms, limit, brief)
    if size > EXACT_UP_TO:
        return _best_of_many(reader, terms, scope, limit, brief)
    parameters = {**terms.parameters(), **scope_parameters(scope), "limit": limit}
    return reader.rows("bm25_listed", parameters, scope=scope_statement(scope))


def _best_of_everything(reader: _Reader, terms: TermWeights, limit: int, brief: int) -> Rows:
    long = len(terms.ids) > LONG
    parameters = {
        **terms.parameters(),
        "limit": limit,
        "brief": terms.passages * len(terms.ids) if long else brief,
        "probed": PROBED * limit,
        "readable": HEAVY * PROBED * limit,
    }
    return reader.rows("bm25_best", parameters)


def _best_of_many(reader: _Reader, terms: TermWeights, scope: ResolvedScope, limit: int, brief: int) -> Rows:
    """Rank everything, as deep as it takes to have enough that lie in a scope of many: cheaper than listing it."""
    depth = DEEP * limit
    while True:
        rows = _best_of_everything(reader, terms, depth, brief)
        inside = in_scope(reader.connection, reader.index, scope, [row["id"] for row in rows])
        rows_inside = [row for row in rows if row["id"] in inside]
        if len(rows_inside) >= limit or len(rows) < depth:
            return rows_inside[:limit]
        depth *= DEEPER


def _ranking(rows: Rows) -> LegRanking:
    others = {row["id"]: float(row["other"]) for row in rows if row.get("other") is not None}
    return LegRanking({row["id"]: float(row["score"]) for row in rows}, others)
