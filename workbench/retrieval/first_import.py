"""The first import of the retrieval framework, one thread at a time.

LlamaIndex's packages import each other in rings. Two threads in them at once see each other's modules half made, and
one of them fails with an ImportError. So each way in (a store, a request, a search) begins here.
"""

from __future__ import annotations

import threading

from workbench.runtime import nothing_is_garbage

_IMPORTING = threading.Lock()
_imported = threading.Event()


def import_framework() -> None:
    """Import what every search needs; does nothing from the second time on."""
    if _imported.is_set():
        return
    with _IMPORTING:
        with nothing_is_garbage():
            from workbench.retrieval import pipeline
            from workbench.retrieval.answering import synthesis
            from workbench.retrieval.retrievers import vector
        _ = (pipeline, synthesis, vector)
        _imported.set()
