"""Asking before something is deleted, where a person sits at a terminal."""

from __future__ import annotations

import argparse
import sys

from workbench.cli.output import Out, printable
from workbench.errors import Cancelled


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
