"""The commands on measuring: ``eval``, ``experiments``, ``judgments``, ``apply``, ``check`` and ``learn``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.cli.options import Subcommands, add_repeated, add_scope, read_scope
from workbench.cli.output import Output, print_table
from workbench.cli.session import cancel_on_sigint, open_workbench
from workbench.errors import InvalidInput
from workbench.runtime import check_extra

if TYPE_CHECKING:
    from rich.console import Console

    from evals.evaluation import Experiments, TestSets
    from evals.learning.training import TrainingResult
    from workbench.workbench import Workbench

# workbench eval


def declare_eval(parser: argparse.ArgumentParser) -> None:
    from evals.command import add_arguments as declare

    declare(parser)
    add_scope(parser)


def run_eval(arguments: argparse.Namespace, out: Output) -> int:
    """Evaluate; return 1 if a strategy is significantly worse than the baseline."""
    check_extra("eval")
    from evals.command import evaluate, write_pool

    with open_workbench() as wb, out.progress("Evaluate") as show, cancel_on_sigint(out) as should_stop:
        scope = read_scope(arguments)
        measure = write_pool if arguments.pool else evaluate
        payload, code = measure(wb, arguments, say=out.message, scope=scope, on_progress=show, should_stop=should_stop)
    if out.as_json or not sys.stdout.isatty():  # no JSON in a terminal, which shows the tables
        Output(as_json=True).show(payload, lambda console: None)
    return code


# workbench experiments


def add_budget(parser: argparse.ArgumentParser) -> None:
    text = "stop an experiment when its searches and answers have cost this much; what is stored counts"
    parser.add_argument("--budget", type=float, metavar="DOLLARS", help=text)


def declare_experiments(parser: argparse.ArgumentParser) -> None:
    verbs = Subcommands(parser)
    listed = verbs.add("list", "List experiments, newest first.", _list_experiments)
    listed.add_argument("--test-set", metavar="NAME", help="only those on this test set")
    listed.add_argument("--tag", metavar="TAG", help="only those with this tag")
    show = verbs.add("show", "Show the leaderboard of an experiment, by its saved view.", _show_experiment, "id")
    resume = verbs.add("resume", "Run the rest of an experiment that was stopped.", _resume_experiment, "id")
    note = verbs.add("note", "Set the note and tags of an experiment, or of one of its runs.", _annotate, "id")
    note.add_argument("--run", metavar="LABEL", help="of this run, as labelled by show (default: the experiment)")
    note.add_argument("--note", metavar="TEXT", help="the note; an empty text removes it")
    note.add_argument("--tags", metavar="A,B", help="the tags, replacing others; an empty text removes them")
    view = verbs.add("view", "Save what an experiment shows when it is opened.", _save_view, "id")
    add_repeated(view, "--run", "LABEL", "runs A and B (default: the best two)")
    add_budget(resume)
    for parser in (show, view):
        parser.add_argument("--metric", default="", metavar="M", help="metric of the leaderboard")
        parser.add_argument("--tag", default="", metavar="TAG", help="only the runs with this tag")


def _open_experiments(wb: Workbench) -> Experiments:
    check_extra("eval")
    from evals.evaluation import Experiments

    return Experiments(wb)


def _list_experiments(wb: Workbench, arguments: argparse.Namespace, out: Output) -> int:
    experiments = _open_experiments(wb)
    found = [one for one in experiments.list(arguments.test_set) if not arguments.tag or arguments.tag in one.tags]
    winners = experiments.winners(found)
    value = [one.to_dict() | {"winner": winners.get(one.id)} for one in found]
    rows = [
        (one.id, one.title, one.test_set_title, one.over, winners[one.id].label if one.id in winners else "",
         f"{winners[one.id].score:.4f}" if one.id in winners else "", one.status, ", ".join(one.tags), one.brief)
        for one in found
    ]  # fmt: skip
    columns = ("Id", "Title", "Test set", "Scope", "Best", "Score", "Status", "Tags", "Note")
    return out.table({"experiments": value}, columns, rows, "No experiments.")


def _show_experiment(wb: Workbench, arguments: argparse.Namespace, out: Output) -> int:
    experiments = _open_experiments(wb)
    from evals.evaluation import (
        describe_refusals,
        describe_threshold,
        explain_difference,
        make_leaderboard,
        metric_title,
        report,
    )

    experiment = experiments.get(arguments.id)
    metric = arguments.metric or experiment.view.metric or experiment.metrics[0]
    tag = arguments.tag or experiment.view.tag
    results = experiments.results(experiment.id)
    lines = [one for one in make_leaderboard(results, metric) if not tag or tag in one.tags]
    notes = experiments.describe(experiment, results, metric)
    value = {"experiment": experiment, "metric": metric, "tag": tag, "runs": lines, "notes": notes}
    answers, lifts = experiments.answers(experiment.id)
    if answers:
        value |= {"answers": answers, "lift": lifts}
    rows = [
        (one.rank or one.status, one.label, f"{one.metrics.get(metric, '')}{report.format_spread(one.spread, metric)}",
         "" if one.unjudged is None else f"{one.unjudged:.0%}",
         explain_difference(one.against_best) if one.against_best else "", f"{one.usage.get('context_tokens', 0):,.0f}",
         f"{one.usage.get('llm_calls', 0):.1f}",
         "" if one.dollars is None else report.format_dollars(one.dollars * 1000),
         ", ".join(one.tags), one.note)
        for one in lines
    ]  # fmt: skip
    costs = ("Tokens", "LLM calls", "$ per 1,000")
    columns = ("#", "Run", metric_title(metric), "Unjudged", "Compared with the best", *costs, "Tags", "Note")
    out.table(value, columns, rows, "No runs.")
    if answers:
        out.message(report.render_text(report.make_answer_table(answers)))
    for label, scores in answers.items():
        if scores.refusals is not None and scores.refusals.curve:
            out.message(report.render_text(report.make_refusal_table(label, scores.refusals)))
    refusals = describe_refusals(answers)
    best = next((one for one in lines if one.label in answers), None)
    if best is not None and experiment.scope is not None:  # no other search uses the index of a test set's own corpus
        refusals += describe_threshold(answers[best.label].refusals, best.index_name)
    if experiment.status != "done":
        out.message(f"{experiment.status.capitalize()}. {experiment.message}".strip())
    bars = (f"{one['run']}: {one['metric']} {one['bar']}: {one['state']}." for one in experiment.bars)
    for sentence in (*experiment.expectations, *bars, *notes, *refusals, *(lift.describe() for lift in lifts)):
        out.message(sentence)
    ground = f"{experiment.test_set_title}, version {experiment.test_set_version}; scope: {experiment.over}."
    out.message(" ".join(filter(None, [ground, *(f"#{tag}" for tag in experiment.tags), experiment.note])))
    return 0


def _resume_experiment(wb: Workbench, arguments: argparse.Namespace, out: Output) -> int:
    check_extra("eval")
    from evals.evaluation import resume_experiment

    with out.progress("Experiment") as show, cancel_on_sigint(out) as should_stop:
        done = resume_experiment(wb, arguments.id, budget=arguments.budget, on_progress=show, should_stop=should_stop)
    out.sentence(done, f"{done.status.capitalize()}. {done.message}")
    failed = any(result.error for result in _open_experiments(wb).results(done.id))
    return 0 if done.status == "done" and not failed else FAILURE


def _annotate(wb: Workbench, arguments: argparse.Namespace, out: Output) -> int:
    if arguments.note is None and arguments.tags is None:
        raise InvalidInput("Nothing to set; use --note or --tags.")
    tags = None if arguments.tags is None else arguments.tags.split(",")
    _open_experiments(wb).annotate(arguments.id, arguments.run, note=arguments.note, tags=tags)
    return out.sentence(_open_experiments(wb).get(arguments.id), "Saved.")


def _save_view(wb: Workbench, arguments: argparse.Namespace, out: Output) -> int:
    _open_experiments(wb).save_view(arguments.id, arguments.metric, arguments.run, arguments.tag)
    return out.sentence(_open_experiments(wb).get(arguments.id), "Saved; show and the app open the experiment with it.")


# workbench apply and check

FAILURE = 1  # exit code if a bar is missed or a run failed


def declare_apply(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="TOML or YAML file (see docs/configuration.md)")
    parser.add_argument("--dry-run", action="store_true", help="show what would change, and change nothing")


def run_apply(arguments: argparse.Namespace, out: Output) -> int:
    """Show the plan, then apply it unless ``--dry-run`` is given."""
    check_extra("eval")
    from evals.configuration import apply, make_plan, read_configuration

    with open_workbench() as wb, cancel_on_sigint(out) as should_stop:
        plan = make_plan(wb, read_configuration(wb, arguments.file))
        changes = [change for change, _ in plan]
        needed = sum(change.is_needed for change in changes)
        value = {"file": arguments.file, "dry_run": arguments.dry_run, "changed": needed, "changes": changes}
        rows = [(change.action, change.kind, change.name, change.detail) for change in changes]
        columns = ("Action", "Kind", "Name", "Detail")
        if not out.as_json:
            out.show(value, lambda console: print_table(console, columns, rows, "", yielding=3))
        if not arguments.dry_run:
            with out.progress("Apply") as show:
                apply(wb, plan, on_progress=show, should_stop=should_stop)
        if out.as_json:
            out.show(value, lambda console: None)
    counts = f"{needed:,} of {len(changes):,}"
    if not needed:
        out.message("Nothing to change.")
    else:
        out.message(f"Would change {counts}; nothing was changed." if arguments.dry_run else f"Changed {counts}.")
    return 0


def declare_check(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="TOML or YAML file (see docs/configuration.md)")
    parser.add_argument("--save", action="store_true", help="write the baselines instead of comparing with them")
    add_budget(parser)
    parser.add_argument("--junit", type=Path, metavar="FILE", help="also write JUnit XML")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="also write a Markdown table for a pull request")


def run_check(arguments: argparse.Namespace, out: Output) -> int:
    """Check; return 1 if a bar is missed or a run failed."""
    check_extra("eval")
    from evals.configuration import check, write_report

    with open_workbench() as wb, out.progress("Check") as show, cancel_on_sigint(out) as should_stop:
        report = check(
            wb, arguments.file, save=arguments.save, budget=arguments.budget, on_progress=show, should_stop=should_stop
        )
    for path, text in ((arguments.junit, report.to_junit()), (arguments.markdown, report.to_markdown())):
        if path is not None:
            write_report(path, text)
    rows = [(one.state, one.experiment, one.run, one.metric, one.value, one.bar, one.detail) for one in report.verdicts]
    columns = ("State", "Experiment", "Run", "Metric", "Value", "Bar", "Detail")
    out.show(report.to_dict(), lambda console: print_table(console, columns, rows, "", yielding=6))
    for note in report.notes:
        out.message(note)
    out.message(report.summary)
    return 0 if report.is_passed else FAILURE


# workbench judgments

FORMATS = ("csv", "qrels", "beir")


def declare_judgments(parser: argparse.ArgumentParser) -> None:
    verbs = Subcommands(parser)
    verbs.add("agreement", "How far the raters of a test set agree", _show_agreement, "test_set")
    verbs.add("disagreements", "List the different grades that are not settled", _list_disagreements, "test_set")
    settle = verbs.add("settle", "Settle disagreements: all as one rater, or one by a grade", _settle, "test_set")
    settle.add_argument("--rater", metavar="NAME", help="settle all with the grades of this rater, or of original")
    settle.add_argument("--question", metavar="ID", help="settle one disagreement, in the answer to this question")
    settle.add_argument("--document", metavar="ID", help="the document of that disagreement")
    settle.add_argument("--grade", metavar="G", help="the grade that counts")
    settle.add_argument("--reason", metavar="TEXT", default="", help="why")
    rate = verbs.add("rate", "Let the LLM judge what people have judged, as another rater", _rate, "test_set")
    rate.add_argument("--limit", type=int, default=200, metavar="N", help="maximum number of judgments (%(default)s)")
    rate.add_argument("--rounds", type=int, default=1, metavar="N", help="2 also shows how consistent it is")
    scale = verbs.add("scale", "Set the number of grades of a test set, two to five", _set_scale, "test_set")
    scale.add_argument("grades", type=int, metavar="N", help="number of grades")
    read = verbs.add("import", "Read judgments from a CSV or a qrels file", _import, "test_set", "file")
    read.add_argument("--rater", metavar="NAME", default="", help="who judged, if several people do")
    collect = verbs.add(
        "collect", "Add what agents asked, with weak judgments from what they opened", _collect, "test_set"
    )
    collect.add_argument("--without-results", action="store_true", help="only queries without results")
    collect.add_argument("--chains", action="store_true", help="one question for each chain of searches")
    verbs.add("chains", "List agents' chains of searches, each judged as one case", _list_chains, "test_set")
    write = verbs.add("export", "Write judgments to a file, or to a folder in BEIR format", _export, "test_set", "file")
    write.add_argument("--format", choices=FORMATS, default="csv", help="csv (all raters), qrels (TREC) or beir")
    write.add_argument("--rater", metavar="NAME", default="", help="only the judgments of this rater")


def _open_test_sets(wb: Workbench) -> TestSets:
    check_extra("eval")
    from evals.evaluation import TestSets

    return TestSets(wb)


def _show_agreement(wb: Workbench, arguments: argparse.Namespace, out: Output) -> int:
    found = _open_test_sets(wb).agreement(arguments.test_set)

    def show(console: Console) -> None:
        raters = [(one.rater, one.kind, one.judgments, one.base_rate, one.consistency) for one in found.raters]
        print_table(console, ("Rater", "Kind", "Judgments", "Relevant", "Consistent"), raters, "No named rater.")
        pairs = [
            (f"{one.a}, {one.b}", one.scale, one.places, one.agreement, one.kappa, one.weighted_kappa)
            for one in found.pairs
        ]
        print_table(console, ("Raters", "Scale", "Places", "Equal", "Kappa", "Weighted"), pairs, "")
        scales = [(one.scale, one.places, one.alpha, one.nominal_alpha) for one in found.scales]
        print_table(console, ("Scale", "Places", "Alpha", "Nominal alpha"), scales, "")

    out.show(found, show)
    out.message(found.describe())
    return 0


def _list_disagreements(wb: Workbench, arguments: argparse.Namespace, out: Output) -> int:
    found = _open_test_sets(wb).disagreements(arguments.test_set)
    rows = [
        (one.question_id, one.document, "" if one.start is None else f"{one.start}-{one.end}",
         ", ".join(f"{name} {grade}" for name, grade in one.grades.items()), one.counts)
        for one in found
    ]  # fmt: skip
    columns = ("Question", "Document", "Span", "Grades", "Counts")
    return out.table(found, columns, rows, "All grades agree or are settled.")


def _settle(wb: Workbench, arguments: argparse.Namespace, out: Output) -> int:
    one = (arguments.question, arguments.document, arguments.grade)
    if (arguments.rater is None) == (None in one):
        raise InvalidInput("Give either --rater, or all of --question, --document and --grade.")
    if arguments.rater is not None:
        settled = _open_test_sets(wb).settle(arguments.test_set, arguments.rater)
    else:
        settled = _open_test_sets(wb).settle_one(arguments.test_set, *one, reason=arguments.reason)
    remaining = len(_open_test_sets(wb).disagreements(arguments.test_set))
    text = f"Disagreements settled: {settled:,}. To settle: {remaining:,}."
    return out.sentence({"settled": settled, "remaining": remaining}, text)


def _rate(wb: Workbench, arguments: argparse.Namespace, out: Output) -> int:
    with out.progress("Rate") as show, cancel_on_sigint(out) as should_stop:
        rated = _open_test_sets(wb).rate_by_llm(
            arguments.test_set, limit=arguments.limit, rounds=arguments.rounds, on_progress=show,
            should_stop=should_stop,
        )  # fmt: skip
    for reason, count in rated.reasons.items():
        out.message(f"Judgments missing: {count:,}. {reason}")
    out.message(f"{rated.left_out:,} beyond --limit were left out." if rated.left_out else "")
    out.sentence(rated, f"Judgments stored by {rated.rater!r}: {rated.judged:,}.")
    return 0 if rated.judged else FAILURE


def _collect(wb: Workbench, arguments: argparse.Namespace, out: Output) -> int:
    added = _open_test_sets(wb).add_agent_queries(
        arguments.test_set, zero_only=arguments.without_results, as_chains=arguments.chains
    )
    text = f"Questions added: {added.questions:,}. Weak judgments by the rater 'traffic': {added.judgments:,}."
    return out.sentence(added, text)


def _list_chains(wb: Workbench, arguments: argparse.Namespace, out: Output) -> int:
    found = _open_test_sets(wb).chains(arguments.test_set)
    titles = {one.id: one.title for one in wb.documents.list()} if any(one.missed for one in found) else {}
    rows = [
        (f"{one.chain.searches[0].at.astimezone():%Y-%m-%d %H:%M}", one.chain.client,
         " → ".join(search.query for search in one.chain.searches),
         one.describe(), ", ".join(titles.get(key, key) for key in one.missed))
        for one in found
    ]  # fmt: skip
    columns = ("Start", "Client", "Queries", "Outcome", "Never found")
    value = [one.to_dict() | {"outcome": one.describe()} for one in found]
    return out.table(
        {"chains": value}, columns, rows, "Agents have not searched in this scope, or calls are not logged."
    )


def _set_scale(wb: Workbench, arguments: argparse.Namespace, out: Output) -> int:
    info = _open_test_sets(wb).update(arguments.test_set, grades=arguments.grades)
    names = [f"{value} {name}" for value, name in enumerate(_open_test_sets(wb).load(info.id).scale)]
    return out.sentence(info, f"The grades of {info.title!r} are {', '.join(names)}.")


def _import(wb: Workbench, arguments: argparse.Namespace, out: Output) -> int:
    report = _open_test_sets(wb).import_judgments(arguments.test_set, arguments.file, rater=arguments.rater)
    for problem in report.problems:
        out.message(f"Left out: {problem}")
    out.sentence(report, f"Judgments read: {report.judgments:,}. New questions: {report.questions:,}.")
    return 0 if report.judgments or report.questions else FAILURE


def _export(wb: Workbench, arguments: argparse.Namespace, out: Output) -> int:
    written = _open_test_sets(wb).export(
        arguments.test_set, arguments.file, format=arguments.format, rater=arguments.rater
    )
    value = {"file": arguments.file, "format": arguments.format, "judgments": written}
    return out.sentence(value, f"Judgments written to {arguments.file}: {written:,}.")


# workbench learn


def declare_learn(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "test_sets",
        metavar="TEST_SET",
        nargs="+",
        help="title or id of a stored test set, a folder, or 'sample'; several are combined",
    )
    parser.add_argument("--index", metavar="NAME", help="use the chunker and model of this index")
    parser.add_argument(
        "--save", metavar="NAME", help="store the ranker, for use with --strategy learned --set ranker=NAME"
    )
    parser.add_argument("--afresh", action="store_true", help="start from rerank alone, not from the built-in ranker")
    add_scope(parser)


def run_learn(arguments: argparse.Namespace, out: Output) -> int:
    """Train; print the score of each strategy, and whether the ranker is worth promoting."""
    check_extra("eval")
    from evals.learning.training import learn
    from workbench.retrieval.ranker import check_name

    name = check_name(arguments.save or "learned here")
    with open_workbench() as wb, out.progress("Learn") as show, cancel_on_sigint(out) as should_stop:
        if arguments.save:
            name = wb.rankers.check_new(name)  # fail before the training rather than lose it
        learned = learn(
            wb,
            arguments.test_sets,
            name,
            index=arguments.index,
            scope=read_scope(arguments),
            afresh=arguments.afresh,
            on_progress=show,
            should_stop=should_stop,
        )
        if arguments.save:
            wb.rankers.save(learned.ranker)
    out.show(learned.to_dict() | {"saved": bool(arguments.save)}, lambda console: _print_learned(console, learned))
    if arguments.save:
        out.message(f"Saved. Try it: workbench search \"a question\" --strategy learned --set 'ranker={name}'")
    return 0


def _print_learned(console: Console, learned: TrainingResult) -> None:
    from workbench.retrieval.ranker import FEATURES

    rows = sorted(learned.figures.items(), key=lambda item: -item[1])
    print_table(console, ("Strategy", "nDCG@10"), rows, "")
    weights = learned.ranker.weights
    heaviest = sorted(FEATURES, key=lambda feature: -abs(weights.get(feature.name, 0.0)))
    print_table(
        console,
        ("Feature", "Weight", "Meaning"),
        [(feature.title, f"{weights.get(feature.name, 0.0):+.2f}", feature.why) for feature in heaviest],
        "",
    )
    console.print(f"Measured over {learned.scope}. {learned.verdict}", soft_wrap=True, markup=False)
