"""Guesses of the known words that a misspelt one may mean: pure functions over words, by optimal string alignment.

The distance counts a letter left out, added, changed, or exchanged with its neighbour as one (Damerau 1964, in the
restricted form of Oommen & Loke 1997); rapidfuzz computes it.
"""

from __future__ import annotations

import string
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from rapidfuzz import process
from rapidfuzz.distance import OSA

from workbench.retrieval.question_words import Guess

SHORT_WORD = 5  # letters; up to here one slip is forgiven, above two
SHORTEST_WORD = 3  # letters; in shorter words one slip makes any word of any other
MOST_GUESSES = 5  # for one word


@dataclass(frozen=True, slots=True)
class Lexicon:
    """Known words, arranged by length, because only neighbouring lengths can be near."""

    by_length: dict[int, list[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, words: Iterable[str]) -> Lexicon:
        """Arrange words."""
        arranged: dict[int, list[str]] = {}
        for word in words:
            arranged.setdefault(len(word), []).append(word)
        return cls(arranged)

    def within(self, word: str, distance: int) -> list[tuple[str, int]]:
        """Return (known word, distance) of everything within a distance of a word, nearest first."""
        near_words: list[tuple[str, int]] = []
        for length in range(len(word) - distance, len(word) + distance + 1):
            near = process.extract(
                word, self.by_length.get(length, ()), scorer=OSA.distance, score_cutoff=distance, limit=None
            )
            near_words += [(match, int(slips)) for match, slips, _ in near]
        return sorted(near_words, key=lambda item: (item[1], item[0][:1] != word[:1], item[0]))


def slips_forgiven(word: str) -> int:
    """Return how many slips a word may have: 0 under 3 letters and in words with digits, 1 up to 5 letters, else 2."""
    if len(word) < SHORTEST_WORD or not word.isalpha():
        return 0
    return 1 if len(word) <= SHORT_WORD else 2


def guess(
    terms: Sequence[str], lexicon: Lexicon | Collection[str], limit: int = MOST_GUESSES
) -> dict[str, list[Guess]]:
    """Return, for each term that is near known ones, the likeliest of them, best first.

    Fewest slips come first, then the same first letter. Terms with no known word near are left out. A term that is
    known itself is not its own guess.
    """
    words = lexicon if isinstance(lexicon, Lexicon) else Lexicon.of(lexicon)
    guesses: dict[str, list[Guess]] = {}
    for term in terms:
        slips = slips_forgiven(term)
        near = words.within(term, slips) if slips else []
        likely = [Guess(term, word, distance) for word, distance in near if word != term and word.isalpha()]
        if likely:
            guesses[term] = likely[:limit]
    return guesses


def one_slip_away(word: str) -> list[str]:
    """Return every spelling one slip from a word in plain letters, before endings are cut from either."""
    letters = string.ascii_lowercase
    cuts = [(word[:place], word[place:]) for place in range(len(word) + 1)]
    dropped = [a + b[1:] for a, b in cuts if b]
    swapped = [a + b[1] + b[0] + b[2:] for a, b in cuts if len(b) > 1]
    changed = [a + letter + b[1:] for a, b in cuts if b for letter in letters]
    added = [a + letter + b for a, b in cuts for letter in letters]
    return [spelling for spelling in dict.fromkeys(dropped + swapped + changed + added) if spelling != word]
