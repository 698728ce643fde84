"""A shard that is lost for good, its data too, in the middle of a bucket's move: nothing of the move is left."""

from __future__ import annotations

import psycopg
import pytest

from tests.storage.birds import every_answer, fill
from tests.storage.shards import Server
from tests.storage.test_rebalancing import FAILS_AT_COMMIT, held, nothing_is_left, stopping_at
from workbench import Workbench
from workbench.errors import StorageError

SOURCE, TARGET = 1, 3  # of the first move, from two shards to a third


def begin_anew(wb: Workbench, titles: set[str]) -> None:
    """Embed documents again, so that passages get new numbers as on the cluster: equal scores fall by these."""
    ids = [document.id for document in wb.documents.list() if document.title in titles]
    assert len(ids) == len(titles)
    with psycopg.connect(wb.corpus.database.url) as connection:
        connection.execute("DELETE FROM data_main WHERE document_id = ANY (%s)", [ids])
        connection.execute("DELETE FROM index_documents WHERE document_id = ANY (%s)", [ids])
    wb.indexes.build("main")


def whole_again(cluster: Workbench, wb: Workbench, fresh: list[Server], lost: int) -> None:
    """Let go of a lost shard, build anew, and hold what is found to one server's answers."""
    removed = cluster.shards.remove(str(lost), lost=True)
    assert cluster.shards.check() == (0, 0)
    assert lost not in {shard.number for shard in cluster.shards.list()}
    assert sum(held(cluster)) == 32
    lacking = cluster.corpus.documents.missing_from("main")
    assert removed.lacking == ({"main": len(lacking)} if lacking else {})
    begin_anew(wb, {cluster.documents.get(document).title for document in lacking})
    cluster.indexes.build("main")
    for workbench in (wb, cluster):
        workbench.documents.create(text="A heron that came after the loss.", title="Late")
    nothing_is_left(cluster, [server for number, server in enumerate(fresh) if number != lost])
    assert every_answer(cluster) == every_answer(wb)


@pytest.mark.parametrize("phase", ["copying", "building", "switching"])
@pytest.mark.parametrize("lost", [SOURCE, TARGET])
def test_a_shard_that_is_lost_while_a_bucket_moves(
    cluster: Workbench, wb: Workbench, fresh: list[Server], lost: int, phase: str
) -> None:
    fill(wb)
    fill(cluster)
    cluster.shards.add(fresh[3].url)
    with pytest.raises(StorageError, match=r"cannot be reached|failed"):
        cluster.shards.rebalance(stopping_at(phase, fresh[lost].lose))
    whole_again(cluster, wb, fresh, lost)


def broken_at(cluster: Workbench, fresh: list[Server], server: int, event: str) -> None:
    """Begin a move whose switch one server does not commit."""
    cluster.shards.add(fresh[3].url)
    with psycopg.connect(fresh[server].url) as connection:
        connection.execute(FAILS_AT_COMMIT.format(event))  # pyright: ignore
    with pytest.raises(StorageError, match="the server ends here"):
        cluster.shards.rebalance()
    with psycopg.connect(fresh[server].url) as connection:
        connection.execute("DROP FUNCTION fail CASCADE")


@pytest.mark.parametrize(("server", "event"), [(1, "DELETE ON indexes"), (0, "UPDATE ON index_buckets")])
@pytest.mark.parametrize("lost", [SOURCE, TARGET])
def test_a_shard_that_is_lost_within_the_switch(
    cluster: Workbench, wb: Workbench, fresh: list[Server], lost: int, server: int, event: str
) -> None:
    fill(wb)
    fill(cluster)
    broken_at(cluster, fresh, server, event)
    fresh[lost].lose()
    whole_again(cluster, wb, fresh, lost)
