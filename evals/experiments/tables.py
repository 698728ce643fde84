"""A run for people (a table) and for programs (the JSON of ``workbench eval``)."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from io import StringIO
from typing import NotRequired, TypedDict

from rich.console import Console
from rich.table import Table

from evals.experiments.document_cutoffs import DocumentCutoff
from evals.experiments.reference_answers import ReferenceAnswers
from evals.experiments.strategy_run import EvalRun, StrategyRun
from evals.measures.significance import Difference, sentence
from evals.measures.verdicts import JudgeAgreement, RagasSummary
from workbench.types import JsonObject

TABLE_DIGITS = 4
PAGES = "page-hit"  # the families that have a table of their own
WIDTH = 140  # columns of the tables on stderr


class RunJson(TypedDict):
    """The JSON of ``workbench eval``; ``hashes`` are of the corpus, the index and the test set.

    ``scope`` is the part of the user's documents that was searched, with its text; None for a corpus of its own.
    """

    dataset: str
    scope: JsonObject | None
    queries: int
    corpus: int
    index: JsonObject
    hashes: dict[str, str]
    strategies: dict[str, dict[str, object]]
    significance: list[JsonObject]
    judge: NotRequired[JudgeAgreement]
    answers: NotRequired[dict[str, ReferenceAnswers]]
    document_cutoffs: NotRequired[dict[str, list[DocumentCutoff]]]
    baseline: NotRequired[list[JsonObject]]


def to_json(run: EvalRun, significance: list[JsonObject] | None = None) -> RunJson:
    """Return the JSON form that interfaces promise; metrics are means over the answerable questions."""
    return {
        "dataset": run.test_set.name,
        "scope": None if run.test_set.corpus else run.test_set.scope.to_stored() | {"text": run.test_set.over},
        "queries": len(run.test_set.answerable),
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
            "dataset": run.test_set.questions_hash,
        },
        "strategies": {name: strategy_json(strategy) for name, strategy in run.strategies.items()},
        "significance": significance or [],
    }


def strategy_json(run: StrategyRun) -> dict[str, object]:
    """Return one strategy's metrics, latency and parameters, and what was measured besides."""
    metrics: dict[str, object] = {name: round(value, 6) for name, value in run.means.items()}
    return metrics | {"latency_ms": run.latency_ms, "parameters": dict(run.parameters)} | dict(run.extra)


def table(run: EvalRun) -> Table:
    """Return a table with one row a strategy; an asterisk marks the best of each metric."""
    metrics = [name for name in next(iter(run.strategies.values())).values if not name.startswith(PAGES)]
    index = run.corpus.index
    scope = "" if run.test_set.corpus else f" of {run.test_set.over}"
    table = Table(
        title=f"{run.test_set.name}: {len(run.test_set.answerable):,} questions, {run.corpus.documents:,} documents"
        f"{scope}; the index has {index.passages_count:,} passages ({index.chunker}, {index.embedding_model})",
        title_justify="left",
    )
    table.add_column("strategy")
    for name in (*metrics, "p50 ms", "p95 ms"):
        table.add_column(name, justify="right")
    best = {name: max(strategy.means[name] for strategy in run.strategies.values()) for name in metrics}
    for name, strategy in run.strategies.items():
        means = strategy.means
        cells = [
            f"{means[metric]:.{TABLE_DIGITS}f}{'*' if means[metric] == best[metric] else ' '}" for metric in metrics
        ]
        latency = strategy.latency_ms
        table.add_row(name, *cells, f"{latency['p50']:.1f}", f"{latency['p95']:.1f}")
    return table


def page_table(run: EvalRun) -> Table:
    """Return a table of the share of questions that find a page that answers: anywhere, and in the right document."""
    table = Table(title="A passage from a page that answers among the first K", title_justify="left")
    table.add_column("strategy")
    metrics = [name for name in next(iter(run.strategies.values())).values if name.startswith(PAGES)]
    for name in metrics:
        where = "in the right document" if name.startswith("page-hit-within") else "everything"
        table.add_column(f"{where} @{name.partition('@')[2]}", justify="right")
    for name, strategy in run.strategies.items():
        table.add_row(name, *(f"{strategy.means[metric]:.3f}" for metric in metrics))
    return table


def ragas_table(run: EvalRun) -> Table:
    """Return what ragas measured, each mean with the number of questions it is over."""
    summaries_of = {name: strategy.extra.get("ragas", {}) for name, strategy in run.strategies.items()}
    metrics = list(dict.fromkeys(metric for summaries in summaries_of.values() for metric in summaries))
    table = Table(title="ragas: mean (questions measured / not measured)", title_justify="left")
    table.add_column("strategy")
    for metric in metrics:
        table.add_column(metric.replace("_", " "), justify="right")
    for name, summaries in summaries_of.items():
        table.add_row(name, *(_ragas_cell(summaries[metric]) for metric in metrics))
    return table


def _ragas_cell(summary: RagasSummary) -> str:
    mean = "-" if summary["mean"] is None else f"{summary['mean']:.{TABLE_DIGITS}f}"
    return f"{mean} ({summary['measured']}/{summary['not_measured']})"


def pair_table(differences: Sequence[Difference], title: str = "Differences") -> Table:
    """Return a table with one row a comparison, and its verdict at the level of .05."""
    metric = differences[0].metric if differences else ""
    table = Table(title=f"{title}, {metric}", title_justify="left")
    for name in ("a", "b"):
        table.add_column(name)
    for name in ("a - b", "95 % interval"):
        table.add_column(name, justify="right")
    table.add_column("verdict")
    for item in differences:
        low, high = item.interval
        cells = [item.a, item.b, f"{item.difference:+.4f}", f"{low:+.4f} .. {high:+.4f}"]
        cells.append(sentence(item))
        table.add_row(*cells)
    return table


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
        cells = [f"{strategy.means[metric]:.{TABLE_DIGITS}f}" for metric in metrics]
        cells += [f"{value:.1f}" for value in strategy.latency_ms.values()]
        lines.append(f"| `{name}` | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def answer_table(answers: Mapping[str, ReferenceAnswers]) -> Table:
    """Show how many answers hold the reference answer, and how long they are."""
    table = Table(title="Answers that hold the reference answer")
    for name in ("strategy", "questions", "holding", "words (mean)", "words (p90)", "refused"):
        table.add_column(name, justify="left" if name == "strategy" else "right")
    for name, row in answers.items():
        shares = f"{row.holding:.{TABLE_DIGITS}f}", f"{row.refused:.{TABLE_DIGITS}f}"
        table.add_row(name, str(row.questions), shares[0], f"{row.words:.1f}", str(row.longest), shares[1])
    return table


def cutoff_table(cutoffs: Mapping[str, Sequence[DocumentCutoff]]) -> Table:
    """Show what each cutoff leaves of the first ten documents, and of the relevant ones among them."""
    table = Table(title="Of the first ten documents", title_justify="left")
    for name in ("strategy", "cutoff", "documents", "recall@10"):
        table.add_column(name, justify="left" if name == "strategy" else "right")
    for strategy, rows in cutoffs.items():
        for row in rows:
            table.add_row(strategy, f"{row.cutoff:g}", f"{row.documents:.1f}", f"{row.recall:.{TABLE_DIGITS}f}")
    return table
