"""Stored vectors, read as pgvector sends them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from workbench import Workbench
from workbench.storage.passages import fetch_vectors, parse_vector


def test_a_vector_that_was_sent_is_the_one_that_is_written_as_text(wb: Workbench, folder: Callable[..., Path]) -> None:
    wb.ingest(
        folder({"tide.md": "# Tide\n\nThe gauge reads the tide.", "mast.md": "# Mast\n\nA gull sits on it."}),
        source="Sea",
    )
    with wb.corpus.database.transaction() as connection:
        written = connection.execute("SELECT id, embedding::text AS embedding FROM data_main").fetchall()
        received = fetch_vectors(connection, "main", [row["id"] for row in written])
    assert len(written) == 2
    assert all(np.array_equal(received[row["id"]], parse_vector(row["embedding"])) for row in written)
    assert all(vector.dtype == np.float32 for vector in received.values())
