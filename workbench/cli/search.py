"""``workbench search``, ``compare`` and ``ask``: passages, rankings side by side, and answers."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.cli.options import (
    add_parameters,
    add_repeated,
    add_scope,
    add_strategy,
    check_file,
    parse_strategies,
    read_parameters,
    read_scope,
)
from workbench.cli.output import Output, print_table, strip_control_chars
from workbench.cli.session import ensure_sample, open_workbench
from workbench.display import heading_text, movement_text
from workbench.errors import InvalidInput, WorkbenchError
from workbench.export import CompareArguments, export_comparison
from workbench.formatting import count_text
from workbench.marking import TableExcerpt, excerpt, remove_rows, split_matches, table_excerpt
from workbench.retrieval.legs import RERANKERS
from workbench.retrieval.options import Ask, combine_with_indexes, parameters_by_strategy
from workbench.retrieval.strategies import COMPARED_STRATEGIES
from workbench.services.checks import MAX_RESULTS, check_limit
from workbench.text import language_title

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from workbench.retrieval.explain import Explanation
    from workbench.services.answers import Answer
    from workbench.types import Comparison, Passage, SearchResult

# Results on a terminal

PASSAGE_INDENT = (0, 0, 0, 11)
MIN_FEATURE_SHARE = 0.01  # share of the score; smaller features are omitted


def print_explanation(console: Console, why: Explanation) -> None:
    """Print the explanation of a passage."""
    from rich.padding import Padding
    from rich.text import Text

    for label, text in _explanation_lines(why):
        line = Text(f"{label:<10} ", style="dim")
        line.append(strip_control_chars(text), style="not dim")
        console.print(Padding(line, PASSAGE_INDENT))


def _explanation_lines(why: Explanation) -> list[tuple[str, str]]:
    legs = [
        f"{name} {leg.score:.3f}"
        + (f" (rank {leg.rank} {'of the candidates' if name in RERANKERS else 'in scope'})" if leg.rank else "")
        + (f" (weighted {leg.vote:.0%} for this question)" if leg.vote < 1 else "")
        for name, leg in why.legs.items()
    ]
    terms = [f"{term.term} x{term.frequency} {term.share:.0%}" for term in why.terms]
    features = [
        f"{view.title.lower()} {view.share:.0%} ({view.value:.3f}, weight {view.weight:+.2f})"
        for view in why.features
        if view.share >= MIN_FEATURE_SHARE
    ]
    likes = [
        f"{word.query_token}~{word.passage_token} {word.similarity:.2f}" for word in why.alignment if word.weight > 0
    ]
    ranks = [f"{name} {rank if rank is not None else '-'}" for name, rank in why.elsewhere.items()]
    lines = [
        ("legs", ", ".join(legs)),
        ("features", ", ".join(features)),
        ("preferring", " · ".join(name.text for name in why.preferring)),
        ("terms", ", ".join(terms) or "none of the question's terms"),
        ("missing", ", ".join(why.missing_terms)),
        ("similar", ", ".join(likes)),
        ("elsewhere", ", ".join(ranks)),
        ("stages", _describe_stages(why)),
    ]
    return [(label, text) for label, text in lines if text]


def _describe_stages(why: Explanation) -> str:
    """Return the stages of a dropped passage, up to the one that dropped it; "" for one that is shown."""
    lost = next((place for place, step in enumerate(why.steps) if not step.kept), None)
    if lost is None:
        return ""
    steps = [
        step.title + (f" (rank {step.rank} of {step.count})" if step.rank is not None else f" ({step.count})")
        for step in why.steps[: lost + 1]
    ]
    return " > ".join(steps) + ": dropped"


EXCERPT_CHARS = 420  # characters of a passage: four lines of an ordinary terminal


def print_result(
    console: Console,
    result: SearchResult,
    *,
    explain: bool = False,
    why: Sequence[Explanation] = (),
    spoken: bool = False,
    headers: Mapping[str, str] | None = None,
) -> None:
    """Print the passages of a search, best first.

    ``explain`` adds the legs, ``why`` explanations, and ``spoken`` the language of each passage; ``headers`` has those
    of the tables that passages continue, by passage id.
    """
    if not result.results:
        advice = "Widen the scope, or run 'workbench sources list' to see the sources."
        console.print("No results yet." if result.is_early else f"No results. {advice}")
        return
    for passage in result:
        _print_passage(console, passage, result.query, (headers or {}).get(passage.passage_id, ""), spoken=spoken)
        if explain:
            _print_legs(console, passage)
            for explained in why:
                if explained.passage_id == passage.passage_id:
                    print_explanation(console, explained)
        console.print()
    took = result.timings_ms.get("total", 0.0)
    fewer = ", fewer than requested" if result.under_filled else ""
    console.print(f"{count_text(len(result), 'passage')} by {result.strategy} in {took:.0f} ms{fewer}", style="dim")


def highlight_words(query: str, text: str) -> Text:
    """Return a text with the query's words highlighted."""
    from rich.text import Text

    line = Text()
    for piece, matched in split_matches(query, strip_control_chars(text)):
        line.append(piece, style="bold yellow" if matched else "")
    return line


