"""The options that say what a search may see."""

from __future__ import annotations

import argparse
from datetime import date

from workbench.errors import InvalidInput
from workbench.types import Scope

KINDS = ("all", "global", "project")
USES_OF_NAMES = ("prefer", "only", "ignore")


def add_scope(parser: argparse.ArgumentParser) -> None:
    """Add the scope's options to a parser."""
    group = parser.add_argument_group("scope")
    group.add_argument("--scope", choices=KINDS, default="all", help="everything, global sources, or one project's")
    group.add_argument("--source", action="append", metavar="ID", help="a source's id or title; may be repeated")
    group.add_argument("--project", metavar="ID", help="a project's id or title")
    group.add_argument("--folder", metavar="NAME", help="a folder of that project")
    group.add_argument("--tag", action="append", default=[], metavar="T", help="any of these tags; may be repeated")
    group.add_argument("--type", action="append", default=[], metavar="TYPE", help="document types, such as pdf")
    group.add_argument("--language", action="append", default=[], metavar="NAME", help="such as de, german, zh or cjk")
    group.add_argument(
        "--names",
        choices=USES_OF_NAMES,
        default="prefer",
        help="documents that the question names come first, are the only ones, or are as any other (%(default)s)",
    )
    group.add_argument(
        "--ignore-name", action="append", default=[], metavar="NAME", help="do not prefer this name; may be repeated"
    )
    group.add_argument("--since", metavar="DATE", help="documents of this day or later (YYYY-MM-DD)")
    group.add_argument("--until", metavar="DATE", help="documents of this day or earlier")


def scope_of(arguments: argparse.Namespace) -> Scope:
    """Return the scope that the options describe. Raises InvalidInput for a text that is no date."""
    return Scope(
        kind=arguments.scope,
        project=arguments.project,
        folder=arguments.folder,
        tags=tuple(arguments.tag),
        sources=None if arguments.source is None else tuple(arguments.source),
        document_types=tuple(arguments.type),
        languages=tuple(arguments.language),
        names=arguments.names,
        ignored_names=tuple(arguments.ignore_name),
        since=_date(arguments.since, "--since"),
        until=_date(arguments.until, "--until"),
    )


def _date(text: str | None, option: str) -> date | None:
    if text is None:
        return None
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise InvalidInput(f"{option} cannot be {text!r}; write a day as YYYY-MM-DD.") from None
