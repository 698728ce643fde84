"""A synthetic corpus of any size: Zipf-distributed words within topics, and clustered vectors.

Texts have about 130 words; vectors have 384 dimensions (or a model's), about 60 of them effective. Everything is
derived from one seed, so that runs measure the same work.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from workbench.storage.passages import NewPassage

WORDS_PER_PASSAGE = 130
TOKENS_PER_PASSAGE = 190  # of these words, for a model such as MiniLM
VOCABULARY_SIZE = 60_000
TOPIC_COUNT = 400
WORDS_PER_TOPIC = 300
SUBSPACE_DIMENSIONS = 60
PASSAGES_PER_DOCUMENT = 5
PASSAGES_PER_SEED = 1_000  # passages generated from one seed

_SYLLABLES = [
    first + last for first in "bdfgklmnprstvz" for last in ("a", "e", "i", "o", "u", "an", "er", "il", "or", "us")
]


@dataclass(frozen=True, slots=True)
class SyntheticPassage:
    """One synthetic passage: its text, vector (dimensions) and one-bit token vectors."""

    text: str
    vector: NDArray[np.float32]
    token_bits: bytes
    topic: int


class SyntheticCorpus:
    """Passages and questions about them, deterministic by seed."""

    def __init__(self, dimensions: int = 384, seed: int = 7) -> None:
        rng = np.random.default_rng(seed)
        self._words = _make_vocabulary(rng)
        self._basis = rng.standard_normal((SUBSPACE_DIMENSIONS, dimensions)).astype(np.float32)
        self._topics = rng.standard_normal((TOPIC_COUNT, SUBSPACE_DIMENSIONS)).astype(np.float32)
        self._topic_words = rng.integers(200, VOCABULARY_SIZE, (TOPIC_COUNT, WORDS_PER_TOPIC))
        self._common = 1 / np.arange(1, VOCABULARY_SIZE + 1) ** 1.05
        self._common = np.cumsum(self._common / self._common.sum())
        self._dimensions, self._seed = dimensions, seed

    def passages(self, count: int, first: int = 0) -> Iterator[SyntheticPassage]:
        """Yield the passages from number ``first`` up to ``count``; each is independent of both.

        Every thousand passages have their own seed, so starting later generates at most a thousand extra.
        """
        for block in range(first // PASSAGES_PER_SEED, -(-count // PASSAGES_PER_SEED)):
            rng = np.random.default_rng((self._seed + 1, block))
            numbers = range(block * PASSAGES_PER_SEED, min((block + 1) * PASSAGES_PER_SEED, count))
            yield from (piece for number, piece in zip(numbers, self._pieces(rng), strict=False) if number >= first)

    def _pieces(self, rng: np.random.Generator) -> Iterator[SyntheticPassage]:
        while True:
            topic = int(rng.integers(TOPIC_COUNT))
            bits = rng.integers(0, 256, TOKENS_PER_PASSAGE * 16, dtype=np.uint8).tobytes()
            yield SyntheticPassage(
                " ".join(self._text(rng, topic, WORDS_PER_PASSAGE)), self._vector(rng, topic, 0.8), bits, topic
            )

    def questions(self, count: int) -> list[tuple[str, NDArray[np.float32]]]:
        """Return ``count`` questions of 6 to 10 words with a vector near their topic."""
        rng = np.random.default_rng(self._seed + 2)
        questions = []
        for _ in range(count):
            topic = int(rng.integers(TOPIC_COUNT))
            questions.append(
                (" ".join(self._text(rng, topic, int(rng.integers(6, 11)))), self._vector(rng, topic, 0.9))
            )
        return questions

    def _text(self, rng: np.random.Generator, topic: int, words: int) -> list[str]:
        own = rng.random(words) < 0.35
        common = np.searchsorted(self._common, rng.random(words))
        special = self._topic_words[topic][np.minimum(rng.geometric(0.02, words), WORDS_PER_TOPIC) - 1]
        return [self._words[min(int(place), VOCABULARY_SIZE - 1)] for place in np.where(own, special, common)]

    def _vector(self, rng: np.random.Generator, topic: int, spread: float) -> NDArray[np.float32]:
        place = self._topics[topic] + spread * rng.standard_normal(SUBSPACE_DIMENSIONS).astype(np.float32)
        vector = place @ self._basis + 0.3 * rng.standard_normal(self._dimensions).astype(np.float32)
        return (vector / np.linalg.norm(vector)).astype(np.float32)


def to_new_passage(piece: SyntheticPassage, number: int, document_id: str, source_id: str) -> NewPassage:
    """Return a synthetic passage in the form that the store writes."""
    return NewPassage(
        document_id=document_id,
        source_id=source_id,
        text=piece.text,
        context="",
        start=0,
        end=len(piece.text),
        ordinal=number,
        language="english",
        metadata={"kind": "text"},
    )


def _make_vocabulary(rng: np.random.Generator) -> list[str]:
    words: dict[str, None] = {}
    while len(words) < VOCABULARY_SIZE:
        size = int(rng.integers(2, 5))
        words["".join(_SYLLABLES[int(place)] for place in rng.integers(0, len(_SYLLABLES), size))] = None
    return list(words)
