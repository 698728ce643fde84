"""RAG Workbench: compare retrieval strategies on one corpus, with evidence for which one is best.

Importing this package takes under 0.3 s; engines, models and the database are loaded on first use.
"""

from __future__ import annotations

TYPE_CHECKING = False  # as in ``typing``, which takes 20 ms to import
if TYPE_CHECKING:
    from evals.workbench import Workbench
    from workbench.errors import WorkbenchError
    from workbench.runtime import __version__
    from workbench.settings import Settings
    from workbench.types import Comparison, Document, IngestReport, Passage, Scope, SearchResult, Source

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


def __getattr__(name: str) -> object:
    """Load a name on first use (PEP 562), so that the command line handles Ctrl-C from its first moment."""
    if name == "Workbench":
        from evals.workbench import Workbench

        return Workbench
    if name == "Settings":
        from workbench.settings import Settings

        return Settings
    if name not in __all__:
        raise AttributeError(f"module 'workbench' has no attribute {name!r}")
    from workbench import errors, runtime, types

    return next(vars(module)[name] for module in (errors, runtime, types) if name in vars(module))
