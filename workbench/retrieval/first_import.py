"""The first import of the retrieval framework, by one thread at a time.

LlamaIndex's packages import each other in cycles. If two threads import them at once, one sees a partly initialised
module and fails with an ImportError. So every entry point (a store, a request, a search) starts here.
"""

from __future__ import annotations

import threading

from workbench.runtime import pause_gc

_IMPORT_LOCK = threading.Lock()
_is_done = threading.Event()


def import_framework() -> None:
    """Import what every search needs; later calls do nothing."""
    if _is_done.is_set():
        return
    with _IMPORT_LOCK:
        with pause_gc():
            from workbench.retrieval import pipeline
            from workbench.retrieval.answering import synthesis
            from workbench.retrieval.retrievers import vector
        _ = (pipeline, synthesis, vector)
        _is_done.set()
