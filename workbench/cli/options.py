"""An argument parser that raises InvalidInput, and options shared by several commands."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from workbench.cli.output import Output, strip_control_chars
from workbench.cli.session import open_workbench
from workbench.errors import Cancelled, Conflict, InvalidInput, list_choices
from workbench.formatting import parse_assignments
from workbench.retrieval.options import strategy_name
from workbench.retrieval.strategies import (
    BUILT_IN_STRATEGIES,
    DEFAULT_STRATEGY,
    STRATEGIES,
    check_parameters,
    strategy_named,
)
from workbench.types import ParameterValue, Scope

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

    from workbench.workbench import Workbench

# Confirmation of deletions


def add_yes_option(parser: argparse.ArgumentParser) -> None:
    """Add ``--yes``."""
    parser.add_argument("--yes", action="store_true", help="delete without confirmation")


def check_file(path: Path, *, force: bool = True) -> None:
    """Raise if a file is not to be written, before the work for it: Conflict if it exists, without ``force``."""
    if path.is_dir() or not path.parent.is_dir():
        raise InvalidInput(f"Cannot write {path}; choose a file in an existing folder.")
    if path.exists() and not force:
        raise Conflict(f"The file {str(path)!r} already exists; use --force to replace it.")


def confirm(arguments: argparse.Namespace, out: Output, sentence: str) -> None:
    """Ask for confirmation on a terminal; never in scripts, pipes or with ``--json``.

    Raises:
        Cancelled: The answer was not yes.
    """
    if arguments.yes or out.as_json or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return
    print(f"{strip_control_chars(sentence)} Delete? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise Cancelled("Nothing was deleted.")


SubcommandFunction = Callable[["Workbench", argparse.Namespace, Output], int]  # returns the exit code


class Parser(argparse.ArgumentParser):
    """An argument parser that raises InvalidInput instead of printing its usage and exiting."""

    def __init__(self, *, prog: str | None = None, description: str | None = None) -> None:
        super().__init__(prog=prog, description=description, allow_abbrev=False)

    def error(self, message: str) -> NoReturn:
        """Raise InvalidInput with the problem and a hint to the help."""
        text = message[:1].upper() + message[1:].rstrip(".")
        raise InvalidInput(f"{text}; see '{self.prog} --help'.")

    def _print_message(self, message: str, file: SupportsWrite[str] | None = None) -> None:
        """Write a help text; argparse's own method ignores errors, such as a full disk."""
        (file or sys.stderr).write(message)


def add_common(parser: argparse.ArgumentParser) -> None:
    """Add ``--json`` and ``--debug``, without defaults that would override the parent parser's."""
    parser.add_argument(
        "--json", action="store_true", default=argparse.SUPPRESS, help="print one JSON document and nothing else"
    )
    parser.add_argument(
        "--debug", action="store_true", default=argparse.SUPPRESS, help="print the traceback of an error"
    )


class Subcommands:
    """The subcommands of a command such as ``sources``, each with its arguments and function."""

    def __init__(self, parser: argparse.ArgumentParser) -> None:
        self._verbs = parser.add_subparsers(metavar="VERB", required=True, dest="verb_name")

    def add(self, name: str, purpose: str, run: SubcommandFunction, *positional: str) -> argparse.ArgumentParser:
        """Add a subcommand with its positional arguments, and return its parser."""
        verb = self._verbs.add_parser(name, help=purpose, description=purpose)
        add_common(verb)
        for argument in positional:
            verb.add_argument(argument, metavar=argument.upper())
        verb.set_defaults(verb=run, offline=None)
        return verb

    def add_offline(
        self, name: str, purpose: str, run: Callable[[argparse.Namespace, Output], int], *positional: str
    ) -> argparse.ArgumentParser:
        """Add a subcommand that needs no workbench, and return its parser."""
        verb = self.add(name, purpose, lambda wb, arguments, out: 0, *positional)
        verb.set_defaults(offline=run)
        return verb


def run_subcommand(arguments: argparse.Namespace, out: Output) -> int:
    """Run the selected subcommand on the configured workbench."""
    if arguments.offline is not None:
        return arguments.offline(arguments, out)
    with open_workbench() as wb:
        return arguments.verb(wb, arguments, out)


