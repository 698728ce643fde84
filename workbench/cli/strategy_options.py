"""The options that choose strategies and set their parameters, checked against the table before anything is opened."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from workbench.cli.parser import assignments
from workbench.errors import InvalidInput, choices
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


def strategy_of(name: str) -> str:
    """Return the strategy of ``strategy`` or ``strategy@index``."""
    return name.partition("@")[0]


def parameters_by_strategy(names: Sequence[str], texts: Sequence[str]) -> dict[str, dict[str, ParameterValue]]:
    """Return parameters by strategy: ``hybrid.fusion=rrf`` for one, ``fusion=rrf`` for each that has it.

    Raises:
        InvalidInput: a strategy that is not compared, a parameter that none has, or a value out of its range.
    """
    by_strategy: dict[str, dict[str, ParameterValue]] = {name: {} for name in names}
    for key, value in assignments(texts, "--set").items():
        strategy, dot, parameter = key.rpartition(".")
        of_strategy = (
            [strategy] if strategy in by_strategy else [name for name in names if strategy_of(name) == strategy]
        )
        if dot and not of_strategy:
            raise InvalidInput(f"--set {key!r} names a strategy that is not compared; use one of {choices(names)}.")
        owners = of_strategy if dot else [name for name in names if _has(name, parameter)]
        if not owners:
            valid = dict.fromkeys(p.name for name in names for p in STRATEGIES[strategy_of(name)].parameters)
            raise InvalidInput(f"None of the strategies has a parameter {parameter!r}; they have {choices(valid, 20)}.")
        for owner in owners:
            by_strategy[owner][parameter] = check_parameters(strategy_of(owner), {parameter: value})[parameter]
    return by_strategy


def _has(strategy: str, parameter: str) -> bool:
    return any(declared.name == parameter for declared in STRATEGIES[strategy_of(strategy)].parameters)
