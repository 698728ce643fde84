"""Words of the question that the index does not know are also tried as the known words they may mean."""

from __future__ import annotations

from typing import Any

from workbench.retrieval.fuzzy import read_fuzzy_words
from workbench.retrieval.keyword import Words, read_words
from workbench.retrieval.request import Request
from workbench.retrieval.spelling import slips_forgiven


def correct(request: Request, query: str) -> dict[str, tuple[str, ...]]:
    """Return {word as typed: known words tried for it} and let the request's keyword leg use them.

    Questions whose words are all known cost nothing further; what a scope lacks but the index has is no slip.
    """
    with request.store.reading() as connection:
        words: Any = read_words(request, connection, query)
        if not _has_unknown(words):
            return {}
        words = read_fuzzy_words(request, connection, query)
    tried: dict[str, list[str]] = {}
    for guess in words.guesses:
        tried.setdefault(guess.typed, []).append(guess.meant)
    return {typed: tuple(dict.fromkeys(meant)) for typed, meant in tried.items()}


def _has_unknown(words: Words) -> bool:
    known = {term.position for term in words.terms if term.id is not None}
    return any(term.position not in known and slips_forgiven(term.term) for term in words.terms)
