"""The course of a passage through a strategy: how many went on from each step, and where it stood or fell out."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from workbench.retrieval.legs import RERANKERS, leg_kind
from workbench.retrieval.stages.checkpoint import RETRIEVED
from workbench.retrieval.why import fate, fates
from workbench.retrieval.why.explanation import LegView, Step

INDEXED_STEP, SCOPE_STEP, LEGS_STEP, FUSED_STEP, SHOWN_STEP = "index", "scope", "legs", "fused", "shown"
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")  # of a stage's class name
_TITLES = {
    INDEXED_STEP: "In the index",
    SCOPE_STEP: "In scope",
    LEGS_STEP: "Found",
    FUSED_STEP: "Fused",
    SHOWN_STEP: "Shown",
}


@dataclass(frozen=True, slots=True)
class Standing:
    """The end of a passage's course: its fate, and its rank among the results (None where it is not shown)."""

    fate: str
    rank: int | None
    legs: Mapping[str, LegView]


@dataclass(frozen=True, slots=True)
class Sizes:
    """The numbers of passages in index and scope (None: too many to count), and of those that are shown.

    ``index`` is None for a search within a scope, which counts nothing outside it.
    """

    index: int | None
    scope: int | None
    shown: int


def course(passage: int, way: fate.Way, standing: Standing, sizes: Sizes) -> tuple[Step, ...]:
    """Return the steps of a watched request as a passage met them; from the one where it fell out none is ``kept``."""
    steps = [
        *([] if sizes.index is None else [Step(INDEXED_STEP, _TITLES[INDEXED_STEP], sizes.index)]),
        Step(SCOPE_STEP, _TITLES[SCOPE_STEP], sizes.scope),
        *_stages(passage, way, standing),
        Step(SHOWN_STEP, _TITLES[SHOWN_STEP], sizes.shown, standing.rank, said=f"The first {way.limit} are shown."),
    ]
    lost = _lost_at(passage, way, standing)
    names = [step.name for step in steps]
    kept_steps = names.index(lost) if lost in names else len(steps)
    return tuple(
        Step(
            step.name, step.title, step.count, step.rank if place <= kept_steps else None, place < kept_steps, step.said
        )
        for place, step in enumerate(steps)
    )


def course_outside(index_passages: int) -> tuple[Step, ...]:
    """Return the course of a document of which the index holds no passage."""
    return (Step(INDEXED_STEP, _TITLES[INDEXED_STEP], index_passages, kept=False),)


def course_out_of_scope(scope_passages: int | None) -> tuple[Step, ...]:
    """Return the course of a document that a scope of so many passages leaves out."""
    return (Step(SCOPE_STEP, _TITLES[SCOPE_STEP], scope_passages, kept=False),)


def _stages(passage: int, way: fate.Way, standing: Standing) -> list[Step]:
    passed = dict(way.passed)
    retrieved = passed.pop(RETRIEVED, ())
    said = f"{fate.leg_standings(standing.legs)}; {fate.brought(way)}."
    steps = [Step(LEGS_STEP, _TITLES[LEGS_STEP], len(way.fused or retrieved), said=said)]
    if way.fused:
        said = f"The first {len(retrieved)} of {len(way.fused)} go on." if len(retrieved) < len(way.fused) else ""
        steps.append(Step(FUSED_STEP, _TITLES[FUSED_STEP], len(retrieved), _place(passage, way.fused), said=said))
    return [*steps, *(_stage(passage, way.limit, name, order) for name, order in passed.items())]


def _stage(passage: int, limit: int, name: str, order: tuple[int, ...]) -> Step:
    rank = _place(passage, order)
    said = f"Only the first {limit} are shown." if rank is not None and rank > limit else ""
    return Step(name, _title(name), len(order), rank, said=said)


def _title(name: str) -> str:
    if name in RERANKERS:
        return f"Reranked: {leg_kind(name).title.lower()}"
    return _CAMEL.sub(" ", leg_kind(name).title).capitalize()


def _place(passage: int, order: tuple[int, ...]) -> int | None:
    return order.index(passage) + 1 if passage in order else None


def _lost_at(passage: int, way: fate.Way, standing: Standing) -> str | None:
    """Return the name of the step that a passage did not get beyond."""
    if standing.fate in (fates.FOUND, fates.SHOWN):
        return None
    if standing.fate == fates.NOT_IN_SCOPE:
        return SCOPE_STEP
    if standing.fate == fates.NOT_RETRIEVED:
        return LEGS_STEP
    later = [name for name in way.passed if name != RETRIEVED]
    if standing.fate == fates.LOST_IN_FUSION or not later:
        return FUSED_STEP if way.fused else SHOWN_STEP
    dropped = fate.dropped_between(passage, way)
    if dropped is not None:
        return dropped[1]
    reranked = [name for name in later if name in RERANKERS]
    return (reranked if standing.fate == fates.LOST_IN_RERANK and reranked else later)[-1]
