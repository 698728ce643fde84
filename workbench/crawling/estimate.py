"""The estimate of a crawl's time and of what it will bring, from a few of its pages."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from workbench.types import Value

PASSAGE = 800  # bytes of text in a passage, about


@dataclass(frozen=True, slots=True)
class HostLoad:
    """The requests that a crawl will make to one host, and the host's pace.

    At least ``interval`` seconds lie between two of them, and at most ``concurrency`` are made at once.
    """

    requests: int
    interval: float
    concurrency: int


@dataclass(frozen=True, slots=True)
class Estimate(Value):
    """The outcome of a crawl; ``at_least`` where not all of its pages are known. ``seconds`` of fetching."""

    pages: int
    at_least: bool
    seconds: float
    text_bytes: int
    passages: int


def estimate(
    hosts: Iterable[HostLoad], concurrency: int, pages: int, seconds: float, size: float, is_complete: bool
) -> Estimate:
    """Return the estimate for ``pages`` pages that take ``seconds`` to answer and hold ``size`` bytes, on average."""
    text = round(pages * size)
    duration = round(fetching_seconds(hosts, concurrency, seconds), 1)
    return Estimate(pages, not is_complete, duration, text, round(text / PASSAGE))


def fetching_seconds(hosts: Iterable[HostLoad], concurrency: int, seconds: float) -> float:
    """Return how long requests of ``seconds`` each will take, ``concurrency`` of them at once over all hosts.

    A host lets the next request through after its interval, and when one of its places is free. Hosts are asked side
    by side, so the slowest one counts, or the work of all of them where the places are too few:
    max(max over hosts of n * max(interval, seconds / places), N * seconds / concurrency).
    """
    loads = list(hosts)
    slowest = max((load.requests * max(load.interval, seconds / load.concurrency) for load in loads), default=0.0)
    return max(slowest, sum(load.requests for load in loads) * seconds / concurrency)
