"""``workbench articles``, ``workspace`` and ``archives``: folders on disk that are searched."""

from __future__ import annotations

import argparse
import re
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.cli.options import SubcommandFunction, Subcommands
from workbench.cli.output import Output, strip_control_chars
from workbench.cli.session import cancel_on_sigint
from workbench.errors import InvalidInput
from workbench.types import ARTICLE_CATEGORIES, Evidence, weak_match_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console
    from rich.text import Text

    from workbench.services.archives import ArchiveResult
    from workbench.services.article_files import Article
    from workbench.services.workspaces import ConversationHit
    from workbench.workbench import Workbench

# workbench articles


def declare_articles(parser: argparse.ArgumentParser) -> None:
    verbs = Subcommands(parser)
    listing = verbs.add("list", "List articles with the status Live or Experimental.", _list_articles)
    listing.add_argument("--category", choices=ARTICLE_CATEGORIES)
    listing.add_argument("--limit", type=int, default=50, metavar="N")
    verbs.add("show", "Print one article.", _show_article, "slug")
    search = verbs.add(
        "search", "Find articles by title, tags and description, or by meaning.", _search_articles, "query"
    )
    search.add_argument("--semantic", action="store_true", help="search by meaning")
    search.add_argument("--content", action="store_true", help="include the text of the articles")


def _list_articles(wb: Workbench, arguments: argparse.Namespace, out: Output) -> int:
    return _print_articles(out, wb.articles.list(arguments.category, arguments.limit))


def _show_article(wb: Workbench, arguments: argparse.Namespace, out: Output) -> int:
    article = wb.articles.get(arguments.slug)
    text = f"{article.title}\n{article.description}\n\n{article.content}"
    return out.sentence(article, strip_control_chars(text))


def _search_articles(wb: Workbench, arguments: argparse.Namespace, out: Output) -> int:
    if not arguments.semantic:
        return _print_articles(out, wb.articles.search(arguments.query, content=arguments.content))
    found = wb.articles.search_by_meaning(arguments.query, content=arguments.content)
    for note in (*found.degraded, found.nothing_close):
        out.message(note)
    return _print_articles(out, found, found.evidence)


def _print_articles(out: Output, articles: Sequence[Article], evidence: Evidence | None = None) -> int:
    """Print articles, and the evidence of a search by meaning."""
    rows = [
        (article.slug, article.category, article.title, article.last_updated, article.status) for article in articles
    ]
    columns = ("Slug", "Category", "Title", "Updated", "Status")
    value: dict[str, object] = {"articles": list(articles), "total": len(articles)}
    if evidence is not None:
        value["evidence"] = evidence
    return out.table(value, columns, rows, "No article matches.")


# workbench workspace


def declare_workspace(parser: argparse.ArgumentParser) -> None:
    verbs = Subcommands(parser)
    embed = _add_command(
        verbs, "embed", "Embed new and changed conversations of a workspace or of one path in it.", _embed_workspace
    )
    embed.add_argument(
        "path", nargs="?", metavar="PATH", help="conversation, a file in it, or a folder of conversations"
    )
    search = _add_command(verbs, "search", "Find conversations.", _search_conversations, "query")
    search.add_argument("--limit", type=int, default=10, metavar="N")
    search.add_argument("--type", default="", metavar="TYPE", help="only this type, such as plan")
    search.add_argument("--date", default="", metavar="YYYY-MM[-DD]", help="only this month or day")
    similar = _add_command(verbs, "similar", "Find conversations similar to one.", _list_similar, "path")
    similar.add_argument("--limit", type=int, default=10, metavar="N")
    _add_command(verbs, "status", "Show which conversations are embedded.", _show_workspace)


def _add_command(
    verbs: Subcommands, name: str, purpose: str, run: SubcommandFunction, *positional: str
) -> argparse.ArgumentParser:
    verb = verbs.add(name, purpose, run, *positional)
    verb.add_argument(
        "--workspace", default=".", metavar="FOLDER", help="workspace folder (default: the current directory)"
    )
    return verb


def _read_folder(arguments: argparse.Namespace) -> Path:
    folder = Path(arguments.workspace).expanduser().resolve()
    if not folder.is_dir():
        raise InvalidInput(f"No such folder {arguments.workspace!r}; use a folder of conversations.")
    return folder


