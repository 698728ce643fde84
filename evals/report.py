"""A run for people (a table) and for programs (the JSON of ``workbench eval``)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from io import StringIO
from typing import Any

from rich.console import Console
from rich.table import Table

from evals.runner import EvalRun, StrategyRun
from evals.significance import Difference

DIGITS = 4
WIDTH = 140  # columns of the tables on stderr


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
    """Return a table with one row a strategy; an asterisk marks the best of each metric."""
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
        cells = [f"{means[metric]:.{DIGITS}f}{'*' if means[metric] == best[metric] else ' '}" for metric in metrics]
        latency = strategy.latency_ms
        shown.add_row(name, *cells, f"{latency['p50']:.1f}", f"{latency['p95']:.1f}")
    return shown


def ragas_table(run: EvalRun) -> Table:
    """Return what ragas measured, each mean with the number of questions it is over."""
    found = {name: strategy.extra.get("ragas", {}) for name, strategy in run.strategies.items()}
    metrics = list(dict.fromkeys(metric for summaries in found.values() for metric in summaries))
    shown = Table(title="ragas: mean (questions measured / not measured)", title_justify="left")
    shown.add_column("strategy")
    for metric in metrics:
        shown.add_column(metric.replace("_", " "), justify="right")
    for name, summaries in found.items():
        shown.add_row(name, *(_ragas_cell(summaries[metric]) for metric in metrics))
    return shown


def _ragas_cell(summary: dict[str, Any]) -> str:
    mean = "-" if summary["mean"] is None else f"{summary['mean']:.{DIGITS}f}"
    return f"{mean} ({summary['measured']}/{summary['not_measured']})"


def pair_table(differences: Sequence[Difference], title: str = "Differences") -> Table:
    """Return a table with one row a comparison; ``significant`` says at the level of .05."""
    metric = differences[0].metric if differences else ""
    shown = Table(title=f"{title}, {metric}", title_justify="left")
    for name in ("a", "b"):
        shown.add_column(name)
    for name in ("a - b", "95 % interval", "p (Holm)", "significant", "won", "lost", "equal"):
        shown.add_column(name, justify="right")
    for item in differences:
        low, high = item.interval
        cells = [item.a, item.b, f"{item.difference:+.4f}", f"{low:+.4f} .. {high:+.4f}", f"{item.p_corrected:.4f}"]
        cells += ["yes" if item.significant else "no", str(item.wins), str(item.losses), str(item.ties)]
        shown.add_row(*cells)
    return shown


def text(table: Table) -> str:
    """Return a table as plain text, as wide as it needs."""
    stream = StringIO()
    Console(file=stream, width=int(os.environ.get("COLUMNS", WIDTH)), no_color=True).print(table)
    return stream.getvalue().rstrip()


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
