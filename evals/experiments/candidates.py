"""Settings to try in a search for parameters: drawn from the strategies' own parameter tables."""

from __future__ import annotations

import hashlib
import itertools
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from evals.test_set import Question
from workbench.retrieval.strategies import check_parameters, strategy_named
from workbench.types import Parameter, ParameterValue, Value

GRID = 20  # steps a float parameter is drawn from, so that candidates meet again and can be named
MOST_DRAWN = 2_000  # random candidates at most; a small table has fewer different ones


@dataclass(frozen=True, slots=True)
class Candidate(Value):
    """A strategy with all its parameters."""

    strategy: str
    parameters: Mapping[str, ParameterValue] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """Equal for the same settings."""
        return repr((self.strategy, sorted(self.parameters.items())))


def defaults_of(strategies: Sequence[str]) -> list[Candidate]:
    """Return each strategy with its default parameters. Raises InvalidInput for an unknown strategy."""
    return [Candidate(name, check_parameters(name, None)) for name in dict.fromkeys(strategies)]


def candidates(strategies: Sequence[str], seed: int) -> Iterator[Candidate]:
    """Yield up to 2,000 random candidates, the strategies in turn; one without parameters is not drawn."""
    rng = random.Random(seed)
    tunable = [name for name in dict.fromkeys(strategies) if strategy_named(name).parameters]
    for name in itertools.islice(itertools.cycle(tunable), MOST_DRAWN):
        values = {parameter.name: draw(parameter, rng) for parameter in strategy_named(name).parameters}
        yield Candidate(name, check_parameters(name, values))


def draw(parameter: Parameter, rng: random.Random) -> str | int | float | bool:
    """Return a random value of a parameter: on a grid of 21 points for numbers, evenly for choices."""
    if parameter.kind == "choice":
        return rng.choice(parameter.choices)
    if parameter.kind == "bool":
        return rng.random() < 0.5
    if parameter.kind == "name":  # of something that was made: a search varies settings
        return parameter.default
    low, high = float(parameter.low or 0), float(parameter.high or 0)
    value = low + (high - low) * rng.randint(0, GRID) / GRID
    return round(value) if parameter.kind == "int" else round(value, 6)


def split(questions: Sequence[Question]) -> tuple[list[Question], list[Question]]:
    """Return (to search with, held out): halves by a hash of the id, the same ones every time."""
    ordered = sorted(questions, key=lambda question: hashlib.sha256(question.id.encode()).hexdigest())
    half = len(ordered) // 2
    return ordered[:half], ordered[half:]
