"""RAG Workbench: compare retrieval strategies on one corpus, with evidence for which one is best.

Importing this package takes under 0.3 s; engines, models and the database are loaded on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.errors import WorkbenchError
from workbench.runtime import __version__
from workbench.types import Comparison, Document, IngestReport, Passage, Scope, SearchResult, Source

if TYPE_CHECKING:
    from evals.workbench import Workbench
    from workbench.settings import Settings

__all__ = [
    "Comparison",
    "Document",
    "IngestReport",
    "Passage",
    "Scope",
    "SearchResult",
    "Settings",
    "Source",
    "Workbench",
    "WorkbenchError",
    "__version__",
]


def __getattr__(name: str) -> type[Settings] | type[Workbench]:
    """Load the heavy names on first use (PEP 562)."""
    if name == "Workbench":
        from evals.workbench import Workbench

        return Workbench
    if name == "Settings":
        from workbench.settings import Settings

        return Settings
    raise AttributeError(f"module 'workbench' has no attribute {name!r}")
