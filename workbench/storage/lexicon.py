"""What an index's lexicon can tell about words: all its terms, which of them a scope holds, how words become terms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from workbench.storage.database import clean
from workbench.storage.rows import scope_parameters, scope_statement
from workbench.storage.statements import statement
from workbench.types import ResolvedScope

Version = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class KnownTerm:
    """A term of the lexicon; ``df`` counts the passages of the whole index that have it."""

    term: str
    id: int
    df: int
    in_scope: bool


def lexicon_version(connection: Any, index: str) -> Version:
    """Return what is different whenever words may have come into an index."""
    row = connection.execute(statement("lexicon_version", index), {"index": index}).fetchone()
    return int(row["newest"]), int(row["passages"]), int(row["terms"])


def lexicon_terms(connection: Any, index: str) -> list[str]:
    """Return every term an index has had."""
    return list(connection.execute(statement("lexicon_all", index)).fetchone()["terms"])


def terms_by_name(connection: Any, index: str, terms: Sequence[str], scope: ResolvedScope) -> dict[str, KnownTerm]:
    """Return what the lexicon knows of given terms, those that occur."""
    query = statement("terms_by_name", index, scope=scope_statement(scope))
    rows = connection.execute(query, {"terms": clean(list(terms)), **scope_parameters(scope)}).fetchall()
    return {row["term"]: KnownTerm(**row) for row in rows}


def terms_of_variants(connection: Any, index: str, variants: Sequence[str]) -> set[str]:
    """Return the terms that any of many spellings of a word becomes and that the lexicon knows."""
    query, values = statement("terms_of_variants", index), {"index": index, "variants": clean(" ".join(variants))}
    return {row["term"] for row in connection.execute(query, values).fetchall()}


def terms_of_words(connection: Any, words: Sequence[tuple[str, str]]) -> dict[tuple[str, str], set[str]]:
    """Return the terms that (word, language) pairs become, as the keyword index makes them."""
    found: dict[tuple[str, str], set[str]] = {}
    values = {"words": clean([word for word, _ in words]), "languages": [language for _, language in words]}
    for row in connection.execute(statement("terms_of_words"), values).fetchall():
        found.setdefault((row["word"], row["language"]), set()).add(row["term"])
    return found
