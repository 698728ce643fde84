"""``workbench search``: find the passages that answer a question."""

from __future__ import annotations

import argparse

from workbench.cli.opening import opened
from workbench.cli.output import Out
from workbench.cli.passages import print_result
from workbench.cli.scope_options import add_scope, scope_of
from workbench.cli.strategy_options import add_parameters, parameters_of
from workbench.retrieval.strategies import DEFAULT_STRATEGY, STRATEGIES


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("query", metavar="QUERY")
    parser.add_argument(
        "--strategy", default=DEFAULT_STRATEGY, metavar="S", help=f"one of {', '.join(STRATEGIES)} (%(default)s)"
    )
    parser.add_argument("--limit", type=int, default=10, metavar="N", help="how many passages, 1 to 200 (%(default)s)")
    parser.add_argument("--index", metavar="NAME", help="search this index in place of the default one")
    parser.add_argument("--explain", action="store_true", help="show how each passage came by its score")
    add_parameters(parser)
    add_scope(parser)


def run(arguments: argparse.Namespace, out: Out) -> int:
    """Search and print what was found; finding nothing is no failure."""
    parameters = parameters_of(arguments.strategy, arguments.set)
    scope = scope_of(arguments)
    with opened() as workbench:
        result = workbench.search(
            arguments.query,
            strategy=arguments.strategy,
            limit=arguments.limit,
            scope=scope,
            index=arguments.index,
            parameters=parameters,
        )
    for note in (*result.scope.notes, *result.degraded):
        out.message(note)
    out.show(result, lambda console: print_result(console, result, explain=arguments.explain))
    return 0
