"""The restore drill of docs/operating.md: copies taken during writes are complete, and their jobs continue."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from tests.jobs.shared_work import MANY, one_part_written, passages, waiting_for_their_turn
from tests.jobs.test_jobs import LONG
from tests.storage.replica import base_backup
from tests.storage.test_several_processes import inconsistencies
from workbench import Workbench
from workbench.settings import Settings
from workbench.storage.migrate import migrate
from workbench.storage.postgres import start_embedded_server
from workbench.types import Scope

DANGLING = """
SELECT (SELECT count(*) FROM data_main p WHERE NOT EXISTS (SELECT FROM documents d WHERE d.id = p.document_id))
     + (SELECT count(*) FROM index_documents i WHERE NOT EXISTS (SELECT FROM documents d WHERE d.id = i.document_id))
     + (SELECT count(*) FROM document_files f WHERE NOT EXISTS (SELECT FROM documents d WHERE d.id = f.document_id))
     + (SELECT count(*) FROM documents d WHERE NOT EXISTS (SELECT FROM sources s WHERE s.id = d.source_id))
"""


def opened(home: Path, url: str) -> Workbench:
    """Open a workbench on a database, with the model 'hash'."""
    settings = {"home": home, "database_url": url, "embedding_model": "hash", "_env_file": None}
    return Workbench.open(settings=Settings(**settings))  # pyright: ignore


@pytest.fixture
def url(shared_home: Path) -> str:
    """A migrated database of a separate embedded server."""
    address = start_embedded_server(shared_home / "postgres")
    migrate(address)
    return address


@pytest.fixture
def original(shared_home: Path, url: str) -> Iterator[Workbench]:
    """The workbench that keeps running while it is copied."""
    with opened(shared_home, url) as workbench:
        yield workbench


@contextmanager
def writing(home: Path, url: str) -> Generator[None]:
    """Add documents one after another inside the block; some are there before it starts."""
    stopped, begun = threading.Event(), threading.Semaphore(0)

    def write() -> None:
        with opened(home, url) as mine:
            number = 0
            while not stopped.is_set():
                mine.documents.create(
                    text=f"Heron {number} stands in reed {number * 7}. " * 300, title=f"Heron {number}"
                )
                number += 1
                begun.release()

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(5):
            assert begun.acquire(timeout=LONG)
        yield
    finally:
        stopped.set()
        writer.join()


@contextmanager
def busy(home: Path, url: str, original: Workbench, root: Path) -> Generator[str]:
    """Return the id of a job that is halfway, with one part written and others waiting, during other writes."""
    original.indexes.get()
    worker = original.start_worker(heartbeat=0.2, stalled=4.0)
    with writing(home, url):
        job = original.jobs.enqueue_ingest([root], source="Many")
        with one_part_written(url, "main"):
            while not (original.jobs.table.parts.tally(job.id).done and waiting_for_their_turn(url)):
                assert worker.is_alive
                time.sleep(0.05)
            yield job.id
    assert original.jobs.wait(job.id, timeout=LONG * 3).status == "completed"
    worker.stop()


def holds_together(copy: Workbench, original: Workbench, url: str, job_id: str) -> None:
    """Check a copy as restored, then let its job continue to the end."""
    with psycopg.connect(url) as connection:
        assert connection.execute(DANGLING).fetchone() == (0,)
    assert inconsistencies(url) == 0
    restored = [document.id for document in copy.documents.list(limit=1_000)]
    assert 5 <= len(restored) < original.documents.count()
    scope = Scope(documents=tuple(restored))
    for question in ("reed 21", "word3 and 21"):
        ours, theirs = (
            copy.search(question, "vector", limit=5),
            original.search(question, "vector", limit=5, scope=scope),
        )
        assert [hit.score for hit in ours] == pytest.approx([hit.score for hit in theirs], abs=1e-6)
        ours, theirs = (
            copy.search(question, "keyword", limit=100),
            original.search(question, "keyword", limit=100, scope=scope),
        )
        assert {hit.passage_id for hit in ours} == {hit.passage_id for hit in theirs} and ours
    worker = copy.start_worker(heartbeat=0.2, stalled=1.0)
    done = copy.jobs.wait(job_id, timeout=LONG * 3)
    worker.stop()
    assert (done.status, done.done, done.total) == ("completed", 80, 80)
    assert inconsistencies(url) == 0


def test_a_base_backup_that_was_taken_while_others_write_is_a_whole_server(
    shared_home: Path, url: str, original: Workbench, folder: Callable[..., Path]
) -> None:
    with busy(shared_home, url, original, folder(MANY)) as job_id:
        taken = base_backup(shared_home, url)
        start = taken.__enter__()
    with start() as restored, opened(shared_home, restored) as copy:
        holds_together(copy, original, restored, job_id)
        assert passages(restored, "main") == passages(url, "main")
    taken.__exit__(None, None, None)


def test_an_export_that_was_taken_while_others_write_is_a_whole_workbench(
    shared_home: Path, url: str, original: Workbench, folder: Callable[..., Path], database_url: str, tmp_path: Path
) -> None:
    with busy(shared_home, url, original, folder(MANY)) as job_id:
        original.backups.write(tmp_path / "all.zip")
    with opened(shared_home, database_url) as copy:
        copy.backups.read(tmp_path / "all.zip")
        holds_together(copy, original, database_url, job_id)
        assert passages(database_url, "main") == passages(url, "main")
