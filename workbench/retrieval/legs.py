"""The table of legs: every way in which a passage can score, with its name, unit and colour.

A leg's name is its key in ``Passage.attribution``. Explanations, nodes, the app and the MCP app read this
table; a leg without a row is displayed by its key.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, TypeAlias

from workbench import types
from workbench.models.language_identifier import rank_configurations
from workbench.retrieval.bm25 import idf
from workbench.text import CONFIGURATIONS, is_code

if TYPE_CHECKING:
    from workbench.retrieval.query import Query, Words

# Confidence in each leg for a question

Confidence: TypeAlias = "Callable[[Query], float]"

# Shares of the question that the model can read. Of 1,100 questions in English the lowest share is .84, of 300 in
# German .80; in Chinese and Arabic the median is 0.
FULLY_READ_SHARE = 0.8  # full confidence from here; none up to MAX_UNREADABLE_SHARE
# Spreads (see ``compute_spread``). Medians of XQuAD's questions: English 2.9, German 2.3, Chinese 1.8, Arabic
# 1.3; of fifty random numbers 1.9.
CHANCE_SPREAD, CLEAR_SPREAD = 1.5, 2.5
MAX_FOREIGN_CONFIDENCE = 0.7  # maximum for a language that the model can tokenise but was not trained on
NEAREST_COUNT = 3  # top similarities compared with the others

# Shares of a question's idf that the index has words for. 150 questions each of XQuAD on its English paragraphs,
# medians (5th percentile): English 1 (.86), German .65 (.31), Chinese and Arabic 0. On paragraphs in their own language
# Chinese questions have .65 (.44), so this only applies to questions in another language than the index's.
MIN_KNOWN_SHARE, FULL_KNOWN_SHARE = 0.4, 0.7
MIN_LANGUAGE_PROBABILITY = 0.1  # minimum probability of an index language; in English 0.15 is the lowest of 150
MIN_LETTERS = 20  # shorter texts in Latin letters are too short to detect a language
MIN_PASSAGES = 1000  # minimum index size for idf: in a small one a single passage makes a word rare or common
CROSS_LANGUAGE_CONFIDENCE = 0.6  # confidence in token similarity across languages; whole sentences are more similar
# Of similarity for a question that is only a version, an address or a part number, which models read as a few digits:
# they find 2.3.1 as near to 1.3.2 as 1.3.2 itself.
CODE_CONFIDENCE = 0.2


def full_confidence(query: Query) -> float:
    return 1.0


def vector_confidence(query: Query) -> float:
    """Return the confidence in similarity, based on typos and the share of the question that the model can read.

    If the index has none of the words, the result is 1, because no other leg could find anything.
    """
    words = query.words
    if not words.weights.ids:
        return 1.0
    if is_code(query.text):
        return CODE_CONFIDENCE
    return _typo_factor(query) * compute_reading_confidence(
        query.share_read,
        query.spread,
        is_foreign=is_foreign(query.text, words.totals.languages, query.request.encoder.languages),
    )


def keyword_confidence(query: Query) -> float:
    """Return the confidence in keyword matches, reduced for a language that the index does not have.

    Words of another language match by accident: numbers, names, and identical spellings. The reduction needs a model
    that reads both languages; without one, there are only words.
    """
    words, trained = query.words, query.request.encoder.languages
    if not words.terms or words.totals.passages == 0:
        return 1.0
    vote = _interpolate(compute_known_share(words), MIN_KNOWN_SHARE, FULL_KNOWN_SHARE)
    return vote if vote < 1 and _needs_translation(query.text, words.totals.languages, trained) else 1.0


def late_confidence(query: Query) -> float:
    """Return the confidence in late interaction: the confidence in similarity, reduced across languages."""
    return vector_confidence(query) * (
        CROSS_LANGUAGE_CONFIDENCE + (1 - CROSS_LANGUAGE_CONFIDENCE) * keyword_confidence(query)
    )


def compute_known_share(words: Words) -> float:
    """Return the share (0..1) of a question's idf whose words are in the index; 1 without words."""
    whole: dict[int, float] = {}
    known: dict[int, float] = {}
    for term in words.terms:
        weight = idf(term.df, max(term.passages, MIN_PASSAGES))
        whole[term.position] = max(whole.get(term.position, 0.0), weight)
        if term.id is not None:
            known[term.position] = max(known.get(term.position, 0.0), weight)
    total = sum(whole.values())
    return min(1.0, sum(known.values()) / total) if total else 1.0


@lru_cache(maxsize=256)
def _needs_translation(query: str, indexed: tuple[str, ...], trained: frozenset[str] | None) -> bool:
    """Return whether a question is in a language that the index lacks, and the model is multilingual."""
    if trained is not None and len(trained) < 2:
        return False
    letters = sum(map(str.isalpha, query))
    if letters < MIN_LETTERS and query.isascii():
        return False
    likely = rank_configurations(query)
    return sum(likely.get(language, 0.0) for language in indexed) < MIN_LANGUAGE_PROBABILITY


