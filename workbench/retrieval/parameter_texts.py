"""Parameters of several strategies as people type them: ``hybrid.fusion=rrf``, or ``fusion=rrf`` where it is one."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.assignments import assignments
from workbench.errors import InvalidInput, choices
from workbench.retrieval.strategies import STRATEGIES, check_parameters
from workbench.types import ParameterValue


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
