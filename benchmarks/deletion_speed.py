"""Deleting a quarter of an index during searches."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Sequence

import numpy as np

from benchmarks.latency import EncodedQuestion, TimedCall
from workbench.types import Source
from workbench.workbench import Workbench


def measure_deletion(
    wb: Workbench, source: Source, timed: TimedCall, questions: Sequence[EncodedQuestion]
) -> dict[str, float]:
    """Return the number of deleted documents, the seconds taken, and the median time of concurrent searches in ms."""
    documents = wb.sources.get(source.id).documents_count
    times: list[float] = []
    failures: list[BaseException] = []
    over = threading.Event()

    def ask() -> None:
        try:
            for question in itertools.cycle(questions):
                began = time.perf_counter()
                timed(question)
                times.append((time.perf_counter() - began) * 1000)
                if over.is_set():
                    return
        except Exception as error:  # noqa: BLE001 - raised below, in the thread that waits
            failures.append(error)

    searcher = threading.Thread(target=ask)
    searcher.start()
    began = time.perf_counter()
    try:
        wb.sources.delete(source.id)
        seconds = time.perf_counter() - began
    finally:
        over.set()
        searcher.join()
    if failures:
        raise failures[0]
    return {
        "documents": documents,
        "seconds": round(seconds, 2),
        "searches_meanwhile": len(times),
        "p50_ms_meanwhile": round(float(np.percentile(times, 50)), 3),
    }
