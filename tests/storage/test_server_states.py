"""The state of the servers beside the database: each is asked once a look, with its size and whether it answers."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.storage.birds import fill
from tests.storage.relay import Relay
from tests.storage.replica import Replica
from tests.storage.shards import Server
from tests.storage.test_read_replica import opened
from workbench import Workbench
from workbench.cli import main
from workbench.settings import Settings
from workbench.storage.postgres import embedded_url


class Refusing:
    """A server on loopback that ends every connection at once, and counts them."""

    def __init__(self) -> None:
        self.asked = 0
        self._socket = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._refuse, daemon=True).start()

    @property
    def url(self) -> str:
        """Its address, as that of a database."""
        return f"postgresql://nobody@127.0.0.1:{self._socket.getsockname()[1]}/none?sslmode=disable"

    def close(self) -> None:
        """Listen no more."""
        self._socket.close()

    def _refuse(self) -> None:
        while True:
            try:
                near, _ = self._socket.accept()
            except OSError:
                return
            self.asked += 1
            near.close()


@pytest.fixture
def commands(fresh: list[Server], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """The commands of a person whose data lies with the first server: words in, the exit code out."""
    monkeypatch.setenv("WORKBENCH_HOME", str(tmp_path))
    monkeypatch.setenv("WORKBENCH_EMBEDDING_MODEL", "hash")
    monkeypatch.setenv("WORKBENCH_DATABASE_URL", fresh[0].url)
    return lambda *words: main(list(words))


@pytest.fixture
def refusing() -> Iterator[Refusing]:
    server = Refusing()
    yield server
    server.close()


def test_status_asks_a_replica_that_is_away_once(
    refusing: Refusing, shared_home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("WORKBENCH_HOME", str(shared_home))
    monkeypatch.setenv("WORKBENCH_EMBEDDING_MODEL", "hash")
    monkeypatch.setenv("WORKBENCH_READ_DATABASE_URL", refusing.url)
    assert main(["status"]) == 0
    assert "cannot be reached; the primary is searched in its place" in capsys.readouterr().out
    assert refusing.asked == 1


def test_doctor_says_of_a_replica_that_is_away_what_to_do(shared_home: Path) -> None:
    away = Replica(embedded_url(shared_home / "postgres"), "postgresql://nobody@127.0.0.1:1/none")
    with opened(shared_home, away) as wb:
        (check,) = [check for check in wb.health.doctor() if check.name == "replica"]
    assert not check.ok
    assert check.detail.endswith("searched in its place. Start it, or correct WORKBENCH_READ_DATABASE_URL.")


def test_each_shard_tells_its_size_and_that_of_its_part_of_each_index(cluster: Workbench) -> None:
    fill(cluster)
    shards, status = cluster.shards.list(), cluster.status()
    assert all(shard.bytes is not None and shard.bytes > shard.indexes["main"] > 100_000 for shard in shards)
    assert status["indexes"][0]["bytes"] == cluster.indexes.bytes_on_disk("main")
    assert status["indexes"][0]["bytes"] >= sum(shard.indexes["main"] for shard in shards)


def test_status_and_the_list_of_shards_show_sizes_and_which_shard_does_not_answer(
    cluster: Workbench,
    fresh: list[Server],
    commands: Callable[..., int],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    fill(cluster)
    monkeypatch.setenv("COLUMNS", "250")
    fresh[2].kill()
    assert commands("status") == 0
    shown = capsys.readouterr().out
    assert "MB on disk" in shown and "16 buckets of indexes; it cannot be reached" in shown and "MB on shards" in shown
    assert commands("cluster", "list") == 0
    assert "MB" in capsys.readouterr().out
    assert commands("status", "--json") == 0
    first, second = json.loads(capsys.readouterr().out)["shards"]
    assert first["bytes"] > first["indexes"]["main"] and (second["bytes"], second["indexes"]) == (None, {})


def test_an_index_in_the_database_itself_is_measured_without_asking_shards(
    fresh: list[Server], make_settings: Callable[..., Settings]
) -> None:
    asked: list[bool] = []
    relay = Relay(fresh[1].folder / ".s.PGSQL.5432", before=(b"pg_total_relation_size", lambda: asked.append(True)))
    with Workbench.open(settings=make_settings(database_url=fresh[0].url)) as wb:
        wb.documents.create(text="Herons stand in the reeds.", title="Herons")
        wb.shards.add(f"postgresql://postgres@127.0.0.1:{relay.port}/postgres")
        assert wb.indexes.bytes_on_disk("main") > 0
        assert not asked
        wb.indexes.create("wide", chunker="sentence")
        assert wb.indexes.bytes_on_disk("wide") > 0
        assert asked
    relay.cut()
