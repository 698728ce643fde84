"""A run for people (a table) and for programs (the JSON of ``workbench eval``)."""

from __future__ import annotations

from typing import Any

from rich.table import Table

from evals.runner import EvalRun, StrategyRun

DIGITS = 4


def to_json(run: EvalRun, significance: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    """Return the JSON form that interfaces promise; metrics are means over the answerable questions."""
    return {
        "dataset": run.dataset.name,
        "queries": len(run.dataset.answerable),
        "corpus": run.corpus.documents,
        "index": {
            "name": run.corpus.index.name,
            "chunker": run.corpus.index.chunker,
            "options": dict(run.corpus.index.chunker_options),
            "embedding_model": run.corpus.index.embedding_model,
            "passages": run.corpus.index.passages_count,
        },
        "hashes": {
            "corpus": run.corpus.corpus_hash,
            "index": run.corpus.index_hash,
            "dataset": run.dataset.questions_hash,
        },
        "strategies": {name: strategy_json(strategy) for name, strategy in run.strategies.items()},
        "significance": significance or [],
    }


def strategy_json(run: StrategyRun) -> dict[str, Any]:
    """Return one strategy's metrics, latency and parameters, and what was measured besides."""
    metrics = {name: round(value, 6) for name, value in run.means.items()}
    return metrics | {"latency_ms": run.latency_ms, "parameters": dict(run.parameters)} | dict(run.extra)


def table(run: EvalRun) -> Table:
    """Return a table with one row a strategy; the best value of each metric is bold."""
    metrics = list(next(iter(run.strategies.values())).values)
    index = run.corpus.index
    shown = Table(
        title=f"{run.dataset.name}: {len(run.dataset.answerable):,} questions, {run.corpus.documents:,} documents, "
        f"{index.passages_count:,} passages ({index.chunker}, {index.embedding_model})",
        title_justify="left",
    )
    shown.add_column("strategy")
    for name in (*metrics, "p50 ms", "p95 ms"):
        shown.add_column(name, justify="right")
    best = {name: max(strategy.means[name] for strategy in run.strategies.values()) for name in metrics}
    for name, strategy in run.strategies.items():
        means = strategy.means
        cells = [
            f"[bold]{means[metric]:.{DIGITS}f}[/]" if means[metric] == best[metric] else f"{means[metric]:.{DIGITS}f}"
            for metric in metrics
        ]
        latency = strategy.latency_ms
        shown.add_row(name, *cells, f"{latency['p50']:.1f}", f"{latency['p95']:.1f}")
    return shown


def markdown(run: EvalRun) -> str:
    """Return the table in Markdown, for the documentation."""
    metrics = list(next(iter(run.strategies.values())).values)
    lines = ["| strategy | " + " | ".join((*metrics, "p50 ms", "p95 ms")) + " |"]
    lines.append("|---" + "|---:" * (len(metrics) + 2) + "|")
    for name, strategy in run.strategies.items():
        cells = [f"{strategy.means[metric]:.{DIGITS}f}" for metric in metrics]
        cells += [f"{value:.1f}" for value in strategy.latency_ms.values()]
        lines.append(f"| `{name}` | " + " | ".join(cells) + " |")
    return "\n".join(lines)
