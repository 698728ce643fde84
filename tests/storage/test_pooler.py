"""Everything works through a pooler in transaction mode: a real pgbouncer, whose connections take turns."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from mcp_app.server import create_server
from tests.conftest import cloned_database
from tests.jobs.shared_work import MANY, one_part_written, passages
from tests.jobs.test_jobs import LONG
from tests.mcp_app.agent import Agent
from tests.shared_home import stop_server
from tests.storage import test_migrations
from tests.storage.bouncer import Bouncer, bouncer
from tests.storage.test_several_processes import inconsistencies
from tests.worker_nest import worker_process
from workbench import Workbench
from workbench.errors import StorageError
from workbench.retrieval.strategies import STRATEGIES
from workbench.settings import Settings
from workbench.storage.database import SESSION_OPTIONS, check_reachable, is_pooled
from workbench.storage.migrate import list_migrations
from workbench.storage.postgres import start_embedded_server

BIRDS = {f"{n}.md": f"# Bird {n}\n\nHerons stand in reed {n}, and owls{n % 7} hoot at night." for n in range(60)}
LEFT = """
SELECT (SELECT count(*) FROM pg_prepared_statements) + (SELECT count(*) FROM pg_listening_channels())
     + (SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'advisory')
     + (SELECT count(*) FROM pg_class WHERE relpersistence = 't' AND relkind = 'r')
     + (SELECT count(*) FROM pg_settings WHERE source = 'session' AND name IN ('jit', 'work_mem', 'plan_cache_mode'))
"""


encoding, empty_database = test_migrations.encoding, test_migrations.empty_database


@pytest.fixture(scope="module")
def pooler(server_url: str) -> Iterator[Bouncer]:
    """A pooler in front of the run's server."""
    with bouncer(server_url) as running:
        yield running


@pytest.fixture
def pooled_url(pooler: Bouncer, database_url: str) -> str:
    """The test's database through the pooler."""
    return pooler.url(database_url)


@pytest.fixture
def pooled(make_settings: Callable[..., Settings], pooled_url: str) -> Iterator[Workbench]:
    """A workbench that only knows the pooler."""
    with Workbench.open(settings=make_settings(database_url=pooled_url)) as workbench:
        yield workbench


def left_in_sessions(url: str) -> int:
    """Count what is left in the server sessions that the pooler gives to others next, one after another."""
    with psycopg.connect(url, autocommit=True, prepare_threshold=None) as connection:
        return sum(int((connection.execute(LEFT).fetchone() or (1,))[0]) for _ in range(40))


def test_a_pooler_is_recognised_and_a_server_is_none(database_url: str, pooled_url: str) -> None:
    for url, expected in ((database_url, False), (pooled_url, True)):
        with psycopg.connect(url, autocommit=True) as connection:
            assert is_pooled(connection) is expected