def add_repeated(
    parser: argparse._ActionsContainer,  # pyright: ignore[reportPrivateUsage] - a parser or a group of one
    option: str,
    metavar: str,
    purpose: str,
) -> None:
    """Add an option that may be repeated; its value is a list."""
    parser.add_argument(option, action="append", default=[], metavar=metavar, help=f"{purpose}; may be repeated")


def parse_number(text: str) -> int | float | str:
    """Parse a number; return other text unchanged, so that the option's check rejects it."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


# Options of a scope

SCOPE_KINDS = ("all", "global", "project")
NAME_MODES = ("prefer", "only", "ignore")


def add_scope(parser: argparse.ArgumentParser) -> None:
    """Add the scope options to a parser."""
    group = parser.add_argument_group("scope")
    group.add_argument(
        "--scope", choices=SCOPE_KINDS, default="all", help="everything, global sources only, or one project only"
    )
    group.add_argument("--source", action="append", metavar="ID", help="id or title of a source; may be repeated")
    group.add_argument("--project", metavar="ID", help="id or title of a project")
    group.add_argument("--folder", metavar="NAME", help="folder in that project")
    add_repeated(group, "--tag", "T", "any of these tags")
    add_repeated(group, "--type", "TYPE", "document type, such as pdf")
    add_repeated(group, "--language", "NAME", "language, such as de, german, zh or cjk")
    add_repeated(group, "--metadata", "NAME=VALUE", "documents with this value, such as status=final")
    group.add_argument(
        "--names",
        choices=NAME_MODES,
        default="prefer",
        help="prefer documents named in the question, search only them, or ignore names (%(default)s)",
    )
    add_repeated(group, "--ignore-name", "NAME", "do not prefer this name")
    group.add_argument("--since", metavar="DATE", help="documents from this date or later (YYYY-MM-DD)")
    group.add_argument("--until", metavar="DATE", help="documents from this date or earlier (YYYY-MM-DD)")


def read_scope(arguments: argparse.Namespace) -> Scope:
    """Return the scope given by the options. Raises InvalidInput if a date is invalid."""
    return Scope(
        kind=arguments.scope,
        project=arguments.project,
        folder=arguments.folder,
        tags=tuple(arguments.tag),
        sources=None if arguments.source is None else tuple(arguments.source),
        document_types=tuple(arguments.type),
        languages=tuple(arguments.language),
        metadata=tuple(arguments.metadata),
        names=arguments.names,
        ignored_names=tuple(arguments.ignore_name),
        since=_parse_date(arguments.since, "--since"),
        until=_parse_date(arguments.until, "--until"),
    )


def _parse_date(text: str | None, option: str) -> date | None:
    if text is None:
        return None
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise InvalidInput(f"Invalid {option} {text!r}: use the format YYYY-MM-DD.") from None


# Strategies and their parameters


def add_strategy(parser: argparse.ArgumentParser) -> None:
    """Add ``--strategy``; by default the promoted strategy of the scope, else the built-in default."""
    parser.add_argument(
        "--strategy",
        metavar="S",
        help=f"one of {', '.join(BUILT_IN_STRATEGIES)}, your own, or S@INDEX (default: the promoted one, else "
        f"{DEFAULT_STRATEGY})",
    )


def add_parameters(parser: argparse.ArgumentParser) -> None:
    """Add ``--set``."""
    add_repeated(
        parser, "--set", "NAME=VALUE", "set a parameter of the strategy (see 'workbench strategies show NAME')"
    )


def read_parameters(strategy: str | None, texts: Sequence[str]) -> dict[str, ParameterValue]:
    """Return the parameters of a strategy with their types; unchecked if no strategy is given.

    Raises:
        InvalidInput: The strategy or a parameter is unknown; the message lists valid ones.
    """
    prefix = f"{strategy_name(strategy)}." if strategy else ""  # as for several strategies
    values = {name.removeprefix(prefix): value for name, value in parse_assignments(texts, "--set").items()}
    if strategy is None:  # a promoted strategy checks them after the database is opened
        return dict(values)
    checked = check_parameters(strategy_name(strategy), values)
    return {name: checked[name] for name in values}


def parse_strategies(text: str) -> list[str]:
    """Parse strategies such as ``a,b@index,c``.

    Raises:
        InvalidInput: A strategy is unknown, or none is given; the message lists valid ones.
    """
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise InvalidInput(f"--strategies is empty; use some of {list_choices(STRATEGIES, 20)}.")
    for name in names:
        strategy_named(strategy_name(name))
    return names
