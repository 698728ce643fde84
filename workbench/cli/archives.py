"""``workbench archives``: search the local archives, follow citations."""

from __future__ import annotations

import argparse
import re
from html import unescape
from typing import TYPE_CHECKING

from workbench.cli.options import Subcommands, run_subcommand
from workbench.cli.output import Output, strip_control_chars
from workbench.cli.session import cancel_on_sigint, open_workbench

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from workbench.services.archives import ArchiveResult

run = run_subcommand
_MARK_TAG = re.compile(r"(</?mark>)")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the subcommands."""
    verbs = Subcommands(parser)
    search = verbs.add("search", "Find archived documents by words, typos and meaning.", _run_search)
    search.add_argument("query", metavar="QUERY")
    search.add_argument("--exact", action="store_true", help="match exact words only, no typos or meaning")
    search.add_argument("--citations", action="store_true", help="also show citations")
    search.add_argument("--depth", type=int, default=1, metavar="N", help="steps of citations, 1 to 3")
    search.add_argument("--limit", type=int, default=10, metavar="N")
    verbs.add("refresh", "Ingest the folder's changes.", _run_refresh)


def _run_search(arguments: argparse.Namespace, out: Output) -> int:
    with open_workbench() as wb:
        result = wb.archives.search(
            arguments.query,
            fuzzy=not arguments.exact,
            citations=arguments.citations,
            depth=arguments.depth,
            limit=arguments.limit,
        )
        ends = [end for edge in result.edges() for end in (edge.source_id, edge.target_id)]
        titles = {key: document.title for key, document in wb.citations.documents(ends).items()}
    for note in (*result.degraded, result.nothing_close):
        out.remark(note)
    out.show(result, lambda console: _print_result(console, result, titles))
    return 0


def _run_refresh(arguments: argparse.Namespace, out: Output) -> int:
    del arguments
    with open_workbench() as wb, cancel_on_sigint(out) as should_stop, out.progress("Archives") as show:
        source = wb.sources.get(wb.archives.refresh(show, should_stop))
    return out.sentence(source, f"{source.title!r} has {source.documents_count:,} documents.")


def _print_result(console: Console, result: ArchiveResult, titles: dict[str, str]) -> None:
    from rich.text import Text

    if not result.results:
        console.print("No document in the archives matches.")
    for typed, meant in result.guesses:
        console.print(f"'{typed}' was not found; searched for '{meant}' instead.")
    for hit in result.results:
        console.print(Text(f"{hit.score:.3f}  {strip_control_chars(hit.title)}", style="bold"))
        console.print(Text(f"       {strip_control_chars(hit.path)}", style="dim"))
        for highlight in hit.highlights:
            for snippet in highlight.snippets if highlight.field == "content" else ():
                console.print(Text("       ").append_text(_highlight(snippet)))
        if hit.citations:
            cites = [titles.get(one.target_id, one.target_url) for one in hit.citations.citing]
            cited_by = [titles.get(one.source_id, one.source_id) for one in hit.citations.cited]
            for line in (*(f"cites {title}" for title in cites), *(f"cited by {title}" for title in cited_by)):
                console.print(Text(f"       {strip_control_chars(line)}"))


def _highlight(snippet: str) -> Text:
    from rich.text import Text

    text, inside = Text(), False
    for piece in _MARK_TAG.split(snippet):
        if piece in ("<mark>", "</mark>"):
            inside = piece == "<mark>"
        else:
            text.append(strip_control_chars(unescape(piece)), style="bold underline" if inside else "")
    return text
