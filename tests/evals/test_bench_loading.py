"""Loading the benchmark's corpus: a killed load resumes, a small disk is rejected, a kept corpus is reused."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

from benchmarks.latency import Bench
from benchmarks.loading import BenchCorpus, count_loaded, delete_corpus, fill_corpus, open_bench
from benchmarks.measurement import run_bench
from benchmarks.needs import check_disk, estimate_disk
from benchmarks.synthetic_corpus import SyntheticCorpus
from workbench.errors import ConfigurationError
from workbench.storage.ranking import LegRanking
from workbench.workbench import Workbench

PASSAGES = 600
KILLED = """
import os, signal, sys
from pathlib import Path
from benchmarks import loading
from benchmarks.synthetic_corpus import SyntheticCorpus
write = loading._write_batch
def write_some(workbench, index, sources, batch, first):
    if first == 200:
        os.kill(os.getpid(), signal.SIGKILL)
    write(workbench, index, sources, batch, first)
loading._write_batch = write_some
with loading.open_bench(Path(sys.argv[1])) as workbench:
    loading.fill_corpus(workbench, 600, SyntheticCorpus(workbench.corpus.encoder().dimensions), batch=100)
"""


@pytest.fixture
def home() -> Iterator[Path]:
    """A data folder that the embedded server's user can access."""
    with tempfile.TemporaryDirectory(prefix="wb-bench-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def _contents(workbench: Workbench, corpus: BenchCorpus, synthetic: SyntheticCorpus) -> list[object]:
    """Return the contents of the corpus, without random ids, and the scores of its postings."""
    rows = workbench.corpus.database.rows
    passages = (
        "SELECT d.key, s.title, p.text, p.embedding::text, p.token_bits, p.metadata_ ->> 'ordinal' AS ordinal "
        f"FROM data_bench_{PASSAGES} p JOIN documents d ON d.id = p.document_id JOIN sources s ON s.id = d.source_id "
        "ORDER BY d.key, ordinal"
    )
    words = f"SELECT term, df FROM lexicon_bench_{PASSAGES} ORDER BY term"
    bench = Bench(corpus, synthetic, 20)
    leg = bench.raw_keyword()
    scores = [sorted(cast("LegRanking", leg(question)).scores.values()) for question in bench.questions]
    assert all(scores)
    return [rows(passages), rows(words), scores]  # pyright: ignore[reportArgumentType]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL is POSIX")
def test_a_killed_load_continues_and_gives_the_corpus_of_an_undisturbed_one(home: Path) -> None:
    environment = os.environ | {"PYTHONPATH": str(Path.cwd())}
    process = subprocess.run([sys.executable, "-c", KILLED, str(home)], env=environment)
    assert process.returncode == -signal.SIGKILL
    with open_bench(home) as workbench:
        synthetic = SyntheticCorpus(workbench.corpus.encoder().dimensions)
        assert count_loaded(workbench, PASSAGES) == 200
        corpus = fill_corpus(workbench, PASSAGES, synthetic, batch=100)
        assert corpus.loaded == PASSAGES - 200
        resumed = _contents(workbench, corpus, synthetic)
        again = fill_corpus(workbench, PASSAGES, synthetic)
        assert (again.loaded, again.graph_seconds) == (0, 0), "what is loaded, and its graph, is found again"
        delete_corpus(workbench, PASSAGES)
        assert count_loaded(workbench, PASSAGES) == 0
        undisturbed = fill_corpus(workbench, PASSAGES, synthetic, batch=100)
        assert _contents(workbench, undisturbed, synthetic) == resumed


def test_a_passage_is_the_same_wherever_the_making_starts() -> None:
    synthetic = SyntheticCorpus(8)
    whole = [(piece.text, piece.token_bits) for piece in synthetic.passages(1_100)]
    assert len(whole) == len(set(whole)) == 1_100
    for first in (1, 999, 1_000, 1_050):
        assert [(piece.text, piece.token_bits) for piece in synthetic.passages(1_100, first)] == whole[first:]


def test_a_disk_that_is_too_small_is_refused_before_anything_is_loaded(home: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"needs [\d,.]+ GB of disk, but .* free"):
        run_bench(home, [10**12], say=lambda text: None)
    with open_bench(home) as workbench:
        assert count_loaded(workbench, 10**12) == 0
    check_disk(home, [(1_000, 0)])
    assert estimate_disk(10**6, 10**6) == 0 < estimate_disk(10**6, 10**5) < estimate_disk(10**6)
