"""What happened during one search: time per stage, and which leg could not serve."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass(slots=True)
class Trace:
    """Filled by the stages of one request and read when its result is made; never shared between requests."""

    timings_ms: dict[str, float] = field(default_factory=dict)
    degraded: list[str] = field(default_factory=list)
    cut: int = 0  # passages that were found and left out below the cutoff that was asked for
    passed: dict[str, tuple[int, ...]] | None = None  # of a watched request: the passages after each step, in order

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Add the time of the block to the stage ``name``, in milliseconds."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self.timings_ms[name] = self.timings_ms.get(name, 0.0) + (time.perf_counter() - began) * 1000

    def note(self, reason: str) -> None:
        """Say once that part of the search could not serve."""
        if reason not in self.degraded:
            self.degraded.append(reason)
