"""The words of a question as a request keeps them: its terms, weighed, and what misspelt ones may mean."""

from __future__ import annotations

from dataclasses import dataclass

from workbench.storage.passages import IndexTotals, QueryTerm, TermWeights
from workbench.types import Value


@dataclass(frozen=True, slots=True)
class Guess(Value):
    """A word that was typed and a known one it may mean; ``distance`` counts the slips between."""

    typed: str
    meant: str
    distance: int

    @property
    def similarity(self) -> float:
        """1 for equal words, less for each slip, the more so in short words."""
        return 1 - self.distance / max(len(self.typed), len(self.meant), 1)


@dataclass(frozen=True, slots=True)
class Words:
    """The question's terms, weighed against the whole index; ``guesses`` stand for words that no passage has."""

    terms: tuple[QueryTerm, ...]
    totals: IndexTotals
    weights: TermWeights
    guesses: tuple[Guess, ...] = ()
