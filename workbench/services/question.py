"""The limits of a question: a text of some length, for a number of passages."""

from __future__ import annotations

from numbers import Integral

from workbench.errors import InvalidInput
from workbench.types.results import MOST_RANKED

LONGEST_QUERY = 10_000  # characters
MOST_CONVERSATIONS = 100  # that one question to a workspace ranks
MOST_RESULTS = MOST_RANKED


def check_limit(limit: int) -> None:
    """Refuse a number of passages that cannot be found. Raises InvalidInput."""
    if not isinstance(limit, Integral) or not 1 <= limit <= MOST_RESULTS:
        raise InvalidInput(f"limit cannot be {limit!r}; use a whole number from 1 to {MOST_RESULTS}.")


def check_query(query: object) -> None:
    """Refuse a query that cannot be answered. Raises InvalidInput."""
    if not isinstance(query, str):
        raise InvalidInput(f"The query is of the type {type(query).__name__}; ask with a text.")
    if not query.isascii() and any("\ud800" <= char <= "\udfff" for char in query):
        raise InvalidInput("The query holds half of a character (a lone surrogate); write it anew.")
    if not query.replace("\x00", "").strip():
        raise InvalidInput("The query is empty; ask something.")
    if len(query) > LONGEST_QUERY:
        raise InvalidInput(f"The query has {len(query):,} characters; shorten it to at most {LONGEST_QUERY:,}.")


def check_similarity(similarity: float) -> None:
    """Refuse a least cosine that no passage can be held against. Raises InvalidInput."""
    if not 0 <= similarity <= 1:
        raise InvalidInput(f"min_similarity cannot be {similarity}; use a number from 0 to 1.")
