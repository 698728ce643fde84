"""Python's garbage collector, kept from looking again and again at what imports made and what stays.

An import of thousands of modules makes a million objects that are no garbage. Looking through them while they are made,
and once more when they have been, takes a tenth of a start.
"""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager

COLLECT_AFTER = 50_000  # objects: with Python's 700 a search spends a tenth of its time collecting what imports made


def collect_seldom() -> None:
    """Let the collector wait for more objects than by default; for a process that is ours."""
    gc.set_threshold(COLLECT_AFTER)


@contextmanager
def nothing_is_garbage() -> Generator[None]:
    """Collect nothing meanwhile, and let all there is count as old at the end: only full collections look at it."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if not gc.get_freeze_count():  # else the caller has frozen objects of its own, which would thaw
            gc.freeze()
            gc.unfreeze()  # into the oldest generation, whichever they were in
        if collects:
            gc.enable()
