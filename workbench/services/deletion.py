"""The report of a deletion: everything that went with it."""

from __future__ import annotations

from dataclasses import dataclass

from workbench.types import Value


@dataclass(frozen=True, slots=True)
class Deletion(Value):
    """One deleted thing (``kind`` is "source", "document" or "project") and the number of things it took along."""

    kind: str
    id: str
    title: str
    sources: int = 0
    documents: int = 0
    passages: int = 0
    citations: int = 0
