"""The benchmark at a small size: every available strategy is timed, with only the installed packages."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks import ingest_speed, throughput
from benchmarks.figures import format_table
from benchmarks.ingest_speed import compare_precision
from benchmarks.latency import Bench
from benchmarks.loading import fill_corpus
from benchmarks.measurement import run_bench
from benchmarks.pairs import list_timed_strategies
from benchmarks.synthetic_corpus import SyntheticCorpus
from benchmarks.trade import CHUNKER_SETTINGS
from benchmarks.walks import EF_SEARCH_VALUES
from workbench import Workbench
from workbench.ingestion.chunking import CHUNKERS
from workbench.retrieval.strategies import STRATEGIES
from workbench.types import SearchResult, TimedStep

pytestmark = pytest.mark.slow

PASSAGES = 300


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    """A data folder that the embedded server's user can access."""
    with tempfile.TemporaryDirectory(prefix="wb-bench-") as folder:
        Path(folder).chmod(0o755)  # as root, the embedded server runs as another user
        yield Path(folder)


def measure(home: Path, **options: bool) -> dict[str, dict]:
    """Run a whole benchmark that takes seconds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ingest_speed, "DOCUMENTS_PER_HALF", 2)
        patch.setattr(ingest_speed, "PASSAGES_COMPARED", 4)
        patch.setattr(throughput, "DURATION_S", 0.2)
        return run_bench(home, [PASSAGES], say=lambda text: None, questions=1, with_trade=False, **options)  # pyright: ignore


@pytest.fixture(scope="module")
def result(home: Path) -> dict[str, dict]:
    """The result of a benchmark that keeps its corpus."""
    return measure(home, keep=True, with_walks=True)


def test_a_kept_corpus_is_measured_again_without_loading_and_then_deleted(home: Path, result: dict[str, dict]) -> None:
    assert result["load"]["300"].keys() == {"rows_ms_a_passage", "graph_seconds"}
    assert result["deletion"] == {}
    again = measure(home)
    assert again["load"]["300"] == {} and again["sizes"]["300"]["hybrid"]["p50_ms"] > 0
    assert again["deletion"]["300"]


def test_the_timed_questions_are_embedded_beforehand(wb: Workbench) -> None:
    synthetic = SyntheticCorpus(wb.corpus.encoder().dimensions)
    bench = Bench(fill_corpus(wb, PASSAGES, synthetic), synthetic, 1)
    for strategy in ("vector", "hybrid", "rerank"):
        found = bench.strategy(strategy)(bench.questions[0])
        assert isinstance(found, SearchResult) and found.results
        assert TimedStep.EMBED not in found.timings_ms


def test_every_strategy_that_needs_no_llm_is_timed_next_to_a_baseline(result: dict[str, dict[str, dict]]) -> None:
    rows = result["sizes"][str(PASSAGES)]
    assert (
        {name for name, strategy in STRATEGIES.items() if not strategy.needs}
        == set(list_timed_strategies())
        <= rows.keys()
    )
    assert all(row["p50_ms"] > 0 and row["baseline_p50_ms"] > 0 and row["baseline"] for row in rows.values())


def test_the_table_shows_every_row_and_the_trade_off_if_it_was_measured(result: dict[str, dict[str, dict]]) -> None:
    row = {"chunker": "structure", "size": 200, "passages": 365, "bytes": 2048, "ndcg@10": {"vector": 0.77}}
    shown = format_table(result | {"trade": [row]})
    assert all(f"| {name} |" in shown for name in list_timed_strategies())
    assert "| structure, 200 tokens | 365 | 2 | 0.770 |" in shown


def test_a_walk_that_keeps_more_in_view_than_the_index_holds_finds_the_true_nearest(
    result: dict[str, dict[str, list[dict[str, float]]]],
) -> None:
    rows = result["walks"][str(PASSAGES)]
    assert [row["ef_search"] for row in rows] == list(EF_SEARCH_VALUES)
    assert rows[-1]["recall@10"] == rows[-1]["recall@50"] == 1.0 and all(row["p50_ms"] > 0 for row in rows)
    assert "| 300 | 1,000 | 1.000 | 1.000 |" in format_table(result)


def test_the_model_is_also_timed_in_full_precision_if_it_has_a_choice(
    result: dict[str, dict[str, dict]], wb: Workbench
) -> None:
    told = result["ingestion"]
    ratio = told["passages_per_cpu_s"] / told["full_precision_passages_per_cpu_s"]
    assert told["times_full_precision"] == pytest.approx(ratio, abs=0.02)
    assert f"| speed relative to full precision | {told['times_full_precision']} |" in format_table(result)
    assert compare_precision(wb, ["Herons"]) == {}


def test_the_trade_cuts_only_by_chunkers_that_exist() -> None:
    assert {chunker for chunker, _ in CHUNKER_SETTINGS} <= CHUNKERS.keys(), (
        "benchmarks/trade.py names a chunker that is gone"
    )
