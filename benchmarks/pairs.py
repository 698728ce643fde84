"""The timed strategies (all without an LLM), each paired with its baseline."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from benchmarks.latency import Bench, Latency
from benchmarks.needs import MAX_COPIED_PASSAGES
from benchmarks.synthetic_corpus import SyntheticCorpus
from workbench.retrieval.parameters import CANDIDATES
from workbench.retrieval.strategies import STRATEGIES

HYBRID_NAME = "hybrid"
FULL_TEXT_NAME = "llamaindex-hybrid"  # creates LlamaIndex's full-text column of the whole index
OWN_BASELINES = (
    "vector",
    "keyword",
    HYBRID_NAME,
)  # strategies with their own baselines; others are compared with hybrid


def measure_latencies(
    bench: Bench, size: int, synthetic: SyntheticCorpus, say: Callable[[str], None]
) -> Iterator[tuple[str, Latency]]:
    """Yield every strategy with its own and its baseline's latency over the same questions.

    LlamaIndex's table, plain postings and the in-memory index are created as needed. Each is a copy of the corpus, so
    above ``MAX_COPIED_PASSAGES`` passages (``size``) they are skipped.
    """
    copied = size <= MAX_COPIED_PASSAGES
    hybrid = bench.strategy(HYBRID_NAME)
    for question in bench.questions:  # warms up a server that has just started
        hybrid(question)
    yield "vector", bench.time_pair(bench.strategy("vector"), bench.raw_vector(), "raw SQL, vector")
    yield HYBRID_NAME, bench.time_pair(hybrid, bench.legs_alone(), "both legs alone")
    if copied:
        plain = bench.plain_keyword()
        yield "hybrid, raw SQL", bench.time_pair(hybrid, bench.raw_both(plain), "raw SQL, vector and plain BM25")
        yield "keyword leg", bench.time_pair(bench.raw_keyword(), plain, "BM25 in plain SQL")
    else:
        say(
            f"leaving out plain BM25, bm25s in memory, {FULL_TEXT_NAME} and LlamaIndex's own table: "
            f"each copies the corpus, which takes too long above {MAX_COPIED_PASSAGES:,} passages"
        )
    for name in list_timed_strategies():
        if name not in OWN_BASELINES and (copied or name != FULL_TEXT_NAME):
            say(f"timing {name}")
            scoped = STRATEGIES[name].needs_scope
            yield name, bench.time_pair(bench.strategy(name, scoped=scoped), hybrid, HYBRID_NAME)
    fewer = bench.strategy("rerank", parameters={CANDIDATES.name: 50})
    yield "rerank, 50 candidates", bench.time_pair(fewer, hybrid, HYBRID_NAME)
    yield "hybrid, 1% scope", bench.time_pair(bench.strategy(HYBRID_NAME, scoped=True), hybrid, HYBRID_NAME)
    if not copied:
        yield "keyword", bench.time_pair(bench.strategy("keyword"), bench.raw_keyword(), "the keyword leg alone")
        return
    say("building the in-memory BM25")
    texts = [piece.text for piece in synthetic.passages(size)]
    yield "keyword", bench.time_pair(bench.strategy("keyword"), bench.memory_bm25(texts), "bm25s in memory")
    say("building LlamaIndex's own table")
    store = bench.framework_store()
    fusion = bench.query_fusion(store, texts)
    yield "hybrid, fusion", bench.time_pair(hybrid, fusion, "LlamaIndex QueryFusionRetriever, bm25s and pgvector")
    yield "hybrid, framework", bench.time_pair(hybrid, bench.framework_hybrid(store), "LlamaIndex PGVectorStore hybrid")


def list_timed_strategies() -> tuple[str, ...]:
    """Return the strategies that can be timed: those without an LLM and without unconfigured models."""
    return tuple(name for name, strategy in STRATEGIES.items() if not strategy.needs)
