"""The whole bench in one run: latency by size, throughput, ingestion, memory, disk; the JSON of ``workbench bench``."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import cast

import psutil

from evals.bench.deletion_speed import deletion_speed
from evals.bench.figures import Figures, LatencyRow
from evals.bench.ingest_speed import ingestion
from evals.bench.latency import Bench
from evals.bench.loading import BenchCorpus, fill, open_bench
from evals.bench.pairs import latencies
from evals.bench.synthetic_corpus import SyntheticCorpus
from evals.bench.throughput import throughput
from evals.bench.trade import trade
from workbench.sizes import GB, MB

SIZES = (10_000, 100_000)
QUESTIONS = 60
Say = Callable[[str], None]


def run_bench(
    home: Path, sizes: Sequence[int] = SIZES, say: Say = print, questions: int = QUESTIONS, with_trade: bool = True
) -> Figures:
    """Measure and return everything; ``say`` is told what is being done. Takes minutes: most of it is loading."""
    with open_bench(home) as workbench:
        workbench.warm()
        synthetic = SyntheticCorpus(workbench.corpus.encoder().dimensions)
        result: Figures = {
            "machine": machine(), "sizes": {}, "load": {}, "recall": {}, "throughput": {}, "bytes_per_passage": 0,
            "deletion": {}, "ingestion": {}, "memory_mb": 0,
        }  # fmt: skip
        for size in sizes:
            say(f"loading {size:,} passages")
            corpus = fill(workbench, size, synthetic)
            bench = Bench(corpus, synthetic, questions)
            result["load"][str(size)] = _load(corpus, size)
            result["sizes"][str(size)] = {
                name: cast("LatencyRow", latency.to_dict()) for name, latency in latencies(bench, size, synthetic, say)
            }
            result["recall"][str(size)] = bench.recall()
            say("searching with several callers")
            result["throughput"] = throughput(bench.strategy("hybrid"), bench.questions)
            result["bytes_per_passage"] = workbench.indexes.bytes_on_disk(corpus.index.name) // size
            say("deleting a quarter of it")
            deletion = deletion_speed(workbench, corpus.leaving, bench.strategy("hybrid"), bench.questions)
            result["deletion"][str(size)] = deletion
            workbench.sources.delete(corpus.small.id)
            workbench.sources.delete(corpus.large.id)
        say("ingesting")
        result["ingestion"] = ingestion(workbench, synthetic)
        if with_trade:
            result["trade"] = trade(workbench, say)
        result["memory_mb"] = round(_most_memory() / MB)
        return result


def machine() -> str:
    """Name the machine: processor, cores, memory."""
    model = next(
        (line.split(":", 1)[1].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")),
        platform.processor() or platform.machine(),
    )
    memory = psutil.virtual_memory().total / GB
    return f"{model}, {os.cpu_count()} cores, {memory:.0f} GB, Python {platform.python_version()}"


def _most_memory() -> int:
    """Return the bytes that this process held at most."""
    if sys.platform == "win32":
        return int(psutil.Process().memory_info().peak_wset)
    import resource

    unit = 1 if sys.platform == "darwin" else 1024  # bytes, as Linux counts
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def _load(corpus: BenchCorpus, size: int) -> dict[str, float]:
    return {
        "rows_ms_a_passage": round(corpus.load_seconds * 1000 / size, 3),
        "graph_seconds": round(corpus.graph_seconds, 2),
    }


def _lines(path: str) -> list[str]:
    file = Path(path)
    return file.read_text(encoding="utf-8").splitlines() if file.exists() else []
