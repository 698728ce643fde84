"""A part of a job is taken by one worker only, whatever plan Postgres chooses for the statement."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from importlib.resources import files
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from tests.jobs.shared_work import MANY, taken_again
from tests.jobs.test_jobs import LONG, worker_process
from workbench import Workbench
from workbench.storage.database import statement

# Settings of the planner, each of which makes other plans likely.
PLANS: dict[str, dict[str, str]] = {
    "default": {},
    "nested-loop": {"enable_hashjoin": "off", "enable_mergejoin": "off"},
    "nested-loop-seqscan": {
        "enable_hashjoin": "off",
        "enable_mergejoin": "off",
        "enable_indexscan": "off",
        "enable_bitmapscan": "off",
    },
    "nested-loop-no-material": {"enable_hashjoin": "off", "enable_mergejoin": "off", "enable_material": "off"},
    "hash-join": {"enable_nestloop": "off", "enable_mergejoin": "off"},
    "merge-join": {"enable_nestloop": "off", "enable_hashjoin": "off"},
    "generic-plan": {"plan_cache_mode": "force_generic_plan", "enable_hashjoin": "off", "enable_mergejoin": "off"},
    "index-only": {"enable_seqscan": "off", "enable_hashjoin": "off", "enable_mergejoin": "off"},
}

FORMER_JOBS = 30  # in the statistics: Postgres then expects one part of a new job, and a nested loop is the cheapest


@pytest.fixture(params=PLANS)
def planned(request: pytest.FixtureRequest, wb: Workbench, database_url: str) -> Iterator[None]:
    """Connections of the database that use one kind of plan only."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        name = sql.Identifier(connection.info.dbname)
        for setting, value in PLANS[request.param].items():
            change = sql.SQL("ALTER DATABASE {} SET {} = {}")
            connection.execute(change.format(name, sql.Identifier(setting), sql.Literal(value)))
    wb.corpus.database.close()  # its next connection has the settings
    yield


def analyse(database_url: str) -> None:
    """Gather statistics, as autovacuum does in normal operation."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("ANALYZE")


def busy(database_url: str, table: str) -> dict[str, int]:
    """Count the parts of each job that a worker has taken."""
    count = sql.SQL("SELECT job_id, count(*) FROM {} WHERE state = 'busy' GROUP BY 1").format(sql.Identifier(table))
    with psycopg.connect(database_url) as connection:
        return {str(job_id): int(parts) for job_id, parts in connection.execute(count).fetchall()}


@pytest.mark.usefixtures("planned")
def test_one_part_of_a_job_is_taken_at_a_time(wb: Workbench, database_url: str) -> None:
    def make_job() -> str:
        job_id = wb.jobs.enqueue("experiment", "In parts", {}).id
        wb.jobs.table.parts.plan(job_id, [([str(place)], 1) for place in range(8)])
        return job_id

    former = [make_job() for _ in range(FORMER_JOBS)]
    analyse(database_url)
    job_id = make_job()
    with wb.jobs.table.hold("ada"):
        taken = [wb.jobs.table.parts.take(job_id, "ada") for _ in range(3)]
        assert [part.position for part in taken if part] == [0, 1, 2]
        assert busy(database_url, "job_parts") == {job_id: 3}
        analyse(database_url)  # the statistics know the job now
        assert wb.jobs.table.parts.take(former[0], "ada") is not None
        assert wb.jobs.table.parts.take(job_id, "ada") is not None
        assert busy(database_url, "job_parts") == {job_id: 4, former[0]: 1}


@pytest.mark.usefixtures("planned")
def test_one_part_of_an_embedding_is_taken_at_a_time(wb: Workbench, database_url: str) -> None:
    embedding = wb.jobs.table.embedding
    job_id = wb.jobs.enqueue("experiment", "Texts", {}).id
    ids: list[int | None] = []
    for place in range(8):
        ids.append(embedding.publish(job_id, "owner", "hash", [bytes([place])], [f"text {place}"]))
        if place == 0:
            analyse(database_url)  # Postgres expects a table of one row
    with wb.jobs.table.hold("ada"):
        taken = [embedding.take(job_id, "ada", model) for model in ("hash", None, "hash")]
        assert [part.id for part in taken if part] == ids[:3]
        assert busy(database_url, "embedding_parts") == {job_id: 3}
        assert embedding.take(job_id, "ada", "another") is None


def test_builds_folders_and_a_resumed_job_all_end_on_a_database_with_statistics(
    wb: Workbench, database_url: str, test_home: Path, folder: Callable[..., Path]
) -> None:
    first, second = folder(MANY, "first"), folder({f"b{name}": text for name, text in MANY.items()}, "second")
    names = [f"cut{size}" for size in (300, 400, 500)]
    wb.ingest(first, source="Many")
    for name in names:
        wb.indexes.create(name, chunker="token", options={"size": int(name.removeprefix("cut"))})
    for _ in range(FORMER_JOBS):
        wb.jobs.table.parts.plan(wb.jobs.enqueue("experiment", "Former", {}).id, [([str(n)], 1) for n in range(8)])
    analyse(database_url)
    workers = [worker_process(database_url, test_home) for _ in range(2)]
    jobs = [wb.jobs.enqueue_index_build(names[0]), wb.jobs.enqueue_ingest([second], source="Second")]
    stopped = wb.jobs.enqueue_index_build(names[1])
    while not wb.jobs.parts(stopped.id).holders:
        assert all(worker.poll() is None for worker in workers)
        time.sleep(0.05)
    wb.jobs.cancel(stopped.id)
    assert wb.jobs.wait(stopped.id, timeout=LONG).status == "cancelled"
    analyse(database_url)
    jobs += [wb.jobs.resume(stopped.id), *(wb.jobs.enqueue_index_build(name) for name in names[2:])]
    jobs.append(wb.jobs.enqueue_ingest([first], source="Third"))
    ended = [wb.jobs.wait(job.id, timeout=LONG * 3) for job in jobs]
    for worker in workers:
        worker.terminate()
        worker.wait()
    assert [(job.title, job.status) for job in ended] == [(job.title, "completed") for job in ended]
    assert [taken_again(database_url, job.id) for job in jobs] == [0] * len(jobs)


def test_no_statement_locks_rows_in_a_subquery_that_may_run_again() -> None:
    folder = files("workbench.storage").joinpath("sql")
    texts = {file.name: file.read_text() for file in folder.iterdir() if file.name.endswith(".sql")}
    root = Path(__file__).parents[2]
    texts |= {
        str(file.relative_to(root)): file.read_text()
        for room in ("workbench", "mcp_app", "evals")
        for file in (root / room).rglob("*.py")
    }
    locking = [
        (name, text[: found.start()].rpartition("\n-- ")[2])
        for name, text in texts.items()
        for found in re.finditer(r"LIMIT[^;()]*FOR (NO KEY )?UPDATE", text, re.IGNORECASE)
    ]
    assert [name for name, _ in locking] == ["embedding_parts.sql", "job_parts.sql"]
    for name, before in locking:
        assert "AS MATERIALIZED (" in before, name
    assert "MATERIALIZED" in statement("job_part_take", gone="job_part_gone").as_string()
