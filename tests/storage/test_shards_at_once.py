"""Reads of shards: each ranks, narrows and cuts what it holds, all at once, and no vector travels for a score."""

from __future__ import annotations

from datetime import date

import numpy as np
import psycopg
import pytest

from tests.storage.birds import fill
from workbench import Workbench
from workbench.storage.database import Connection
from workbench.storage.ranking import EXACT_UP_TO, listed, nearest, scope_size
from workbench.storage.rows import scope_parameters, vector_value
from workbench.storage.statements import statement
from workbench.types import ResolvedScope, Scope

ON_SHARDS = {"on_shards": "on_shards"}
DIMENSIONS = 512  # of the model of tests


def plan(
    connection: Connection, name: str, scope: ResolvedScope, limit: int = 50, more: dict[str, object] | None = None
) -> str:
    """Return the plan of a statement over the index ``main``, with what it sends to the shards."""
    vector, asked = vector_value(np.ones(DIMENSIONS, np.float32)), statement(name, "main", **ON_SHARDS)
    values = {"vector": vector, "limit": limit, "ids": "{1,2,3}", **scope_parameters(scope)} | (more or {})
    rows = connection.execute(b"EXPLAIN (VERBOSE, COSTS OFF) " + asked.as_bytes(connection), values).fetchall()
    return "\n".join(row["QUERY PLAN"] for row in rows)


def sent(plan: str) -> list[str]:
    """Return the statements that a plan sends to shards."""
    return [line.split("Remote SQL: ")[1] for line in plan.splitlines() if "Remote SQL: " in line]


@pytest.mark.parametrize("limit", [1, 50, 400])
@pytest.mark.parametrize("name", ["vector_everything", "vector_filtered", "vector_exact"])
def test_shards_rank_and_cut_all_at_once(cluster: Workbench, name: str, limit: int) -> None:
    fill(cluster)
    scope = ResolvedScope(source_ids=(cluster.sources.list()[0].id,))
    with cluster.corpus.database.reading() as connection:
        shown = plan(connection, f"{name}_on_shards", scope, limit)
    assert shown.count("Async Foreign Scan") == 2, shown[:3000]
    for remote in sent(shown):
        assert remote.endswith(f"LIMIT {limit}::bigint"), remote
        columns, rest = remote.split(" FROM ", 1)
        assert columns.startswith("SELECT id, ") and "<=>" in columns and "embedding, " not in columns
        assert ("source_id = ANY" in rest) == (name != "vector_everything")


@pytest.mark.parametrize("name", ["cosines_of", "embeddings_by_id", "ids_of_scope"])
def test_shards_compute_what_is_asked_of_given_passages(cluster: Workbench, name: str) -> None:
    fill(cluster)
    with cluster.corpus.database.reading() as connection:
        shown = plan(connection, f"{name}_on_shards", ResolvedScope(source_ids=("src",)))
    assert shown.count("Async Foreign Scan") == 2, shown[:3000]
    assert all(" WHERE " in remote and "SELECT id, embedding" not in remote for remote in sent(shown))


@pytest.mark.parametrize("name", ["spans_around", "spans_of_sections"])
def test_of_neighbours_only_their_documents_passages_are_read_once(cluster: Workbench, name: str) -> None:
    fill(cluster)
    documents = [document.id for document in cluster.documents.list()[:3]]
    more: dict[str, object] = {"document_ids": documents, "ordinals": [0, 0, 0], "reach": 1}
    with cluster.corpus.database.reading() as connection:
        shown = plan(connection, f"{name}_on_shards", ResolvedScope(), more=more)
    assert shown.count("Async Foreign Scan") == len(sent(shown)) == 2, shown[:3000]
    assert all("document_id = ANY" in remote for remote in sent(shown))


def test_a_shard_walks_its_graphs_for_the_nearest(cluster: Workbench) -> None:
    fill(cluster)
    vector = vector_value(np.ones(DIMENSIONS, np.float32)).to_text()
    nearest_of = (
        "SELECT id, embedding <=> %(vector)s::halfvec FROM data_main GROUP BY 1, 2 "
        "ORDER BY embedding <=> %(vector)s::halfvec LIMIT 10"
    )
    shard = cluster.corpus.cluster.shards()[0]
    with psycopg.connect(shard.url) as connection:
        connection.execute("SET enable_seqscan = off")
        rows = connection.execute(f"EXPLAIN {nearest_of}", {"vector": vector}).fetchall()
    shown = "\n".join(row for (row,) in rows)
    assert "Incremental Sort" in shown and "data_main_b0_embedding_idx" in shown, shown


def test_a_scope_by_properties_finds_what_one_server_finds(cluster: Workbench, wb: Workbench) -> None:
    for each in (wb, cluster):
        fill(each)
        for number in range(12):
            text = f"A stork of year {number} stands in the water."
            each.documents.create(text=text, title=f"Year {number}", metadata={"date": f"{2000 + number}-01-01"})
    scopes = (
        Scope(since=date(2004, 1, 1), until=date(2008, 1, 1)),
        Scope(document_types=("note",)),
        Scope(languages=("en",)),
    )
    for scope in scopes:
        for strategy in ("vector", "keyword", "hybrid"):
            one, many = (
                sorted(
                    (hit.text, round(hit.score, 9))
                    for hit in each.search("stork water", strategy, limit=50, scope=scope)
                )
                for each in (wb, cluster)
            )
            assert one == many, (scope, strategy)


def test_a_walk_and_every_distance_agree_in_a_scope(cluster: Workbench) -> None:
    fill(cluster)
    index = cluster.corpus.index(None)
    vector, store = np.ones(index.dimensions, np.float32), cluster.corpus.store(index)
    scope = listed(cluster.corpus.database, "main", ResolvedScope(until=date(2999, 1, 1)))
    with store.reading() as connection:
        assert scope_size(connection, "main", scope, divided=True) == 0
    scope = ResolvedScope(source_ids=(cluster.sources.list()[0].id,))
    with store.reading() as connection:
        size = scope_size(connection, "main", scope, divided=True)
        exact = nearest(connection, "main", vector, scope, 5, size, divided=True).scores
        walked = nearest(connection, "main", vector, scope, 5, EXACT_UP_TO + 1, divided=True).scores
    assert exact == walked and len(exact) == 5 <= size
