"""Corrections of the question's unknown words, which are also tried as the known words they may mean."""

from __future__ import annotations

from workbench.retrieval.question_words import Words
from workbench.retrieval.request import Request
from workbench.retrieval.words.guesses import read_fuzzy_words
from workbench.retrieval.words.query_words import read_words
from workbench.retrieval.words.spelling import slips_forgiven


def correct(request: Request, query: str) -> None:
    """Let the request's keyword leg also try the known words that unknown ones may mean.

    Questions whose words are all known cost nothing further; a word that the scope lacks but the index has is no slip.
    """
    with request.store.reading() as connection:
        if _has_unknown(read_words(request, connection, query)):
            read_fuzzy_words(request, connection, query)


def corrections(request: Request, query: str) -> dict[str, tuple[str, ...]]:
    """Return {word as typed: known words tried for it} of a request that was served."""
    words = request.words.get(query)
    if words is None:
        return {}
    tried: dict[str, list[str]] = {}
    for guess in words.guesses:
        tried.setdefault(guess.typed, []).append(guess.meant)
    return {typed: tuple(dict.fromkeys(meant)) for typed, meant in tried.items()}


def _has_unknown(words: Words) -> bool:
    positions = {term.position for term in words.terms if term.id is not None}
    return any(term.position not in positions and slips_forgiven(term.term) for term in words.terms)
