"""``workbench ask``: stream an answer with numbered citations."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from workbench.cli.options import add_parameters, add_scope, add_strategy, read_parameters, read_scope
from workbench.cli.output import Output, strip_control_chars
from workbench.cli.session import open_workbench
from workbench.retrieval.options import Ask

if TYPE_CHECKING:
    from workbench.services.answers import Answer

DEFAULT_LIMIT = 8  # passages, as in services.answers


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("query", metavar="QUERY")
    add_strategy(parser)
    parser.add_argument(
        "--limit", type=int, default=DEFAULT_LIMIT, metavar="N", help="passages to answer from (%(default)s)"
    )
    parser.add_argument("--index", metavar="NAME", help="index to search, instead of the default one")
    add_parameters(parser)
    add_scope(parser)


def run(arguments: argparse.Namespace, out: Output) -> int:
    """Print the answer; a refusal because the documents do not contain one is also a success."""
    with open_workbench() as wb:
        stream = wb.answers.ask(
            arguments.query,
            Ask(
                arguments.strategy,
                arguments.limit,
                read_scope(arguments),
                arguments.index,
                read_parameters(arguments.strategy, arguments.set) or {},
            ),
        )
        if not out.as_json:
            for piece in stream:
                print(strip_control_chars(piece), end="", flush=True)
            print(flush=True)
        answer = stream.answer()
    for note in answer.degraded:
        out.message(note)
    out.show(answer, lambda console: _print_sources(answer))
    return 0


def _print_sources(answer: Answer) -> None:
    if answer.citations:
        print()
    for citation in answer.citations:
        place = citation.url or citation.path or citation.document_id
        page = answer.page(citation)
        at = f"{place}, page {page}" if page else place
        print(strip_control_chars(f"[{citation.number}] {citation.document_title}  {at}  {citation.passage_id}"))
