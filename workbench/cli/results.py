"""Search results on a terminal: one block per passage, with matches highlighted and optional explanations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from workbench.cli.output import strip_control_chars
from workbench.display import heading_text
from workbench.formatting import count_text
from workbench.marking import excerpt, remove_rows, split_matches, table_excerpt
from workbench.retrieval.legs import RERANKERS
from workbench.text import language_title

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from workbench.marking import TableExcerpt
    from workbench.retrieval.explain import Explanation
    from workbench.types import Passage, SearchResult

# Explanations

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

    Args:
        console: Where to print.
        result: The search result.
        explain: Also print the legs of each passage.
        why: Explanations to print with their passages.
        spoken: Also print the language of each passage.
        headers: Table headers by passage id, for passages that continue a table.
    """
    if not result.results:
        console.print("No results. Widen the scope, or run 'workbench sources list' to see the sources.")
        return
    for passage in result:
        _print_passage(console, passage, result.query, (headers or {}).get(passage.passage_id, ""), spoken=spoken)
        if explain:
            _print_legs(console, passage)
            for explained in [explanation for explanation in why if explanation.passage_id == passage.passage_id]:
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
    console.print(Padding(text, (0, 0, 0, 11)))
    place = passage.url or passage.path or passage.document_id
    if passage.copies:
        copies = strip_control_chars(passage.describe_copies())
        console.print(Padding(Text(copies, style="magenta"), PASSAGE_INDENT))
    console.print(Padding(Text(f"{strip_control_chars(place)}  {passage.passage_id}", style="dim"), (0, 0, 0, 11)))


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
    console.print(Padding(table, (0, 0, 0, 11)))
