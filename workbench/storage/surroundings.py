"""What lies around passages: the neighbours' spans, the documents' text there, and the words they are made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from workbench.storage.statements import statement

Place = tuple[str, int, int]  # a document and a span of its text


@dataclass(frozen=True, slots=True)
class FoundTerm:
    """A term of some passages; ``share`` is its part of each passage's terms, summed; ``df`` that of the index."""

    id: int
    term: str
    df: int
    share: float
    passages: int


def spans_around(
    connection: Any, index: str, passages: Sequence[tuple[str, int]], reach: int
) -> list[tuple[int, int] | None]:
    """Return for each (document, ordinal) the span from ``reach`` passages before it to as many after it."""
    parameters = {
        "document_ids": [document for document, _ in passages],
        "ordinals": [ordinal for _, ordinal in passages],
        "reach": reach,
    }
    rows = connection.execute(statement("spans_around", index), parameters).fetchall()
    found = {int(row["place"]): (int(row["first"]), int(row["last"])) for row in rows}
    return [found.get(place) for place in range(1, len(passages) + 1)]


def document_slices(connection: Any, index: str, places: Sequence[Place]) -> list[str | None]:
    """Return the documents' text at given places; None where the index was cut from another version of it."""
    parameters = {
        "index": index,
        "document_ids": [document for document, _, _ in places],
        "starts": [start for _, start, _ in places],
        "ends": [end for _, _, end in places],
    }
    rows = connection.execute(statement("document_slices"), parameters).fetchall()
    found = {int(row["place"]): str(row["text"]) for row in rows}
    return [found.get(place) for place in range(1, len(places) + 1)]


def terms_of_passages(connection: Any, index: str, ids: Sequence[int]) -> list[FoundTerm]:
    """Return every term of the given passages."""
    rows = connection.execute(statement("terms_of_passages", index), {"ids": list(ids)}).fetchall()
    return [FoundTerm(int(r["id"]), r["term"], int(r["df"]), float(r["share"]), int(r["passages"])) for r in rows]
