"""How a text takes up the words of a question: which of them it holds, and how near to each other they stand.

The stage of learned ranking looks at every candidate, so words are found by their first letters, as far as the index's
stem agrees with what was typed: a search in the text for each word, and no statement.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from workbench.languages import is_unspaced, spaced_words, ungrouped
from workbench.retrieval.question_words import Words
from workbench.retrieval.words.bm25 import rarity

SHORTEST_PREFIX = 4  # letters; a shorter word must stand there whole
NEAR = 12.0  # characters between two words at which their nearness is half of what it is side by side
MOST_PLACES = 30  # of one word in one text


@dataclass(frozen=True, slots=True)
class AskedWord:
    """A word of the question as it is looked for in lower-case text; ``weight`` is its rarity.

    ``is_whole``: nothing may follow it; ``is_gram``: it stands within a run of a script without spaces.
    """

    text: str
    weight: float
    is_whole: bool = False
    is_gram: bool = False


def asked_words(query: str, words: Words) -> tuple[AskedWord, ...]:
    """Return the question's words that the index counts; stop words are left out."""
    typed = [ungrouped(match.group().lower()) for match in spaced_words(query)]
    by_text: dict[str, AskedWord] = {}
    for term in words.terms:
        weight = rarity(term, words.totals.passages)
        if is_unspaced(term.term):
            by_text[term.term] = AskedWord(term.term, weight, is_gram=True)
        elif 0 < term.position <= len(typed):
            word = typed[term.position - 1]
            prefix = _common_beginning(word, term.term)
            text, is_whole = (prefix, False) if len(prefix) >= SHORTEST_PREFIX else (word, True)
            known = by_text.get(text)
            if known is None or known.weight < weight:
                by_text[text] = AskedWord(text, weight, is_whole=is_whole)
    return tuple(by_text.values())


def coverage(text: str, asked: Sequence[AskedWord]) -> float:
    """Return the share 0..1 of the words' weight that a lower-case text holds; 0 without words."""
    text = ungrouped(text)
    total = sum(word.weight for word in asked)
    return sum(word.weight for word in asked if word.text in text and _places(text, word, 1)) / total if total else 0.0


def coverage_and_closeness(text: str, asked: Sequence[AskedWord]) -> tuple[float, float]:
    """Return the share of the words' weight that a lower-case text holds, and how near to each other they stand.

    Closeness sums over the pairs of words that stand next to each other anywhere the lesser weight / (1 + gap / 12
    characters), the best place of each pair, and divides by the weight of all words.
    """
    total = sum(word.weight for word in asked)
    if not total:
        return 0.0, 0.0
    text = ungrouped(text)
    there = [(number, word) for number, word in enumerate(asked) if word.text in text]
    found = [(place, number) for number, word in there for place in _places(text, word, MOST_PLACES)]
    held = sum(asked[number].weight for number in {number for _, number in found})
    best: dict[tuple[int, int], float] = {}
    ordered = sorted(found)
    for (place, one), (later, other) in itertools.pairwise(ordered):
        if one != other:
            gap = max(0, later - place - len(asked[one].text))
            pair = (min(one, other), max(one, other))
            near = min(asked[one].weight, asked[other].weight) / (1 + gap / NEAR)
            best[pair] = max(best.get(pair, 0.0), near)
    return held / total, sum(best.values()) / total


def _common_beginning(word: str, stem: str) -> str:
    same = next((place for place, (a, b) in enumerate(zip(word, stem, strict=False)) if a != b), len(stem))
    return word[:same]


def _places(text: str, word: AskedWord, most: int) -> list[int]:
    """Return where a word begins in a lower-case text, the first ``most`` places."""
    places: list[int] = []
    at = text.find(word.text)
    while at >= 0 and len(places) < most:
        end = at + len(word.text)
        begins = word.is_gram or at == 0 or not text[at - 1].isalnum()
        if begins and not (word.is_whole and end < len(text) and text[end].isalnum()):
            places.append(at)
        at = text.find(word.text, end)
    return places
