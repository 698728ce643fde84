"""The passages of one index: stored embeddings, bulk writes, and connections for searches.

Strategies read the table with the statements in ``ranking``, ``postings`` and ``passages``, over a connection from
``reading``. LlamaIndex reads it through ``for_llama_index``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from workbench.storage.database import Connection, Database, bind_integers, fetch_one, statement
from workbench.storage.graph import Say, maintain_graph
from workbench.storage.passages import (
    bind_vector,
    choose_scope_predicate,
    fetch_rows,
    fetch_vectors,
    parse_vector,
    scope_parameters,
)
from workbench.storage.ranking import LegRanking, ScoreAndRank, nearest
from workbench.storage.replica import Replica
from workbench.types import STILL_READING, Index, ResolvedScope

if TYPE_CHECKING:
    from workbench.storage.llamaindex import LlamaStore


def fetch_nearness(connection: Connection, index: str) -> Mapping[str, float] | None:
    """Return the cosines that count as evidence for an index's model, or None if they were not measured."""
    row = connection.execute(statement("index_nearness_get"), {"name": index}).fetchone()
    return row["nearness"] if row else None


class PassageStore:
    """The table ``data_<index>`` with its lexicon and postings."""

    def __init__(self, database: Database, index: Index, reader: Database | None = None) -> None:
        """Configure the store without connecting; ``reader`` is the database for searches (default: the same)."""
        self.database, self.index = database, index
        self._reader = reader or database

    @cached_property
    def for_llama_index(self) -> LlamaStore:
        """The same table as a LlamaIndex store, created on first use."""
        from workbench.storage.llamaindex import LlamaStore

        return LlamaStore(self.database, self.index, self._reader)

    @property
    def database_url(self) -> str:
        """URL of the database for searches; with the index's name it identifies the lexicon."""
        return self._reader.url

    @property
    def replica_is_away(self) -> bool:
        """True while searches use the primary, because the replica is unreachable."""
        return isinstance(self._reader, Replica) and self._reader.is_away

    # Writing

    def load_embeddings(self, hashes: Sequence[bytes]) -> dict[bytes, tuple[NDArray[np.float32], bytes | None]]:
        """Return the vectors and token bits of texts that this index has already embedded, by passage hash."""
        rows = self.database.rows(statement("embeddings_by_hash", self.index.name), {"hashes": list(hashes)})
        return {bytes(row["passage_hash"]): (parse_vector(row["embedding"]), row["token_bits"]) for row in rows}

    def maintain_graph(self, say: Say | None = None) -> None:
        """Build, measure or rebuild the HNSW graph if the size of the index requires it."""
        maintain_graph(self.database, self.index.name, say)

    def sample_passages(self, limit: int) -> list[tuple[str, NDArray[np.float32]]]:
        """Return the texts and vectors of some passages, the same ones if nothing has changed."""
        rows = self.database.rows(statement("sample_passages", self.index.name), {"limit": limit})
        return [(row["text"], parse_vector(row["embedding"])) for row in rows]

    def best_cosines(self, vectors: Sequence[NDArray[np.float32]], limit: int) -> list[float]:
        """Return the highest cosine of each vector with the passages, or with ``limit`` of them."""
        texts = ["[" + ",".join(f"{value:.6g}" for value in vector) + "]" for vector in vectors]
        rows = self.database.rows(statement("best_cosines", self.index.name), {"vectors": texts, "limit": limit})
        return [float(row["cosine"]) for row in rows]

    def pack(self) -> None:
        """Pack the postings and update the planner's statistics, after many passages have been written."""
        self.database.autocommit(statement("pack_postings", self.index.name))
        self.database.autocommit(statement("analyse", self.index.name))

    # Reading

    def reading(self) -> AbstractContextManager[Connection]:
        """Yield one connection for the statements of one search. Raises StorageError if the database is unreachable."""
        return self._reader.reading()

    def describe_changes(self, scope: ResolvedScope) -> str:
        """Return a note if documents in scope, or rows of an attached table, are missing in the index, else ""."""
        values = {"sources": None if scope.source_ids is None else list(scope.source_ids)}
        return STILL_READING if self._reader.rows(statement("sources_being_read"), values)[0]["reads"] else ""

    # Vectors, which an attached index (``workbench.storage.attached``) has elsewhere

    def nearest(
        self,
        connection: Connection,
        vector: NDArray[np.float32],
        scope: ResolvedScope,
        limit: int,
        size: int,
        given: Collection[int] = (),
    ) -> LegRanking:
        return nearest(connection, self.index.name, vector, scope, limit, size, given)

    def fetch_cosines(
        self, connection: Connection, vector: NDArray[np.float32], ids: Sequence[int]
    ) -> dict[int, float]:
        """Return the cosine similarity of given passages with a vector."""
        index, values = self.index.name, {"vector": bind_vector(vector), "ids": bind_integers(ids)}
        rows = fetch_rows(connection, index, "cosines_of", values)
        return {row["id"]: float(row["score"]) for row in rows}

    def fetch_vectors(self, connection: Connection, ids: Sequence[int]) -> dict[int, NDArray[np.float32]]:
        return fetch_vectors(connection, self.index.name, ids)

    def fetch_vector_rank(
        self, connection: Connection, vector: NDArray[np.float32], scope: ResolvedScope, passage: int
    ) -> ScoreAndRank | None:
        """Return a passage's cosine and its rank among all passages in the scope; None if it has no vector."""
        values = {"vector": bind_vector(vector), "passage": passage, **scope_parameters(scope)}
        query = statement("vector_standing", self.index.name, scope=choose_scope_predicate(scope))
        row = fetch_one(connection.execute(query, values))
        return float(row["score"]), int(row["rank"])
