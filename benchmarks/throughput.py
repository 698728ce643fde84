"""Searches per second with 1, 4 and 16 concurrent threads of one process."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Sequence

from benchmarks.latency import EncodedQuestion, TimedCall

DURATION_S = 5.0
CALLER_COUNTS = (1, 4, 16)


def measure_throughput(timed: TimedCall, questions: Sequence[EncodedQuestion]) -> dict[str, float]:
    """Return searches per second by number of callers."""
    return {str(callers): round(_measure_rate(timed, questions, callers, DURATION_S), 2) for callers in CALLER_COUNTS}


def _measure_rate(timed: TimedCall, questions: Sequence[EncodedQuestion], callers: int, seconds: float) -> float:
    done = [0] * callers
    failures: list[BaseException] = []
    until = time.perf_counter() + seconds

    def ask(caller: int) -> None:
        own = itertools.islice(itertools.cycle(questions), caller, None)
        try:
            while time.perf_counter() < until:
                timed(next(own))
                done[caller] += 1
        except Exception as error:  # noqa: BLE001 - raised below, in the thread that asked
            failures.append(error)

    began = time.perf_counter()
    threads = [threading.Thread(target=ask, args=(caller,)) for caller in range(callers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    return sum(done) / (time.perf_counter() - began)
