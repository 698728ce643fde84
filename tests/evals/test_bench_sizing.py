"""The sizing table shows measured figures, and marks extrapolated ones."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.figures import Figures, LatencyRow
from benchmarks.sizing import estimate_sizes, format_sizes, read_figures
from workbench.errors import InvalidInput


def _run(passages: int, bytes_per_passage: int) -> Figures:
    row: LatencyRow = {
        "p50_ms": 9.4, "p95_ms": 20.0, "baseline": "both legs alone", "baseline_p50_ms": 6.0, "ratio": 1.6,
    }  # fmt: skip
    return {
        "machine": "two cores", "sizes": {str(passages): {"hybrid": row}}, "load": {}, "recall": {str(passages): 0.985},
        "throughput": {}, "bytes_per_passage": bytes_per_passage, "deletion": {},
        "ingestion": {"passages_per_s": 100.0}, "memory_mb": 900,
    }  # fmt: skip


def test_a_size_that_was_run_has_its_figures_and_larger_ones_grow_from_the_largest_run() -> None:
    rows = {row.passages: row for row in estimate_sizes([_run(10_000, 9_000), _run(100_000, 8_000)])}
    assert (rows[10_000].disk_bytes, rows[10_000].hybrid_p50_ms) == (10_000 * 9_000, 9.4)
    assert (rows[10_000_000].disk_bytes, rows[10_000_000].hybrid_p50_ms) == (10_000_000 * 8_000, None)
    assert rows[10_000_000].embedding_seconds == 10_000_000 / 100
    assert rows[1_000_000].memory_bytes == 1_000_000 * (2 * 384 + 1_200)


def test_only_what_was_run_is_upright() -> None:
    lines = format_sizes(estimate_sizes([_run(100_000, 8_000)])).splitlines()
    assert lines[3] == "| 100,000 | 800.0 MB | *17 min* | *1.7 min* | *196.8 MB* | 9 ms | 0.985 |"
    assert lines[6] == "| *100,000,000* | *800.0 GB* | *12 days* | *1.2 days* | *196.8 GB* |  |  |"


@pytest.mark.parametrize("text", ["not json", "[]", '{"sizes": {}}', None], ids=["text", "list", "half", "absent"])
def test_a_file_that_holds_no_figures_is_refused_with_the_command_that_writes_one(
    tmp_path: Path, text: str | None
) -> None:
    file = tmp_path / "it's one.json"
    if text is not None:
        file.write_text(text)
    with pytest.raises(InvalidInput, match="python -m benchmarks --json"):
        read_figures(file)


def test_a_file_that_the_bench_wrote_is_read_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    file.write_text(json.dumps(_run(10_000, 9_000)))
    assert read_figures(file) == _run(10_000, 9_000)
