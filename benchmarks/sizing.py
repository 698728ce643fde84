"""The sizing table: disk and time for 10,000 to 100 million passages, measured or extrapolated."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from benchmarks.figures import Figures
from workbench.errors import InvalidInput
from workbench.formatting import size_text
from workbench.types import Value

TABLE_SIZES = (10_000, 100_000, 1_000_000, 10_000_000, 100_000_000)
WORKER_COUNT = 10  # on as many machines like the measured one
VECTOR_BYTES = 768  # per passage: 384 numbers in half precision
LINKS_BYTES = 1_200  # per passage in the graph, with its share of pages
REQUIRED_KEYS = {"sizes", "recall", "bytes_per_passage", "ingestion"}  # in a run's JSON
_TIME_UNITS = (("days", 86_400), ("h", 3_600), ("min", 60))


@dataclass(frozen=True, slots=True)
class SizingRow(Value):
    """One size; if ``is_measured``, it comes from a run and has ``hybrid_p50_ms`` and ``recall`` (else None)."""

    passages: int
    disk_bytes: int
    embedding_seconds: float
    memory_bytes: int
    is_measured: bool
    hybrid_p50_ms: float | None = None
    recall: float | None = None


def read_figures(path: Path) -> Figures:
    """Read a file written by ``python -m benchmarks --json``. Raises InvalidInput."""
    how = f"write one with 'python -m benchmarks --json > {path.name}'"
    try:
        found: object = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidInput(f"{path} is not readable ({error.strerror}); {how}.") from error
    except ValueError as error:
        raise InvalidInput(f"{path} is not a file of benchmark results; {how}.") from error
    lacking = REQUIRED_KEYS - (found.keys() if isinstance(found, dict) else set())
    if lacking:
        raise InvalidInput(f"{path} lacks {', '.join(sorted(lacking))}; {how}.")
    return cast("Figures", found)


def estimate_sizes(runs: Sequence[Figures]) -> list[SizingRow]:
    """Return a row for each of ``TABLE_SIZES`` and each measured size.

    Disk and embedding time are extrapolated linearly from the largest run. Search times and recall are not
    extrapolated.
    """
    measured = {int(size): run for run in runs for size in run["sizes"]}
    largest = measured[max(measured)]
    rows: list[SizingRow] = []
    for passages in sorted({*TABLE_SIZES, *measured}):
        run = measured.get(passages)
        last = run is not None and passages == max(map(int, run["sizes"]))  # with measured bytes
        rows.append(
            SizingRow(
                passages=passages,
                disk_bytes=passages * (run if run is not None and last else largest)["bytes_per_passage"],
                embedding_seconds=passages / largest["ingestion"]["passages_per_s"],
                memory_bytes=passages * (VECTOR_BYTES + LINKS_BYTES),
                is_measured=run is not None,
                hybrid_p50_ms=run["sizes"][str(passages)]["hybrid"]["p50_ms"] if run else None,
                recall=run["recall"][str(passages)] if run else None,
            )
        )
    return rows


def format_sizes(rows: Sequence[SizingRow]) -> str:
    """Return the rows as a Markdown table; extrapolated values are in italics."""
    return "\n".join(
        [
            f"| passages | disk | embedding, one worker | with {WORKER_COUNT} | vectors and graph | hybrid "
            f"search, median "
            "| recall of the graph |",
            "|---:|---:|---:|---:|---:|---:|---:|",
            *_format_rows(rows),
        ]
    )


def _format_rows(rows: Sequence[SizingRow]) -> Iterator[str]:
    for row in rows:
        disk = size_text(row.disk_bytes)
        cells = [
            f"{row.passages:,}" if row.is_measured else f"*{row.passages:,}*",
            disk if row.is_measured else f"*{disk}*",
            f"*{_format_duration(row.embedding_seconds)}*",
            f"*{_format_duration(row.embedding_seconds / WORKER_COUNT)}*",
            f"*{size_text(row.memory_bytes)}*",
            "" if row.hybrid_p50_ms is None else f"{row.hybrid_p50_ms:.0f} ms",
            "" if row.recall is None else f"{row.recall:.3f}",
        ]
        yield f"| {' | '.join(cells)} |"


def _format_duration(seconds: float) -> str:
    for name, length in _TIME_UNITS:
        if seconds >= length:
            return f"{seconds / length:.0f} {name}" if seconds >= 10 * length else f"{seconds / length:.1f} {name}"
    return f"{seconds:.0f} s"
