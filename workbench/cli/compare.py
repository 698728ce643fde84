"""``workbench compare``: run several strategies on one question, side by side."""

from __future__ import annotations

import argparse
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.cli.options import add_parameters, add_scope, parse_strategies, read_scope
from workbench.cli.output import Output, print_table, strip_control_chars
from workbench.cli.results import highlight_words
from workbench.cli.session import open_workbench
from workbench.display import heading_text, movement_text
from workbench.errors import InvalidInput, WorkbenchError
from workbench.export import CompareArguments, export_comparison
from workbench.marking import excerpt, remove_rows, table_excerpt
from workbench.retrieval.options import combine_with_indexes, parameters_by_strategy
from workbench.retrieval.strategies import COMPARED_STRATEGIES

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from workbench.types import Comparison, Passage

EXCERPT_CHARS = 110  # characters of each passage


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("query", metavar="QUERY")
    parser.add_argument(
        "--strategies",
        default=",".join(COMPARED_STRATEGIES),
        metavar="A,B,C",
        help="comma-separated strategies, each NAME or NAME@INDEX (%(default)s)",
    )
    parser.add_argument("--limit", type=int, default=10, metavar="N", help="passages per strategy (%(default)s)")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--index", metavar="NAME", help="index to search, instead of the default one")
    where.add_argument("--indexes", default="", metavar="A,B", help="run every strategy on each of these indexes")
    parser.add_argument(
        "--export",
        metavar="FILE",
        help="also write the comparison to a file: .md, .json, or a notebook that repeats it (.ipynb)",
    )
    add_parameters(parser)
    add_scope(parser)


def run(arguments: argparse.Namespace, out: Output) -> int:
    """Compare strategies and print their rankings side by side."""
    indexes = [name.strip() for name in arguments.indexes.split(",") if name.strip()]
    names = combine_with_indexes(parse_strategies(arguments.strategies), list(dict.fromkeys(indexes)))
    parameters = parameters_by_strategy(names, arguments.set)
    scope = read_scope(arguments)
    with open_workbench() as wb:
        with suppress(WorkbenchError):  # a column that fails reports it
            wb.warm()  # else every column would include the time of loading
        comparison = wb.compare(
            arguments.query,
            strategies=names,
            limit=arguments.limit,
            scope=scope,
            index=arguments.index,
            parameters=parameters,
        )
    if arguments.export:
        asked = CompareArguments(tuple(names), arguments.limit, scope, arguments.index, parameters or {})
        _write_export(Path(arguments.export), export_comparison(comparison, asked, arguments.export))
        out.message(f"Written to {arguments.export}.")
    for note in comparison.notes:
        out.message(note)
    out.show(comparison, lambda console: _print_comparison(console, comparison))
    return 0


def _write_export(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InvalidInput(f"Cannot write {path} ({error.strerror}); choose a file in an existing folder.") from None


def _print_comparison(console: Console, comparison: Comparison) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    names = list(comparison.strategies)
    ranks = {name: {hit.passage_id: hit.rank for hit in comparison.strategies[name]} for name in names}
    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_lines=False)
    table.add_column("", justify="right", style="cyan", no_wrap=True)
    for name in names:
        took = comparison.strategies[name].timings_ms.get("total", 0.0)
        table.add_column(Text(f"{name}  {took:.0f} ms"), ratio=1)
    for place in range(max((len(result) for result in comparison.strategies.values()), default=0)):
        cells: list[Text] = []
        for name in names:
            hits = comparison.strategies[name].results
            cells.append(_make_cell(hits[place], comparison.query, name, ranks) if place < len(hits) else Text(""))
        table.add_row(str(place + 1), *cells)
    console.print(table)
    _print_agreement(console, comparison)


def _make_cell(passage: Passage, query: str, own: str, ranks: dict[str, dict[str, int]]) -> Text:
    """Return a passage's cell, with its change in rank from the first column."""
    from rich.text import Text

    first = next(iter(ranks))
    cell = Text(strip_control_chars(passage.document_title), style="bold")
    if own != first:
        cell.append(f" {movement_text(ranks[first].get(passage.passage_id), passage.rank)}", style="not bold magenta")
    place = heading_text(passage)
    if place:
        cell.append(f"\n{strip_control_chars(place)}", style="not bold dim")
    table = table_excerpt(query, passage.text)
    shown_text = "\n".join(table.lines()) if table else excerpt(query, remove_rows(passage.text), EXCERPT_CHARS)
    text = highlight_words(query, shown_text)
    text.stylize_before("not bold")
    return Text.assemble(cell, "\n", text, "\n")


def _print_agreement(console: Console, comparison: Comparison) -> None:
    rows = [
        (pair.replace("|", " and "), value, comparison.agreement["rbo"][pair])
        for pair, value in comparison.agreement["jaccard"].items()
    ]
    if rows:
        print_table(console, ("Agreement", "same passages (Jaccard)", "same order (RBO)"), rows, "")
