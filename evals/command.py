"""What ``workbench eval`` and ``python -m evals`` do: the same arguments, the same work."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.errors import InvalidInput, choices

if TYPE_CHECKING:
    from evals.runner import EvalRun
    from workbench.types import Progress
    from workbench.workbench import Workbench

RAGAS = ("free", "llm", "none")
REGRESSED = 1  # the exit code where a strategy is significantly worse than the baseline


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("dataset", metavar="DATASET", help="a folder in BEIR's form, or 'sample'")
    parser.add_argument("--strategies", metavar="A,B,C", help="default: all that need neither a scope nor an LLM")
    parser.add_argument("--metrics", metavar="M,N", help="such as ndcg@10,recall@50; the first one is compared")
    parser.add_argument("--limit-queries", type=int, metavar="N", help="ask only the first N questions")
    parser.add_argument("--index", metavar="NAME", help="cut and embed the corpus like this index")
    parser.add_argument("--baseline", metavar="FILE", help="exit 1 if a strategy is significantly worse than there")
    parser.add_argument(
        "--ragas",
        choices=RAGAS,
        default="free",
        help="free (default): context metrics without an LLM, on the first questions; llm: with the configured LLM",
    )
    parser.add_argument("--save", metavar="FILE", help="write the run as a baseline")


def evaluate(
    wb: Workbench,
    arguments: argparse.Namespace,
    *,
    say: Callable[[str], None],
    on_progress: Callable[[Progress], None] | None = None,
    should_stop: Callable[[], bool] | None = None,
) -> tuple[dict[str, Any], int]:
    """Evaluate as asked; say the tables and return (the JSON, the exit code).

    Raises:
        InvalidInput: wrong arguments, an unreadable dataset, a baseline of another corpus.
    """
    from evals import baseline, report, runner
    from evals.agreement import sentence
    from evals.corpus import index_corpus
    from evals.datasets import load_dataset
    from evals.endpoint import Endpoint
    from evals.metrics import DEFAULT_METRICS, check_metrics
    from evals.significance import against_best
    from workbench.retrieval.strategies import strategy_named

    metrics = check_metrics(_names(arguments.metrics) or DEFAULT_METRICS)
    strategies = [strategy_named(name).name for name in _names(arguments.strategies)] or runner.default_strategies()
    if arguments.ragas == "llm":
        Endpoint.from_settings(wb.settings)  # what it raises would else come after minutes of asking
    dataset = load_dataset(arguments.dataset).first(arguments.limit_queries)
    if arguments.baseline:
        baseline.check_before(Path(arguments.baseline), dataset, strategies, metrics)
    corpus = index_corpus(wb, dataset, arguments.index, on_progress=on_progress, should_stop=should_stop)
    if dataset.nowhere:
        missing = choices(dataset.nowhere, 5)
        say(f"Judged relevant, but not in corpus.jsonl, and so never found: {missing}; check the ids.")
    for failure in corpus.failures:
        say(f"Not indexed: {failure}")
    run = runner.run(wb, dataset, corpus, strategies, metrics, on_progress=on_progress, should_stop=should_stop)
    agreed: dict[str, Any] = {}
    if arguments.ragas != "none":
        run, agreed = _judged(wb, run, arguments.ragas, on_progress)
    pairs = against_best(metrics[0], {name: found.values[metrics[0]] for name, found in run.strategies.items()})
    payload = report.to_json(run, [pair.to_dict() for pair in pairs]) | agreed
    say(report.text(report.table(run)))
    if arguments.ragas != "none":
        say(report.text(report.ragas_table(run)))
    if agreed:
        say(sentence(agreed["judge"]))
    if pairs:
        say(report.text(report.pair_table(pairs, title="Against the best")))
    if arguments.save:
        baseline.save(run, Path(arguments.save))
    code = 0
    if arguments.baseline:
        code = _gate(run, Path(arguments.baseline), payload, say)
    return payload, code


def _judged(
    wb: Workbench, run: EvalRun, how: str, on_progress: Callable[[Progress], None] | None
) -> tuple[EvalRun, dict[str, Any]]:
    """Return the run with what ragas says of it, and what its judge is worth where it is an LLM."""
    from evals.agreement import judge_agreement
    from evals.endpoint import Endpoint
    from evals.judging import judge_run, with_ragas
    from evals.texts import Texts

    endpoint = Endpoint.from_settings(wb.settings) if how == "llm" else None
    judged = with_ragas(run, judge_run(wb, run, endpoint=endpoint, on_progress=on_progress))
    if endpoint is None:
        return judged, {}
    return judged, {"judge": judge_agreement(run.dataset, Texts(wb, run.dataset, run.corpus), endpoint)}


def _gate(run: EvalRun, path: Path, payload: dict[str, Any], say: Callable[[str], None]) -> int:
    from evals import baseline, report

    gate = baseline.check(run, path)
    payload["baseline"] = [difference.to_dict() for difference in gate.differences]
    say(report.text(report.pair_table(gate.differences, title=f"Against the baseline {path.name}")))
    for note in gate.notes:
        say(note)
    for regression in gate.regressions:
        say(
            f"{regression.a} became worse: {regression.metric} {regression.difference:+.4f} "
            f"(p = {regression.p_corrected:.4f}, {regression.losses} questions lost, {regression.wins} won)."
        )
    return REGRESSED if gate.regressions else 0


def _names(given: str | None) -> list[str]:
    names = [name.strip() for name in (given or "").split(",") if name.strip()]
    if given is not None and not names:
        raise InvalidInput("A list of names is empty; write names between commas, or leave the option out.")
    return names
