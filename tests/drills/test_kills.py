"""Processes killed at any moment: afterwards everything resumes, and the counts agree."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from tests.jobs.test_jobs import worker_process
from workbench import Workbench
from workbench.storage.graph import SERVING_PARAMETERS

pytestmark = pytest.mark.slow

LONG = 180  # seconds: an upper bound that only failures reach
Rounds = Callable[[], Iterator[int]]
PAGES = {f"{number:03}.md": f"# Page {number}\n\n" + f"word{number} and {number * 7} " * 500 for number in range(60)}


def agree(wb: Workbench, database_url: str, documents: int, index: str) -> None:
    """Compare an index with the documents: each is in it once and complete, and its passages are counted correctly."""
    assert wb.indexes.count_missing(index) == 0
    counted = wb.indexes.get(index)
    with psycopg.connect(database_url) as connection:
        query = f"SELECT count(*), count(DISTINCT document_id) FROM data_{index}"
        row = connection.execute(query).fetchone()  # pyright: ignore[reportArgumentType, reportCallIssue]
        left = connection.execute("SELECT count(*) FROM embedding_parts").fetchone()
    assert row == (counted.passages_count, documents)
    assert counted.documents_count == documents
    assert left == (0,)


def kill_some(chance: random.Random, wb: Workbench, database_url: str, home: Path, jobs: list[str]) -> None:
    """Run jobs with two workers, one of which is killed repeatedly; two final workers finish them."""
    workers = [worker_process(database_url, home) for _ in range(2)]
    for _ in range(chance.randint(1, 3)):
        time.sleep(chance.uniform(0.1, 3))
        if all(wb.jobs.get(job).is_finished for job in jobs):
            break
        killed = workers.pop(chance.randrange(2))
        killed.kill()
        killed.wait()
        workers.append(worker_process(database_url, home))
    ended = [wb.jobs.wait(job, timeout=LONG) for job in jobs]
    for worker in workers:
        worker.terminate()
        worker.wait()
    assert [job.status for job in ended] == ["completed"] * len(jobs), ended


def test_workers_that_are_killed_lose_and_double_nothing(
    wb: Workbench,
    database_url: str,
    test_home: Path,
    folder: Callable[..., Path],
    chance: random.Random,
    rounds: Rounds,
) -> None:
    documents, pages = 0, folder(PAGES)
    for number in rounds():
        name = f"round{number}"
        wb.indexes.create(name, chunker="token", options={"size": chance.choice([100, 200, 400])})
        ingest = wb.jobs.enqueue_ingest([pages], source=f"Source {number}")
        jobs = [ingest.id, wb.jobs.enqueue_index_build(name).id] if number else [ingest.id]
        kill_some(chance, wb, database_url, test_home, jobs)
        documents += len(PAGES)
        kill_some(chance, wb, database_url, test_home, [wb.jobs.enqueue_index_build(name).id])
        agree(wb, database_url, documents, "main")
        agree(wb, database_url, documents, name)
        wb.indexes.delete(name)


def run_ingest(database_url: str, home: Path, pages: Path) -> subprocess.Popen[bytes]:
    """Start ``workbench ingest`` as a separate process."""
    settings = {"HOME": str(home), "DATABASE_URL": database_url, "EMBEDDING_MODEL": "hash"}
    environment = os.environ | {f"WORKBENCH_{name}": value for name, value in settings.items()}
    command = [sys.executable, "-m", "workbench.cli", "ingest", str(pages), "--source", "Killed"]
    return subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def test_an_ingest_in_the_foreground_that_is_killed_can_be_repeated(
    wb: Workbench,
    database_url: str,
    test_home: Path,
    folder: Callable[..., Path],
    chance: random.Random,
    rounds: Rounds,
) -> None:
    pages = folder(PAGES)
    for _ in rounds():
        for _ in range(2):
            process = run_ingest(database_url, test_home, pages)
            time.sleep(chance.uniform(0.5, 5))
            process.send_signal(signal.SIGKILL)
            process.communicate()
        process = run_ingest(database_url, test_home, pages)
        assert (process.communicate(timeout=LONG)[1], process.returncode)[1] == 0
        agree(wb, database_url, len(PAGES), "main")
        wb.sources.delete(wb.corpus.sources.find("Killed").id)


def test_a_first_start_that_is_killed_leaves_a_home_that_opens(
    shared_home: Path, chance: random.Random, rounds: Rounds
) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("WORKBENCH_")}
    for number in rounds():
        home = shared_home / f"home{number}"
        command = [sys.executable, "-m", "workbench.cli", "--json", "projects", "list"]
        own = environment | {"WORKBENCH_HOME": str(home), "WORKBENCH_EMBEDDING_MODEL": "hash"}
        first = subprocess.Popen(command, env=own, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(chance.uniform(0.3, 5))
        first.kill()
        first.wait()
        second = subprocess.run(command, env=own, capture_output=True, text=True, timeout=LONG, check=False)
        assert second.returncode == 0, second.stderr


BUILD_GRAPHS = """
import sys
from workbench.storage import graph
graph.SERVING_PARAMETERS["exact_up_to"] = 100
graph.GRAPH_SHAPES = (graph.GraphShape(2, 4, 10), graph.GraphShape(16, 64, 100))
from workbench.cli import main
sys.exit(main(["indexes", "build", "main"]))
"""


def test_a_rebuild_of_a_graph_that_is_killed_is_continued_and_leaves_nothing(
    wb: Workbench,
    database_url: str,
    test_home: Path,
    folder: Callable[..., Path],
    chance: random.Random,
    rounds: Rounds,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Killed at any moment of two builds and two measurements; an index of over 100 passages has a graph here."""
    wb.ingest(folder(PAGES), source="Pages")
    monkeypatch.setitem(SERVING_PARAMETERS, "exact_up_to", 100)
    settings = {"HOME": str(test_home), "DATABASE_URL": database_url, "EMBEDDING_MODEL": "hash"}
    environment = os.environ | {f"WORKBENCH_{name}": value for name, value in settings.items()}
    command = [sys.executable, "-c", BUILD_GRAPHS]
    turn = "SELECT FROM pg_locks WHERE locktype = 'advisory' AND classid = 7215006"
    found = wb.search("word7 and 49", "vector", limit=1)[0].path
    with psycopg.connect(database_url, autocommit=True) as connection:
        for _ in rounds():
            connection.execute("UPDATE indexes SET graph = NULL")
            process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            until = time.monotonic() + LONG
            while not connection.execute(turn).fetchone() and process.poll() is None:
                assert time.monotonic() < until
                time.sleep(0.01)
            time.sleep(chance.uniform(0, 1))
            process.kill()
            process.wait()
            assert wb.search("word7 and 49", "vector", limit=1)[0].path == found
            subprocess.run(command, env=environment, timeout=LONG, check=True, capture_output=True)
            graphs = connection.execute("SELECT indexname FROM pg_indexes WHERE strpos(indexdef, 'hnsw') > 0")
            assert graphs.fetchall() == [("data_main_embedding_idx",)]
            state = connection.execute("SELECT graph ->> 'm' FROM indexes").fetchone()
            assert state is not None and state[0] in ("2", "16")
            check = next(check for check in wb.health.doctor() if check.name == "vector search")
            assert "until the next ingest" not in check.detail
            assert wb.search("word7 and 49", "vector", limit=1)[0].path == found
            agree(wb, database_url, len(PAGES), "main")
