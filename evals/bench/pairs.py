"""The strategies that are timed: all that need no LLM, each in turn with the baseline it is compared with."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from evals.bench.latency import Bench, Latency
from evals.bench.synthetic_corpus import SyntheticCorpus
from workbench.retrieval.parameters import CANDIDATES
from workbench.retrieval.strategies import STRATEGIES

HYBRID = "hybrid"
APART = ("vector", "keyword", HYBRID)  # strategies with a baseline of their own; the others stand beside hybrid


def latencies(
    bench: Bench, size: int, synthetic: SyntheticCorpus, say: Callable[[str], None]
) -> Iterator[tuple[str, Latency]]:
    """Yield every strategy with its latency and its baseline's over the same questions.

    The framework's own table and the in-memory index are made on the way; ``size`` counts the passages.
    """
    yield "vector", bench.paired(bench.strategy("vector"), bench.raw_vector(), "raw SQL, vector")
    yield HYBRID, bench.paired(bench.strategy(HYBRID), bench.raw_both(), "raw SQL, both statements")
    yield "keyword leg", bench.paired(bench.raw_keyword(), bench.plain_keyword(), "BM25 in plain SQL")
    hybrid = bench.strategy(HYBRID)
    for name in timed():
        if name not in APART:
            say(f"timing {name}")
            scoped = STRATEGIES[name].needs_scope
            yield name, bench.paired(bench.strategy(name, scoped=scoped), hybrid, HYBRID)
    fewer = bench.strategy("rerank", parameters={CANDIDATES.name: 50})
    yield "rerank, 50 candidates", bench.paired(fewer, hybrid, HYBRID)
    yield "hybrid, 1 % scope", bench.paired(bench.strategy(HYBRID, scoped=True), hybrid, HYBRID)
    yield "keyword", _keyword(bench, size, synthetic, say)
    say("building the framework's own table")
    yield "hybrid, framework", bench.paired(hybrid, bench.framework_hybrid(), "LlamaIndex PGVectorStore hybrid")


def timed() -> tuple[str, ...]:
    """Return the strategies that can be timed: those that need neither an LLM nor a model that is not configured."""
    return tuple(name for name, strategy in STRATEGIES.items() if not strategy.needs)


def _keyword(bench: Bench, size: int, synthetic: SyntheticCorpus, say: Callable[[str], None]) -> Latency:
    say("building the in-memory BM25")
    texts = [piece.text for piece in synthetic.passages(size)]
    return bench.paired(bench.strategy("keyword"), bench.memory_bm25(texts), "bm25s in memory")
