"""``workbench strategies``: strategies with their parameters, and promotions."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from workbench.cli.options import Subcommands, run_subcommand
from workbench.cli.output import Output, print_fields, print_table
from workbench.cli.promotions import add_promotions
from workbench.types import Parameter

if TYPE_CHECKING:
    from rich.console import Console

run = run_subcommand


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verbs."""
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
    out.show(value, lambda console: print_table(console, ("Strategy", "Description", "Parameters"), rows, ""))
    return 0


def _run_show(arguments: argparse.Namespace, out: Output) -> int:
    from workbench.retrieval.strategies import strategy_named

    strategy = strategy_named(arguments.name)

    def human(console: Console) -> None:
        print_fields(
            console,
            {"name": strategy.name, "title": strategy.title, "description": strategy.summary, "needs": strategy.needs},
        )
        rows = [(p.name, p.default, _format_valid(p), p.why) for p in strategy.parameters]
        print_table(console, ("Parameter", "Default", "Valid", "Description"), rows, "No parameters.")

    out.show(strategy, human)
    return 0


def _format_valid(parameter: Parameter) -> str:
    return parameter.valid().removeprefix("use ")
