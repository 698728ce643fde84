"""Stored passages by id, by document and by nearness, with what their documents say of themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from workbench.errors import NotFound
from workbench.storage.database import Connection, Row, numbers_value
from workbench.storage.graph import SERVING
from workbench.storage.rows import (
    StoredPassage,
    read,
    scope_parameters,
    scope_statement,
    vector_received,
    vector_value,
)
from workbench.types import Index, ResolvedScope

_SHOWN = {"passage": "passage_columns", "document": "document_columns"}
NO_PARTS: Mapping[str, str] = {}
LIKENESS_SAMPLE = 2000  # passages whose mean stands for an index


def passages_by_id(
    connection: Connection, index: str, ids: Sequence[int], same_as: Index | None = None
) -> dict[int, StoredPassage]:
    """Return given passages; with ``same_as`` none where the index's row is no longer that one."""
    rows = _shown(connection, index, "passages_by_id", {"ids": numbers_value(ids)}, same_as)
    return {row["id"]: StoredPassage(**row) for row in rows}


def nearest_passages(
    connection: Connection, index: Index, vector: NDArray[np.float32], limit: int, same_as: Index | None = None
) -> list[tuple[StoredPassage, float]]:
    """Return the passages of the whole index nearest to a vector with their cosines, best first.

    This is ``ranking.nearest`` and ``passages_by_id`` in one statement; ``same_as`` as there.
    """
    values = {"vector": vector_value(vector), "limit": limit, "index": index.name}
    name, parts = (
        ("nearest_passages", {"breadth": "breadth_by_size"}) if index.has_graph else ("nearest_passages_exact", {})
    )
    rows = _shown(connection, index.name, name, values, same_as, parts)
    rows.sort(key=lambda row: (-row["score"], row["id"]))  # here rather than by a sort node that is planned anew
    scores = [float(row.pop("score")) for row in rows]
    return [(StoredPassage(**row), score) for row, score in zip(rows, scores, strict=True)]


def passages_of_document(connection: Connection, index: str, document_id: str) -> list[StoredPassage]:
    """Return all passages of a document in reading order."""
    rows = read(connection, index, "passages_of_document", {"document_id": document_id}, **_SHOWN)
    return [StoredPassage(**row) for row in rows]


def passage_named(connection: Connection, index: str, passage_id: str) -> StoredPassage:
    """Return the passage of an id as searches name it. Raises NotFound."""
    number = internal_ids(connection, index, [passage_id]).get(passage_id)
    if number is None:
        raise NotFound("passage", passage_id, "Searches name the ids.")
    return passages_by_id(connection, index, [number])[number]


def internal_ids(connection: Connection, index: str, passage_ids: Sequence[str]) -> dict[str, int]:
    """Return the internal ids behind public passage ids, of those that there are."""
    rows = read(connection, index, "ids_of_passages", {"node_ids": list(passage_ids)})
    return {row["node_id"]: row["id"] for row in rows}


def token_bits(connection: Connection, index: str, ids: Sequence[int]) -> dict[int, bytes]:
    """Return the one-bit token vectors of given passages, 16 bytes a token, where they have some."""
    rows = read(connection, index, "token_bits_by_id", {"ids": numbers_value(ids)})
    return {row["id"]: bytes(row["token_bits"]) for row in rows if row["token_bits"] is not None}


def vectors(connection: Connection, index: str, ids: Sequence[int]) -> dict[int, NDArray[np.float32]]:
    """Return the stored vectors of given passages."""
    rows = read(connection, index, "embeddings_by_id", {"ids": numbers_value(ids)})
    return {row["id"]: vector_received(row["embedding"]) for row in rows}


def likeness_to_all(connection: Connection, index: Index, ids: Sequence[int], passages: int) -> dict[int, float]:
    """Return how alike each passage is to the mean of a sample of the index's ``passages``, -1..1."""
    percent = min(100.0, 100.0 * LIKENESS_SAMPLE / max(1, passages))
    rows = read(connection, index.name, "likeness_to_all", {"ids": numbers_value(ids), "percent": percent})
    return {row["id"]: float(row["likeness"]) for row in rows}


def documents_in_scope(connection: Connection, index: str, scope: ResolvedScope) -> list[str]:
    """Return the ids of the documents that have passages in a scope."""
    rows = read(connection, index, "documents_in_scope", scope_parameters(scope), scope=scope_statement(scope))
    return [row["document_id"] for row in rows]


def _shown(
    connection: Connection,
    index: str,
    name: str,
    parameters: Mapping[str, object],
    same_as: Index | None,
    parts: Mapping[str, str] = NO_PARTS,
) -> list[Row]:
    if same_as is None:
        return read(connection, index, name, parameters, **_SHOWN, **parts, condition="any_index")
    row = {
        "index": same_as.name,
        "created_at": same_as.created_at,
        "is_default": same_as.is_default,
        "embedding_model": same_as.embedding_model,
        "has_graph": same_as.has_graph,
        **SERVING,
    }
    named = {**_SHOWN, **parts, "condition": "same_index", "graph_serves": "graph_serves"}
    return read(connection, index, name, {**parameters, **row}, **named)
