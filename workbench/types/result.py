"""What a search finds and what a comparison shows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from workbench.types.scope import ResolvedScope
from workbench.types.value import Value


@dataclass(frozen=True, slots=True)
class Leg(Value):
    """What one way of matching says about a passage.

    ``score`` is in the leg's own unit (cosine, BM25, MaxSim); ``contribution`` is what it adds to the final score;
    ``rank`` counts from 1 and is None where the leg did not find the passage by itself.
    """

    score: float
    rank: int | None = None
    contribution: float = 0.0


@dataclass(frozen=True, slots=True)
class Passage(Value):
    """A piece of a document that was found, with why: ``sum(leg.contribution) == score`` for fused strategies."""

    rank: int
    score: float
    passage_id: str
    document_id: str
    document_title: str
    source_id: str
    path: str | None
    url: str | None
    text: str
    start: int
    end: int
    match_type: str
    attribution: Mapping[str, Leg]
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @property
    def similarity(self) -> float:
        """Cosine between query and passage, 0..1, whichever strategy found it."""
        leg = self.attribution.get("vector")
        return leg.score if leg else 0.0


@dataclass(frozen=True, slots=True)
class SearchResult(Value, Sequence["Passage"]):
    """The passages that one strategy found for one query, best first; behaves as a sequence of them.

    ``corrections`` are words of the query that the index does not know, with the known words tried for each.
    """

    query: str
    strategy: str
    scope: ResolvedScope
    under_filled: bool
    degraded: tuple[str, ...]
    timings_ms: Mapping[str, float]
    results: tuple[Passage, ...]
    index: str = ""
    corrections: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.results)

    def __getitem__(self, item: Any) -> Any:
        return self.results[item]

    def __iter__(self) -> Iterator[Passage]:
        return iter(self.results)

    def to_pandas(self) -> Any:
        """Return a DataFrame, one row a passage: rank, score, title, heading, text and each leg's score."""
        from workbench.display import result_frame

        return result_frame(self)

    def _repr_html_(self) -> str:
        from workbench.display import result_html

        return result_html(self)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        from workbench.display import result_text

        printer.text(result_text(self))


@dataclass(frozen=True, slots=True)
class Comparison(Value):
    """The same query answered by several strategies, and how far they agree (each pair: 0..1)."""

    query: str
    strategies: Mapping[str, SearchResult]
    agreement: Mapping[str, Mapping[str, float]]

    def to_pandas(self) -> Any:
        """Return a DataFrame, one row a passage, one rank column a strategy."""
        from workbench.display import comparison_frame

        return comparison_frame(self)

    def plot(self) -> Any:
        """Return an Altair bump chart that joins the same passage across the strategies."""
        from workbench.display import bump_chart

        return bump_chart(self)

    def _repr_html_(self) -> str:
        from workbench.display import comparison_html

        return comparison_html(self)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        from workbench.display import comparison_text

        printer.text(comparison_text(self))