def test_two_processes_that_start_together_migrate_an_empty_database_once(
    pooler: Bouncer,
    empty_database: str,
) -> None:
    command = [sys.executable, "-c", test_migrations.MIGRATE, pooler.url(empty_database)]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    ran = [process.communicate(timeout=60)[0].split() for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert sorted(ran, key=len) == [[], [name for _, name, _ in list_migrations()]]


@pytest.mark.parametrize("ignored", ["extra_float_digits", "extra_float_digits, options"])
def test_every_strategy_finds_the_same_with_the_same_settings_as_without_a_pooler(
    ignored: str, wb: Workbench, server_url: str, database_url: str, make_settings: Callable[..., Settings],
    folder: Callable[..., Path],
) -> None:  # fmt: skip
    wb.ingest(folder(BIRDS), source="Birds")
    with (
        bouncer(server_url, ignored=ignored) as by,
        Workbench.open(settings=make_settings(database_url=by.url(database_url))) as pooled,
    ):
        store = pooled.corpus.store(pooled.indexes.get())
        with store.reading() as connection:
            for name, value in SESSION_OPTIONS.items():
                row = connection.execute("SELECT current_setting(%s) AS value", [name]).fetchone()
                assert row == {"value": value}, name
        for name, strategy in STRATEGIES.items():
            if not strategy.needs and not strategy.needs_scope:
                for question in ("herons in reed 17", "owls3 hooot"):
                    with_it, without = pooled.search(question, name), wb.search(question, name)
                    found = [(hit.passage_id, hit.score) for hit in with_it]
                    assert found == [(hit.passage_id, hit.score) for hit in without] and found, name
        assert pooled.ask("where do herons stand?").passages
        assert left_in_sessions(by.url(database_url)) == 0


def test_what_is_written_is_whole_and_nothing_stays_in_a_session(
    pooled: Workbench, database_url: str, pooled_url: str, folder: Callable[..., Path], tmp_path: Path
) -> None:
    root = folder(BIRDS)
    assert pooled.ingest(root, source="Birds").added == 60
    (root / "1.md").write_text("# Bird 1\n\nIt flew away in 1204.")
    assert (pooled.ingest(root, source="Birds").updated, inconsistencies(database_url)) == (1, 0)
    document = pooled.documents.create(text="Storks nest on roofs.", title="Storks")
    pooled.indexes.create("small", chunker="sentence")
    pooled.indexes.build("small")
    pooled.documents.delete(document.document.id)
    pooled.indexes.delete("small")
    with pytest.raises(StorageError), pooled.corpus.database.transaction() as connection:
        connection.execute("INSERT INTO projects (id, title) VALUES ('p1', 'Zoo')")
        connection.execute("SELECT 1 / 0")
    assert pooled.projects.list() == []
    assert pooled.backups.write(tmp_path / "all.zip").documents == 60
    assert pooled.status()["corpus"]["documents"] == 60
    assert all(check.ok for check in pooled.health.doctor() if check.name != "disk")
    assert (left_in_sessions(pooled_url), inconsistencies(database_url)) == (0, 0)


def test_an_export_is_read_through_a_pooler(
    wb: Workbench, pooler: Bouncer, server_url: str, template_database: str, make_settings: Callable[..., Settings],
    folder: Callable[..., Path], tmp_path: Path,
) -> None:  # fmt: skip
    wb.ingest(folder(BIRDS), source="Birds")
    wb.backups.write(tmp_path / "all.zip")
    with cloned_database(server_url, template_database) as url:
        with Workbench.open(settings=make_settings(database_url=pooler.url(url))) as fresh:
            assert fresh.backups.read(tmp_path / "all.zip").documents == 60
            assert fresh.search("herons")
            left, right = (each.search("reed 17", "keyword", limit=3) for each in (fresh, wb))
            assert [hit.text for hit in left] == [hit.text for hit in right]
        assert inconsistencies(url) == 0


def test_a_job_is_shared_by_workers_one_is_killed_and_it_is_stopped_and_continued(
    wb: Workbench, pooled: Workbench, database_url: str, pooled_url: str, test_home: Path, folder: Callable[..., Path]
) -> None:
    root = folder(MANY)
    pooled.indexes.get()
    with one_part_written(database_url, "main"):
        job = pooled.jobs.enqueue_ingest([root], source="Many")
        workers = [worker_process(pooled_url, test_home) for _ in range(2)]
        while pooled.jobs.table.parts.tally(job.id).holders < 2:
            assert all(worker.poll() is None for worker in workers)
            time.sleep(0.05)
        with wb.jobs.table.hold(job.id) as ours:
            assert not ours  # the worker that leads holds it, through the pooler
        workers[0].kill()
        workers[0].wait()
        pooled.jobs.cancel(job.id)
    assert pooled.jobs.wait(job.id, timeout=LONG * 2).status == "cancelled"
    pooled.jobs.resume(job.id)
    done = pooled.jobs.wait(job.id, timeout=LONG * 3)
    workers[1].terminate()
    workers[1].wait()
    assert (done.status, done.done, done.total) == ("completed", 80, 80)
    wb.ingest(root, source="Undisturbed")
    assert passages(database_url, "main", "Many") == passages(database_url, "main", "Undisturbed")
    assert left_in_sessions(pooled_url) == 0


def test_a_name_that_is_held_is_free_again_when_its_holder_leaves(pooled: Workbench, wb: Workbench) -> None:
    with pooled.jobs.table.hold("some name") as ours, wb.jobs.table.hold("some name") as theirs:
        assert (ours, theirs) == (True, False)
    with pooled.jobs.table.hold("some name") as again:
        assert again


def test_an_agent_writes_and_finds_through_a_pooler(pooled: Workbench) -> None:
    agent = Agent(create_server(pooled, toolsets=["all"]))
    agent("manage_document", action="create", title="Herons", content="# Herons\n\nHerons stand in the reeds.")
    assert agent("manage_document", action="list")["total_count"] == 1
    assert "Herons stand in the reeds." in agent.text("search", query="herons")


def test_a_server_that_goes_is_a_sentence_and_one_that_is_back_serves(
    shared_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = start_embedded_server(shared_home / "postgres")
    with bouncer(url) as by:
        settings = Settings(home=shared_home, database_url=by.url(url), embedding_model="hash", _env_file=None)  # pyright: ignore
        with Workbench.open(settings=settings) as wb:
            wb.documents.create(text="Herons stand in the reeds.", title="Herons")
            assert len(wb.search("herons")) == 1
            stop_server(shared_home)
            monkeypatch.setattr(wb.corpus.database, "connect_timeout", 1.0)
            with pytest.raises(StorageError, match=r"is unreachable|check that it is running|is down or overloaded"):
                wb.search("herons")
            start_embedded_server(shared_home / "postgres")
            assert found_again(wb) == 1


def found_again(wb: Workbench) -> int:
    """Search until the database is back: the pooler waits a second before it retries its server."""
    for _ in range(40):
        try:
            return len(wb.search("herons"))
        except StorageError as error:
            assert "down or overloaded" in str(error) or "is unreachable" in str(error)
            threading.Event().wait(0.25)  # a pooler that is asked without a pause does not come to look
    return 0


def test_a_pooler_whose_servers_are_all_taken_is_a_sentence(
    server_url: str, database_url: str, make_settings: Callable[..., Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    with bouncer(server_url, size=1) as by:
        url = by.url(database_url)
        with Workbench.open(settings=make_settings(database_url=url)) as wb:
            assert len(wb.documents.list()) == 0
            monkeypatch.setattr(wb.corpus.database, "connect_timeout", 0.2)
            with wb.jobs.table.hold("some name"), pytest.raises(StorageError, match="down or overloaded"):
                wb.documents.list()
            assert len(wb.documents.list()) == 0


def test_parameters_in_the_url_that_a_pooler_refuses_are_a_sentence(pooled_url: str) -> None:
    with pytest.raises(StorageError, match=r"The pooler at .* rejects the URL's parameters"):
        check_reachable(make_conninfo(pooled_url, options="-c jit=off"), 5)
