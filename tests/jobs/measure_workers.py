"""Measure work shared by several workers: ``python -m tests.jobs.measure_workers`` [--workers 1 2] [--kills 20].

It makes a folder of texts, a database of its own, and workers of one thread each, in processes of their own. Without
``--kills`` it prints, for each number of workers, the passages a second and the processor time a passage of workers
and database; with it, one ingest continues while workers are killed at random moments and others take their place, and
its corpus is compared with an undisturbed one. With ``--core-each`` workers and database together get as many cores as
there are workers, as if each worker brought a machine of one core along.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import psycopg
from psycopg import sql

from workbench import Workbench
from workbench.settings import load_settings

WORDS = (
    "harbour",
    "tide",
    "lantern",
    "keeper",
    "storm",
    "signal",
    "chart",
    "vessel",
    "reef",
    "anchor",
    "pilot",
    "mist",
)


def texts(folder: Path, files: int, words: int) -> None:
    """Write files of generated sentences, each with the given number of words."""
    chosen = random.Random(7)
    for number in range(files):
        sentences = [f"{' '.join(chosen.choices(WORDS, k=11))} {chosen.randrange(10**6)}." for _ in range(words // 12)]
        paragraphs = ["\n".join(sentences[place : place + 8]) for place in range(0, len(sentences), 8)]
        (folder / f"{number:04}.md").write_text(f"# Log {number}\n\n" + "\n\n".join(paragraphs))


def start(home: str, model: str) -> subprocess.Popen[bytes]:
    """Start a worker with one thread."""
    settings = {"WORKBENCH_HOME": home, "WORKBENCH_EMBEDDING_MODEL": model, "WORKBENCH_EMBEDDING_THREADS": "1"}
    command = [sys.executable, "-m", "workbench.cli", "worker"]
    return subprocess.Popen(command, env=os.environ | settings | {"OMP_NUM_THREADS": "1"}, stdout=subprocess.DEVNULL)


def cpu(pid: int) -> float:
    """Return the CPU seconds of a process and of the children that it has waited for (Linux)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return sum(int(field) for field in fields[11:15]) / os.sysconf("SC_CLK_TCK")


def cpu_of_server(home: str) -> float:
    """Return the CPU seconds of the embedded Postgres with all its processes."""
    server = next(Path(home).rglob("postmaster.pid")).read_text().split()[0]
    total = cpu(int(server))
    for status in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has just ended
            if status.read_text().rsplit(")", 1)[1].split()[1] == server:
                total += cpu(int(status.parent.name))
    return total


def speed(home: str, folder: Path, model: str, workers: int) -> tuple[float, float, float]:
    """Return how much these workers ingest, measured once all of them have a part.

    That is passages a second, and milliseconds of processor time a passage: of the workers, and of the database.
    """
    with Workbench.open(settings=load_settings(home=home)) as wb:
        wb.indexes.get()
        job = wb.jobs.enqueue_ingest([folder], source=f"By {workers}")
        processes = [start(home, model) for _ in range(workers)]
        parts = wb.jobs.table.parts
        while parts.tally(job.id).holders < workers:
            time.sleep(0.05)
        time.sleep(5)  # each has read its model
        index, begun = wb.indexes.get().name, time.perf_counter()
        before, busy, served = stored(wb, index), sum(cpu(each.pid) for each in processes), cpu_of_server(home)
        while parts.tally(job.id).waiting > 2 * workers:
            time.sleep(0.05)
        seconds, passages = time.perf_counter() - begun, stored(wb, index) - before
        busy, served = sum(cpu(each.pid) for each in processes) - busy, cpu_of_server(home) - served
        wb.jobs.wait(job.id)
        for process in processes:
            process.terminate()
            process.wait()
        wb.sources.delete(f"By {workers}")
    return passages / seconds, 1000 * busy / passages, 1000 * served / passages


