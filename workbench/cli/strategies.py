"""``workbench strategies``: strategies with their parameters, and promotions."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from workbench.cli.options import Subcommands, add_parameters, read_parameters, run_subcommand
from workbench.cli.output import Output, print_fields, print_table
from workbench.cli.session import open_workbench
from workbench.types import Scope

if TYPE_CHECKING:
    from rich.console import Console

    from workbench.types import Promotion

# Promotion of a strategy


def add_promotions(verbs: Subcommands) -> None:
    """Declare the subcommands."""
    promote = verbs.add("promote", "Make a strategy the default of a scope.", _run_promote)
    promote.add_argument("name", metavar="NAME", help="strategy, or STRATEGY@INDEX")
    promote.add_argument("--index", metavar="INDEX", help="index to search, instead of the default one")
    promote.add_argument("--note", default="", metavar="TEXT", help="reason, shown in the history")
    add_parameters(promote)
    _add_scope_options(promote)
    _add_scope_options(verbs.add("undo", "Undo the newest promotion of a scope.", _run_undo))
    _add_scope_options(verbs.add("history", "List promotions, newest first.", _run_history))


def _add_scope_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--project", metavar="ID", help="for a project (default: for all searches)")
    parser.add_argument("--folder", metavar="NAME", help="for a folder in that project")
    parser.add_argument("--source", metavar="ID", help="for one source")


def _read_scope(arguments: argparse.Namespace) -> Scope:
    sources = (arguments.source,) if arguments.source else None
    return Scope(project=arguments.project, folder=arguments.folder, sources=sources)


def _run_promote(arguments: argparse.Namespace, out: Output) -> int:
    parameters = read_parameters(arguments.name, arguments.set)
    with open_workbench() as wb:
        promoted = wb.promotions.promote(
            arguments.name,
            scope=_read_scope(arguments),
            parameters=parameters,
            index=arguments.index,
            note=arguments.note,
        )
    return _print_promotions(out, promoted, [promoted])


def _run_undo(arguments: argparse.Namespace, out: Output) -> int:
    with open_workbench() as wb:
        serving = wb.promotions.undo(_read_scope(arguments))
        built_in = wb.promotions.built_in
    name = serving.strategy if serving else built_in
    return out.sentence({"serving": serving, "strategy": name}, f"The default in this scope is now {name}.")


def _run_history(arguments: argparse.Namespace, out: Output) -> int:
    place = _read_scope(arguments)
    with open_workbench() as wb:
        promotions = wb.promotions.history(None if place == Scope() else place)
    return _print_promotions(out, {"promotions": promotions}, promotions)


def _print_promotions(out: Output, value: object, promotions: Sequence[Promotion]) -> int:
    rows = [
        (
            f"{item.scope_title or item.scope} {item.version}",
            item.strategy,
            item.index or "default",
            item.parameters,
            "in effect" if item.serves else ("undone" if item.undone_at else "replaced"),
            item.note,
        )
        for item in promotions
    ]
    columns = ("Scope and version", "Strategy", "Index", "Parameters", "State", "Note")
    return out.table(value, columns, rows, "No promotions; the built-in default is used everywhere.")


run = run_subcommand


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the subcommands."""
    verbs = Subcommands(parser)
    verbs.add("list", "List all strategies.", _run_list)
    show = verbs.add("show", "Show a strategy with its parameters.", _run_show)
    show.add_argument("name", metavar="NAME")
    add_promotions(verbs)


def _run_list(arguments: argparse.Namespace, out: Output) -> int:
    from workbench.retrieval.strategies import DEFAULT_STRATEGY, STRATEGIES

    value = {"strategies": list(STRATEGIES.values()), "default": DEFAULT_STRATEGY}
    rows = [
        (strategy.name, strategy.summary, ", ".join(p.name for p in strategy.parameters))
        for strategy in STRATEGIES.values()
    ]
    return out.table(value, ("Strategy", "Description", "Parameters"), rows)


def _run_show(arguments: argparse.Namespace, out: Output) -> int:
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