def compute_reading_confidence(share_read: float, spread: float | None, *, is_foreign: bool) -> float:
    """Return the confidence (0..1) in a model that can read a given share (0..1) of the question.

    In a foreign language it also decreases with the spread of similarities, down to the spread expected by chance.
    """
    from workbench.models.encoder import MAX_UNREADABLE_SHARE  # imports numpy, which the command line avoids

    vote = _interpolate(share_read, MAX_UNREADABLE_SHARE, FULLY_READ_SHARE)
    if is_foreign and spread is not None:
        vote *= MAX_FOREIGN_CONFIDENCE * _interpolate(spread, CHANCE_SPREAD, CLEAR_SPREAD)
    return vote


def compute_spread(similarities: Collection[float]) -> float | None:
    """Return the spread of the top similarities: (mean of the first 3 - mean of all) / standard deviation.

    None for fewer than ten similarities, or if they are equal.
    """
    if len(similarities) < 10:
        return None
    mean = sum(similarities) / len(similarities)
    deviation = math.sqrt(sum((value - mean) ** 2 for value in similarities) / len(similarities))
    nearest = sorted(similarities, reverse=True)[:NEAREST_COUNT]
    return (sum(nearest) / NEAREST_COUNT - mean) / deviation if deviation > 1e-9 else None


def is_foreign(query: str, indexed: Sequence[str], trained: Collection[str] | None) -> bool:
    """Return whether a question is in a language that the model was not trained on.

    ``indexed`` are the languages of the index as Postgres names them, ``trained`` the model's ISO 639-1 codes (None:
    any language). An index in foreign languages receives foreign questions; in an index that also has the model's
    language, accents and other alphabets identify them.
    """
    if trained is None:
        return False
    native = {CONFIGURATIONS.get(code, code) for code in trained}
    if native.isdisjoint(indexed):
        return True
    others = [language for language in indexed if language not in native]
    return bool(others) and native == {"english"} and not query.isascii()


def _typo_factor(query: Query) -> float:
    """Return a factor that decreases with the share of misspelled words, which models cannot read.

    It applies only to typo-tolerant strategies; for others it did not improve any ranking.
    """
    if not query.request.strategy.typo_tolerant:
        return 1.0
    words = query.words
    misspelt = {guess.typed for guess in words.guesses}
    positions = {term.position for term in words.terms}
    return 1 - min(1.0, len(misspelt) / len(positions)) if misspelt else 1.0


def _interpolate(value: float, low: float, high: float) -> float:
    return min(1.0, max(0.0, (value - low) / (high - low)))


LegHue = Literal["blue", "orange", "green", "violet", "yellow", "red", "gray"]


@dataclass(frozen=True, slots=True)
class LegKind:
    """One way to score a passage."""

    name: str  # key in an attribution
    title: str  # display name
    unit: str  # unit of ``Leg.score``
    hue: LegHue  # colour in charts
    # Match type of passages found by this leg; None if it only reranks.
    match: Literal["vector", "keyword"] | None = None
    reranks: bool = False  # True if it only reorders the results of other legs
    vote: Confidence = full_confidence  # confidence in the leg for a question, 0 (ignored) to 1 (full)


_TABLE = (
    LegKind(types.VECTOR, "Meaning", "cosine", "blue", match="vector", vote=vector_confidence),
    LegKind(types.KEYWORD, "Words", "BM25", "orange", match="keyword", vote=keyword_confidence),
    LegKind(types.DOCUMENT, "Title match", "share of the title", "yellow"),
    LegKind(types.FEEDBACK, "Feedback vector", "cosine", "green", match="vector"),
    LegKind(types.HYDE, "Hypothetical answer", "cosine", "red", match="vector"),
    LegKind(types.QUERY, "Rephrased question", "score", "green"),
    LegKind(types.LATE, "Token matches", "MaxSim", "violet", reranks=True, vote=late_confidence),
    LegKind(types.CLUSTER, "Neighbour similarity", "cosine", "red", reranks=True, vote=vector_confidence),
    LegKind(types.CROSS_ENCODER, "Cross-encoder", "score", "violet", reranks=True),
    LegKind(types.LLM, "LLM's grade", "of 10", "green", reranks=True),
    LegKind(types.LEARNED, "Learned", "score", "yellow", reranks=True),
    LegKind(types.NOVELTY, "Novelty", "1 - cosine", "gray"),
    LegKind(types.OWN, "Own retriever", "its own score", "orange"),
)
LEGS: dict[str, LegKind] = {kind.name: kind for kind in _TABLE}
RERANKERS = frozenset(kind.name for kind in _TABLE if kind.reranks)


def leg_kind(name: str) -> LegKind:
    """Return a leg's row; "query 2", "query 3" share one, and an unknown name gets a row with that name."""
    key = name if name in LEGS else name.partition(" ")[0]
    return LEGS.get(key) or LegKind(name, name, "", "gray")


def leg_confidences(query: Query) -> dict[str, float]:
    """Return the confidence 0..1 in each leg of the strategy for a question."""
    return {name: leg_kind(name).vote(query) for name in query.request.strategy.legs}
