"""Names of strategies and places for people: the same on every page."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.retrieval.strategies import STRATEGIES
from workbench.types import Passage


def title_of(name: str) -> str:
    """Return the name for people of a strategy, or of "strategy@index"."""
    strategy, _, index = name.partition("@")
    title = STRATEGIES[strategy].title if strategy in STRATEGIES else strategy
    return f"{title} on {index}" if index else title


def place_of(passage: Passage, headings: Sequence[str]) -> str:
    """Return where in its document a passage stands: heading path and page, "" where it has neither."""
    path = list(headings)
    if path and path[0].strip().lower() == passage.document_title.strip().lower():
        path = path[1:]
    return " › ".join([*path, *([f"p. {passage.page}"] if passage.page else [])])
