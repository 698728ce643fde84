"""The command ``workbench eval`` but for its scope options."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from evals.measures.metrics import OFFERED_METRICS
from workbench.errors import InvalidInput, list_choices

if TYPE_CHECKING:
    from evals.experiments.report import RunJson
    from evals.experiments.runs import EvalRun, RunFile
    from evals.gateway import IndexedCorpus
    from evals.judges.endpoint import Endpoint
    from evals.measures.metrics import JudgeAgreement
    from evals.measures.significance import Difference
    from evals.test_set import TestSet
    from workbench.types import OnProgress, Scope, ShouldStop
    from workbench.workbench import Workbench

RAGAS_MODES = ("free", "llm", "none")
PAGE_METRIC = "page-hit@5"  # the metric that compares strategies if pages were judged
EXIT_REGRESSION = 1  # exit code if a strategy is significantly worse than the baseline


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument(
        "test_set", metavar="DATASET", help="folder (BEIR format, or questions.jsonl), stored test set, or 'sample'"
    )
    parser.add_argument(
        "--strategies",
        metavar="A,B,C",
        help="strategies, each NAME or NAME@INDEX (default: all that work without a scope and an LLM)",
    )
    parser.add_argument(
        "--run-file",
        action="append",
        default=[],
        metavar="NAME=PATH",
        help="also measure a run file, in TREC format or a CSV with query, document and score; may be repeated",
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="set a parameter, such as learned.ranker=mine; repeatable",
    )
    parser.add_argument(
        "--metrics", metavar="M,N", help=f"metrics: {', '.join(OFFERED_METRICS)}; strategies are compared by the first"
    )
    parser.add_argument("--limit-queries", type=int, metavar="N", help="use only the first N questions")
    parser.add_argument("--index", metavar="NAME", help="use the chunker and model of this index")
    parser.add_argument(
        "--baseline", metavar="FILE", help="exit with 1 if a strategy is significantly worse than in this file"
    )
    parser.add_argument(
        "--ragas",
        choices=RAGAS_MODES,
        default="free",
        help="free (default): context metrics on the first questions, without an LLM; llm: with the configured LLM",
    )
    parser.add_argument(
        "--answers",
        action="store_true",
        help="also answer the questions that have a reference answer, and report how many answers contain it",
    )
    parser.add_argument(
        "--document-cutoffs",
        metavar="A,B",
        help="also report how many of the first ten documents reach each share of the best score, and recall",
    )
    for name, unit in (("seconds", float), ("calls", int), ("tokens", int)):
        text = f"limit of {name} for --ragas llm in total, divided among the strategies (WORKBENCH_JUDGE_*)"
        parser.add_argument(f"--judge-{name}", type=unit, metavar="N", help=text)
    parser.add_argument("--save", metavar="FILE", help="write the run to a baseline file")


def evaluate(
    wb: Workbench,
    arguments: argparse.Namespace,
    *,
    say: Callable[[str], None],
    scope: Scope | None = None,
    on_progress: OnProgress | None = None,
    should_stop: ShouldStop | None = None,
) -> tuple[RunJson, int]:
    """Evaluate, report the tables with ``say``, and return the JSON and the exit code.

    ``scope`` replaces the test set's own, unless it is everything.

    Raises:
        InvalidInput: Invalid arguments, an unreadable test set, or a baseline of another corpus.
        ScopeError: An unknown name in the scope, or a part of the test set's scope has been deleted.
    """
    from evals.experiments import report, runs
    from evals.experiments.runs import add_run_files
    from evals.gateway import index_corpus
    from evals.measures.metrics import DEFAULT_METRICS, check_metrics
    from evals.measures.significance import compare_with_best
    from evals.test_sets.store import load_named_test_set
    from workbench.retrieval.options import parameters_by_strategy

    _parse_shares(arguments.document_cutoffs)  # otherwise its errors would come after minutes of searches
    metrics = check_metrics(_parse_names(arguments.metrics) or DEFAULT_METRICS)
    strategies = runs.choose_strategies(_parse_names(arguments.strategies), wb.corpus.index(arguments.index))
    given = parameters_by_strategy(strategies, arguments.set)
    if arguments.ragas == "llm":
        _make_endpoint(wb, arguments)  # otherwise its errors would come after minutes of searches
    test_set = load_named_test_set(wb, arguments.test_set, scope).first(arguments.limit_queries)
    if arguments.baseline:
        report.check_comparable(Path(arguments.baseline), test_set, strategies, metrics)
    corpus = index_corpus(wb, test_set, arguments.index, on_progress=on_progress, should_stop=should_stop)
    _report_missing(wb, test_set, corpus, say)
    files = _load_run_files(wb, test_set, corpus, arguments.run_file, metrics, say)
    run = runs.run_strategies(
        wb, test_set, corpus, strategies, metrics, parameters=given, on_progress=on_progress, should_stop=should_stop
    )
    agreed: JudgeAgreement | None = None
    if arguments.ragas != "none":
        run, agreed = _judge_run(wb, run, arguments, on_progress, should_stop)
    asked, run = run, add_run_files(run, files, metrics)
    lead = PAGE_METRIC if test_set.pages and not arguments.metrics else metrics[0]
    pairs = compare_with_best(lead, {name: strategy_run.values[lead] for name, strategy_run in run.strategies.items()})
    payload = report.to_json(run, [pair.to_dict() for pair in pairs])
    if agreed is not None:
        payload["judge"] = agreed
    _print_tables(run, pairs, lead, agreed, wb.settings.reranker, say)
    _report_seen_questions(wb, run, say)
    _measure_extras(wb, asked, arguments, payload, say, on_progress, should_stop)
    if arguments.save:
        report.save_baseline(run, Path(arguments.save))
    code = 0
    if arguments.baseline:
        code = _check_baseline(run, Path(arguments.baseline), payload, say)
    return payload, code


def _load_run_files(
    wb: Workbench,
    test_set: TestSet,
    corpus: IndexedCorpus,
    specs: Sequence[str],
    metrics: Sequence[str],
    say: Callable[[str], None],
) -> list[RunFile]:
    """Return the run files given as NAME=PATH, and report their gaps."""
    from evals.experiments.runs import load_run_file
    from evals.measures.metrics import max_ranking_depth

    files = [load_run_file(wb, test_set, corpus, spec, max_ranking_depth(metrics)) for spec in specs]
    for note in (note for file in files for note in file.notes):
        say(note)
    return files


def _report_missing(wb: Workbench, test_set: TestSet, corpus: IndexedCorpus, say: Callable[[str], None]) -> None:
    """Report missing judged documents."""
    from evals.experiments.leaderboard import describe_judged_outside

    for sentence in (*test_set.problems, *describe_judged_outside(wb, test_set)):
        say(sentence)
    if test_set.nowhere:
        missing = list_choices(test_set.nowhere, 5)
        say(f"Judged relevant but missing from corpus.jsonl, so never found: {missing}; check the ids.")
    for failure in corpus.failures:
        say(f"Not indexed: {failure}")


def _report_seen_questions(wb: Workbench, run: EvalRun, say: Callable[[str], None]) -> None:
    """Report rankers that were trained on the measured questions."""
    from evals.learning.training import describe_seen_ranker, find_trained_rankers

    for ranker in find_trained_rankers(wb, run.test_set.name, run.strategies.values()):
        say(describe_seen_ranker(ranker))


def _measure_extras(
    wb: Workbench,
    run: EvalRun,
    arguments: argparse.Namespace,
    payload: RunJson,
    say: Callable[[str], None],
    on_progress: OnProgress | None,
    should_stop: ShouldStop | None,
) -> None:
    """Add the requested measures besides rankings (answers, document cutoffs) to the JSON, and report them."""
    from evals.experiments import report
    from evals.experiments.cutoffs import measure_answers, measure_cutoffs

    if arguments.answers:
        payload["answers"] = {
            name: measure_answers(wb, run.test_set, run.corpus, name, on_progress=on_progress, should_stop=should_stop)
            for name in run.strategies
        }
        say(report.render_text(report.make_answer_table(payload["answers"])))
    if cutoffs := _parse_shares(arguments.document_cutoffs):
        payload["document_cutoffs"] = {
            name: measure_cutoffs(
                wb, run.test_set, run.corpus, name, cutoffs, on_progress=on_progress, should_stop=should_stop
            )
            for name in run.strategies
        }
        say(report.render_text(report.make_cutoff_table(payload["document_cutoffs"])))


def _print_tables(
    run: EvalRun,
    pairs: Sequence[Difference],
    lead: str,
    agreed: JudgeAgreement | None,
    reranker: str,
    say: Callable[[str], None],
) -> None:
    """Report the tables of a run, its cost, and its weaknesses."""
    from evals.experiments import report
    from evals.experiments.leaderboard import describe_weaknesses
    from evals.judges.agreement import describe_agreement

    say(report.render_text(report.make_table(run)))
    if run.test_set.pages:
        say(report.render_text(report.make_page_table(run)))
    if any("ragas" in strategy.extra for strategy in run.strategies.values()):
        say(report.render_text(report.make_ragas_table(run)))
    if agreed is not None:
        say(describe_agreement(agreed))
    if pairs:
        say(report.render_text(report.make_pair_table(pairs, title="Compared with the best")))
    for note in (*report.describe_cost(run, reranker), *describe_weaknesses(run.test_set, run.strategies, lead)):
        say(note)


def _judge_run(
    wb: Workbench,
    run: EvalRun,
    arguments: argparse.Namespace,
    on_progress: OnProgress | None,
    should_stop: ShouldStop | None,
) -> tuple[EvalRun, JudgeAgreement | None]:
    """Return the run with ragas scores and, if an LLM judged, its agreement with the test set."""
    from evals.judges.agreement import Texts, measure_judge_agreement
    from evals.judges.judging import add_ragas, judge_run

    endpoint = _make_endpoint(wb, arguments) if arguments.ragas == "llm" else None
    parts = len(run.strategies) + 1  # the last part is for the judge's own agreement with the test set
    figures = judge_run(wb, run, endpoint=endpoint, on_progress=on_progress, should_stop=should_stop, parts=parts)
    judged = add_ragas(run, figures)
    if endpoint is None:
        return judged, None
    texts = Texts(wb, run.test_set, run.corpus)
    return judged, measure_judge_agreement(run.test_set, texts, endpoint, should_stop=should_stop)


def _make_endpoint(wb: Workbench, arguments: argparse.Namespace) -> Endpoint:
    from evals.judges.endpoint import Endpoint, Limits

    own = {name: getattr(arguments, f"judge_{name}") for name in ("seconds", "calls", "tokens")}
    return Endpoint.from_workbench(wb, Limits.from_settings(wb.settings, own))


def _check_baseline(run: EvalRun, path: Path, payload: RunJson, say: Callable[[str], None]) -> int:
    from evals.experiments import report

    gate = report.check_baseline(run, path)
    payload["baseline"] = [difference.to_dict() for difference in gate.differences]
    say(report.render_text(report.make_pair_table(gate.differences, title=f"Compared with the baseline {path.name}")))
    for note in gate.notes:
        say(note)
    for regression in gate.regressions:
        say(
            f"{regression.a} got worse: {regression.metric} {regression.difference:+.4f} "
            f"(p = {regression.p_corrected:.4f}, {regression.losses} questions lost, {regression.wins} won)."
        )
    return EXIT_REGRESSION if gate.regressions else 0


def _parse_names(text: str | None) -> list[str]:
    names = [name.strip() for name in (text or "").split(",") if name.strip()]
    if text is not None and not names:
        raise InvalidInput("The list of names is empty; separate names with commas, or omit the option.")
    return names


def _parse_shares(text: str | None) -> list[float]:
    try:
        return [float(name) for name in _parse_names(text)]
    except ValueError:
        raise InvalidInput(f"Invalid cutoffs {text!r}; use shares from 0 to 1, such as 0,0.5.") from None
