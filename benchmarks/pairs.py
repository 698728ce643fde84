"""The strategies that are timed: all that need no LLM, each in turn with the baseline it is compared with."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from benchmarks.latency import Bench, Latency
from benchmarks.needs import MAX_COPIED_PASSAGES
from benchmarks.synthetic_corpus import SyntheticCorpus
from workbench.retrieval.parameters import CANDIDATES
from workbench.retrieval.strategies import STRATEGIES

HYBRID_NAME = "hybrid"
FULL_TEXT_NAME = "llamaindex-hybrid"  # makes the framework's full text of the whole index
OWN_BASELINES = (
    "vector",
    "keyword",
    HYBRID_NAME,
)  # strategies with a baseline of their own; the others stand next to hybrid


def measure_latencies(
    bench: Bench, size: int, synthetic: SyntheticCorpus, say: Callable[[str], None]
) -> Iterator[tuple[str, Latency]]:
    """Yield every strategy with its latency and its baseline's over the same questions.

    The framework's own table, plain postings and the in-memory index are made on the way, each a copy of the corpus:
    above ``COPIED`` passages (``size``) what needs one is left out.
    """
    copied = size <= MAX_COPIED_PASSAGES
    hybrid = bench.strategy(HYBRID_NAME)
    for question in bench.questions:  # no row is timed on a server that has just started, whose pages lie on the disk
        hybrid(question)
    yield "vector", bench.paired(bench.strategy("vector"), bench.raw_vector(), "raw SQL, vector")
    yield HYBRID_NAME, bench.paired(hybrid, bench.legs_alone(), "both legs alone")
    if copied:
        plain = bench.plain_keyword()
        yield "hybrid, raw SQL", bench.paired(hybrid, bench.raw_both(plain), "raw SQL, vector and plain BM25")
        yield "keyword leg", bench.paired(bench.raw_keyword(), plain, "BM25 in plain SQL")
    else:
        say(
            f"leaving out plain BM25, bm25s in memory, {FULL_TEXT_NAME} and LlamaIndex's own table: "
            f"each copies the corpus, which takes too long above {MAX_COPIED_PASSAGES:,} passages"
        )
    for name in timed_strategies():
        if name not in OWN_BASELINES and (copied or name != FULL_TEXT_NAME):
            say(f"timing {name}")
            scoped = STRATEGIES[name].needs_scope
            yield name, bench.paired(bench.strategy(name, scoped=scoped), hybrid, HYBRID_NAME)
    fewer = bench.strategy("rerank", parameters={CANDIDATES.name: 50})
    yield "rerank, 50 candidates", bench.paired(fewer, hybrid, HYBRID_NAME)
    yield "hybrid, 1 % scope", bench.paired(bench.strategy(HYBRID_NAME, scoped=True), hybrid, HYBRID_NAME)
    if not copied:
        yield "keyword", bench.paired(bench.strategy("keyword"), bench.raw_keyword(), "the keyword leg alone")
        return
    yield "keyword", _measure_keyword(bench, size, synthetic, say)
    say("building the framework's own table")
    yield "hybrid, framework", bench.paired(hybrid, bench.framework_hybrid(), "LlamaIndex PGVectorStore hybrid")


def timed_strategies() -> tuple[str, ...]:
    """Return the strategies that can be timed: those that need neither an LLM nor a model that is not configured."""
    return tuple(name for name, strategy in STRATEGIES.items() if not strategy.needs)


def _measure_keyword(bench: Bench, size: int, synthetic: SyntheticCorpus, say: Callable[[str], None]) -> Latency:
    say("building the in-memory BM25")
    texts = [piece.text for piece in synthetic.passages(size)]
    return bench.paired(bench.strategy("keyword"), bench.memory_bm25(texts), "bm25s in memory")
