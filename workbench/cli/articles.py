"""``workbench articles``: list, read and search the articles on disk."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from workbench.cli.options import Subcommands, run_subcommand
from workbench.cli.output import Output, strip_control_chars
from workbench.cli.session import open_workbench
from workbench.types import ARTICLE_CATEGORIES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from workbench.services.article_files import Article
    from workbench.types import Evidence

run = run_subcommand


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the subcommands."""
    verbs = Subcommands(parser)
    listing = verbs.add("list", "List articles with the status Live or Experimental.", _run_list)
    listing.add_argument("--category", choices=ARTICLE_CATEGORIES)
    listing.add_argument("--limit", type=int, default=50, metavar="N")
    verbs.add("show", "Print one article.", _run_show).add_argument("slug", metavar="SLUG")
    search = verbs.add("search", "Find articles by title, tags and description, or by meaning.", _run_search)
    search.add_argument("query", metavar="QUERY")
    search.add_argument("--semantic", action="store_true", help="search by meaning")
    search.add_argument("--content", action="store_true", help="include the text of the articles")


def _run_list(arguments: argparse.Namespace, out: Output) -> int:
    with open_workbench() as wb:
        articles = wb.articles.list(arguments.category, arguments.limit)
    return _print_articles(out, articles)


def _run_show(arguments: argparse.Namespace, out: Output) -> int:
    with open_workbench() as wb:
        article = wb.articles.get(arguments.slug)
    text = f"{article.title}\n{article.description}\n\n{article.content}"
    return out.sentence(article, strip_control_chars(text))


def _run_search(arguments: argparse.Namespace, out: Output) -> int:
    with open_workbench() as wb:
        if not arguments.semantic:
            return _print_articles(out, wb.articles.search(arguments.query, content=arguments.content))
        found = wb.articles.search_by_meaning(arguments.query, content=arguments.content)
    for note in (*found.degraded, found.nothing_close):
        out.remark(note)
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
