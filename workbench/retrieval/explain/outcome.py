"""The trace of a passage through a strategy: counts and ranks after each step, and the step that dropped it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from workbench.retrieval.explain.explanation import LegView, Step
from workbench.retrieval.legs import RERANKERS, leg_kind
from workbench.retrieval.stages.stage import RETRIEVED_STEP
from workbench.retrieval.strategy import Strategy
from workbench.types import KEYWORD, LEARNED, VECTOR

# Outcomes, by name

IS_FOUND = "found"
IS_SHOWN_WITHIN = "shown within another"
COPY = "a copy of another"
NOT_INDEXED = "not in the index"
NOT_IN_SCOPE = "not in scope"
NOT_RETRIEVED = "not retrieved"
LOST_IN_FUSION = "dropped in fusion"
LOST_IN_RERANK = "dropped in rerank"
LOST_IN_STAGE = "dropped in a later stage"


# Reasons

_LEGS = {VECTOR: "by similarity", KEYWORD: "by BM25"}


@dataclass(frozen=True, slots=True)
class PipelineTrace:
    """The record of a traced request: ids after each step, all fused candidates, the limit and a leg's pool size."""

    strategy: Strategy
    passed: Mapping[str, tuple[int, ...]]
    fused: tuple[int, ...]
    limit: int
    pool: int


def find_outcome(passage: int, way: PipelineTrace, legs: Mapping[str, LegView]) -> tuple[str, str]:
    """Return (outcome, reason) of a passage in scope that is not among the results."""
    retrieved = way.passed.get(RETRIEVED_STEP, ())
    if passage not in retrieved:
        if passage in way.fused:
            rank = way.fused.index(passage) + 1
            first = len(retrieved)
            return LOST_IN_FUSION, f"Rank {rank} of {len(way.fused)} after fusion; the first {first} continued."
        return NOT_RETRIEVED, f"{describe_leg_ranks(legs)}; {describe_pool(way)}."
    steps = list(way.passed.items())
    dropped = find_drop(passage, way)
    if dropped is not None:
        before, name = dropped
        earlier, later = way.passed[before], way.passed[name]
        outcome = LOST_IN_RERANK if name in RERANKERS else LOST_IN_STAGE
        return outcome, _describe_ranks(passage, [(before, earlier), (name, later)], way.limit)
    last, order = steps[-1]
    if last == RETRIEVED_STEP or (passage not in order and len(steps) < 2):
        return LOST_IN_FUSION, _describe_ranks(passage, steps[-1:], way.limit)
    reranked = any(name in RERANKERS for name, _ in steps)
    return (LOST_IN_RERANK if reranked else LOST_IN_STAGE), _describe_ranks(passage, steps, way.limit)


def find_drop(passage: int, way: PipelineTrace) -> tuple[str, str] | None:
    """Return the two consecutive steps between which a passage left the first ``limit``; None if it did not."""
    for (before, earlier), (name, later) in pairwise(way.passed.items()):
        if passage in earlier[: way.limit] and passage not in later[: way.limit]:
            return before, name
    return None


def _describe_ranks(passage: int, steps: Sequence[tuple[str, tuple[int, ...]]], limit: int) -> str:
    ranks = ", ".join(
        f"{f'rank {order.index(passage) + 1}' if passage in order else 'dropped'} {describe_step(name)}"
        for name, order in steps
    )
    return f"{ranks[0].upper()}{ranks[1:]}; the limit was {limit}."


def describe_step(name: str) -> str:
    """Return a phrase such as "after the first stage"."""
    if name == RETRIEVED_STEP:
        return "after the first stage"
    if name == LEARNED:
        return "by the learned weights"
    return "after rerank" if name in RERANKERS else f"after {name}"


def describe_leg_ranks(legs: Mapping[str, LegView]) -> str:
    """Return a passage's ranks in the whole scope by similarity and BM25, as the start of a sentence."""
    parts = [
        f"rank {legs[name].rank} {phrase} ({legs[name].score:.3f})"
        if name in legs and legs[name].rank
        else f"no match {phrase}"
        for name, phrase in _LEGS.items()
    ]
    text = " and ".join(parts)
    return text[0].upper() + text[1:]


def describe_pool(way: PipelineTrace) -> str:
    """Return a clause on how many passages the first stage of a strategy returns."""
    strategy = way.strategy
    if strategy.is_one_leg:
        return f"{strategy.name} returns the top {way.limit}"
    return f"each leg returns its top {way.pool}" if strategy.pools else "the strategy's first stage did not return it"


