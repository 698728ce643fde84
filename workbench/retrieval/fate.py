"""What became of a passage on its way through a strategy: found, or where it fell out and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from workbench.retrieval.explain import LegView
from workbench.retrieval.strategies import SOURCE, STRATEGIES

FOUND = "found"
SHOWN = "shown within another"
NOT_INDEXED = "not in the index"
NOT_IN_SCOPE = "not in scope"
NOT_RETRIEVED = "not in the first of either leg"
LOST_IN_FUSION = "lost in fusion"
LOST_IN_RERANK = "lost in rerank"
LOST_IN_STAGE = "lost in a later stage"
FATES = (FOUND, SHOWN, NOT_INDEXED, NOT_IN_SCOPE, NOT_RETRIEVED, LOST_IN_FUSION, LOST_IN_RERANK, LOST_IN_STAGE)
_RERANKS = ("LateInteractionRerank", "CrossEncoderRerank", "LlmRerank")
_LEGS = {"vector": "by meaning", "keyword": "by words"}


@dataclass(frozen=True, slots=True)
class Way:
    """What a watched request left behind: ids after each step, all fused candidates, the limit and a leg's pool."""

    strategy: str
    passed: Mapping[str, tuple[int, ...]]
    fused: tuple[int, ...]
    limit: int
    pool: int


def fate_of(passage: int, way: Way, legs: Mapping[str, LegView]) -> tuple[str, str]:
    """Return (fate, reason) of a passage in scope that is not among the results."""
    source = way.passed.get(SOURCE, ())
    if passage not in source:
        if passage in way.fused:
            rank = way.fused.index(passage) + 1
            kept = len(source)
            return LOST_IN_FUSION, f"Fused it is number {rank} of {len(way.fused)}; the first {kept} went on."
        return NOT_RETRIEVED, f"{_standing(legs)}; {_brought(way)}."
    steps = list(way.passed.items())
    for (before, earlier), (name, later) in pairwise(steps):
        if passage in earlier[: way.limit] and passage not in later[: way.limit]:
            fate = LOST_IN_RERANK if name in _RERANKS else LOST_IN_STAGE
            place = f"number {later.index(passage) + 1}" if passage in later else "left out"
            return fate, f"It was number {earlier.index(passage) + 1} {_after(before)} and {place} {_after(name)}."
    last, order = steps[-1]
    place = f"number {order.index(passage) + 1}" if passage in order else "left out"
    limit = f"{way.limit} were asked for"
    if last == SOURCE or (passage not in order and len(steps) < 2):
        return LOST_IN_FUSION, f"It is {place} {_after(last)}, and {limit}."
    reranked = any(name in _RERANKS for name, _ in steps)
    return (LOST_IN_RERANK if reranked else LOST_IN_STAGE), _course(passage, steps, limit)


def _course(passage: int, steps: Sequence[tuple[str, tuple[int, ...]]], limit: str) -> str:
    places = [
        f"{f'number {order.index(passage) + 1}' if passage in order else 'left out'} {_after(name)}"
        for name, order in steps
    ]
    return f"It is {', '.join(places)}, and {limit}."


def _after(name: str) -> str:
    if name == SOURCE:
        return "after the first stage"
    return "after rerank" if name in _RERANKS else f"after {name}"


def _standing(legs: Mapping[str, LegView]) -> str:
    parts = [
        f"{said} it is number {legs[name].rank} in scope ({legs[name].score:.3f})"
        if name in legs and legs[name].rank
        else f"{said} it has no match"
        for name, said in _LEGS.items()
    ]
    text = " and ".join(parts)
    return text[0].upper() + text[1:]


def _brought(way: Way) -> str:
    if way.strategy in ("vector", "keyword"):
        return f"{way.strategy} returns the first {way.limit}"
    both = STRATEGIES[way.strategy].source is STRATEGIES["hybrid"].source
    return f"each leg brings its first {way.pool}" if both else "the strategy's own first stage did not bring it"
