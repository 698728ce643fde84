"""``workbench search``: find the passages that answer a question, and explain their ranks on request."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import TYPE_CHECKING

from workbench.cli.options import add_parameters, add_scope, add_strategy, read_parameters, read_scope
from workbench.cli.output import Output
from workbench.cli.results import print_explanation, print_result
from workbench.cli.session import ensure_sample, open_workbench
from workbench.errors import InvalidInput
from workbench.retrieval.options import Ask
from workbench.services.checks import MAX_RESULTS, check_limit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("query", metavar="QUERY")
    add_strategy(parser)
    parser.add_argument("--limit", type=int, default=10, metavar="N", help="number of passages, 1 to 200 (%(default)s)")
    parser.add_argument("--offset", type=int, default=0, metavar="N", help="number of passages to skip (%(default)s)")
    parser.add_argument("--index", metavar="NAME", help="index to search, instead of the default one")
    parser.add_argument("--explain", action="store_true", help="explain the score of each passage")
    parser.add_argument(
        "--expect", metavar="DOCUMENT", help="explain the rank of this document (by id), or why it is not found"
    )
    parser.add_argument("--sample", action="store_true", help="load the sample corpus first if there is no source yet")
    add_parameters(parser)
    add_scope(parser)


def _quote_words(words: Sequence[str]) -> str:
    return " and ".join(f"'{word}'" for word in words)


def run(arguments: argparse.Namespace, out: Output) -> int:
    """Search and print the results; an empty result is also a success."""
    check_limit(arguments.limit)
    if not 0 <= arguments.offset < MAX_RESULTS:
        raise InvalidInput(f"Invalid offset {arguments.offset}: a search ranks {MAX_RESULTS} passages; use 0 to 199.")
    ask = Ask(
        arguments.strategy,
        min(MAX_RESULTS, arguments.offset + arguments.limit),
        read_scope(arguments),
        arguments.index,
        read_parameters(arguments.strategy, arguments.set) or {},
    )
    explained, expected = [], None
    with open_workbench() as wb:
        if arguments.sample:
            ensure_sample(wb, out)
        if arguments.explain:
            result, explained = wb.explaining.explain_hits(arguments.query, ask)
        else:
            result = wb.search_service.search(arguments.query, ask)
        if arguments.expect:
            expected = wb.explaining.explain(arguments.query, ask, document_id=arguments.expect)
        spoken = len(wb.indexes.languages(result.index)) > 1
        headers = {} if out.as_json else wb.answers.table_headers(result.results, result.index)
    for note in result.notes:
        out.message(note)
    shown = result.results[arguments.offset :]
    if result.results and not shown:
        out.message(f"Only {len(result)} passages were found; use an --offset below {len(result)}.")
    result = replace(result, results=shown)
    for typed, meant in result.corrections.items():
        out.message(f"No document contains '{typed}'; also searched for {_quote_words(meant)}.")
    value = result.to_dict() | ({"explanations": explained} if arguments.explain else {})
    value |= {"expected": expected} if expected else {}

    def human(console: Console) -> None:
        if arguments.offset and not result.results:
            return
        print_result(console, result, explain=arguments.explain, why=explained, spoken=spoken, headers=headers)
        if expected is not None:
            console.print(f"\n{expected.document_title or expected.document_id}: {expected.outcome}. {expected.reason}")
            print_explanation(console, expected)

    out.show(value, human)
    return 0
