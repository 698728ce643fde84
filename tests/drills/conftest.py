"""Random drills: each runs for some seconds and prints its seed, so that a failure can be reproduced.

A drill is a test in this folder that repeats a random round while ``drill_seconds`` lasts, at least once. ``make test``
runs each for about 8 seconds, ``make drills`` at length. ``DRILL_SEED=N`` repeats the rounds of a former run.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterator

import pytest


@pytest.fixture
def drill_seconds(request: pytest.FixtureRequest) -> float:
    """How long the drill continues: ``--drill-seconds``."""
    return float(str(request.config.getoption("--drill-seconds")))


@pytest.fixture
def chance() -> random.Random:
    """The random numbers of a drill; the seed is printed, and shown if the drill fails."""
    seed = int(os.environ.get("DRILL_SEED") or random.SystemRandom().randrange(10**6))
    print(f"DRILL_SEED={seed}")
    return random.Random(seed)


@pytest.fixture
def rounds(drill_seconds: float) -> Callable[[], Iterator[int]]:
    """Count the rounds of a drill until its time is over; there is at least one."""

    def count() -> Iterator[int]:
        ends, number = time.monotonic() + drill_seconds, 0
        while not number or time.monotonic() < ends:
            yield number
            number += 1

    return count
