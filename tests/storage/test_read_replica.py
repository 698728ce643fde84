"""Searches use a replica if one is set, and everything else the primary: a real streaming replica."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from tests.storage.relay import Relay
from tests.storage.replica import Replica, streaming_replica
from workbench import Workbench
from workbench.retrieval.pipeline import REPLICA_UNAVAILABLE
from workbench.retrieval.strategies import STRATEGIES
from workbench.settings import Settings
from workbench.storage.migrate import migrate
from workbench.storage.postgres import start_embedded_server


@pytest.fixture
def replica(shared_home: Path) -> Iterator[Replica]:
    """A replica of a separate embedded server, which holds a migrated database."""
    url = start_embedded_server(shared_home / "postgres")
    migrate(url)
    with streaming_replica(shared_home, url) as made:
        yield made


def opened(home: Path, replica: Replica) -> Workbench:
    """Open a workbench that writes to the primary and reads from the replica."""
    values = {"home": home, "database_url": replica.primary_url, "read_database_url": replica.url}
    return Workbench.open(settings=Settings(**values, embedding_model="hash", _env_file=None))  # pyright: ignore


def test_searches_see_what_the_replica_has_and_writing_continues_next_to_them(
    shared_home: Path, replica: Replica
) -> None:
    with opened(shared_home, replica) as wb:
        wb.documents.create(text="Herons stand in the reeds.", title="Herons")
        replica.catch_up()
        for name, strategy in STRATEGIES.items():
            if not strategy.needs and not strategy.needs_scope:
                assert [hit.document_title for hit in wb.search("herons reeds", name)] == ["Herons"], name
        replica.hold(on=True)
        wb.documents.create(text="Herons nest in tall trees.", title="Nests")
        assert {document.title for document in wb.documents.list()} == {"Herons", "Nests"}
        assert [hit.document_title for hit in wb.search("herons nest")] == ["Herons"]
        assert wb.ask("where do herons nest?").passages[0].document_title == "Herons"
        replica.hold(on=False)
        replica.catch_up()
        assert wb.search("herons nest")[0].document_title == "Nests"
        explained = wb.explain("herons nest", document_id=wb.search("herons nest")[0].document_id)
        assert explained.rank == 1


def test_a_full_text_that_the_replica_has_yet_to_get_is_read_in_the_primary(
    shared_home: Path, replica: Replica
) -> None:
    with opened(shared_home, replica) as wb:
        wb.documents.create(text="Herons stand in the reeds.", title="Herons")
        replica.catch_up()
        replica.hold(on=True)
        assert [hit.document_title for hit in wb.search("herons", "llamaindex-hybrid")] == ["Herons"]
        replica.hold(on=False)


def test_a_replica_takes_no_writes_and_a_search_needs_none(shared_home: Path, replica: Replica) -> None:
    with psycopg.connect(replica.url) as connection:
        row = connection.execute("SELECT pg_is_in_recovery()").fetchone()
        assert row == (True,)
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
            connection.execute("DELETE FROM documents")
    with opened(shared_home, replica) as wb:
        wb.search("nothing yet")
        replica.catch_up()
        assert len(wb.search("nothing yet")) == 0


def test_an_index_that_the_replica_has_yet_to_get_is_searched_in_the_primary(
    shared_home: Path, replica: Replica
) -> None:
    replica.hold(on=True)
    with opened(shared_home, replica) as wb:
        assert len(wb.search("herons")) == 0
        wb.documents.create(text="Herons stand in the reeds.", title="Herons")
        assert len(wb.search("herons")) == 1
        replica.hold(on=False)
        replica.catch_up()
        assert len(wb.search("herons")) == 1
        replica.hold(on=True)
        wb.documents.create(text="Herons nest in tall trees.", title="Nests")
        assert len(wb.search("herons")) == 1


def test_while_the_replica_is_away_every_strategy_searches_the_primary_and_reports_it(shared_home: Path) -> None:
    away = Replica(start_embedded_server(shared_home / "postgres"), "postgresql://nobody@127.0.0.1:1/none")
    with opened(shared_home, away) as wb:
        wb.documents.create(text="Herons stand in the reeds.", title="Herons")
        for name, strategy in STRATEGIES.items():
            if not strategy.needs and not strategy.needs_scope:
                found = wb.search("herons reeds", name)
                assert [hit.document_title for hit in found] == ["Herons"], name
                assert REPLICA_UNAVAILABLE in found.degraded, name
        assert REPLICA_UNAVAILABLE in wb.ask("where do herons stand?").degraded
        told = wb.status()["replica"]
        assert told is not None and (told["is_reachable"], told["bytes_behind"]) == (False, None)


def test_a_replica_that_goes_and_comes_back_serves_again(
    shared_home: Path, replica: Replica, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workbench.storage.replica.RETRY_DELAY_S", 0.0)
    relay = Relay(Path(conninfo_to_dict(replica.url)["host"]) / ".s.PGSQL.5432")
    by_relay = replace(replica, url=make_conninfo(replica.url, host="127.0.0.1", port=relay.port))
    with opened(shared_home, by_relay) as wb:
        wb.documents.create(text="Herons stand in the reeds.", title="Herons")
        replica.catch_up()
        assert wb.search("herons").degraded == ()
        relay.cut()
        lost = wb.search("herons")
        assert ([hit.document_title for hit in lost], lost.degraded) == (["Herons"], (REPLICA_UNAVAILABLE,))
        relay.open()
        assert wb.search("herons").degraded == ()
    relay.cut()


def test_status_reports_how_far_the_replica_is_behind(shared_home: Path, replica: Replica) -> None:
    with opened(shared_home, replica) as wb:
        for _ in range(20):  # a primary at rest may still note something of its own in between
            replica.catch_up()
            level = wb.health.replica()
            if level is not None and level.bytes_behind == 0:
                break
        assert level is not None and (level.is_reachable, level.bytes_behind, level.seconds_behind) == (True, 0, 0.0)
        replica.hold(on=True)
        wb.documents.create(text="Herons stand in the reeds. " * 400, title="Herons")
        late = wb.health.replica()
        assert late is not None and late.bytes_behind is not None and late.bytes_behind > 1_000
        assert late.sentence.endswith("s old") and "kB behind" in late.sentence.replace("KB", "kB")
        replica.hold(on=False)
