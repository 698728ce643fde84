"""The strategies that are timed: all that need no LLM, each in turn with the baseline it is compared with."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from benchmarks.latency import Bench, Latency
from benchmarks.needs import COPIED
from benchmarks.synthetic_corpus import SyntheticCorpus
from workbench.retrieval.parameters import CANDIDATES
from workbench.retrieval.strategies import STRATEGIES

HYBRID = "hybrid"
FULL_TEXT = "llamaindex-hybrid"  # makes the framework's full text of the whole index
APART = ("vector", "keyword", HYBRID)  # strategies with a baseline of their own; the others stand next to hybrid


def latencies(
    bench: Bench, size: int, synthetic: SyntheticCorpus, say: Callable[[str], None]
) -> Iterator[tuple[str, Latency]]:
    """Yield every strategy with its latency and its baseline's over the same questions.

    The framework's own table, plain postings and the in-memory index are made on the way, each a copy of the corpus:
    above ``COPIED`` passages (``size``) what needs one is left out.
    """
    copied = size <= COPIED
    hybrid = bench.strategy(HYBRID)
    for question in bench.questions:  # no row is timed on a server that has just started, whose pages lie on the disk
        hybrid(question)
    yield "vector", bench.paired(bench.strategy("vector"), bench.raw_vector(), "raw SQL, vector")
    yield HYBRID, bench.paired(hybrid, bench.legs_alone(), "both legs alone")
    if copied:
        plain = bench.plain_keyword()
        yield "hybrid, raw SQL", bench.paired(hybrid, bench.raw_both(plain), "raw SQL, vector and plain BM25")
        yield "keyword leg", bench.paired(bench.raw_keyword(), plain, "BM25 in plain SQL")
    else:
        say(
            f"leaving out plain BM25, bm25s in memory, {FULL_TEXT} and LlamaIndex's own table: "
            f"each copies the corpus, which takes too long above {COPIED:,} passages"
        )
    for name in timed():
        if name not in APART and (copied or name != FULL_TEXT):
            say(f"timing {name}")
            scoped = STRATEGIES[name].needs_scope
            yield name, bench.paired(bench.strategy(name, scoped=scoped), hybrid, HYBRID)
    fewer = bench.strategy("rerank", parameters={CANDIDATES.name: 50})
    yield "rerank, 50 candidates", bench.paired(fewer, hybrid, HYBRID)
    yield "hybrid, 1 % scope", bench.paired(bench.strategy(HYBRID, scoped=True), hybrid, HYBRID)
    if not copied:
        yield "keyword", bench.paired(bench.strategy("keyword"), bench.raw_keyword(), "the keyword leg alone")
        return
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
