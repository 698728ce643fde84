"""The standing of one passage in a whole ranking of its scope: exact, for explaining, not for searching."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from workbench.storage.database import Connection, only_row
from workbench.storage.postings import postings_of_terms
from workbench.storage.ranking import in_scope
from workbench.storage.rows import TermWeights, scope_parameters, scope_statement, vector_value
from workbench.storage.statements import statement
from workbench.storage.term_ranking import scored
from workbench.types import ResolvedScope

ScoreAndRank = tuple[float, int]  # score and rank, from 1


def vector_standing(
    connection: Connection, index: str, vector: NDArray[np.float32], scope: ResolvedScope, passage: int
) -> ScoreAndRank:
    """Return a passage's cosine and its rank in the scope, as if the leg had no end."""
    values = {"vector": vector_value(vector), "passage": passage, **scope_parameters(scope)}
    query = statement("vector_standing", index, scope=scope_statement(scope))
    row = only_row(connection.execute(query, values))
    return float(row["score"]), int(row["rank"])


def bm25_standing(
    connection: Connection, index: str, terms: TermWeights, scope: ResolvedScope, passage: int
) -> ScoreAndRank | None:
    """Return a passage's BM25 score and its rank in the scope; None where it has none of the words."""
    found = scored(postings_of_terms(connection, index, terms.ids), terms)
    place = int(np.searchsorted(found.ids, passage))
    if place == len(found.ids) or found.ids[place] != passage:
        return None
    score = found.scores[place]
    ahead = found.ids[(found.scores > score) | ((found.scores == score) & (found.ids < passage))]
    others = len(ahead) if scope.is_everything else len(in_scope(connection, index, scope, ahead.tolist()))
    return float(score), 1 + others
