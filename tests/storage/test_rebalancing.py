"""Buckets that move between real servers while others search and write, and what a broken move leaves."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from tests.storage.birds import answers, every_answer, fill
from tests.storage.shards import Server
from workbench import Workbench
from workbench.cli import main
from workbench.errors import Cancelled, ConfigurationError, Conflict, NotFound, StatementRefused, StorageError
from workbench.types import Progress

FAILS_AT_COMMIT = """
CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'the server ends here'; END $$;
CREATE CONSTRAINT TRIGGER fails AFTER {} DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION fail();
"""


def held(wb: Workbench) -> list[int]:
    """Return how many buckets each shard holds."""
    return [shard.buckets for shard in wb.shards.list()]


def nothing_is_left(wb: Workbench, servers: list[Server]) -> None:
    """Assert that no move is noted, no server follows another, and no bucket lies anywhere but in its place."""
    assert wb.shards.moves() == []
    tables = 0
    for server in servers[1:]:
        with psycopg.connect(server.url) as shard:
            for catalogue in ("pg_replication_slots", "pg_subscription", "pg_publication"):
                assert shard.execute(f"SELECT count(*) FROM {catalogue}").fetchone() == (0,), catalogue  # pyright: ignore
            of_buckets = "SELECT relname FROM pg_class WHERE relname ~ '^(data|lexicon|postings)_.*_b[0-9]+$'"
            assert shard.execute(f"{of_buckets} AND NOT relispartition").fetchall() == []  # pyright: ignore
            counted = shard.execute("SELECT count(*) FROM pg_class WHERE relname ~ '^data_.*_b[0-9]+$'").fetchone()
            tables += counted[0] if counted else 0
    assert tables == sum(held(wb))


def test_a_newcomer_takes_buckets_while_others_search_and_write(
    cluster: Workbench, fresh: list[Server], wb: Workbench
) -> None:
    stones = ["quartz", "basalt", "granite", "marble", "slate", "gneiss"]
    for workbench in (wb, cluster):
        fill(workbench)
    stone = cluster.documents.create(text=" ".join(stones), title="Stones").document.id
    before, ended, wrong, rounds = every_answer(cluster), threading.Event(), list[object](), [0, 0]

    def without_stones(found: list[tuple[str, str, float]]) -> list[tuple[str, str, float]]:
        return sorted(answer for answer in found if answer[0] != "Stones")

    def search() -> None:
        while not ended.is_set():
            for key in (("hybrid", "herons in the reeds"), ("keyword", "who reads a book of birds")):
                if without_stones(answers(cluster, *key)) != without_stones(before[key]):
                    wrong.append(key)
                rounds[0] += 1

    def write() -> None:
        while not ended.is_set():
            stones.append(stones.pop(0))  # other texts with the same words, so that all scores stay
            cluster.documents.update(stone, text=" ".join(stones))
            rounds[1] += 1

    threads = [threading.Thread(target=search), threading.Thread(target=write)]
    cluster.shards.add(fresh[3].url)
    for thread in threads:
        thread.start()
    try:
        assert cluster.shards.rebalance() == 10
    finally:
        ended.set()
        for thread in threads:
            thread.join()
    assert wrong == []
    assert min(rounds) > 10
    assert held(cluster) == [11, 11, 10]
    nothing_is_left(cluster, fresh)
    assert without_stones(every_answer(cluster)["hybrid", "herons in the reeds"])
    cluster.documents.delete(stone)
    assert every_answer(cluster) == every_answer(wb)


def test_a_shard_is_emptied_and_let_go_and_may_come_back(cluster: Workbench, fresh: list[Server]) -> None:
    fill(cluster)
    cluster.shards.add(fresh[3].url)
    before = every_answer(cluster)
    with pytest.raises(NotFound, match="Shard not found: 7"):
        cluster.shards.remove("7")
    assert cluster.shards.remove(fresh[1].url).number == 1
    assert [shard.number for shard in cluster.shards.list()] == [2, 3]
    assert held(cluster) == [16, 16]
    assert every_answer(cluster) == before
    nothing_is_left(cluster, fresh)
    fresh[1].kill()
    assert every_answer(cluster) == before
    fresh[1].start()
    cluster.shards.add(fresh[1].url)
    assert cluster.shards.rebalance() == 10
    assert every_answer(cluster) == before
    assert held(cluster) == [11, 11, 10]


def test_the_last_shard_stays_while_it_holds_something(cluster: Workbench, fresh: list[Server]) -> None:
    cluster.documents.create(text="A heron.")
    cluster.shards.remove("1")
    with pytest.raises(Conflict, match="is the last shard, so what it holds cannot go anywhere"):
        cluster.shards.remove("2")


@pytest.mark.parametrize("phase", ["pg_publication", "pg_replication_slots", "pg_subscription_rel"])
def test_another_rebalance_goes_on_where_one_was_killed(
    cluster: Workbench, fresh: list[Server], tmp_path: Path, phase: str
) -> None:
    fill(cluster)
    before = every_answer(cluster)
    cluster.shards.add(fresh[3].url)
    environment = {**os.environ, "WORKBENCH_HOME": str(tmp_path), "WORKBENCH_DATABASE_URL": fresh[0].url}
    command = [sys.executable, "-m", "workbench.cli", "cluster", "rebalance"]
    mover = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    where = fresh[3] if phase == "pg_subscription_rel" else fresh[1]
    with psycopg.connect(where.url, autocommit=True) as shard:
        while shard.execute(f"SELECT count(*) FROM {phase}").fetchone() == (0,):  # pyright: ignore
            assert mover.poll() is None
    mover.send_signal(signal.SIGKILL)
    mover.wait()
    assert every_answer(cluster) == before
    cluster.documents.create(text="A heron that came after the kill.", title="Late")
    cluster.shards.rebalance()
    nothing_is_left(cluster, fresh)
    assert held(cluster) == [11, 11, 10]
    late = cluster.search("kill", "keyword")
    assert [hit.document_title for hit in late] == ["Late"]
    cluster.documents.delete(late[0].document_id)
    assert every_answer(cluster) == before


def test_a_switch_that_only_the_target_made_hides_nothing_and_is_ended_by_a_check(
    cluster: Workbench, fresh: list[Server], wb: Workbench
) -> None:
    fill(wb)
    fill(cluster)
    cluster.shards.add(fresh[3].url)
    with psycopg.connect(fresh[1].url) as source:
        source.execute(FAILS_AT_COMMIT.format("DELETE ON indexes"))  # pyright: ignore
    with pytest.raises(StorageError, match="the server ends here"):
        cluster.shards.rebalance()
    assert every_answer(cluster) == every_answer(wb)
    for number in range(9):  # some of them into the bucket between two shards
        for workbench in (wb, cluster):
            workbench.documents.create(text=f"A late heron, number {number}, by the river.", title=f"Late {number}")
    with psycopg.connect(fresh[1].url) as source:
        source.execute("DROP FUNCTION fail CASCADE")
    assert cluster.shards.check() == (0, 1)
    assert sorted(held(cluster)) == [1, 15, 16]
    assert every_answer(cluster) == every_answer(wb)
    nothing_is_left(cluster, fresh)


def test_a_switch_that_only_the_coordinator_lacks_is_said_and_ended_by_a_check(
    cluster: Workbench, fresh: list[Server]
) -> None:
    fill(cluster)
    before = every_answer(cluster)
    cluster.shards.add(fresh[3].url)
    with psycopg.connect(fresh[0].url) as coordinator:
        coordinator.execute(FAILS_AT_COMMIT.format("UPDATE ON index_buckets"))  # pyright: ignore
    with pytest.raises(StorageError, match="the server ends here"):
        cluster.shards.rebalance()
    broken_off = r"its move broke off in the middle; run 'workbench cluster rebalance'"
    with pytest.raises(StatementRefused, match=broken_off):
        cluster.search("heron", "keyword")
    with pytest.raises(StatementRefused, match=broken_off):
        cluster.sources.delete(cluster.sources.list()[0].id)
    (broken,) = cluster.shards.moves()
    assert "the move broke off" in broken.sentence
    assert [check.name for check in cluster.health.doctor() if not check.ok] == ["move of buckets"]
    with psycopg.connect(fresh[0].url) as coordinator:
        coordinator.execute("DROP FUNCTION fail CASCADE")
    assert cluster.shards.check() == (0, 1)
    assert every_answer(cluster) == before
    nothing_is_left(cluster, fresh)
    assert cluster.shards.rebalance() == 9
    assert every_answer(cluster) == before


def stopping_at(text: str, act: Callable[[], object]) -> Callable[[Progress], None]:
    """Return a listener that acts once, when the progress says a text."""
    done = list[bool]()

    def listen(progress: Progress) -> None:
        if text in progress.message and not done:
            done.append(True)
            act()

    return listen


def interrupted() -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("phase", ["copying", "building", "switching"])
def test_a_rebalance_that_is_interrupted_leaves_nothing_half_moved(
    cluster: Workbench, fresh: list[Server], phase: str
) -> None:
    fill(cluster)
    before = every_answer(cluster)
    cluster.shards.add(fresh[3].url)
    with pytest.raises(Cancelled, match="Stopped after 0 buckets; what was moved stays"):
        cluster.shards.rebalance(stopping_at(phase, interrupted))
    nothing_is_left(cluster, fresh)
    assert held(cluster) == [16, 16, 0]
    assert every_answer(cluster) == before


def test_a_shard_that_dies_while_it_gets_a_bucket_is_said_and_gets_it_later(
    cluster: Workbench, fresh: list[Server]
) -> None:
    fill(cluster)
    before = every_answer(cluster)
    cluster.shards.add(fresh[3].url)
    with pytest.raises(StorageError, match=r"cannot be reached|failed"):
        cluster.shards.rebalance(stopping_at("building", fresh[3].kill))
    assert every_answer(cluster) == before
    fresh[3].start()
    assert cluster.shards.rebalance() == 10
    nothing_is_left(cluster, fresh)
    assert every_answer(cluster) == before


def test_an_index_that_is_deleted_while_it_moves_leaves_nothing(cluster: Workbench, fresh: list[Server]) -> None:
    fill(cluster)
    cluster.indexes.create("second", chunker="sentence")
    cluster.indexes.build("second")
    cluster.shards.add(fresh[3].url)
    in_the_midst = stopping_at("building the graph of bucket 22 of second", lambda: cluster.indexes.delete("second"))
    assert cluster.shards.rebalance(in_the_midst) == 10
    nothing_is_left(cluster, fresh)


def test_two_rebalances_do_not_run_at_once(cluster: Workbench, fresh: list[Server]) -> None:
    fill(cluster)
    cluster.shards.add(fresh[3].url)
    seen = list[str]()

    def try_another() -> None:
        with pytest.raises(Conflict, match="Buckets are being moved already"):
            cluster.shards.rebalance()
        seen.extend(move.sentence for move in cluster.shards.moves())

    cluster.shards.rebalance(stopping_at("copying", try_another))
    assert seen == ["bucket 22 of main goes from shard 1 to shard 3"]


def test_a_server_that_cannot_be_followed_says_what_to_set(cluster: Workbench, fresh: list[Server]) -> None:
    fill(cluster)
    cluster.shards.add(fresh[3].url)
    fresh[1].kill()
    fresh[1].start(log="replica")
    with pytest.raises(ConfigurationError, match=r"Shard 1 .* set wal_level = logical in its postgresql.conf"):
        cluster.shards.rebalance()
    nothing_is_left(cluster, fresh)
    fresh[1].kill()  # the next test starts it as it was


def test_the_command_spreads_and_removes(
    fresh: list[Server], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("WORKBENCH_HOME", str(tmp_path))
    monkeypatch.setenv("WORKBENCH_DATABASE_URL", fresh[0].url)
    assert main(["cluster", "add", fresh[1].url]) == 0
    assert main(["indexes", "create", "wide"]) == 0
    assert main(["cluster", "add", fresh[2].url]) == 0
    assert main(["cluster", "rebalance"]) == 0
    assert "buckets moved; every shard holds as many of each index as the others." in capsys.readouterr().out
    assert main(["cluster", "remove", "1"]) == 0
    assert "is no shard any more and holds nothing; it can be switched off." in capsys.readouterr().out
    assert main(["cluster", "remove", "1"]) == 2
    assert "Shard not found: 1." in capsys.readouterr().err
