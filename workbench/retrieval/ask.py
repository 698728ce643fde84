"""Everything a search is told besides the question: how to search, how much, and where."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from workbench.retrieval.strategies import DEFAULT_STRATEGY
from workbench.types import ResolvedScope, Scope, Value
from workbench.types.result import MOST_RANKED

EVERYTHING = Scope()

# A question has one ranking, of which ``limit`` is the first part; pages cut from it neither repeat nor miss a passage.
# So how many candidates there are, and how they score, never depends on the limit: the first ones are those that each
# leg brings up to FIRST_DEPTH, and further ones, where more are asked for, follow in the order of a search that goes
# down to DEEPEST.
# On scifact's train questions nDCG@10 of hybrid / rerank was .740 / .752 with 30, .740 / .752 with 50 and .742 / .752
# with 100: the plateau is flat, and 50 leaves room where answers are rarer.
FIRST_DEPTH = 50
DEEPEST = MOST_RANKED


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
