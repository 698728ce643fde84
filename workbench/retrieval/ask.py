"""Everything a search is told besides the question: how to search, how much, and where."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from workbench.retrieval.strategies import DEFAULT_STRATEGY
from workbench.types import ResolvedScope, Scope, Value

EVERYTHING = Scope()


@dataclass(frozen=True, slots=True)
class Ask(Value):
    """The way in which one question is searched; every service of a search takes one.

    ``strategy`` is a name, or "strategy@index"; None leaves it to what is promoted for the scope, and to ``built_in``
    where nothing is. ``limit`` counts passages. ``index`` None is the promoted or the default one. ``parameters`` are
    the strategy's, by name. ``min_similarity`` is the least cosine between question and passage (0..1), for every
    strategy; it is judged before the cut to the limit.
    """

    strategy: str | None = None
    limit: int = 10
    scope: Scope | ResolvedScope = EVERYTHING
    index: str | None = None
    parameters: Mapping[str, object] = field(default_factory=dict)
    min_similarity: float = 0.0
    built_in: str = DEFAULT_STRATEGY
