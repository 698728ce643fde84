"""The lexicon of an index: all its terms, which of them a scope holds, how words become terms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from workbench.storage.database import Connection, clean, only_row
from workbench.storage.postings import postings_of_passages, postings_of_terms
from workbench.storage.ranking import EXACT_UP_TO, ids_of, in_scope
from workbench.storage.rows import IndexTotals, QueryTerm, read
from workbench.storage.statements import statement
from workbench.types import ResolvedScope

Version = tuple[int, int, int]
LOOKED_AT = (50, 5_000, 10**9)  # passages of a term, to see whether a large scope holds one; the last is all


@dataclass(frozen=True, slots=True)
class KnownTerm:
    """A term of the lexicon; ``df`` counts the passages of the whole index that have it."""

    term: str
    id: int
    df: int


def query_terms(connection: Connection, index: str, query: str) -> tuple[IndexTotals, tuple[QueryTerm, ...]]:
    """Return the index's size and the query's terms in every language it holds."""
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
    """Return a value that differs whenever words may have come into an index."""
    row = only_row(connection.execute(statement("lexicon_version", index), {"index": index}))
    return int(row["newest"]), int(row["passages"]), int(row["terms"])


def lexicon_terms(connection: Connection, index: str) -> list[str]:
    """Return every term an index has had."""
    return list(only_row(connection.execute(statement("lexicon_all", index)))["terms"])


def terms_by_name(
    connection: Connection, index: str, terms: Sequence[str], scope: ResolvedScope, size: int
) -> dict[str, KnownTerm]:
    """Return what the lexicon knows of given terms, those that occur in a scope; ``size`` as for ``terms_in_scope``."""
    rows = connection.execute(statement("terms_by_name", index), {"terms": clean(list(terms))}).fetchall()
    held = terms_in_scope(connection, index, [row["id"] for row in rows], scope, size)
    return {row["term"]: KnownTerm(row["term"], row["id"], row["df"]) for row in rows if row["id"] in held}


def terms_of_variants(connection: Connection, index: str, variants: Sequence[str]) -> set[str]:
    """Return the terms that any of many spellings of a word becomes and that the lexicon knows."""
    query, values = statement("terms_of_variants", index), {"index": index, "variants": clean(" ".join(variants))}
    return {row["term"] for row in connection.execute(query, values).fetchall()}


def terms_of_words(connection: Connection, words: Sequence[tuple[str, str]]) -> dict[tuple[str, str], set[str]]:
    """Return the terms that (word, language) pairs become, as the keyword index makes them."""
    terms: dict[tuple[str, str], set[str]] = {}
    values = {"words": clean([word for word, _ in words]), "languages": [language for _, language in words]}
    for row in connection.execute(statement("terms_of_words"), values).fetchall():
        terms.setdefault((row["word"], row["language"]), set()).add(row["term"])
    return terms


def stop_words(connection: Connection, words: Sequence[str]) -> dict[str, int]:
    """Return how many of the words are stop words, by the text search's name of the language; none where 0."""
    rows = connection.execute(statement("stop_words"), {"words": clean(list(words))}).fetchall()
    return {row["language"]: row["words"] for row in rows}


def terms_in_scope(
    connection: Connection, index: str, terms: Sequence[int], scope: ResolvedScope, size: int
) -> set[int]:
    """Return which of given terms (by their ids) a scope holds; ``size`` is what ``ranking.scope_size`` says of it."""
    if scope.is_everything:
        return set(terms)
    if scope.is_empty or not terms:
        return set()
    if size <= EXACT_UP_TO:
        ids = ids_of(connection, index, scope)
        return set(postings_of_passages(connection, index, terms, ids))
    return _found_in(connection, index, terms, scope)


def _found_in(connection: Connection, index: str, terms: Sequence[int], scope: ResolvedScope) -> set[int]:
    """Return which terms a large scope holds: of each some passages are looked at, more if none of them is in it."""
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