def stored(wb: Workbench, index: str) -> int:
    """Return how many passages an index holds now."""
    with psycopg.connect(wb.corpus.database.url) as connection:
        counting = sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier(f"data_{index}"))
        row = connection.execute(counting).fetchone()
    return int(row[0]) if row else 0


def kill(home: str, folder: Path, model: str, kills: int) -> None:
    """Ingest while two workers are killed at random moments, and compare with an undisturbed ingest."""
    chosen = random.Random()
    with Workbench.open(settings=load_settings(home=home)) as wb:
        wb.indexes.get()
        job = wb.jobs.enqueue_ingest([folder], source="Disturbed")
        processes = [start(home, model) for _ in range(2)]
        killed = 0
        while killed < kills:
            time.sleep(chosen.uniform(2, 9))
            if wb.jobs.get(job.id).is_finished:
                break
            place = chosen.randrange(2)
            processes[place].send_signal(signal.SIGKILL)
            processes[place].wait()
            processes[place] = start(home, model)
            killed += 1
        done = wb.jobs.wait(job.id)
        for process in processes:
            process.terminate()
            process.wait()
        disturbed, taken = corpus(wb, "Disturbed"), taken_again(wb, job.id)
        wb.sources.delete("Disturbed")  # or its vectors would be used again
        wb.ingest([folder], source="Undisturbed", on_progress=lambda _: None)
        equal = disturbed == corpus(wb, "Undisturbed")
    print(f"{done.status} ({done.message}); a worker was killed {killed} times")
    print("parts: {}, taken again: {}, the most for one: {}".format(*taken))
    print(f"{len(disturbed):,} passages; they equal those of an undisturbed ingest: {equal}")


def corpus(wb: Workbench, source: str) -> list[tuple[object, ...]]:
    """Return every passage of a source with its vector."""
    with psycopg.connect(wb.corpus.database.url) as connection:
        return connection.execute(
            "SELECT d.key, p.metadata_->>'start', p.metadata_->>'end', p.text, p.embedding::text, p.token_bits "
            "FROM data_main p JOIN documents d ON d.id = p.document_id JOIN sources s ON s.id = d.source_id "
            "WHERE s.title = %s ORDER BY 1, (p.metadata_->>'start')::int, 4",
            (source,),
        ).fetchall()


def taken_again(wb: Workbench, job_id: str) -> tuple[int, ...]:
    """Return the number of a job's parts, how many were taken more than once, and the maximum for one."""
    with psycopg.connect(wb.corpus.database.url) as connection:
        row = connection.execute(
            "SELECT count(*), sum(times - 1), max(times) FROM job_parts WHERE job_id = %s", (job_id,)
        ).fetchone()
    return tuple(int(value) for value in row or ())


def main() -> None:
    """Read the options and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 1, 2])
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--core-each", action="store_true")
    parser.add_argument("--files", type=int, default=400)
    parser.add_argument("--words", type=int, default=900)
    parser.add_argument("--model", default="minilm")
    arguments = parser.parse_args()
    home = tempfile.mkdtemp(prefix="wb-workers-")
    Path(home).chmod(0o755)
    folder = Path(home, "texts")
    folder.mkdir()
    os.environ["WORKBENCH_EMBEDDING_MODEL"] = arguments.model
    try:
        texts(folder, arguments.files, arguments.words)
        if arguments.kills:
            kill(home, folder, arguments.model, arguments.kills)
            return
        for workers in arguments.workers:
            if arguments.core_each:
                os.sched_setaffinity(0, range(workers))  # the server and the workers inherit it
            pace, busy, served = speed(home, folder, arguments.model, workers)
            used = f"processor {busy:.1f} ms a passage, its database {served:.1f} ms"
            load = Path("/proc/loadavg").read_text().split()[0]
            print(f"{workers} workers: {pace:.1f} passages/s, {used}, load {load}", flush=True)
    finally:
        shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    main()
