"""A cluster whose coordinator is reached by a pooler in transaction mode: a real pgbouncer."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import psycopg
import pytest

from tests.storage.birds import NAMES, QUESTIONS, every_answer, fill
from tests.storage.bouncer import bouncer
from tests.storage.shards import Server
from tests.storage.test_pooler import left_in_sessions
from tests.storage.test_rebalancing import held, interrupted, nothing_is_left, stopping_at
from workbench import Workbench
from workbench.errors import Cancelled, StorageError
from workbench.retrieval.strategies import STRATEGIES
from workbench.settings import Settings
from workbench.types import Scope

PATHS = "SELECT current_setting('search_path')"


@pytest.fixture
def pooled(fresh: list[Server], make_settings: Callable[..., Settings]) -> Iterator[Workbench]:
    """A workbench whose indexes lie on two shards, and which knows its own database by the pooler only."""
    with (
        bouncer(fresh[0].url) as by,
        Workbench.open(settings=make_settings(database_url=by.url(fresh[0].url))) as wb,
    ):
        for server in fresh[1:3]:
            wb.shards.add(server.url)
        fill(wb)
        yield wb


def search_paths(wb: Workbench) -> set[str]:
    """Return where the sessions find tables that the pooler gives to others next; it goes round them."""
    with psycopg.connect(wb.corpus.database.url, autocommit=True, prepare_threshold=None) as connection:
        return {str((connection.execute(PATHS).fetchone() or ("",))[0]) for _ in range(40)}


def test_every_strategy_answers_as_one_server_does(pooled: Workbench, wb: Workbench) -> None:
    fill(wb)
    assert [index.buckets for index in pooled.indexes.list()] == [32]
    assert every_answer(pooled) == every_answer(wb)
    pooled.sources.delete(pooled.sources.list()[0].id)
    assert len(pooled.search("herons")) == 0
    assert left_in_sessions(pooled.corpus.database.url) == 0


def test_a_shard_that_is_away_is_left_out_and_nothing_stays_in_a_session(
    pooled: Workbench, fresh: list[Server]
) -> None:
    whole = every_answer(pooled)
    fresh[2].kill()
    for name in NAMES:
        scope = Scope(sources=tuple(source.id for source in pooled.sources.list()))
        result = pooled.search(QUESTIONS[0], name, limit=50, scope=scope if STRATEGIES[name].needs_scope else None)
        assert len(result) and any("shard 2" in note for note in result.degraded), name
    assert pooled.ask("who reads a book by night?").degraded
    assert search_paths(pooled) == {'"$user", public'}
    with pytest.raises(StorageError, match="Shard 2 of the cluster cannot be reached"):
        pooled.documents.create(text="Nobody keeps this.")
    fresh[1].kill()
    with pytest.raises(StorageError, match="Shard 1 of the cluster cannot be reached"):
        pooled.search(QUESTIONS[0])
    for server in fresh[1:3]:
        server.start()
    pooled.corpus.outage.noticed()
    assert every_answer(pooled) == whole
    assert left_in_sessions(pooled.corpus.database.url) == 0


def test_buckets_move_and_a_shard_leaves(pooled: Workbench, fresh: list[Server]) -> None:
    before = every_answer(pooled)
    pooled.shards.add(fresh[3].url)
    with pytest.raises(Cancelled, match="Stopped after 0 buckets"):
        pooled.shards.rebalance(stopping_at("switching", interrupted))
    assert pooled.shards.rebalance() == 10
    assert every_answer(pooled) == before
    assert pooled.shards.remove("1").number == 1
    assert held(pooled) == [16, 16]
    assert every_answer(pooled) == before
    assert pooled.shards.check() == (0, 0)
    nothing_is_left(pooled, fresh)
    assert left_in_sessions(pooled.corpus.database.url) == 0
