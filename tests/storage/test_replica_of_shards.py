"""Searches that read a replica of the coordinator while shards and the replica itself go, come back and change."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from tests.storage.birds import NAMES, QUESTIONS, answers, every_answer, fill
from tests.storage.replica import Replica
from tests.storage.shards import Server, standby
from tests.storage.test_rebalancing import held
from workbench import Workbench
from workbench.errors import StorageError
from workbench.retrieval.run import REPLICA_AWAY
from workbench.retrieval.strategies import STRATEGIES
from workbench.settings import Settings
from workbench.types import Scope

UNSEEN = "shard 2"


@pytest.fixture
def replica(cluster: Workbench, fresh: list[Server]) -> Iterator[Replica]:
    """A replica of the coordinator of two shards, which has documents."""
    fill(cluster)
    with standby(fresh[0]) as follower:
        made = Replica(fresh[0].url, follower.url)
        made.catch_up()
        yield made


@pytest.fixture
def reading(replica: Replica, make_settings: Callable[..., Settings]) -> Iterator[Workbench]:
    """A workbench that searches by the replica."""
    settings = make_settings(database_url=replica.primary_url, read_database_url=replica.url)
    with Workbench.open(settings=settings) as wb:
        yield wb


def notes(wb: Workbench, strategy: str, question: str = QUESTIONS[0]) -> tuple[bool, bool]:
    """Search; return whether the notes say that a shard was not seen, and that the replica could not serve."""
    scope = Scope(sources=tuple(source.id for source in wb.sources.list()))
    result = wb.search(question, strategy, limit=50, scope=scope if STRATEGIES[strategy].needs_scope else None)
    assert len(result), strategy
    return any(UNSEEN in note for note in result.degraded), REPLICA_AWAY in result.degraded


def test_every_strategy_answers_as_the_coordinator_does(cluster: Workbench, reading: Workbench) -> None:
    assert every_answer(reading) == every_answer(cluster)
    assert {notes(reading, name) for name in NAMES} == {(False, False)}


def test_a_shard_that_is_away_is_left_out_on_the_replica(
    cluster: Workbench, reading: Workbench, replica: Replica, fresh: list[Server]
) -> None:
    whole = every_answer(reading)
    fresh[2].kill()
    assert {name: notes(reading, name) for name in NAMES} == dict.fromkeys(NAMES, (True, False))
    assert reading.ask("who reads a book by night?").passages
    servers = reading.health.servers()
    assert servers.replica is not None and servers.replica.is_reachable
    assert [check.name for check in reading.health.doctor(servers) if not check.ok] == ["shard 2"]
    fresh[2].start()
    assert reading.corpus.outage.noticed()
    assert every_answer(reading) == whole


def test_a_replica_that_does_not_hear_of_an_outage_is_left_for_the_coordinator(
    reading: Workbench, replica: Replica, fresh: list[Server]
) -> None:
    replica.hold(on=True)
    fresh[2].kill()
    assert notes(reading, "hybrid") == (True, True)
    replica.hold(on=False)


def test_a_replica_that_goes_is_left_for_the_coordinator_and_a_shard_may_go_too(
    cluster: Workbench, reading: Workbench, replica: Replica, fresh: list[Server]
) -> None:
    whole = every_answer(cluster)
    assert notes(reading, "hybrid") == (False, False)
    replica.kill()
    assert {name: notes(reading, name) for name in NAMES} == dict.fromkeys(NAMES, (False, True))
    assert {key: answers(reading, *key) and whole[key] for key in whole} == whole
    fresh[2].kill()
    assert {name: notes(reading, name) for name in NAMES} == dict.fromkeys(NAMES, (True, True))
    assert {check.name for check in reading.health.doctor() if not check.ok} == {"replica", "shard 2"}


def test_buckets_move_while_searches_read_the_replica(
    cluster: Workbench, reading: Workbench, replica: Replica, fresh: list[Server]
) -> None:
    before, ended, wrong, rounds = every_answer(reading), threading.Event(), list[object](), list[bool]()

    def search() -> None:
        while not ended.is_set():
            for key in (("hybrid", QUESTIONS[0]), ("keyword", QUESTIONS[1])):
                try:
                    found = sorted(answers(reading, *key), key=lambda answer: (-answer[2], answer))
                except StorageError as error:
                    wrong.append(error)
                else:
                    rounds.append(found == before[key])

    cluster.shards.add(fresh[3].url)
    with ExitStack() as stack:
        searching = threading.Thread(target=search)
        stack.callback(searching.join)
        stack.callback(ended.set)
        searching.start()
        assert cluster.shards.rebalance() == 10
    assert wrong == [] and all(rounds) and len(rounds) > 10
    assert held(cluster) == [11, 11, 10]
    replica.catch_up()
    assert every_answer(reading) == before


def test_a_replica_that_does_not_know_yet_where_buckets_lie_is_left_for_a_moment(
    cluster: Workbench, reading: Workbench, replica: Replica, fresh: list[Server]
) -> None:
    before = every_answer(reading)
    cluster.shards.add(fresh[3].url)
    replica.hold(on=True)
    assert cluster.shards.rebalance() == 10
    assert {name: notes(reading, name) for name in NAMES} == dict.fromkeys(NAMES, (False, True))
    assert every_answer(reading) == before
    replica.hold(on=False)
    replica.catch_up()
    while notes(reading, "vector") != (False, False):  # it rests for a second
        assert every_answer(reading) == before
    assert {name: notes(reading, name) for name in NAMES} == dict.fromkeys(NAMES, (False, False))
