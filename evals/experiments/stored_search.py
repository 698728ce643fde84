"""The outcome of a search for parameters as its job keeps it: ``TuningResult.to_dict``, read back."""

from __future__ import annotations

from typing import NotRequired, TypedDict, cast

from workbench.jobs.sharing import Job
from workbench.types import ParameterValue


class StoredCandidate(TypedDict):
    """A strategy with all its parameters."""

    strategy: str
    parameters: dict[str, ParameterValue]


class StoredDifference(TypedDict):
    """How a finalist differs from its strategy's defaults, as ``Difference.to_dict`` writes it."""

    metric: str
    a: str
    b: str
    difference: float
    interval: tuple[float, float]
    p: float
    p_corrected: float
    significant: bool
    wins: int
    losses: int
    ties: int
    comparisons: NotRequired[int]


class StoredFinalist(TypedDict):
    """A candidate on the held-out questions; ``interval`` are its two ends, ``latency_ms`` by p50 and p95."""

    candidate: StoredCandidate
    held_out: float
    interval: tuple[float, float]
    tuned: float
    latency_ms: dict[str, float]
    is_default: bool
    on_front: bool
    against_default: StoredDifference | None


class StoredSearch(TypedDict):
    """A search that has ended; ``seconds`` is how long it took, ``scope`` the documents that were searched."""

    metric: str
    finalists: list[StoredFinalist]
    tried: int
    tuning_questions: int
    held_out_questions: int
    seconds: float
    scope: NotRequired[str]


def search_of(job: Job) -> StoredSearch | None:
    """Return the outcome of a job of the kind "optimise"; None where it has not come to its end."""
    return cast("StoredSearch", job.result) if job.result else None
