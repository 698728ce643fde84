"""Which statement ranks a scope's passages: by how many it holds, the one that gets there with the least reading."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workbench.storage.rows import TermWeights, scope_parameters, scope_statement, vector_literal
from workbench.types import ResolvedScope

Rows = list[dict[str, Any]]
Read = Callable[..., Rows]  # (statement's name, parameters, parts by keyword)

# Up to this many passages in scope every distance is computed: exact, and faster than walking the graph past
# what the scope excludes (measured: 10,000 passages of 384 dimensions in about 15 ms).
EXACT_UP_TO = 10_000
# Postings of the rarest terms that are read before the keyword leg sets its bar, for each passage asked for: enough to
# find that many good ones, within a scope by its share of the index. At 100,000 passages the leg took 6.5, 5.8 and
# 7.1 ms with 4, 10 and 20 (55 ms without a bar), in a scope of 1 % 6.8, 6.7 and 7.6 ms with 1, 1.6 and 2 (16 ms).
PROBED, PROBED_INSIDE = 10, 1.5
BRIEF = 12_000  # postings of all the question's terms together that are simply read, which takes about 3 ms
LONG = 30  # terms; a question with more is answered without a bar: 100 terms took .5 s so and 1.1 s with one
READABLE = 30  # postings read one after the other in the time that one takes to be looked up


def nearest_rows(read: Read, vector: NDArray[np.float32], scope: ResolvedScope, limit: int, held: int) -> Rows:
    """Return id and cosine of the passages in scope nearest to a vector, best first."""
    if scope.is_empty:
        return []
    parameters = {"vector": vector_literal(vector), "limit": limit}
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


def best_rows(read: Read, terms: TermWeights, scope: ResolvedScope, limit: int, held: int, brief: int = BRIEF) -> Rows:
    """Return id and BM25 score of the best passages in scope, best first."""
    if scope.is_empty or not terms.ids:
        return []
    everything = scope.is_everything
    few = not everything and held <= EXACT_UP_TO
    long = len(terms.ids) > LONG and not few  # so many look-ups would take longer than reading
    share = 1.0 if everything else min(1.0, max(1, held) / max(1, terms.passages))
    within = "within_everything" if everything else "within_listed" if few or long else "within_asked"
    parameters = {
        **terms.parameters(),
        **scope_parameters(scope),
        "limit": limit,
        "brief": terms.passages * len(terms.ids) if long else brief,
        "probed": limit * (PROBED if everything else PROBED_INSIDE / share),
        "readable": READABLE * held if few else terms.passages,
    }
    candidates = "candidates_listed" if few else "candidates_read"
    return read("bm25_best", parameters, candidates=candidates, within=within, scope=scope_statement(scope))
