"""Benchmark results as tables and a chart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NotRequired, TypedDict

from workbench.formatting import KB
from workbench.types import JsonObject

TradeRow = TypedDict(  # one chunker
    "TradeRow", {"chunker": str, "size": int, "passages": int, "bytes": int, "ndcg@10": dict[str, float]}
)


class LatencyRow(TypedDict):
    """A strategy's and its baseline's milliseconds, as from ``Latency.to_dict``."""

    p50_ms: float
    p95_ms: float
    baseline: str
    baseline_p50_ms: float
    ratio: float


WalkRow = TypedDict(  # one value of ef_search
    "WalkRow", {"ef_search": int, "recall@10": float, "recall@50": float, "p50_ms": float}
)

PRECISION_MEASURES = (
    ("passages_per_cpu_s", "embedding session, passages per CPU second"),
    ("full_precision_passages_per_cpu_s", "the same in full precision"),
    ("times_full_precision", "speed relative to full precision"),
)


class Figures(TypedDict):
    """The JSON of ``python -m benchmarks``; ``sizes``, ``load``, ``recall`` and ``deletion`` by passage count."""

    machine: str
    sizes: dict[str, dict[str, LatencyRow]]
    load: dict[str, dict[str, float]]
    recall: dict[str, float]
    throughput: dict[str, float]
    bytes_per_passage: int
    deletion: dict[str, dict[str, float]]
    ingestion: dict[str, float]
    memory_mb: int
    trade: NotRequired[list[TradeRow]]
    walks: NotRequired[dict[str, list[WalkRow]]]
    mcp_overhead: NotRequired[JsonObject]


def format_table(result: Figures) -> str:
    """Return the figures as Markdown tables, one row per strategy and size."""
    lines = [
        f"Machine: {result['machine']}",
        "",
        "| passages | strategy | p50 ms | p95 ms | against | its p50 ms | ratio |",
        "|---:|---|---:|---:|---|---:|---:|",
        *_format_rows(result),
        "",
        "| measure | figure |",
        "|---|---:|",
        *(
            f"| hybrid searches per second, {callers} callers | {rate:.1f} |"
            for callers, rate in result["throughput"].items()
        ),
        *(f"| recall of the graph at {int(size):,} | {share:.3f} |" for size, share in result["recall"].items()),
        *(
            f"| {name.replace('_', ' ')} at {int(size):,} | {value} |"
            for size, load in result["load"].items()
            for name, value in load.items()
        ),
        *(
            f"| deleting {deletion['documents']:,} documents at {int(size):,}, seconds | {deletion['seconds']} |\n"
            f"| a hybrid search meanwhile, p50 ms | {deletion['p50_ms_meanwhile']} |"
            for size, deletion in result["deletion"].items()
        ),
        f"| ingestion, passages per second | {result['ingestion']['passages_per_s']} |",
        f"| embedding session alone | {result['ingestion']['embedding_only_passages_per_s']} |",
        f"| ingestion relative to it | {result['ingestion']['ratio']} |",
        *(
            f"| {title} | {result['ingestion'][name]} |"
            for name, title in PRECISION_MEASURES
            if name in result["ingestion"]
        ),
        f"| bytes on disk per passage | {result['bytes_per_passage']:,} |",
        f"| peak memory of the process, MB | {result['memory_mb']} |",
        *(f"| {name.replace('_', ' ')} | {value} |" for name, value in result.get("mcp_overhead", {}).items()),
        *_format_walks(result.get("walks", {})),
        *_format_trade(result.get("trade", [])),
    ]
    return "\n".join(lines)


def plot_medians(result: Figures, path: Path) -> None:
    """Write a chart of the medians and their baselines, one panel per size. Needs matplotlib."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    sizes = result["sizes"]
    figure, panels = pyplot.subplots(1, len(sizes), figsize=(6 * len(sizes), 4.2), squeeze=False)
    for panel, (size, rows) in zip(panels[0], sizes.items(), strict=True):
        names = list(rows)[::-1]
        places = range(len(names))
        panel.barh([place + 0.2 for place in places], [rows[name]["p50_ms"] for name in names], 0.36, label="workbench")
        baselines = [rows[name]["baseline_p50_ms"] for name in names]
        panel.barh([place - 0.2 for place in places], baselines, 0.36, label="baseline", color="#b9b4ab")
        panel.set_yticks(list(places), [f"{name}\nvs {rows[name]['baseline']}" for name in names], fontsize=8)
        panel.set_xscale("log")
        panel.set_xlabel("median, ms (log)")
        panel.set_title(f"{int(size):,} passages")
        panel.spines[["top", "right"]].set_visible(False)
    panels[0][0].legend(frameon=False)
    figure.tight_layout()
    figure.savefig(path, dpi=140)
    pyplot.close(figure)


def _format_walks(walks: Mapping[str, list[WalkRow]]) -> Iterator[str]:
    """Yield the table of graph search by ef_search; nothing if it was not measured."""
    if not walks:
        return
    yield ""
    yield "| passages | ef_search | recall@10 | recall@50 | p50 ms (50 passages) |"
    yield "|---:|---:|---:|---:|---:|"
    for size, rows in walks.items():
        for row in rows:
            recalls = f"{row['recall@10']:.3f} | {row['recall@50']:.3f}"
            yield f"| {int(size):,} | {row['ef_search']:,} | {recalls} | {row['p50_ms']:.1f} |"


def _format_trade(rows: Sequence[TradeRow]) -> Iterator[str]:
    """Yield the table of size and quality; nothing if it was not measured."""
    if not rows:
        return
    strategies = list(rows[0]["ndcg@10"])
    yield ""
    yield f"| chunker | passages | kB | {' | '.join(f'nDCG@10 {name}' for name in strategies)} |"
    yield "|---|---:|---:" + "|---:" * len(strategies) + "|"
    for row in rows:
        values = " | ".join(f"{row['ndcg@10'][name]:.3f}" for name in strategies)
        size = f"{row['bytes'] / KB:,.0f}"
        yield f"| {row['chunker']}, {row['size']} tokens | {row['passages']:,} | {size} | {values} |"


def _format_rows(result: Figures) -> Iterator[str]:
    for size, strategies in result["sizes"].items():
        for name, figures in strategies.items():
            yield (
                f"| {int(size):,} | {name} | {figures['p50_ms']:.1f} | {figures['p95_ms']:.1f} | {figures['baseline']} "
                f"| {figures['baseline_p50_ms']:.1f} | {figures['ratio']:.2f} |"
            )