INDEXED_STEP, SCOPE_STEP, LEGS_STEP, FUSED_STEP, SHOWN_STEP = "index", "scope", "legs", "fused", "shown"
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")  # word boundary in a stage's class name
_TITLES = {
    INDEXED_STEP: "In the index",
    SCOPE_STEP: "In scope",
    LEGS_STEP: "Found",
    FUSED_STEP: "Fused",
    SHOWN_STEP: "Shown",
}


@dataclass(frozen=True, slots=True)
class FinalRank:
    """A passage's outcome, and its rank among the results (None if not shown)."""

    outcome: str
    rank: int | None
    legs: Mapping[str, LegView]


@dataclass(frozen=True, slots=True)
class StageCounts:
    """The numbers of passages in index and scope (None if too many to count), and in the results.

    ``index`` is None for a search within a scope, so that nothing outside it is revealed.
    """

    index: int | None
    scope: int | None
    shown: int


def trace_stages(passage: int, way: PipelineTrace, standing: FinalRank, sizes: StageCounts) -> tuple[Step, ...]:
    """Return the steps of a traced request for one passage; from the step that dropped it onwards, none is ``kept``."""
    steps = [
        *([] if sizes.index is None else [Step(INDEXED_STEP, _TITLES[INDEXED_STEP], sizes.index)]),
        Step(SCOPE_STEP, _TITLES[SCOPE_STEP], sizes.scope),
        *_stage_steps(passage, way, standing),
        Step(
            SHOWN_STEP, _TITLES[SHOWN_STEP], sizes.shown, standing.rank, detail=f"The first {way.limit} are returned."
        ),
    ]
    lost = _find_dropping_step(passage, way, standing)
    names = [step.name for step in steps]
    kept_steps = names.index(lost) if lost in names else len(steps)
    return tuple(
        Step(
            step.name,
            step.title,
            step.count,
            step.rank if place <= kept_steps else None,
            place < kept_steps,
            step.detail,
        )
        for place, step in enumerate(steps)
    )


def trace_unindexed(index_passages: int) -> tuple[Step, ...]:
    """Return the steps for a document without passages in the index."""
    return (Step(INDEXED_STEP, _TITLES[INDEXED_STEP], index_passages, kept=False),)


def trace_out_of_scope(scope_passages: int | None) -> tuple[Step, ...]:
    """Return the steps for a document outside a scope with this number of passages."""
    return (Step(SCOPE_STEP, _TITLES[SCOPE_STEP], scope_passages, kept=False),)


def _stage_steps(passage: int, way: PipelineTrace, standing: FinalRank) -> list[Step]:
    passed = dict(way.passed)
    retrieved = passed.pop(RETRIEVED_STEP, ())
    detail = f"{describe_leg_ranks(standing.legs)}; {describe_pool(way)}."
    steps = [Step(LEGS_STEP, _TITLES[LEGS_STEP], len(way.fused or retrieved), detail=detail)]
    if way.fused:
        detail = f"The first {len(retrieved)} of {len(way.fused)} continue." if len(retrieved) < len(way.fused) else ""
        steps.append(
            Step(FUSED_STEP, _TITLES[FUSED_STEP], len(retrieved), _find_rank(passage, way.fused), detail=detail)
        )
    return [*steps, *(_stage_step(passage, way.limit, name, order) for name, order in passed.items())]


def _stage_step(passage: int, limit: int, name: str, order: tuple[int, ...]) -> Step:
    rank = _find_rank(passage, order)
    detail = f"Only the first {limit} are returned." if rank is not None and rank > limit else ""
    return Step(name, _step_title(name), len(order), rank, detail=detail)


def _step_title(name: str) -> str:
    if name in RERANKERS:
        return f"Reranked: {leg_kind(name).title.lower()}"
    return _CAMEL.sub(" ", leg_kind(name).title).capitalize()


def _find_rank(passage: int, order: tuple[int, ...]) -> int | None:
    return order.index(passage) + 1 if passage in order else None


def _find_dropping_step(passage: int, way: PipelineTrace, standing: FinalRank) -> str | None:
    """Return the name of the step that dropped a passage."""
    if standing.outcome in (IS_FOUND, IS_SHOWN_WITHIN):
        return None
    if standing.outcome == NOT_IN_SCOPE:
        return SCOPE_STEP
    if standing.outcome == NOT_RETRIEVED:
        return LEGS_STEP
    later = [name for name in way.passed if name != RETRIEVED_STEP]
    if standing.outcome == LOST_IN_FUSION or not later:
        return FUSED_STEP if way.fused else SHOWN_STEP
    dropped = find_drop(passage, way)
    if dropped is not None:
        return dropped[1]
    reranked = [name for name in later if name in RERANKERS]
    return (reranked if standing.outcome == LOST_IN_RERANK and reranked else later)[-1]
