"""The events of one search: time per stage, and which leg could not serve."""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field

from workbench.telemetry import STEP, measured
from workbench.types.results import TimedStep


@dataclass(slots=True)
class Trace:
    """The times and notes of one request, filled by its stages and read when its result is made; never shared."""

    timings_ms: dict[str, float] = field(default_factory=dict)
    degraded: list[str] = field(default_factory=list)
    has_more: bool = False  # whether there may be candidates beyond those that were looked at
    cut: int = 0  # passages that were found and left out below the cutoff that was asked for
    shared_ms: float = 0.0  # part of ``timings_ms`` that passed in another request, whose result this one reuses
    charged: set[str] = field(default_factory=set)  # queries whose embedding is in ``timings_ms``
    passed: dict[str, tuple[int, ...]] | None = None  # of a watched request: the passages after each step, in order

    @contextmanager
    def stage(self, step: TimedStep) -> Generator[None]:
        """Add the time of the block to a step's, in milliseconds."""
        began = time.perf_counter()
        try:
            with measured(STEP, step.value):
                yield
        finally:
            self.timings_ms[step.value] = self.timings_ms.get(step.value, 0.0) + (time.perf_counter() - began) * 1000

    def charge_shared(self, step: TimedStep, milliseconds: float) -> None:
        """Add the time of a step that another request did for this one as well."""
        self.timings_ms[step.value] = self.timings_ms.get(step.value, 0.0) + milliseconds
        self.shared_ms += milliseconds

    def note(self, reason: str) -> None:
        """Say once that part of the search could not serve."""
        if reason not in self.degraded:
            self.degraded.append(reason)
