"""BM25 weights, computed per term, so that postings only need to be multiplied and added.

    score(q, p) = sum over terms t of idf(t) * tf * (k1 + 1) / (tf + k1 * (1 - b + b * length / average length))
    idf(t) = ln(1 + (N - df + 0.5) / (df + 0.5))

Robertson & Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009); this non-negative idf is
Lucene's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from workbench.storage.passages import QueryTerm, ScopeTotals, TermWeights

K1 = 1.5  # term frequency saturates at k1 + 1 times the first occurrence
B = 0.75  # 0: ignore length, 1: full length normalisation


def idf(df: float, passages: int) -> float:
    """Return the inverse document frequency (at least 0) of a term that occurs in ``df`` of ``passages`` passages."""
    return math.log(1 + (max(passages, df) - df + 0.5) / (df + 0.5))


def term_idf(term: QueryTerm, passages: int) -> float:
    """Return the idf of a term in a scope of ``passages`` passages, with its frequency within its own languages.

    An English stop word that is indexed only for a few passages in another language occurs in most of those, so it
    counts as common rather than rare.
    """
    return idf(term.df * passages / max(1, term.passages), passages)


def weigh_terms(terms: Sequence[QueryTerm], totals: ScopeTotals) -> TermWeights:
    from workbench.storage.passages import TermWeights  # here: the table of legs is read before any database

    indexed = [term for term in terms if term.id is not None]
    return TermWeights(
        ids=tuple(term.id for term in indexed if term.id is not None),
        weights=tuple(_weigh(term, terms, totals.passages) * (K1 + 1) for term in indexed),
        counts=tuple(term.postings for term in indexed),
        a=K1 * (1 - B),
        c=K1 * B / totals.average_length,
        passages=totals.passages,
        entries={term.id: term.entries for term in indexed if term.id is not None and term.entries is not None},
    )


def _weigh(term: QueryTerm, terms: Sequence[QueryTerm], passages: int) -> float:
    """Return the idf of a term.

    Another spelling weighs as much as the rarest of the words that it replaces, if they are as common as it; 5mm, with
    a number, as much as all of them, so that 7 mm is not found before it, unless they are a known code (A4/B-7).
    """
    words = range(term.position, term.position + term.replaces)
    replaced = [
        replace(word, df=max(word.df, term.df)) for word in terms if word.position in words and not word.replaces
    ]
    is_code = any(word.id is not None and not word.term.isalnum() for word in replaced)
    combine = sum if any(map(str.isdigit, term.term)) and not is_code else max
    return combine(term_idf(word, passages) for word in replaced or [term])


def max_score(weights: TermWeights) -> float:
    """Return the upper bound of scores, reached if every term occurs infinitely often; 0 without known terms.

    Dividing by it scales BM25 to 0..1 independently of the other results.
    """
    return sum(weights.weights)
