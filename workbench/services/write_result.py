"""The result of writing one document."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from workbench.types import Document, Value


@dataclass(frozen=True, slots=True)
class WriteResult(Value):
    """A document and what became of it; "unchanged" means that its source held this content already.

    ``offer`` is that of ``IngestReport``.
    """

    document: Document
    outcome: Literal["created", "updated", "unchanged"]
    offer: str = ""
