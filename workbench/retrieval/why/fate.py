"""The fate of a passage on its way through a strategy: found, or where it fell out and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from workbench.retrieval.legs import RERANKERS
from workbench.retrieval.stages.checkpoint import RETRIEVED
from workbench.retrieval.strategy import Strategy
from workbench.retrieval.why.explanation import LegView
from workbench.retrieval.why.fates import LOST_IN_FUSION, LOST_IN_RERANK, LOST_IN_STAGE, NOT_RETRIEVED
from workbench.types.parameter import KEYWORD, LEARNED, VECTOR

_LEGS = {VECTOR: "by meaning", KEYWORD: "by words"}


@dataclass(frozen=True, slots=True)
class Way:
    """The record of a watched request: ids after each step, all fused candidates, the limit and a leg's pool."""

    strategy: Strategy
    passed: Mapping[str, tuple[int, ...]]
    fused: tuple[int, ...]
    limit: int
    pool: int


def fate_of(passage: int, way: Way, legs: Mapping[str, LegView]) -> tuple[str, str]:
    """Return (fate, reason) of a passage in scope that is not among the results."""
    retrieved = way.passed.get(RETRIEVED, ())
    if passage not in retrieved:
        if passage in way.fused:
            rank = way.fused.index(passage) + 1
            first = len(retrieved)
            return LOST_IN_FUSION, f"Fused it is number {rank} of {len(way.fused)}; the first {first} went on."
        return NOT_RETRIEVED, f"{leg_standings(legs)}; {brought(way)}."
    steps = list(way.passed.items())
    dropped = dropped_between(passage, way)
    if dropped is not None:
        before, name = dropped
        earlier, later = way.passed[before], way.passed[name]
        fate = LOST_IN_RERANK if name in RERANKERS else LOST_IN_STAGE
        place = f"number {later.index(passage) + 1}" if passage in later else "left out"
        return fate, f"It was number {earlier.index(passage) + 1} {after(before)} and {place} {after(name)}."
    last, order = steps[-1]
    place = f"number {order.index(passage) + 1}" if passage in order else "left out"
    limit = f"{way.limit} were asked for"
    if last == RETRIEVED or (passage not in order and len(steps) < 2):
        return LOST_IN_FUSION, f"It is {place} {after(last)}, and {limit}."
    reranked = any(name in RERANKERS for name, _ in steps)
    return (LOST_IN_RERANK if reranked else LOST_IN_STAGE), _course(passage, steps, limit)


def dropped_between(passage: int, way: Way) -> tuple[str, str] | None:
    """Return the two neighbouring steps between which a passage left the first ``limit``; None where it never did."""
    for (before, earlier), (name, later) in pairwise(way.passed.items()):
        if passage in earlier[: way.limit] and passage not in later[: way.limit]:
            return before, name
    return None


def _course(passage: int, steps: Sequence[tuple[str, tuple[int, ...]]], limit: str) -> str:
    places = [
        f"{f'number {order.index(passage) + 1}' if passage in order else 'left out'} {after(name)}"
        for name, order in steps
    ]
    return f"It is {', '.join(places)}, and {limit}."


def after(name: str) -> str:
    """Return the words for the moment after a step."""
    if name == RETRIEVED:
        return "after the first stage"
    if name == LEARNED:
        return "by the learned weights"
    return "after rerank" if name in RERANKERS else f"after {name}"


def leg_standings(legs: Mapping[str, LegView]) -> str:
    """Return where the two legs that find see a passage in the whole scope, as the beginning of a sentence."""
    parts = [
        f"{phrase} it is number {legs[name].rank} in scope ({legs[name].score:.3f})"
        if name in legs and legs[name].rank
        else f"{phrase} it has no match"
        for name, phrase in _LEGS.items()
    ]
    text = " and ".join(parts)
    return text[0].upper() + text[1:]


def brought(way: Way) -> str:
    """Return how many passages the first stage of a strategy brings, as a clause."""
    strategy = way.strategy
    if strategy.is_one_leg:
        return f"{strategy.name} returns the first {way.limit}"
    return (
        f"each leg brings its first {way.pool}" if strategy.pools else "the strategy's own first stage did not bring it"
    )
