"""``workbench strategies promote | undo | history``: the default strategy of each scope."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from workbench.cli.options import Verbs, add_parameters, parameters_of
from workbench.cli.output import Out, print_table
from workbench.cli.session import opened
from workbench.types import Scope

if TYPE_CHECKING:
    from rich.console import Console

    from workbench.types import Promotion


def add_promotions(verbs: Verbs) -> None:
    """Declare the verbs."""
    promote = verbs.add("promote", "Make a strategy the default of a scope.", _promote)
    promote.add_argument("name", metavar="NAME", help="strategy, or STRATEGY@INDEX")
    promote.add_argument("--index", metavar="INDEX", help="index to search, instead of the default one")
    promote.add_argument("--note", default="", metavar="TEXT", help="reason, shown in the history")
    add_parameters(promote)
    _add_place(promote)
    _add_place(verbs.add("undo", "Undo the newest promotion of a scope.", _undo))
    _add_place(verbs.add("history", "List promotions, newest first.", _history))


def _add_place(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--project", metavar="ID", help="for a project (default: for all searches)")
    parser.add_argument("--folder", metavar="NAME", help="for a folder in that project")
    parser.add_argument("--source", metavar="ID", help="for one source")


def _place(arguments: argparse.Namespace) -> Scope:
    sources = (arguments.source,) if arguments.source else None
    return Scope(project=arguments.project, folder=arguments.folder, sources=sources)


def _promote(arguments: argparse.Namespace, out: Out) -> int:
    parameters = parameters_of(arguments.name, arguments.set)
    with opened() as wb:
        promoted = wb.promotions.promote(
            arguments.name, scope=_place(arguments), parameters=parameters, index=arguments.index, note=arguments.note
        )
    out.show(promoted, lambda console: _table(console, [promoted]))
    return 0


def _undo(arguments: argparse.Namespace, out: Out) -> int:
    with opened() as wb:
        serving = wb.promotions.undo(_place(arguments))
        built_in = wb.promotions.built_in
    name = serving.strategy if serving else built_in
    out.show({"serving": serving, "strategy": name}, lambda console: console.print(f"{name} is the default there now."))
    return 0


def _history(arguments: argparse.Namespace, out: Out) -> int:
    place = _place(arguments)
    with opened() as wb:
        promotions = wb.promotions.history(None if place == Scope() else place)
    out.show({"promotions": promotions}, lambda console: _table(console, promotions))
    return 0


def _table(console: Console, promotions: Sequence[Promotion]) -> None:
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
    print_table(console, columns, rows, "No promotions; the built-in default is used everywhere.")
