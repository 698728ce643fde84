"""The whole benchmark: latency by size, throughput, ingestion, memory and disk, as JSON."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import psutil

from benchmarks.deletion_speed import measure_deletion
from benchmarks.figures import Figures, LatencyRow
from benchmarks.ingest_speed import measure_ingestion
from benchmarks.latency import Bench
from benchmarks.loading import BenchCorpus, Say, count_loaded, delete_corpus, fill_corpus, open_bench
from benchmarks.needs import check_disk, describe_needs
from benchmarks.pairs import measure_latencies
from benchmarks.synthetic_corpus import SyntheticCorpus
from benchmarks.throughput import measure_throughput
from benchmarks.trade import measure_size_and_quality
from benchmarks.walks import sweep_ef_search
from workbench.formatting import GB, MB
from workbench.workbench import Workbench

CORPUS_SIZES = (10_000, 100_000)
LATENCY_QUESTIONS = 60
RECALL_QUESTIONS = 100
WALK_QUESTIONS = 40


def run_bench(
    home: Path,
    sizes: Sequence[int] = CORPUS_SIZES,
    say: Say = print,
    questions: int = LATENCY_QUESTIONS,
    with_trade: bool = True,
    keep: bool = False,
    with_walks: bool = False,
) -> Figures:
    """Measure and return everything; ``say`` receives progress messages. Takes minutes, mostly for loading.

    An interrupted load is resumed. With ``keep`` the corpus is kept for the next run and deletion is not timed.
    ``with_walks`` also measures the recall of the graph by ``ef_search``.

    Raises:
        ConfigurationError: Not enough disk for the largest size; nothing was loaded.
    """
    with open_bench(home) as wb:
        loaded = [(size, count_loaded(wb, size)) for size in sizes]
        for size, there in loaded:
            say(describe_needs(size, there))
        check_disk(home, loaded, keep)
        wb.warm()
        synthetic = SyntheticCorpus(wb.corpus.encoder().dimensions)
        result: Figures = {
            "machine": describe_machine(), "sizes": {}, "load": {}, "recall": {}, "throughput": {},
            "bytes_per_passage": 0,
            "deletion": {}, "ingestion": {}, "memory_mb": 0,
        }  # fmt: skip
        for size in sizes:
            _measure_size(wb, size, synthetic, result, say, questions, keep, with_walks)
        say("ingesting")
        result["ingestion"] = measure_ingestion(wb, synthetic)
        if with_trade:
            result["trade"] = measure_size_and_quality(wb, say)
        result["memory_mb"] = round(_peak_memory() / MB)
        return result


def _measure_size(
    wb: Workbench,
    size: int,
    synthetic: SyntheticCorpus,
    result: Figures,
    say: Say,
    questions: int,
    keep: bool,
    with_walks: bool,
) -> None:
    """Load one size, add its figures to ``result``, and delete it unless ``keep``."""
    say(f"loading {size:,} passages")
    corpus = fill_corpus(wb, size, synthetic, say)
    # before LlamaIndex's hybrid creates its full-text column on its first question
    result["bytes_per_passage"] = wb.indexes.bytes_on_disk(corpus.index.name) // size
    bench = Bench(corpus, synthetic, questions)
    result["load"][str(size)] = _load_figures(corpus)
    result["sizes"][str(size)] = {
        name: cast("LatencyRow", latency.to_dict()) for name, latency in measure_latencies(bench, size, synthetic, say)
    }
    say("comparing the graph with an exact search")
    result["recall"][str(size)] = bench.recall(synthetic.questions(RECALL_QUESTIONS))
    if with_walks:
        say("measuring the graph by ef_search")
        result.setdefault("walks", {})[str(size)] = sweep_ef_search(corpus, synthetic.questions(WALK_QUESTIONS))
    say("measuring concurrent searches")
    result["throughput"] = measure_throughput(bench.strategy("hybrid"), bench.questions)
    if keep:
        say(f"keeping the {size:,} passages for the next run, so deletion is not timed")
        return
    say("deleting a quarter of it")
    deletion = measure_deletion(wb, corpus.leaving, bench.strategy("hybrid"), bench.questions)
    result["deletion"][str(size)] = deletion
    delete_corpus(wb, size)


def describe_machine() -> str:
    """Return processor, cores and memory of the machine."""
    model = next(
        (line.split(":", 1)[1].strip() for line in _read_lines("/proc/cpuinfo") if line.startswith("model name")),
        platform.processor() or platform.machine(),
    )
    memory = psutil.virtual_memory().total / GB
    return f"{model}, {os.cpu_count()} cores, {memory:.0f} GB, Python {platform.python_version()}"


def _peak_memory() -> int:
    """Return the peak memory of this process in bytes."""
    if sys.platform == "win32":
        return int(psutil.Process().memory_info().peak_wset)
    import resource

    unit = 1 if sys.platform == "darwin" else 1024  # in KiB on Linux
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def _load_figures(corpus: BenchCorpus) -> dict[str, float]:
    """Return the load figures of this run; those of an earlier run are unknown."""
    figures: dict[str, float] = {}
    if corpus.loaded:
        figures["rows_ms_a_passage"] = round(corpus.load_seconds * 1000 / corpus.loaded, 3)
    if corpus.graph_seconds:
        figures["graph_seconds"] = round(corpus.graph_seconds, 2)
    return figures


def _read_lines(path: str) -> list[str]:
    file = Path(path)
    return file.read_text(encoding="utf-8").splitlines() if file.exists() else []
