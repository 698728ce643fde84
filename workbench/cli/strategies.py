"""``workbench strategies`` and ``rankers``: strategies, promotions, and trained weights."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.cli.options import Subcommands, add_parameters, add_yes_option, check_file, confirm, read_parameters
from workbench.cli.output import Output, print_fields, print_table
from workbench.errors import NotFound
from workbench.types import Promotion, Scope

if TYPE_CHECKING:
    from rich.console import Console

    from workbench.workbench import Workbench

# Promotion of a strategy


def add_promotions(verbs: Subcommands) -> None:
    promote = verbs.add("promote", "Make a strategy the default of a scope.", _promote_strategy)
    promote.add_argument("name", metavar="NAME", help="strategy, or STRATEGY@INDEX")
    promote.add_argument("--index", metavar="INDEX", help="index to search, instead of the default one")
    rival = "another strategy, or STRATEGY@INDEX: agents get the results of both, to see whose documents they open"
    promote.add_argument("--rival", default="", metavar="NAME", help=rival)
    promote.add_argument("--note", default="", metavar="TEXT", help="reason, shown in the history")
    add_parameters(promote)
    _add_scope_options(promote)
    _add_scope_options(verbs.add("undo", "Undo the newest promotion of a scope.", _undo_promotion))
    proposals = verbs.add("proposals", "List the promotions that agents propose.", _list_proposals)
    proposals.add_argument("--all", action="store_true", help="also those that were accepted or rejected")
    verbs.add("accept", "Promote what an agent proposes.", _accept_proposal).add_argument("id", type=int)
    reject = verbs.add("reject", "Reject what an agent proposes.", _reject_proposal)
    reject.add_argument("id", type=int)
    reject.add_argument("--note", default="", metavar="TEXT", help="why, for the agent")
    verbs.add("rivals", "Compare promoted strategies with their rivals by what agents opened.", _list_rivals)
    _add_scope_options(verbs.add("history", "List promotions, newest first.", _list_promotions))


def _add_scope_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--project", metavar="ID", help="for a project (default: for all searches)")
    parser.add_argument("--folder", metavar="NAME", help="for a folder in that project")
    parser.add_argument("--source", metavar="ID", help="for one source")


def _read_promotion_scope(arguments: argparse.Namespace) -> Scope:
    sources = (arguments.source,) if arguments.source else None
    return Scope(project=arguments.project, folder=arguments.folder, sources=sources)


def _promote_strategy(wb: Workbench, arguments: argparse.Namespace, out: Output) -> int:
    scope, parameters = _read_promotion_scope(arguments), read_parameters(arguments.name, arguments.set)
    promoted = wb.promotions.promote(
        arguments.name, scope=scope, parameters=parameters, index=arguments.index, note=arguments.note,
        rival=arguments.rival,
    )  # fmt: skip
    return _print_promotions(out, promoted, [promoted])


def _undo_promotion(wb: Workbench, arguments: argparse.Namespace, out: Output) -> int:
    serving = wb.promotions.undo(_read_promotion_scope(arguments))
    built_in = wb.promotions.built_in
    name = serving.strategy if serving else built_in
    return out.sentence({"serving": serving, "strategy": name}, f"The default in this scope is now {name}.")


def _list_promotions(wb: Workbench, arguments: argparse.Namespace, out: Output) -> int:
    place = _read_promotion_scope(arguments)
    promotions = wb.promotions.history(None if place == Scope() else place)
    return _print_promotions(out, {"promotions": promotions}, promotions)


def _list_rivals(wb: Workbench, arguments: argparse.Namespace, out: Output) -> int:
    from evals.evaluation import measure_interleavings

    found = measure_interleavings(wb)
    rows = [
        (one.promotion.scope_title or one.promotion.scope, one.promotion.label, one.promotion.rival, one.lists,
         one.difference.wins, one.difference.losses, one.difference.ties, one.describe())
        for one in found
    ]  # fmt: skip
    columns = ("Scope", "Strategy", "Rival", "Lists", "Won", "Lost", "Tied", "Outcome")
    return out.table({"rivals": found}, columns, rows, "No promotion has a rival; use 'promote NAME --rival NAME'.")


def _list_proposals(wb: Workbench, arguments: argparse.Namespace, out: Output) -> int:
    found = wb.promotions.proposals(decided=arguments.all)
    rows = [
        (one.id, one.scope_title or "everywhere", one.strategy, one.index or "default", one.rival, one.parameters,
         one.state, one.reason, one.proposed_by)
        for one in found
    ]  # fmt: skip
    columns = ("Id", "Scope", "Strategy", "Index", "Rival", "Parameters", "State", "Reason", "Proposed by")
    return out.table({"proposals": found}, columns, rows, "No proposals.")


def _accept_proposal(wb: Workbench, arguments: argparse.Namespace, out: Output) -> int:
    promoted = wb.promotions.accept(arguments.id)
    return _print_promotions(out, promoted, [promoted])


def _reject_proposal(wb: Workbench, arguments: argparse.Namespace, out: Output) -> int:
    rejected = wb.promotions.reject(arguments.id, arguments.note)
    return out.sentence(rejected, f"Rejected the promotion of {rejected.strategy!r}.")


def _print_promotions(out: Output, value: object, promotions: Sequence[Promotion]) -> int:
    rows = [
        (
            f"{item.scope_title or item.scope} {item.version}",
            item.strategy,
            item.index or "default",
            item.rival,
            item.parameters,
            "in effect" if item.serves else ("undone" if item.undone_at else "replaced"),
            item.note,
        )
        for item in promotions
    ]
    columns = ("Scope and version", "Strategy", "Index", "Rival", "Parameters", "State", "Note")
    return out.table(value, columns, rows, "No promotions; the built-in default is used everywhere.")


def declare_strategies(parser: argparse.ArgumentParser) -> None:
    verbs = Subcommands(parser)
    verbs.add_offline("list", "List all strategies.", _list_strategies)
    verbs.add_offline("show", "Show a strategy with its parameters.", _show_strategy, "name")
    add_promotions(verbs)


def _list_strategies(arguments: argparse.Namespace, out: Output) -> int:
    from workbench.retrieval.strategies import DEFAULT_STRATEGY, STRATEGIES

    value = {"strategies": list(STRATEGIES.values()), "default": DEFAULT_STRATEGY}
    rows = [
        (strategy.name, strategy.summary, ", ".join(p.name for p in strategy.parameters))
        for strategy in STRATEGIES.values()
    ]
    return out.table(value, ("Strategy", "Description", "Parameters"), rows)


def _show_strategy(arguments: argparse.Namespace, out: Output) -> int:
    from workbench.retrieval.strategies import strategy_named

    strategy = strategy_named(arguments.name)

    def human(console: Console) -> None:
        print_fields(
            console,
            {"name": strategy.name, "title": strategy.title, "description": strategy.summary, "needs": strategy.needs},
        )
        rows = [(p.name, p.default, p.valid().removeprefix("use "), p.why) for p in strategy.parameters]
        print_table(console, ("Parameter", "Default", "Valid", "Description"), rows, "No parameters.")

    out.show(strategy, human)
    return 0


# workbench rankers


def declare_rankers(parser: argparse.ArgumentParser) -> None:
    verbs = Subcommands(parser)
    verbs.add("list", "List rankers with their training data.", _list_rankers)
    verbs.add("show", "Show one ranker.", lambda wb, given, out: out.fields(wb.rankers.get(given.name)), "name")
    export = verbs.add("export", "Write a ranker as a JSON file.", _export_ranker, "name")
    export.add_argument("file", metavar="FILE", help="file to write, such as ranker.json")
    export.add_argument("--force", action="store_true", help="replace an existing file")
    restore = verbs.add("import", "Store a ranker from a JSON file.", _import_ranker, "file")
    restore.add_argument("--name", metavar="NAME", help="name to store it under, instead of the one in the file")
    add_yes_option(verbs.add("delete", "Delete a ranker.", _delete_ranker, "name"))


def _list_rankers(wb: Workbench, arguments: argparse.Namespace, out: Output) -> int:
    rankers = wb.rankers.list()
    rows = [
        (ranker.name, ranker.trained_on, ranker.questions, ranker.index, ranker.figures.get("learned"),
         ranker.figures.get("rerank"), ranker.created_at.date().isoformat() if ranker.created_at else "")
        for ranker in rankers
    ]  # fmt: skip
    columns = ("Name", "Trained on", "Questions", "Index", "nDCG@10", "Rerank", "Created")
    return out.table({"rankers": rankers, "total": len(rankers)}, columns, rows)


def _export_ranker(wb: Workbench, arguments: argparse.Namespace, out: Output) -> int:
    target = Path(arguments.file)
    check_file(target, force=arguments.force)
    target.write_text(wb.rankers.export(arguments.name), encoding="utf-8")
    value = {"ranker": arguments.name, "path": str(target)}
    return out.sentence(value, f"Wrote the ranker {arguments.name!r} to {target}")


def _import_ranker(wb: Workbench, arguments: argparse.Namespace, out: Output) -> int:
    source = Path(arguments.file)
    if not source.is_file():
        raise NotFound("file", str(source), "Use a file written by 'workbench rankers export'.")
    ranker = wb.rankers.restore(source.read_text(encoding="utf-8", errors="replace"), arguments.name)
    return out.fields(ranker)


def _delete_ranker(wb: Workbench, arguments: argparse.Namespace, out: Output) -> int:
    ranker = wb.rankers.get(arguments.name)
    confirm(arguments, out, f"The ranker {ranker.name!r} was trained on {ranker.questions:,} questions.")
    wb.rankers.delete(ranker.name)
    return out.sentence(ranker, f"Deleted the ranker {ranker.name!r}.")
