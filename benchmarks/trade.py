"""Size versus quality: the sample with several chunkers, their index sizes and nDCG@10."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from benchmarks.figures import TradeRow
from evals.experiments.runs import run_strategies
from evals.gateway import index_corpus
from evals.test_sets.folders import SAMPLE_NAME, load_test_set
from workbench.errors import Conflict
from workbench.workbench import Workbench

CHUNKER_SETTINGS = (("structure", 100), ("structure", 200), ("structure", 400), ("token", 200), ("sentence", 200))
STRATEGY_NAMES = ("vector", "hybrid", "rerank")
METRIC_NAME = "ndcg@10"


def measure_size_and_quality(wb: Workbench, say: Callable[[str], None]) -> list[TradeRow]:
    """Return, for each chunker, the passages, bytes on disk and nDCG@10 of three strategies on the sample.

    Each index has the same documents, so sizes are comparable.
    """
    test_set = load_test_set(SAMPLE_NAME)
    rows: list[TradeRow] = []
    for chunker, size in CHUNKER_SETTINGS:
        name = f"trade_{chunker}_{size}"
        say(f"indexing the sample with {chunker}, {size} tokens")
        with suppress(Conflict):  # left by an earlier run
            wb.indexes.create(name, chunker=chunker, options={"size": size})
        corpus = index_corpus(wb, test_set, name)
        measured = run_strategies(wb, test_set, corpus, STRATEGY_NAMES, (METRIC_NAME,)).strategies
        rows.append(
            {
                "chunker": chunker,
                "size": size,
                "passages": corpus.index.passages_count,
                "bytes": wb.indexes.bytes_on_disk(corpus.index.name),
                "ndcg@10": {
                    strategy: round(strategy_run.means[METRIC_NAME], 4) for strategy, strategy_run in measured.items()
                },
            }
        )
    return rows
