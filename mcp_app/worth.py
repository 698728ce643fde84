"""The results for a caller who named no number: what scores far below the best is marked."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.retrieval.parameters import CUTOFF
from workbench.retrieval.strategies import STRATEGIES
from workbench.types.json import JsonObject

FEW = 3  # results where nothing close was found and the caller named no number
BELOW = "below_cutoff"  # marks a result that scores far below the best


def worth_reading(scores: Sequence[float], strategy: str, share: float) -> int:
    """Return how many results are worth an agent's tokens: those that reach ``share`` (0..1) of the best score.

    ``scores`` fall. A strategy without a cutoff gives scores that cannot be held against each other; there all count.
    """
    if not STRATEGIES[strategy].declares(CUTOFF):
        return len(scores)
    return sum(score >= share * scores[0] for score in scores)


def first_page(
    items: Sequence[JsonObject], scores: Sequence[float], strategy: str, share: float, *, close: bool
) -> tuple[list[JsonObject], JsonObject]:
    """Return the results for a caller who named no number, and what the answer says of them.

    Args:
        items: The default number of results, best first.
        scores: Their scores, falling.
        strategy: The strategy that found them.
        share: Share of the best score (0..1) below which results are marked.
        close: False if nothing close was found; then only a few results are given.
    """
    if not close:
        return list(items[:FEW]), {}
    worth = worth_reading(scores, strategy, share)
    if worth == len(items):
        return list(items), {}
    marked: list[JsonObject] = [*items[:worth], *({**item, BELOW: True} for item in items[worth:])]
    said = f"From result {worth + 1} on, scores are below {share:g} of the best ({BELOW}); these may not answer."
    return marked, {"cutoff": said}
