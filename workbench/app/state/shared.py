"""The values that all visitors of this process share: the workbench and a count of the changes.

Module-level values and not ``st.cache_resource``: the server begins to open before the first visitor has a session.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.opening import Opening, warm_model
from workbench.retrieval.first_import import import_framework
from workbench.retrieval.strategies import DEFAULT_STRATEGY
from workbench.telemetry import untold

if TYPE_CHECKING:
    from workbench.workbench import Workbench


def _warm(workbench: Workbench) -> None:
    """Load the model, the retrieval framework, and the parts of the language model that take seconds to import."""
    import_framework()
    warm_model(workbench)
    with untold():  # nobody asked for it
        workbench.search("warm", strategy=DEFAULT_STRATEGY, limit=1)
    if workbench.corpus.llm is not None:
        _ = workbench.corpus.llm.framework  # the first answer would wait for its import


LONGEST_UNDRAWN = 2.0  # seconds in which the first page is drawn; the model is loaded then, or where no browser comes
OPENING = Opening(warmer=_warm, patience=LONGEST_UNDRAWN)  # what is imported beside the first page keeps it waiting
_changes = [0]


def changes() -> int:
    """Return how often this process changed the corpus, so that a page can tell that an answer is out of date."""
    return _changes[0]


def note_change() -> None:
    """Count a change of documents, sources, projects or indexes."""
    _changes[0] += 1
