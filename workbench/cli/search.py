"""``workbench search``: find the passages that answer a question, and on request why these and not another."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from workbench.cli.opening import opened
from workbench.cli.output import Out
from workbench.cli.passages import print_result
from workbench.cli.scope_options import add_scope, scope_of
from workbench.cli.strategy_options import add_parameters, add_strategy, parameters_of
from workbench.cli.why import print_why

if TYPE_CHECKING:
    from rich.console import Console


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("query", metavar="QUERY")
    add_strategy(parser)
    parser.add_argument("--limit", type=int, default=10, metavar="N", help="how many passages, 1 to 200 (%(default)s)")
    parser.add_argument("--index", metavar="NAME", help="search this index in place of the default one")
    parser.add_argument("--explain", action="store_true", help="show how each passage came by its score")
    parser.add_argument("--expect", metavar="DOCUMENT", help="say where this document (its id) is, or fell out")
    add_parameters(parser)
    add_scope(parser)


def run(arguments: argparse.Namespace, out: Out) -> int:
    """Search and print what was found; finding nothing is no failure."""
    asked = {
        "strategy": arguments.strategy,
        "limit": arguments.limit,
        "scope": scope_of(arguments),
        "index": arguments.index,
        "parameters": parameters_of(arguments.strategy, arguments.set),
    }
    explained, expected = [], None
    with opened() as workbench:
        if arguments.explain:
            result, explained = workbench.explaining.explain_hits(arguments.query, **asked)
        else:
            result = workbench.search(arguments.query, **asked)
        if arguments.expect:
            expected = workbench.explain(arguments.query, document_id=arguments.expect, **asked)
    for note in (*result.scope.notes, *result.degraded):
        out.message(note)
    for typed, meant in result.corrections.items():
        out.message(f"No document has the word '{typed}'; searched for {' and '.join(meant)} too.")
    value = result.to_dict() | ({"explanations": explained} if arguments.explain else {})
    value |= {"expected": expected} if expected else {}

    def human(console: Console) -> None:
        print_result(console, result, explain=arguments.explain, why=explained)
        if expected is not None:
            console.print(f"\n{expected.document_title}: {expected.fate}. {expected.reason}")
            print_why(console, expected)

    out.show(value, human)
    return 0