def _print_passage(console: Console, passage: Passage, query: str, header: str, *, spoken: bool) -> None:
    from rich.padding import Padding
    from rich.text import Text

    head = Text(f"{passage.rank:>2}  {passage.score:.3f}  ", style="cyan")
    head.append(strip_control_chars(passage.document_title), style="bold")
    path = heading_text(passage)
    if path:
        head.append(f"  {strip_control_chars(path)}", style="dim")
    language = language_title(str(passage.metadata.get("language", ""))) if spoken else ""
    if language:
        head.append(f"  {language}", style="green")
    console.print(head)
    table = table_excerpt(query, passage.text, header)
    text = (
        _make_table(query, table)
        if table
        else highlight_words(query, excerpt(query, remove_rows(passage.text), EXCERPT_CHARS))
    )
    console.print(Padding(text, PASSAGE_INDENT))
    place = passage.url or passage.path or passage.document_id
    if passage.copies:
        copies = strip_control_chars(passage.describe_copies())
        console.print(Padding(Text(copies, style="magenta"), PASSAGE_INDENT))
    console.print(Padding(Text(f"{strip_control_chars(place)}  {passage.passage_id}", style="dim"), PASSAGE_INDENT))


def _make_table(query: str, excerpt: TableExcerpt) -> Table:
    """Return rows of a table with column names, with the query's words highlighted."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="dim", show_header=any(excerpt.names))
    for column, name in enumerate(excerpt.names):
        side = "right" if column and excerpt.is_figures(column) else "left"
        table.add_column(highlight_words(query, name), justify=side, overflow="fold")
    for row in excerpt.rows:
        table.add_row(*(highlight_words(query, cell) for cell in row))
    return table


def _print_legs(console: Console, passage: Passage) -> None:
    from rich.padding import Padding
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("leg", "rank", "score", "contribution"):
        table.add_column(name, justify="left" if name == "leg" else "right")
    for name, leg in passage.attribution.items():
        rank = str(leg.rank) if leg.rank is not None else "-"
        table.add_row(name, rank, f"{leg.score:.4f}", f"{leg.contribution:+.4f}")
    console.print(Padding(table, PASSAGE_INDENT))


# workbench search


HISTORY_HELP = "earlier turn of the conversation: the first question, its answer, the next question, ..."


def declare_search(parser: argparse.ArgumentParser) -> None:
    _add_question(parser, 10, "number of passages, 1 to 200 (%(default)s)")
    parser.add_argument("--offset", type=int, default=0, metavar="N", help="number of passages to skip (%(default)s)")
    parser.add_argument("--explain", action="store_true", help="explain the score of each passage")
    parser.add_argument(
        "--expect", metavar="DOCUMENT", help="explain the rank of this document (by id), or why it is not found"
    )
    parser.add_argument("--sample", action="store_true", help="load the sample corpus first if there is no source yet")


def _add_question(parser: argparse.ArgumentParser, limit: int, purpose_of_limit: str) -> None:
    parser.add_argument("query", metavar="QUERY")
    add_strategy(parser)
    parser.add_argument("--limit", type=int, default=limit, metavar="N", help=purpose_of_limit)
    parser.add_argument("--index", metavar="NAME", help="index to search, instead of the default one")
    add_repeated(parser, "--history", "TURN", HISTORY_HELP)
    add_parameters(parser)
    add_scope(parser)


def _read_ask(arguments: argparse.Namespace, limit: int) -> Ask:
    parameters = read_parameters(arguments.strategy, arguments.set)
    return Ask(arguments.strategy, limit, read_scope(arguments), arguments.index, parameters, history=arguments.history)


def run_search(arguments: argparse.Namespace, out: Output) -> int:
    """Search and print the results; an empty result is also a success."""
    check_limit(arguments.limit)
    if not 0 <= arguments.offset < MAX_RESULTS:
        raise InvalidInput(f"Invalid offset {arguments.offset}: a search ranks {MAX_RESULTS} passages; use 0 to 199.")
    ask = _read_ask(arguments, min(MAX_RESULTS, arguments.offset + arguments.limit))
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
    if result.rewritten:
        out.message(f"Searched for: {result.rewritten}")
    shown = result.results[arguments.offset :]
    if result.results and not shown:
        out.message(f"Only {len(result)} passages were found; use an --offset below {len(result)}.")
    result = replace(result, results=shown)
    for typed, meant in result.corrections.items():
        words = " and ".join(f"'{word}'" for word in meant)
        out.message(f"No document contains '{typed}'; also searched for {words}.")
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


# workbench compare

COLUMN_EXCERPT_CHARS = 110  # characters of each passage


def declare_compare(parser: argparse.ArgumentParser) -> None:
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
    add_repeated(parser, "--history", "TURN", HISTORY_HELP)
    add_parameters(parser)
    add_scope(parser)


def run_compare(arguments: argparse.Namespace, out: Output) -> int:
    """Compare strategies and print their rankings side by side."""
    indexes = [name.strip() for name in arguments.indexes.split(",") if name.strip()]
    names = combine_with_indexes(parse_strategies(arguments.strategies), list(dict.fromkeys(indexes)))
    parameters = parameters_by_strategy(names, arguments.set)
    scope = read_scope(arguments)
    if arguments.export:
        check_file(Path(arguments.export))
    with open_workbench() as wb:
        with suppress(WorkbenchError):  # a column that fails reports it
            wb.warm()  # else every column would include the time of loading
        comparison = wb.compare(
            arguments.query, names, arguments.limit, scope, index=arguments.index, parameters=parameters,
            history=arguments.history,
        )  # fmt: skip
    if arguments.export:
        asked = CompareArguments(
            tuple(names), arguments.limit, scope, arguments.index, parameters or {}, arguments.history
        )
        exported = export_comparison(comparison, asked, arguments.export)
        Path(arguments.export).write_text(exported, encoding="utf-8")
        out.message(f"Written to {arguments.export}.")
    for note in comparison.notes:
        out.message(note)
    out.show(comparison, lambda console: _print_comparison(console, comparison))
    return 0


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
            cells.append(
                _make_compared_cell(hits[place], comparison.query, name, ranks) if place < len(hits) else Text("")
            )
        table.add_row(str(place + 1), *cells)
    console.print(table)
    _print_agreement(console, comparison)


def _make_compared_cell(passage: Passage, query: str, own: str, ranks: dict[str, dict[str, int]]) -> Text:
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
    shown_text = "\n".join(table.lines()) if table else excerpt(query, remove_rows(passage.text), COLUMN_EXCERPT_CHARS)
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


# workbench ask

DEFAULT_ANSWER_LIMIT = 8  # passages, as in services.answers


def declare_ask(parser: argparse.ArgumentParser) -> None:
    _add_question(parser, DEFAULT_ANSWER_LIMIT, "passages to answer from (%(default)s)")


def run_ask(arguments: argparse.Namespace, out: Output) -> int:
    """Print the answer; a refusal because the documents do not contain one is also a success."""
    with open_workbench() as wb:
        stream = wb.answers.ask(arguments.query, _read_ask(arguments, arguments.limit))
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
