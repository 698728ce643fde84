"""The whole bench in one run: latency by size, throughput, ingestion, memory, disk; the JSON of ``workbench bench``."""

from __future__ import annotations

import os
import platform
import resource
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from evals.bench.corpus import BenchCorpus, fill, open_bench
from evals.bench.deletion import deletion
from evals.bench.ingestion import ingestion
from evals.bench.latency import Bench, Latency
from evals.bench.synthetic import SyntheticCorpus
from evals.bench.throughput import throughput

SIZES = (10_000, 100_000)
QUESTIONS = 60
Say = Callable[[str], None]


def run_bench(home: Path, sizes: Sequence[int] = SIZES, say: Say = print, questions: int = QUESTIONS) -> dict[str, Any]:
    """Measure and return everything; ``say`` is told what is being done. Takes minutes: most of it is loading."""
    synthetic = SyntheticCorpus()
    with open_bench(home) as workbench:
        workbench.warm()
        result: dict[str, Any] = {"machine": machine(), "sizes": {}, "load": {}}
        for size in sizes:
            say(f"loading {size:,} passages")
            corpus = fill(workbench, size, synthetic)
            bench = Bench(corpus, synthetic, questions)
            result["load"][str(size)] = _load(corpus, size)
            result["sizes"][str(size)] = {
                name: found.to_dict() for name, found in _latencies(bench, size, synthetic, say)
            }
            result["recall"] = result.get("recall", {}) | {str(size): bench.recall()}
            say("searching with several callers")
            result["throughput"] = throughput(bench.strategy("hybrid"), bench.questions)
            result["bytes_per_passage"] = workbench.indexes.bytes_on_disk(corpus.index.name) // size
            say("deleting a quarter of it")
            gone = deletion(workbench, corpus.leaving, bench.strategy("hybrid"), bench.questions)
            result["deletion"] = result.get("deletion", {}) | {str(size): gone}
            workbench.knowledge.delete_source(corpus.small.id)
            workbench.knowledge.delete_source(corpus.large.id)
        say("ingesting")
        result["ingestion"] = ingestion(workbench, synthetic)
        result["memory_mb"] = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
        return result


def machine() -> str:
    """Name the machine: processor, cores, memory."""
    model = next(
        (line.split(":", 1)[1].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")),
        platform.processor() or platform.machine(),
    )
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{model}, {os.cpu_count()} cores, {memory:.0f} GB, Python {platform.python_version()}"


def _latencies(bench: Bench, size: int, synthetic: SyntheticCorpus, say: Say) -> list[tuple[str, Latency]]:
    """Pair every strategy with its baseline; the framework's table and the in-memory index are made on the way."""
    found = [
        ("vector", bench.paired(bench.strategy("vector"), bench.raw_vector(), "raw SQL, vector")),
        ("hybrid", bench.paired(bench.strategy("hybrid"), bench.raw_both(), "raw SQL, both statements")),
        ("keyword leg", bench.paired(bench.raw_keyword(), bench.plain_keyword(), "BM25 in plain SQL")),
        ("rerank", bench.paired(bench.strategy("rerank"), bench.strategy("hybrid"), "hybrid")),
        (
            "rerank, 50 candidates",
            bench.paired(bench.strategy("rerank", parameters={"candidates": 50}), bench.strategy("hybrid"), "hybrid"),
        ),
        ("hybrid, 1 % scope", bench.paired(bench.strategy("hybrid", scoped=True), bench.strategy("hybrid"), "hybrid")),
    ]
    say("building the in-memory BM25")
    texts = [piece.text for piece in synthetic.passages(size)]
    found.append(("keyword", bench.paired(bench.strategy("keyword"), bench.memory_bm25(texts), "bm25s in memory")))
    say("building the framework's own table")
    framework = bench.framework_hybrid()
    found.append(
        ("hybrid, framework", bench.paired(bench.strategy("hybrid"), framework, "LlamaIndex PGVectorStore hybrid"))
    )
    return found


def _load(corpus: BenchCorpus, size: int) -> dict[str, float]:
    return {
        "rows_ms_a_passage": round(corpus.load_seconds * 1000 / size, 3),
        "graph_seconds": round(corpus.graph_seconds, 2),
    }


def _lines(path: str) -> list[str]:
    file = Path(path)
    return file.read_text(encoding="utf-8").splitlines() if file.exists() else []
