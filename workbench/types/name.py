"""A name that a question says, and that tells documents apart."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from workbench.types.value import Value


@dataclass(frozen=True, slots=True)
class Name(Value):
    """A name of documents in a question; the documents that have it are preferred.

    ``kind`` is "title", "name" (a part of a file's name or title), "year", "quarter", "type", "source", or the key of a
    document's metadata. ``documents`` is how many have it.
    """

    text: str
    kind: str
    documents: int = 1


def preference(names: Iterable[Name]) -> str:
    """Return a sentence on what is preferred, such as "Preferring: 3M · 2018."; "" without a name."""
    texts = " · ".join(name.text for name in names)
    return f"Preferring: {texts}." if texts else ""
