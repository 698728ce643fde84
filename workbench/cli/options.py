"""An argument parser whose mistakes are sentences, and the options that every command has."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from datetime import date
from typing import TYPE_CHECKING, NoReturn

from workbench.cli.output import Out, printable
from workbench.errors import Cancelled, InvalidInput, choices
from workbench.formatting import assignments
from workbench.retrieval.options import strategy_of
from workbench.retrieval.strategies import DEFAULT_STRATEGY, STRATEGIES, check_parameters, strategy_named
from workbench.types import ParameterValue, Scope

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

# --- Asking before something is deleted, where a person sits at a terminal ---


def add_yes(parser: argparse.ArgumentParser) -> None:
    """Add ``--yes``."""
    parser.add_argument("--yes", action="store_true", help="delete without asking")


def confirm(arguments: argparse.Namespace, out: Out, sentence: str) -> None:
    """Ask on a terminal; scripts, pipes and ``--json`` are taken at their word.

    Raises:
        Cancelled: the answer was not yes.
    """
    if arguments.yes or out.as_json or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return
    print(f"{printable(sentence)} Delete? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise Cancelled("Nothing was deleted.")


VerbFunction = Callable[[argparse.Namespace, "Out"], int]


class Parser(argparse.ArgumentParser):
    """An argument parser that raises InvalidInput where argparse would print its usage and exit."""

    def __init__(self, *, prog: str | None = None, description: str | None = None, help: str | None = None) -> None:
        del help  # shown by the parser above
        super().__init__(prog=prog, description=description, allow_abbrev=False)

    def error(self, message: str) -> NoReturn:
        """Say what was wrong and where the help is."""
        text = message[:1].upper() + message[1:].rstrip(".")
        raise InvalidInput(f"{text}; see '{self.prog} --help'.")

    def _print_message(self, message: str, file: SupportsWrite[str] | None = None) -> None:
        """Write a help text; argparse's own method ignores errors, such as those of a full disk."""
        (file or sys.stderr).write(message)


def add_common(parser: argparse.ArgumentParser) -> None:
    """Add ``--json`` and ``--debug``; absent ones leave what the parser above has set."""
    parser.add_argument(
        "--json", action="store_true", default=argparse.SUPPRESS, help="print one JSON document and nothing else"
    )
    parser.add_argument(
        "--debug", action="store_true", default=argparse.SUPPRESS, help="show the traceback of an error"
    )


class Verbs:
    """The verbs of a command such as ``sources``: each with arguments and a function of its own."""

    def __init__(self, parser: argparse.ArgumentParser) -> None:
        self._verbs = parser.add_subparsers(metavar="VERB", required=True, dest="verb_name")

    def add(self, name: str, purpose: str, run: VerbFunction) -> argparse.ArgumentParser:
        """Add a verb and return its parser."""
        verb = self._verbs.add_parser(name, help=purpose, description=purpose)
        add_common(verb)
        verb.set_defaults(verb=run)
        return verb


def run_verb(arguments: argparse.Namespace, out: Out) -> int:
    """Run the verb that was asked for."""
    return arguments.verb(arguments, out)


def number(text: str) -> int | float | str:
    """Read a number; a text that is none stays, for the option's own check to refuse in the words of every face."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


# --- The options that say what a search may see ---

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


# --- The options that choose strategies and set their parameters, checked against the table before anything is ---


def add_strategy(parser: argparse.ArgumentParser) -> None:
    """Add ``--strategy``; without it what is promoted for the scope serves, else the built-in default."""
    parser.add_argument(
        "--strategy",
        metavar="S",
        help=f"one of {', '.join(STRATEGIES)}, or S@INDEX (what is promoted there, else {DEFAULT_STRATEGY})",
    )


def add_parameters(parser: argparse.ArgumentParser) -> None:
    """Add ``--set``."""
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="set a strategy's parameter ('workbench strategies show NAME' lists them); may be repeated",
    )


def parameters_of(strategy: str | None, texts: Sequence[str]) -> dict[str, ParameterValue]:
    """Return the given parameters of one strategy, in their types, as they are where no strategy is named.

    Raises:
        InvalidInput: an unknown strategy, or a parameter it does not have; the message names the valid ones.
    """
    values = assignments(texts, "--set")
    if strategy is None:  # a promoted one is known once the database is open, and checks them then
        return dict(values)
    checked = check_parameters(strategy_of(strategy), values)
    return {name: checked[name] for name in values}


def names_of(text: str) -> list[str]:
    """Return the strategies of ``a,b@index,c``. Raises InvalidInput naming the valid ones."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise InvalidInput(f"--strategies names none; use some of {choices(STRATEGIES, 20)}.")
    for name in names:
        strategy_named(strategy_of(name))
    return names
