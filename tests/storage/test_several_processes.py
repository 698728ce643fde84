"""Several processes on one database, and what a killed one leaves behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest

from workbench import Workbench
from workbench.settings import Settings

pytestmark = pytest.mark.slow

COMMAND = [sys.executable, "-m", "workbench.cli"]
MEMBER = """
import sys
from workbench import Workbench
with Workbench.open() as wb:
    for line in sys.stdin:
        verb, _, rest = line.strip().partition(" ")
        if verb == "ingest":
            print(wb.ingest(rest, source="Animals", on_progress=lambda progress: None).added, flush=True)
        else:
            print(len(wb.search(rest, strategy="keyword")), flush=True)
"""
CONSISTENT = """
SELECT (SELECT count(*) FROM data_main) - (SELECT count(DISTINCT (document_id, metadata_ ->> 'start')) FROM data_main)
     + (SELECT count(*) FROM data_main) - (SELECT coalesce(sum(passages), 0) FROM index_documents)
     + (SELECT count(*) FROM documents) - (SELECT count(*) FROM index_documents)
     + (SELECT count(*) FROM lexicon_main l LEFT JOIN (
            SELECT word, count(*) AS passages
            FROM data_main d, unnest(tsvector_to_array(workbench_passage_terms(d.metadata_, d.text))) word GROUP BY word
        ) AS counted ON counted.word = l.term WHERE l.df <> coalesce(counted.passages, 0))
     + (SELECT coalesce(sum(df), 0) FROM lexicon_main)
     - (SELECT coalesce(sum(octet_length(entries) / 8), 0) FROM postings_main)
     + (SELECT count(*) FROM data_main) - (SELECT coalesce(sum(passages), 0) FROM index_statistics)
"""


@pytest.fixture
def environment(database_url: str, test_home: Path) -> dict[str, str]:
    """Return the environment of a process that uses the test's database."""
    mine = {"WORKBENCH_DATABASE_URL": database_url, "WORKBENCH_HOME": str(test_home)}
    return {**os.environ, **mine, "WORKBENCH_EMBEDDING_MODEL": "hash"}


@pytest.fixture
def papers(folder: Callable[..., Path]) -> Path:
    """Enough documents that an ingest takes several batches."""
    words = " ".join(f"word{number}" for number in range(120))
    return folder({f"{n}.md": f"# Paper {n}\n\n{words}\n\n## More\n\nunique{n} {words}" for n in range(200)})


def ingesting(papers: Path, environment: dict[str, str]) -> subprocess.Popen[bytes]:
    """Start an ingest as a separate process."""
    command = [*COMMAND, "ingest", str(papers), "--source", "Papers", "--json"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment)


def inconsistencies(database_url: str) -> int:
    """Count duplicate passages, documents without their passages, and wrong keyword statistics."""
    with psycopg.connect(database_url) as connection:
        row = connection.execute(CONSISTENT).fetchone()
    assert row is not None
    return int(row[0])


def test_a_killed_ingest_leaves_whole_documents_and_the_next_one_finishes(
    wb: Workbench, database_url: str, papers: Path, environment: dict[str, str]
) -> None:
    running = ingesting(papers, environment)
    while wb.documents.count() == 0:
        assert running.poll() is None
        time.sleep(0.01)
    running.kill()
    running.communicate()
    stored = wb.documents.count()
    assert 0 < stored < 200
    assert inconsistencies(database_url) == 0
    again = ingesting(papers, environment)
    assert json.loads(again.communicate(timeout=120)[0])["documents"]["added"] == 200 - stored
    assert wb.documents.count() == 200
    assert inconsistencies(database_url) == 0


def test_two_ingests_of_the_same_folder_at_once_end_well_and_store_it_once(
    wb: Workbench, database_url: str, papers: Path, environment: dict[str, str]
) -> None:
    both = [ingesting(papers, environment) for _ in range(2)]
    outputs = [process.communicate(timeout=240) for process in both]
    assert [process.returncode for process in both] == [0, 0], [error.decode() for _, error in outputs]
    assert (wb.sources.count(), wb.documents.count()) == (1, 200)
    assert inconsistencies(database_url) == 0
    assert len(wb.search("unique77", strategy="keyword")) == 1


def test_writers_that_replace_the_same_documents_at_once_never_wait_for_each_other_in_a_ring(
    make_settings: Callable[..., Settings], database_url: str, papers: Path
) -> None:
    together = threading.Barrier(3)

    def ingest_twice(number: int) -> int:
        with Workbench.open(settings=make_settings()) as mine:
            together.wait()
            mine.ingest(papers, source="Papers", on_progress=lambda progress: None)
            together.wait()
            if number == 0:
                for paper in papers.iterdir():
                    paper.write_text(paper.read_text() + " changed")
            together.wait()
            report = mine.ingest(papers, source="Papers", on_progress=lambda progress: None)
            return report.updated + report.unchanged

    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(ingest_twice, range(3))) == [200] * 3
    assert inconsistencies(database_url) == 0


class Member:
    """One of the processes that share an embedded server."""

    def __init__(self, home: Path) -> None:
        settings = {"WORKBENCH_HOME": str(home), "WORKBENCH_EMBEDDING_MODEL": "hash"}
        self.process = subprocess.Popen(
            [sys.executable, "-c", MEMBER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **settings},
        )

    def ask(self, line: str) -> int:
        """Send one line and return the number in the reply."""
        assert self.process.stdin is not None and self.process.stdout is not None
        print(line, file=self.process.stdin, flush=True)
        return int(self.process.stdout.readline())

    def leave(self) -> int:
        """Let it exit normally."""
        self.process.communicate(timeout=60)
        return self.process.returncode


def test_when_the_process_that_started_the_server_is_killed_the_others_continue(
    shared_home: Path, folder: Callable[..., Path]
) -> None:
    first = Member(shared_home)
    assert first.ask(f"ingest {folder({'cats.md': '# Cats', 'dogs.md': '# Dogs'})}") == 2
    second = Member(shared_home)
    assert second.ask("search cats") == 1
    first.process.kill()
    first.process.communicate()
    assert second.ask("search cats") == 1
    assert second.ask(f"ingest {folder({'owls.md': '# Owls'}, name='more')}") == 1
    third = Member(shared_home)
    assert third.ask("search owls") == 1
    assert (second.leave(), third.leave()) == (0, 0)
