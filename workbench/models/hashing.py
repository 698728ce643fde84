"""A model without weights: hashed bags of words, so that the nearest text shares the most words."""

from __future__ import annotations

import hashlib
import math
import re
import struct
from collections import Counter
from collections.abc import Sequence

import numpy as np

from workbench.models.encoder import TOKEN_AXES, TOKEN_BYTES, EncodedQuery, EncodedTexts, FloatArray, OnBatch
from workbench.types import Span

WORD = re.compile(r"\w+|[^\w\s]")
HASH_STRUCT = struct.Struct(">4I")  # a word's hash as four numbers: each gives a dimension and a sign
BATCH_SIZE = 64


class HashEncoder:
    """A deterministic model for tests: the same words give the same vectors on every machine.

    A text's vector counts its words (case folded, square root of the count), each as plus or minus 1/2 in 4 of 511
    hashed dimensions, so that words that share a dimension still differ. The last dimension means "no word", so that an
    empty text has a direction. A token's 128 bits are the hash of its word: equal words have MaxSim 1, different ones
    about 0.
    """

    name = "hash"
    dimensions = 512
    max_tokens = 254
    has_token_vectors = True
    languages: frozenset[str] | None = None

    def encode(self, texts: Sequence[str], *, on_batch: OnBatch | None = None) -> EncodedTexts:
        """Encode passages; ``on_batch`` is called with up to 64 at a time."""
        vectors = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        bits: list[bytes] = []
        for start in range(0, len(texts), BATCH_SIZE):
            batch = texts[start : start + BATCH_SIZE]
            for row, text in enumerate(batch, start):
                words = self._words(text)
                vectors[row] = self._vector(words)
                bits.append(b"".join(_digest(word) for word in words))
            if on_batch is not None:
                on_batch(len(batch))
        return EncodedTexts(vectors, bits)

    def encode_query(self, text: str) -> EncodedQuery:
        words = self._words(text)
        bits = np.frombuffer(b"".join(_digest(word) for word in words), dtype=np.uint8)
        signs = np.unpackbits(bits).reshape(-1, TOKEN_AXES).astype(np.float32) * 2 - 1
        spans = tuple(self.token_spans(text)[: self.max_tokens])
        return EncodedQuery(self._vector(words), signs / np.float32(math.sqrt(TOKEN_AXES)), spans)

    def token_spans(self, text: str) -> list[Span]:
        """Return the spans of words and of single punctuation marks."""
        return [match.span() for match in WORD.finditer(text)]

    def reads(self, text: str) -> float:
        """Return 1, because a hash distinguishes all words."""
        return 1.0

    def _words(self, text: str) -> list[str]:
        return [text[start:end].casefold() for start, end in self.token_spans(text)[: self.max_tokens]]

    def _vector(self, words: Sequence[str]) -> FloatArray:
        vector = np.zeros(self.dimensions, dtype=np.float32)
        for word, count in Counter(words).items():
            for number in HASH_STRUCT.unpack(_digest(word)):
                vector[(number >> 1) % (self.dimensions - 1)] += math.sqrt(count) * (0.5 if number & 1 else -0.5)
        if not vector.any():
            vector[-1] = 1.0
        return vector / np.float32(np.linalg.norm(vector))


def _digest(word: str) -> bytes:
    return hashlib.blake2b(word.encode("utf-8", "surrogatepass"), digest_size=TOKEN_BYTES).digest()
