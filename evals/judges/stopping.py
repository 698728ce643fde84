"""Judging that can be stopped: a question to an endpoint is given up soon after somebody wants that."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from evals.judges.ragas_llm import ragas
from workbench.errors import Cancelled
from workbench.types import ShouldStop

LOOK = 0.2  # seconds between looks whether to stop
LAST = 1.0  # seconds that calls in flight get to close their connections

Result = TypeVar("Result")


def run_judging(work: Callable[[], Coroutine[object, object, Result]], should_stop: ShouldStop | None = None) -> Result:
    """Run a coroutine in a loop of its own, whether or not the caller (a notebook) runs one, and return its result.

    Raises:
        Cancelled: ``should_stop`` said so; calls in flight are given up.
    """
    load_ragas(should_stop)
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, _watched(work, should_stop)).result()


def load_ragas(should_stop: ShouldStop | None = None) -> None:
    """Import ragas, which takes seconds, in a thread that a stop does not wait for. Raises Cancelled."""
    loading = threading.Thread(target=ragas, name="ragas", daemon=True)
    loading.start()
    while loading.is_alive():
        loading.join(LOOK)
        check(should_stop)
    ragas()  # raises here where the import failed there


def check(should_stop: ShouldStop | None) -> None:
    """Raise Cancelled where somebody wants it to stop."""
    if should_stop is not None and should_stop():
        raise Cancelled("Stopped; the judgments so far are kept.")


async def _watched(work: Callable[[], Coroutine[object, object, Result]], should_stop: ShouldStop | None) -> Result:
    task = asyncio.ensure_future(work())
    try:
        while not task.done():
            await asyncio.wait({task}, timeout=LOOK)
            if not task.done():
                check(should_stop)
    except Cancelled:
        task.cancel()
        await asyncio.wait({task}, timeout=LAST)
        raise
    return task.result()
