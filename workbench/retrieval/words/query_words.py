"""The question's words as the keyword leg reads them: terms, weighed against the whole index."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from workbench.retrieval.question_words import Words
from workbench.retrieval.request import Request
from workbench.retrieval.words.bm25 import weigh
from workbench.storage.database import Connection
from workbench.storage.passages import IndexTotals, QueryTerm
from workbench.storage.ranking import query_terms, terms_in_scope
from workbench.types.results import TimedStep

_WORD = re.compile(r"[^\W_]")


def read_words(request: Request, connection: Connection, query: str) -> Words:
    """Analyse the question as the passages were analysed, and weigh its terms; once a request."""
    if query not in request.words:
        request.words[query] = _read_words(request, connection, query)
    return request.words[query]


def _read_words(request: Request, connection: Connection, query: str) -> Words:
    index, scope = request.index, request.scope.place
    with request.trace.stage(TimedStep.KEYWORD):
        totals, terms = query_terms(connection, index.name, query)
        known = [term.id for term in terms if term.id is not None]
        if known and not scope.is_everything:
            # A word that the index has outside the scope alone is a word that nothing has: else a note, a correction
            # that is missing or a share of the question's words would tell that it is there.
            size = request.scope_size(connection)
            held = terms_in_scope(connection, index.name, known, scope, size)
            terms = tuple(term if term.id in held else replace(term, id=None) for term in terms)
    if not totals.passages:
        request.trace.note("keyword: the index holds no passages")
    elif not any(term.id is not None for term in terms):
        request.trace.note(
            f"keyword: {_why_nothing(query, terms, totals, 'index' if scope.is_everything else 'scope')}"
        )
    return Words(terms, totals, weigh(terms, totals))


def _why_nothing(query: str, terms: Sequence[QueryTerm], totals: IndexTotals, place: str) -> str:
    """Say why no term of the question can be looked up.

    A word that is no term in one of the index's languages is a stop word there: it occurs, and is not looked up.
    """
    if not _WORD.search(query):
        return "the question has no words to look up"
    reach: dict[int, int] = {}
    for term in terms:
        reach[term.position] = reach.get(term.position, 0) + term.passages
    if any(passages >= totals.passages for passages in reach.values()):
        return f"none of the question's words that can be looked up occur in the {place}"
    return "the question has only words too common to look up, such as 'the' and 'of'"
