"""The options that choose strategies and set their parameters, checked against the table before anything is opened."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from workbench.assignments import assignments
from workbench.errors import InvalidInput, choices
from workbench.retrieval.options import strategy_of
from workbench.retrieval.strategies import DEFAULT_STRATEGY, STRATEGIES, check_parameters, strategy_named
from workbench.types import ParameterValue


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
