"""The cutoff for machines: where an agent names no number, results that score far below the best are left out."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.retrieval.parameters import CUTOFF
from workbench.retrieval.strategies import STRATEGIES


def worth_reading(scores: Sequence[float], strategy: str, share: float) -> int:
    """Return how many results are worth an agent's tokens: those that reach ``share`` (0..1) of the best score.

    ``scores`` fall. A strategy without a cutoff gives scores that cannot be held against each other; there all count.
    """
    if not STRATEGIES[strategy].declares(CUTOFF):
        return len(scores)
    return sum(score >= share * scores[0] for score in scores)
