"""Surroundings of passages: the neighbours' spans, the documents' text there, and the words they are made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from psycopg.sql import SQL

from workbench.storage.database import Connection
from workbench.storage.statements import statement
from workbench.types import Index
from workbench.types.results import DocumentSpan, Span


@dataclass(frozen=True, slots=True)
class FoundTerm:
    """A term of some passages; ``share`` is its part of each passage's terms, summed; ``df`` that of the index."""

    id: int
    term: str
    df: int
    share: float
    passages: int


def spans_around(
    connection: Connection, index: Index, passages: Sequence[tuple[str, int]], reach: int
) -> list[Span | None]:
    """Return for each (document, ordinal) the span from ``reach`` passages before it to as many after it."""
    return _spans(
        connection, statement("spans_around", index.name), _ordinals(passages) | {"reach": reach}, len(passages)
    )


def spans_of_sections(
    connection: Connection, index: Index, passages: Sequence[tuple[str, int]], reach: int
) -> list[Span | None]:
    """Return for each (document, ordinal) the span of its section: the passages around it under the same heading.

    Not more than ``reach`` passages on either side; None for a passage without a heading.
    """
    return _spans(
        connection, statement("spans_of_sections", index.name), _ordinals(passages) | {"reach": reach}, len(passages)
    )


def spans_of_pages(connection: Connection, places: Sequence[DocumentSpan]) -> list[Span | None]:
    """Return for each stretch of a document the span of the pages it stands on; None where there are no pages."""
    return _spans(connection, statement("spans_of_pages"), _stretches(places), len(places))


def document_slices(connection: Connection, index: str, places: Sequence[DocumentSpan]) -> list[str | None]:
    """Return the documents' text at given places; None where the index was cut from another version of it."""
    rows = connection.execute(statement("document_slices"), {"index": index} | _stretches(places)).fetchall()
    texts = {int(row["place"]): str(row["text"]) for row in rows}
    return [texts.get(place) for place in range(1, len(places) + 1)]


def terms_of_passages(connection: Connection, index: str, ids: Sequence[int]) -> list[FoundTerm]:
    """Return every term of the given passages."""
    rows = connection.execute(statement("terms_of_passages", index), {"ids": list(ids)}).fetchall()
    return [FoundTerm(int(r["id"]), r["term"], int(r["df"]), float(r["share"]), int(r["passages"])) for r in rows]


def _ordinals(passages: Sequence[tuple[str, int]]) -> dict[str, object]:
    return {"document_ids": [document for document, _ in passages], "ordinals": [ordinal for _, ordinal in passages]}


def _stretches(places: Sequence[DocumentSpan]) -> dict[str, object]:
    documents, starts, ends = zip(*places, strict=True) if places else ((), (), ())
    return {"document_ids": list(documents), "starts": list(starts), "ends": list(ends)}


def _spans(connection: Connection, query: SQL, parameters: dict[str, object], places: int) -> list[Span | None]:
    """Return the span of each place that was asked for, None where the database has none."""
    rows = connection.execute(query, parameters).fetchall()
    spans = {int(row["place"]): (int(row["first"]), int(row["last"])) for row in rows}
    return [spans.get(place) for place in range(1, places + 1)]
