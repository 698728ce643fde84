"""``workbench ask``: stream an answer with numbered citations."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from workbench.cli.options import add_parameters, add_scope, add_strategy, parameters_of, scope_of
from workbench.cli.output import Out, printable
from workbench.cli.session import opened
from workbench.retrieval.options import Ask

if TYPE_CHECKING:
    from workbench.services.answers import Answer

SHOWN = 8  # passages, as in services.answers


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("query", metavar="QUERY")
    add_strategy(parser)
    parser.add_argument("--limit", type=int, default=SHOWN, metavar="N", help="passages to answer from (%(default)s)")
    parser.add_argument("--index", metavar="NAME", help="index to search, instead of the default one")
    add_parameters(parser)
    add_scope(parser)


def run(arguments: argparse.Namespace, out: Out) -> int:
    """Print the answer; a refusal, if the documents do not contain one, is a success too."""
    with opened() as wb:
        stream = wb.answers.ask(
            arguments.query,
            Ask(
                arguments.strategy,
                arguments.limit,
                scope_of(arguments),
                arguments.index,
                parameters_of(arguments.strategy, arguments.set) or {},
            ),
        )
        if not out.as_json:
            for piece in stream:
                print(printable(piece), end="", flush=True)
            print(flush=True)
        answer = stream.answer()
    for note in answer.degraded:
        out.message(note)
    out.show(answer, lambda console: _sources(answer))
    return 0


def _sources(answer: Answer) -> None:
    if answer.citations:
        print()
    for citation in answer.citations:
        place = citation.url or citation.path or citation.document_id
        page = answer.page(citation)
        at = f"{place}, page {page}" if page else place
        print(printable(f"[{citation.number}] {citation.document_title}  {at}  {citation.passage_id}"))
