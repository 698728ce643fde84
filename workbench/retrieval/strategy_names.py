"""Strategies as people name them: "rerank", or "rerank@small" for the strategy over the index ``small``."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.errors import InvalidInput, choices
from workbench.retrieval.strategies import STRATEGIES, strategy_named


def named(strategy: str, index: str | None) -> tuple[str, str | None]:
    """Return strategy and index of "strategy" or "strategy@index". Raises InvalidInput where two indexes are named."""
    if not isinstance(strategy, str):  # pyright: ignore[reportUnnecessaryIsInstance] - a notebook may give anything
        raise InvalidInput(f"A strategy cannot be {strategy!r}; use one of {choices(STRATEGIES, 20)}.")
    name, at, own = strategy.partition("@")
    strategy_named(name)
    if at and index is not None and own != index:
        raise InvalidInput(f"{strategy!r} names the index {own!r}, and {index!r} is asked for too; name one of them.")
    if at and not own:
        raise InvalidInput(f"{strategy!r} names no index; write it as {name}@INDEX.")
    return name, own if at else index


def across(strategies: Sequence[str], indexes: Sequence[str]) -> list[str]:
    """Return every strategy on every index as "strategy@index", a strategy's indexes side by side; as they are without.

    Raises:
        InvalidInput: a strategy names an index of its own, and others are asked for.
    """
    if not indexes:
        return list(strategies)
    for strategy in strategies:
        if "@" in strategy:
            raise InvalidInput(
                f"{strategy!r} names an index, and {choices(indexes)} are asked for too; drop one of them."
            )
    return [f"{strategy}@{index}" for strategy in strategies for index in indexes]