def _embed_workspace(wb: Workbench, arguments: argparse.Namespace, out: Output) -> int:
    folder = _read_folder(arguments)
    path = (folder / arguments.path).resolve() if arguments.path else None
    if path is not None and not path.is_relative_to(folder):
        raise InvalidInput(f"{arguments.path!r} is outside the workspace; set its workspace with --workspace.")
    with cancel_on_sigint(out) as should_stop, out.progress("Embed") as show:
        report = wb.workspaces.embed(folder, path, show, should_stop)
    for failure in report.failures:
        out.message(f"{failure.path}: {failure.error}")
    counts = f"{report.embedded:,} embedded, {report.skipped:,} unchanged, {report.removed:,} removed."
    out.sentence(report, report.all_failed or counts)
    return 1 if report.all_failed else 0


def _search_conversations(wb: Workbench, arguments: argparse.Namespace, out: Output) -> int:
    hits = wb.workspaces.search(
        _read_folder(arguments),
        arguments.query,
        limit=arguments.limit,
        conversation_type=arguments.type,
        date_range=arguments.date,
    )
    for note in hits.degraded:
        out.message(note)
    return _print_hits(out, hits, hits.evidence)


def _list_similar(wb: Workbench, arguments: argparse.Namespace, out: Output) -> int:
    return _print_hits(out, wb.workspaces.similar(_read_folder(arguments), arguments.path, arguments.limit))


def _show_workspace(wb: Workbench, arguments: argparse.Namespace, out: Output) -> int:
    folder = _read_folder(arguments)
    status, pending = wb.workspaces.status(folder), wb.workspaces.find_changes(folder)
    changes = {"new": pending.new, "changed": pending.changed, "vanished": pending.vanished}
    row = {
        "conversations": status.num_documents,
        "passages": status.total_chunks,
        "database": status.db_path,
        "last": [f"{path} ({at[:16]})" for path, at in status.recent[:3]],
        "on disk": ", ".join(f"{count} {what}" for what, count in changes.items()) if pending.any else "unchanged",
    }
    out.fields({**status.to_dict(), "pending": changes}, row)
    if pending.any:
        out.message("Files on disk have changed; run 'workbench workspace embed' to update.")
    return 0


def _print_hits(out: Output, hits: Sequence[ConversationHit], evidence: Evidence | None = None) -> int:
    """Print conversations, and the evidence of a search."""
    rows = [(hit.conversation, hit.score, hit.title, hit.date or "") for hit in hits]
    empty = "No results; add conversations with 'workbench workspace embed'."
    value: dict[str, object] = {"results": list(hits), "total": len(hits)}
    if evidence is not None:
        value["evidence"] = evidence
        out.message(weak_match_text(hits, evidence))
    return out.table(value, ("Conversation", "Score", "Title", "Date"), rows, empty)


# workbench archives

_MARK_TAG = re.compile(r"(</?mark>)")


def declare_archives(parser: argparse.ArgumentParser) -> None:
    verbs = Subcommands(parser)
    search = verbs.add("search", "Find archived documents by words, typos and meaning.", _search_archives, "query")
    search.add_argument("--exact", action="store_true", help="match exact words only, no typos or meaning")
    search.add_argument("--citations", action="store_true", help="also show citations")
    search.add_argument("--depth", type=int, default=1, metavar="N", help="steps of citations, 1 to 3")
    search.add_argument("--limit", type=int, default=10, metavar="N")
    verbs.add("refresh", "Ingest the folder's changes.", _refresh_archives)


def _search_archives(wb: Workbench, arguments: argparse.Namespace, out: Output) -> int:
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
        out.message(note)
    out.show(result, lambda console: _print_archives(console, result, titles))
    return 0


def _refresh_archives(wb: Workbench, arguments: argparse.Namespace, out: Output) -> int:
    with cancel_on_sigint(out) as should_stop, out.progress("Archives") as show:
        source = wb.sources.get(wb.archives.refresh(show, should_stop))
    return out.sentence(source, f"{source.title!r} has {source.documents_count:,} documents.")


def _print_archives(console: Console, result: ArchiveResult, titles: dict[str, str]) -> None:
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
                console.print(Text("       ").append_text(_highlight_snippet(snippet)))
        if hit.citations:
            cites = [titles.get(one.target_id, one.target_url) for one in hit.citations.citing]
            cited_by = [titles.get(one.source_id, one.source_id) for one in hit.citations.cited]
            for line in (*(f"cites {title}" for title in cites), *(f"cited by {title}" for title in cited_by)):
                console.print(Text(f"       {strip_control_chars(line)}"))


def _highlight_snippet(snippet: str) -> Text:
    from rich.text import Text

    text, inside = Text(), False
    for piece in _MARK_TAG.split(snippet):
        if piece in ("<mark>", "</mark>"):
            inside = piece == "<mark>"
        else:
            text.append(strip_control_chars(unescape(piece)), style="bold underline" if inside else "")
    return text
