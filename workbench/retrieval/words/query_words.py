"""The question's words as the keyword leg reads them: terms, weighed against the whole index."""

from __future__ import annotations

import re
from collections.abc import Sequence

from workbench.retrieval.question_words import Words
from workbench.retrieval.request import Request
from workbench.retrieval.words.bm25 import weigh
from workbench.storage.database import Connection
from workbench.storage.lexicon import query_terms
from workbench.storage.rows import IndexTotals, QueryTerm
from workbench.types.timed_steps import TimedStep

_WORD = re.compile(r"[^\W_]")


def read_words(request: Request, connection: Connection, query: str) -> Words:
    """Analyse the question as the passages were analysed, and weigh its terms; once a request."""
    if query not in request.words:
        request.words[query] = _read_words(request, connection, query)
    return request.words[query]


def _read_words(request: Request, connection: Connection, query: str) -> Words:
    with request.trace.stage(TimedStep.KEYWORD):
        totals, terms = query_terms(connection, request.index.name, query)
    if not totals.passages:
        request.trace.note("keyword: the index holds no passages")
    elif not any(term.id is not None for term in terms):
        request.trace.note(f"keyword: {_why_nothing(query, terms, totals)}")
    return Words(terms, totals, weigh(terms, totals))


def _why_nothing(query: str, terms: Sequence[QueryTerm], totals: IndexTotals) -> str:
    """Say why no term of the question can be looked up.

    A word that is no term in one of the index's languages is a stop word there: it occurs, and is not looked up.
    """
    if not _WORD.search(query):
        return "the question has no words to look up"
    reach: dict[int, int] = {}
    for term in terms:
        reach[term.position] = reach.get(term.position, 0) + term.passages
    if any(passages >= totals.passages for passages in reach.values()):
        return "none of the question's words that can be looked up occur in the index"
    return "the question has only words too common to look up, such as 'the' and 'of'"
