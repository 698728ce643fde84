"""The bench for people: a table of ratios and a picture."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any


def table(result: dict[str, Any]) -> str:
    """Return the figures as a Markdown table, one row a strategy and size."""
    lines = [
        f"Machine: {result['machine']}",
        "",
        "| passages | strategy | p50 ms | p95 ms | against | its p50 ms | ratio |",
        "|---:|---|---:|---:|---|---:|---:|",
        *_rows(result),
        "",
        "| measure | figure |",
        "|---|---:|",
        *(
            f"| hybrid searches a second, {callers} callers | {rate:.1f} |"
            for callers, rate in result["throughput"].items()
        ),
        *(f"| recall of the graph at {int(size):,} | {share:.3f} |" for size, share in result["recall"].items()),
        *(
            f"| {name.replace('_', ' ')} at {int(size):,} | {value} |"
            for size, load in result["load"].items()
            for name, value in load.items()
        ),
        *(
            f"| deleting {gone['documents']:,} documents at {int(size):,}, seconds | {gone['seconds']} |\n"
            f"| a hybrid search meanwhile, p50 ms | {gone['p50_ms_meanwhile']} |"
            for size, gone in result["deletion"].items()
        ),
        f"| ingestion, passages a second | {result['ingestion']['passages_per_s']} |",
        f"| the embedding session alone | {result['ingestion']['embedding_only_passages_per_s']} |",
        f"| ingestion against it | {result['ingestion']['ratio']} |",
        f"| bytes on disk a passage | {result['bytes_per_passage']:,} |",
        f"| peak memory of the process, MB | {result['memory_mb']} |",
        *(f"| {name.replace('_', ' ')} | {value} |" for name, value in result.get("mcp_overhead", {}).items()),
    ]
    return "\n".join(lines)


def plot(result: dict[str, Any], path: Path) -> None:
    """Write a picture of the medians beside their baselines, one panel a size. Needs matplotlib."""
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


def _rows(result: dict[str, Any]) -> Iterator[str]:
    for size, strategies in result["sizes"].items():
        for name, found in strategies.items():
            yield (
                f"| {int(size):,} | {name} | {found['p50_ms']:.1f} | {found['p95_ms']:.1f} | {found['baseline']} "
                f"| {found['baseline_p50_ms']:.1f} | {found['ratio']:.2f} |"
            )
