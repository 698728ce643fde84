"""Options of a search, and parameters of strategies as typed by users: ``hybrid.fusion=rrf`` or ``fusion=rrf``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from workbench.errors import InvalidInput, list_choices
from workbench.formatting import parse_assignments
from workbench.retrieval.strategies import DEFAULT_STRATEGY, STRATEGIES, check_parameters
from workbench.types import ParameterValue, ResolvedScope, Scope, Value

# How to search, besides the question

FULL_SCOPE = Scope()


@dataclass(frozen=True, slots=True)
class Ask(Value):
    """How to search one question; every search service takes one."""

    # A name, or "strategy@index"; None for the one promoted for the scope, else ``built_in``.
    strategy: str | None = None
    limit: int = 10  # number of passages
    scope: Scope | ResolvedScope = FULL_SCOPE  # the part of the corpus to search
    index: str | None = None  # name of an index; None for the promoted or the default one
    parameters: Mapping[str, object] = field(default_factory=dict)  # parameters of the strategy, by name
    min_similarity: float = 0.0  # minimum cosine, 0..1, of question and passage, applied before the limit
    built_in: str = DEFAULT_STRATEGY  # strategy to use if none is named or promoted
    fold_copies: bool = True  # fold passages with nearly the same text under the best one
    history: Sequence[str] = ()  # earlier turns of a conversation, oldest first: question, answer, question, ...
    interleaves: bool = False  # mix in the results of the promotion's rival; for callers that log what is opened


def strategy_name(name: str) -> str:
    return name.partition("@")[0]


def parameters_by_strategy(names: Sequence[str], texts: Sequence[str]) -> dict[str, dict[str, ParameterValue]]:
    """Return parameters by strategy: ``hybrid.fusion=rrf`` for one, ``fusion=rrf`` for each that has it.

    Raises:
        InvalidInput: A strategy that is not compared, an unknown parameter, or a value out of range.
    """
    by_strategy: dict[str, dict[str, ParameterValue]] = {name: {} for name in names}
    for key, value in parse_assignments(texts, "--set").items():
        strategy, dot, parameter = key.rpartition(".")
        of_strategy = (
            [strategy] if strategy in by_strategy else [name for name in names if strategy_name(name) == strategy]
        )
        if dot and not of_strategy:
            raise InvalidInput(
                f"--set {key!r} names a strategy that is not compared; use one of {list_choices(names)}."
            )
        owners = of_strategy if dot else [name for name in names if _has(name, parameter)]
        if not owners:
            valid = dict.fromkeys(p.name for name in names for p in STRATEGIES[strategy_name(name)].parameters)
            raise InvalidInput(
                f"None of the strategies has a parameter {parameter!r}; they have {list_choices(valid, 20)}."
            )
        for owner in owners:
            by_strategy[owner][parameter] = check_parameters(strategy_name(owner), {parameter: value})[parameter]
    return by_strategy


def _has(strategy: str, parameter: str) -> bool:
    return any(declared.name == parameter for declared in STRATEGIES[strategy_name(strategy)].parameters)


# Strategy names with an index


def combine_with_indexes(strategies: Sequence[str], indexes: Sequence[str]) -> list[str]:
    """Return every strategy on every index as "strategy@index", grouped by strategy; unchanged without indexes.

    Raises:
        InvalidInput: A strategy names an index, and ``indexes`` are given too.
    """
    if not indexes:
        return list(strategies)
    for strategy in strategies:
        if "@" in strategy:
            raise InvalidInput(
                f"{strategy!r} names an index, but {list_choices(indexes)} were given too; use one of them."
            )
    return [f"{strategy}@{index}" for strategy in strategies for index in indexes]
