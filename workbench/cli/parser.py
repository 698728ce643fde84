"""An argument parser whose mistakes are sentences, and the options that every command has."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING, NoReturn

from workbench.errors import InvalidInput

if TYPE_CHECKING:
    from workbench.cli.output import Out

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
