"""Which statement ranks a scope's passages: by how many it holds, the one that gets there with the least reading."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workbench.storage.rows import TermWeights, scope_parameters, scope_statement, vector_value
from workbench.types import ResolvedScope

Rows = list[dict[str, Any]]
Read = Callable[..., Rows]  # (statement's name, parameters, parts by keyword)
Inside = Callable[[Sequence[int]], set[int]]  # which of given passages lie in the scope

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


def around(read: Read, outer: str, more: Mapping[str, Any]) -> Read:
    """Return what reads a ranking through the statement ``outer``, which holds it and takes ``more`` parameters."""
    return lambda name, parameters, **parts: read(outer, {**parameters, **more}, ranking=name, **parts)


def nearest_rows(read: Read, vector: NDArray[np.float32], scope: ResolvedScope, limit: int, held: int) -> Rows:
    """Return id and cosine of the passages in scope nearest to a vector, best first."""
    if scope.is_empty:
        return []
    parameters = {"vector": vector_value(vector), "limit": limit}
    if scope.is_everything:
        return read("vector_everything", parameters)
    predicate = scope_statement(scope)
    parameters |= scope_parameters(scope)
    if held <= EXACT_UP_TO:
        return read("vector_exact", parameters, scope=predicate)
    found = read("vector_filtered", parameters, scope=predicate)
    if len(found) < limit:  # the graph was walked to its bound and the scope lay elsewhere
        return read("vector_exact", parameters, scope=predicate)
    return found


def best_rows(
    read: Read, inside: Inside, terms: TermWeights, scope: ResolvedScope, limit: int, held: int, brief: int
) -> Rows:
    """Return id and BM25 score of the best passages in scope, best first."""
    if scope.is_empty or not terms.ids:
        return []
    if scope.is_everything:
        return _best_of_everything(read, terms, limit, brief)
    if held > EXACT_UP_TO:
        return _best_of_many(read, inside, terms, limit, brief)
    parameters = {**terms.parameters(), **scope_parameters(scope), "limit": limit}
    return read("bm25_listed", parameters, scope=scope_statement(scope))


def _best_of_everything(read: Read, terms: TermWeights, limit: int, brief: int) -> Rows:
    long = len(terms.ids) > LONG
    parameters = {
        **terms.parameters(),
        "limit": limit,
        "brief": terms.passages * len(terms.ids) if long else brief,
        "probed": PROBED * limit,
        "readable": HEAVY * PROBED * limit,
    }
    return read("bm25_best", parameters)


def _best_of_many(read: Read, inside: Inside, terms: TermWeights, limit: int, brief: int) -> Rows:
    """Rank everything, as deep as it takes to have enough that lie in a scope of many: cheaper than listing it."""
    depth = DEEP * limit
    while True:
        found = _best_of_everything(read, terms, depth, brief)
        within = inside([row["id"] for row in found])
        kept = [row for row in found if row["id"] in within]
        if len(kept) >= limit or len(found) < depth:
            return kept[:limit]
        depth *= DEEPER
