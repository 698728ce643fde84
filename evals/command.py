"""The command ``workbench eval`` but for its scope options."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from evals.measures.metrics import DEFAULT_METRICS, OFFERED_METRICS, JudgeAgreement, list_reasons
from workbench.errors import InvalidInput, ModelError
from workbench.formatting import count_text, format_dollars

if TYPE_CHECKING:
    from evals.evaluation import AnswerScores, Evaluation, Lift, Slices
    from evals.experiments.report import RunJson
    from evals.experiments.runs import EvalRun
    from evals.judges.endpoint import Endpoint
    from evals.test_set import TestSet
    from workbench.types import JsonObject, OnProgress, Scope, ShouldStop
    from workbench.workbench import Workbench

WITH_LLM = ("llm", "llm-ragas")  # judges that need answers
RAGAS_MODES = ("free", *WITH_LLM, "none")
FAILURE = 1  # exit code if a strategy is significantly worse than the baseline, or the LLM that answers failed


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "test_set",
        metavar="DATASET",
        help="folder (BEIR, Hugging Face, or questions.jsonl), stored test set, hf:NAME, ir_datasets:NAME, 'sample'",
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
    parser.add_argument("--limit-queries", type=int, metavar="N", help="use only N questions, evenly from the test set")
    parser.add_argument("--index", metavar="NAME", help="use the chunker and model of this index")
    parser.add_argument(
        "--baseline", metavar="FILE", help="exit with 1 if a strategy is significantly worse than in this file"
    )
    parser.add_argument(
        "--ragas",
        choices=RAGAS_MODES,
        default="free",
        help="free (default): context metrics on the first questions, without an LLM; llm: the configured LLM also "
        "answers the questions, and judges the answers; llm-ragas: with ragas' own prompts (extra ragas)",
    )
    parser.add_argument(
        "--answers",
        action="store_true",
        help="also answer the questions, and report what the answers contain and cite, and whether better "
        "retrieval reached them; exit with 1 if the LLM fails, with the scores of the searches",
    )
    parser.add_argument(
        "--repeats", type=int, default=1, metavar="N", help="run what calls an LLM N times, and report the spread"
    )
    parser.add_argument("--save", metavar="FILE", help="write the run to a baseline file")
    _add_evidence_arguments(parser)


def _add_evidence_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--refusals",
        action="store_true",
        help="also answer every question, and report which of those marked as without an answer are refused",
    )
    parser.add_argument(
        "--by",
        action="append",
        default=[],
        metavar="KEY",
        help="also report each part of the questions, by length, origin, source, tag, type, language or a key of "
        "metadata; with --baseline also what got worse in a part; repeatable",
    )
    parser.add_argument(
        "--budget",
        type=float,
        metavar="DOLLARS",
        help="stop when searches, judge and answers have cost this much, by WORKBENCH_LLM_PRICE and the like",
    )
    parser.add_argument(
        "--pilot",
        type=int,
        metavar="N",
        help="before an experiment: ask only N of the questions, and report which differences all of them can show",
    )
    parser.add_argument(
        "--difference", type=float, metavar="D", help="also report how many questions it takes to show this difference"
    )
    parser.add_argument(
        "--pool",
        metavar="FILE",
        help="instead: write the strategies' first documents that have no judgment to a CSV, for people to judge",
    )
    parser.add_argument("--pool-depth", type=int, default=10, metavar="K", help="documents per strategy (%(default)s)")
    parser.add_argument(
        "--pool-minutes", type=float, metavar="M", help="budget for judging: only the pairs that matter most"
    )
    parser.add_argument(
        "--judgments", metavar="FILE", help="also use the judgments of a judged pool; a stored test set keeps them"
    )
    parser.add_argument("--rater", metavar="NAME", default="", help="who judges the pool, if several do")


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
    from evals.evaluation import check_difference, check_reports, describe_power, estimate_run, measure
    from evals.experiments import report
    from evals.experiments.runs import choose_strategies
    from workbench.retrieval.options import parameters_by_strategy

    metrics = _parse_names(arguments.metrics)
    check_difference(arguments.difference)
    strategies = choose_strategies(_parse_names(arguments.strategies), wb.corpus.index(arguments.index))
    _make_endpoint(wb, arguments)  # otherwise its errors would come after minutes of searches
    whole = _load_test_set(wb, arguments, scope, say).spread(arguments.limit_queries)
    test_set = whole.spread(arguments.pilot)
    if arguments.baseline:
        report.check_comparable(Path(arguments.baseline), test_set, strategies, metrics or DEFAULT_METRICS)
    parameters = parameters_by_strategy(strategies, arguments.set)
    check_reports(wb, test_set, arguments.by, arguments.index, refusals=arguments.refusals)
    planned = (wb, test_set, strategies, parameters, arguments.index, arguments.budget)
    answers, judges = arguments.answers or arguments.refusals, arguments.ragas in WITH_LLM
    if estimate := estimate_run(*planned, answers=answers, repeats=arguments.repeats, judges=judges):
        say(estimate)
    result = measure(
        wb, test_set, strategies, metrics or None, run_files=arguments.run_file,
        parameters=parameters, index=arguments.index, budget=arguments.budget, repeats=arguments.repeats,
        questions=len(whole.answerable), on_progress=on_progress, should_stop=should_stop,
    )  # fmt: skip
    if arguments.save:  # before the answers, whose LLM may fail
        report.save_baseline(result.run, Path(arguments.save))
    answered = _write_answers(result, arguments, on_progress, should_stop) if judges else ({}, [], "")
    result, agreed = _judge_run(wb, result, arguments, answered[-1], on_progress, should_stop)
    run = result.run
    payload = report.to_json(run, [pair.to_dict() for pair in result.against_best])
    if agreed is not None:
        payload["judge"] = agreed
    payload["outcome"], payload["notes"] = result.outcome, list(result.notes)
    if slices := [result.slices(by) for by in arguments.by]:
        payload["slices"] = [one.to_dict() for one in slices]
    _print_tables(result, slices, agreed, say)
    if len(run.strategies) > 1 and len(test_set.answerable) > 1:
        payload["power"] = result.power(arguments.difference, questions=len(whole.answerable))
        for sentence in describe_power(payload["power"]):
            say(sentence)
    code = _check_baseline(wb, run, arguments, payload, say) if arguments.baseline else 0
    answered = _write_answers(result, arguments, on_progress, should_stop) if answers and not judges else answered
    return payload, _report_answers(result, *answered, arguments, payload, say) or code


def _write_answers(
    result: Evaluation, arguments: argparse.Namespace, on_progress: OnProgress | None, should_stop: ShouldStop | None
) -> tuple[dict[str, AnswerScores], list[Lift], str]:
    """Return the scores of the answers and their lifts, and why the LLM did not write all answers, or "".

    If they are only for a judge, the questions that it judges are answered.
    """
    from evals.experiments.runs import MAX_JUDGED

    repeats, test_set = arguments.repeats if arguments.answers else 1, result.run.test_set
    if not arguments.answers and not arguments.refusals:
        judged = test_set.only([question.id for question in test_set.answerable[:MAX_JUDGED]])
        result = replace(result, run=replace(result.run, test_set=judged))
    try:
        return *result.answers(repeats=repeats, on_progress=on_progress, should_stop=should_stop), ""
    except ModelError as error:
        return {}, [], f"The LLM failed at one question, and those after it were not asked: {error}"


def _report_answers(
    result: Evaluation,
    scores: dict[str, AnswerScores],
    lifts: list[Lift],
    error: str,
    arguments: argparse.Namespace,
    payload: RunJson,
    say: Callable[[str], None],
) -> int:
    """Add the requested measures of answers to the JSON, report them, and return the exit code."""
    from evals.evaluation import describe_refusals, describe_threshold
    from evals.experiments import report

    if error:
        payload["error"] = error
        say(error)
        return FAILURE
    if arguments.answers:
        payload["answers"], payload["lift"] = scores, lifts
        tables = (
            [report.render_text(report.make_answer_table(scores))] if scores else []
        )  # unless the budget is used up
        for text in (*tables, *(lift.describe() for lift in lifts)):
            say(text)
    if arguments.refusals:
        payload["refusals"] = {name: one.refusals for name, one in scores.items() if one.refusals}
        for sentence in describe_refusals(scores):
            say(sentence)
        for name, refusals in payload["refusals"].items():
            if refusals.curve:
                say(report.render_text(report.make_refusal_table(name, refusals)))
        first = next((name for name in result.strategies if name in payload["refusals"]), "")
        if first and not result.run.test_set.corpus:
            index = first.partition("@")[2] or result.run.corpus.index.name
            for sentence in describe_threshold(payload["refusals"][first], index):
                say(sentence)
    for note in result.budget.notes:
        say(note)
    payload["notes"] = [*payload.get("notes", []), *result.budget.notes]
    return 0


def _print_tables(
    result: Evaluation,
    slices: Sequence[Slices],
    agreed: JudgeAgreement | None,
    say: Callable[[str], None],
) -> None:
    """Report the tables of a run, its cost, and its weaknesses."""
    from evals.experiments import report
    from evals.judges.judging import describe_agreement

    run = result.run
    tables, reasons = [report.make_table(run)], list[str]()
    if next(iter(run.strategies.values())).bounds:
        tables.append(report.make_unjudged_table(run))
    if any("ragas" in strategy.extra for strategy in run.strategies.values()):
        tables.append(report.make_ragas_table(run))
        reasons = list_reasons(strategy.extra.get("ragas", {}) for strategy in run.strategies.values())
    for table in (*tables, *(one.to_table() for one in slices)):
        say(report.render_text(table))
    if agreed is not None:
        say(describe_agreement(agreed))
    if result.against_best:
        say(report.render_text(report.make_pair_table(result.against_best, title="Compared with the best")))
    for note in filter(None, (result.outcome, *reasons, *result.notes)):
        say(note)


def _judge_run(
    wb: Workbench,
    result: Evaluation,
    arguments: argparse.Namespace,
    error: str,
    on_progress: OnProgress | None,
    should_stop: ShouldStop | None,
) -> tuple[Evaluation, JudgeAgreement | None]:
    """Return the result with the scores of its texts and, if an LLM judged, its agreement with the test set.

    What the judge costs is part of the budget, and a note. ``error`` is why the LLM did not write all answers, or "".
    """
    from evals.judges.judging import Texts, add_ragas, grade_again, judge_run, measure_agreement, sample_to_grade

    if arguments.ragas == "none":
        return result, None
    endpoint, run = _make_endpoint(wb, arguments, result.budget.left), result.run
    judge = "ragas" if arguments.ragas == "llm-ragas" else "built-in"
    parts = len(run.without_files.strategies) + 1  # the last part is for the judge's own agreement with the test set
    figures = judge_run(
        wb, run.without_files, endpoint=endpoint, judge=judge, parts=parts, answers=result.replies,
        no_answer=error or "The budget was used up before it.", on_progress=on_progress, should_stop=should_stop,
    )  # fmt: skip
    judged = replace(result, run=add_ragas(run, figures))
    if endpoint is None:
        return judged, None
    texts = Texts(wb, run.test_set, run.corpus)
    chosen = sample_to_grade(run.test_set, texts, [question.id for question in run.test_set.questions])
    agreed = measure_agreement(grade_again(run.test_set, texts, endpoint, chosen, should_stop), endpoint.model)
    spent = endpoint.spent
    result.budget.spent += spent.dollars
    cost = f", which cost {format_dollars(spent.dollars)}" if spent.dollars else ""
    note = f"The judge took {count_text(spent.calls, 'call')} with {spent.tokens:,} tokens{cost}."
    return replace(judged, notes=(*result.notes, note)), agreed


def _load_test_set(
    wb: Workbench, arguments: argparse.Namespace, scope: Scope | None, say: Callable[[str], None]
) -> TestSet:
    """Return the test set, with the judgments of a judged pool if there is one."""
    from evals.evaluation import TestSets, add_judgments, read_text

    test_set = TestSets(wb).read(arguments.test_set, scope)
    if arguments.judgments:
        text = read_text(Path(arguments.judgments))
        test_set, reading = add_judgments(wb, test_set, arguments.test_set, text, arguments.rater)
        for sentence in reading.describe():
            say(sentence)
    return test_set


def write_pool(
    wb: Workbench,
    arguments: argparse.Namespace,
    *,
    say: Callable[[str], None],
    scope: Scope | None = None,
    on_progress: OnProgress | None = None,
    should_stop: ShouldStop | None = None,
) -> tuple[JsonObject, int]:
    """Write the pool of the strategies to the file given with ``--pool``; return its size and the exit code.

    Raises:
        InvalidInput: Invalid arguments, an unreadable test set, or a file that is not writable.
    """
    from evals.evaluation import TestSets
    from evals.experiments.report import write_report
    from evals.experiments.runs import choose_strategies

    strategies = choose_strategies(_parse_names(arguments.strategies), wb.corpus.index(arguments.index))
    test_set = _load_test_set(wb, arguments, scope, say)
    made, text = TestSets(wb).pool(
        test_set, strategies, depth=arguments.pool_depth, minutes=arguments.pool_minutes,
        rater=arguments.rater, index=arguments.index,
        on_progress=on_progress, should_stop=should_stop,
    )  # fmt: skip
    write_report(Path(arguments.pool), text)
    names = ", ".join(reversed(test_set.scale))
    say(f"{arguments.pool}: {made.describe()} Fill in the column grade ({names}), then use --judgments.")
    place: JsonObject = {"dataset": test_set.name, "file": str(arguments.pool), "depth": arguments.pool_depth}
    counts: JsonObject = {"pairs": len(made.items), "total": made.total, "judged": made.judged}
    return place | counts | {"left_out": made.left_out}, 0


def _make_endpoint(wb: Workbench, arguments: argparse.Namespace, dollars: float = math.inf) -> Endpoint | None:
    if arguments.ragas not in WITH_LLM:
        return None
    from evals.experiments.runs import Prices
    from evals.judges.endpoint import Endpoint, Limits
    from evals.judges.judging import check_judge

    check_judge("ragas" if arguments.ragas == "llm-ragas" else "built-in")
    price = Prices.from_settings(wb.settings).llm_rates({"llm": ""})
    return Endpoint.from_workbench(wb, replace(Limits.from_settings(wb.settings), dollars=dollars, price=price))


def _check_baseline(
    wb: Workbench, run: EvalRun, arguments: argparse.Namespace, payload: RunJson, say: Callable[[str], None]
) -> int:
    from evals.evaluation import group_questions
    from evals.experiments import report

    path = Path(arguments.baseline)
    groups = {
        f"{by} {name}": ids
        for by in arguments.by
        for name, ids in group_questions(wb, run.test_set, run.corpus.ids, by).items()
    }
    gate, in_slices = report.check_baseline(run, path, groups)
    payload["baseline"] = [difference.to_dict() for difference in (*gate.differences, *in_slices)]
    say(report.render_text(report.make_pair_table(gate.differences, title=f"Compared with the baseline {path.name}")))
    for note in gate.notes:
        say(note)
    regressions = [*gate.regressions, *(one for one in in_slices if one.significant)]
    for regression in regressions:
        say(
            f"{regression.a} got worse: {regression.metric} {regression.difference:+.4f} "
            f"(p = {regression.p_corrected:.4f}, {regression.losses} questions lost, {regression.wins} won)."
        )
    return FAILURE if regressions else 0


def _parse_names(text: str | None) -> list[str]:
    names = [name.strip() for name in (text or "").split(",") if name.strip()]
    if text is not None and not names:
        raise InvalidInput("The list of names is empty; separate names with commas, or omit the option.")
    return names
