"""The table of legs: every way in which a passage can score, with its name, unit and hue for people.

A leg's name is its key in ``Passage.attribution``. Fate, nodes, the why panel, the board and the MCP app read this
table; a leg without a row is shown by its key.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from workbench.retrieval.votes import Vote, in_full, of_likeness, of_meaning, of_words
from workbench.types import parameter

if TYPE_CHECKING:
    from workbench.retrieval.request import Request

LegHue = Literal["blue", "orange", "green", "violet", "yellow", "red", "gray"]


@dataclass(frozen=True, slots=True)
class LegKind:
    """One way to score a passage.

    ``unit`` is that of ``Leg.score``. ``match`` says how a passage of this leg was found ("vector" by meaning,
    "keyword" by words, None for a leg that finds nothing by itself). ``reranks`` is true for a judge that orders
    what others found. ``vote`` says what the leg counts for a question, 0 (set aside) to 1 (in full).
    """

    name: str
    title: str
    unit: str
    hue: LegHue
    match: Literal["vector", "keyword"] | None = None
    reranks: bool = False
    vote: Vote = in_full


_TABLE = (
    LegKind(parameter.VECTOR, "Meaning", "cosine", "blue", match="vector", vote=of_meaning),
    LegKind(parameter.KEYWORD, "Words", "BM25", "orange", match="keyword", vote=of_words),
    LegKind(parameter.DOCUMENT, "Its document", "share of its name", "yellow"),
    LegKind(parameter.FEEDBACK, "Moved meaning", "cosine", "green", match="vector"),
    LegKind(parameter.HYDE, "Imagined answer", "cosine", "red", match="vector"),
    LegKind(parameter.QUERY, "Rephrased question", "score", "green"),
    LegKind(parameter.LATE, "Word by word", "MaxSim", "violet", reranks=True, vote=of_likeness),
    LegKind(parameter.CLUSTER, "Near the best", "cosine", "red", reranks=True, vote=of_meaning),
    LegKind(parameter.CROSS_ENCODER, "Cross-encoder", "score", "violet", reranks=True),
    LegKind(parameter.LLM, "LLM's grade", "of 10", "green", reranks=True),
    LegKind(parameter.LEARNED, "Learned", "score", "yellow", reranks=True),
    LegKind(parameter.NOVELTY, "Novelty", "1 - cosine", "gray"),
)
LEGS: dict[str, LegKind] = {kind.name: kind for kind in _TABLE}
RERANKERS = frozenset(kind.name for kind in _TABLE if kind.reranks)


def leg_kind(name: str) -> LegKind:
    """Return a leg's row; "query 2", "query 3" share one, and an unknown name gets a row that shows the name."""
    key = name if name in LEGS else name.partition(" ")[0]
    return LEGS.get(key) or LegKind(name, name, "", "gray")


def votes(request: Request, query: str) -> dict[str, float]:
    """Return what the vote of each leg of the request's strategy counts for this question, 0..1."""
    return {name: leg_kind(name).vote(request, query) for name in request.strategy.legs}
