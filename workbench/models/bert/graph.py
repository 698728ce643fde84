"""The ONNX graph of a BERT encoder, built from its weights in full precision or in 8-bit integers.

BERT (Devlin et al. 2019, arXiv:1810.04805) followed by mean pooling over the tokens (Reimers & Gurevych 2019,
arXiv:1908.10084). Texts in one run have the same number of tokens: without padding there is no mask, so attention uses
ONNX Runtime's fused operator for that case, which is three times as fast as the masked one.

In 8 bits every dense layer multiplies integers. Embeddings, the products of attention, normalisations and the
perceptron's activation stay float.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from workbench.models.encoder import FloatArray

# Weights of a BERT encoder, independent of their file

BLOCK_SIZE = 32  # weights that share a scale in a table of four-bit numbers


@dataclass(frozen=True, slots=True)
class Dense:
    """A linear layer: ``matrix`` (inputs, outputs) and ``bias`` (outputs,)."""

    matrix: FloatArray
    bias: FloatArray


@dataclass(frozen=True, slots=True)
class Norm:
    """A layer normalisation: ``gain`` and ``bias``, each (dimensions,)."""

    gain: FloatArray
    bias: FloatArray


@dataclass(frozen=True, slots=True)
class Layer:
    """One transformer layer: attention, then the two-layer perceptron, each added to its input and normalised."""

    query: Dense
    key: Dense
    value: Dense
    context: Dense
    context_norm: Norm
    inner: Dense
    outer: Dense
    outer_norm: Norm


@dataclass(frozen=True, slots=True)
class PackedTable:
    """A table of four-bit numbers (rows, columns): (number - 8) times the scale of its block of 32 columns.

    ``numbers`` is (rows, columns / 2), the even column in the low half of each byte; ``scales`` (rows, columns / 32).
    """

    numbers: NDArray[np.uint8]
    scales: FloatArray


@dataclass(frozen=True, slots=True)
class BertWeights:
    """A whole encoder; ``positions`` (tokens, dimensions) include the vector of the single segment."""

    words: FloatArray | PackedTable
    positions: FloatArray
    norm: Norm
    layers: tuple[Layer, ...]
    heads: int

    @property
    def dimensions(self) -> int:
        """Length of a token's vector."""
        return int(self.positions.shape[1])


# Building blocks of the graphs

Precision = Literal["float", "int8"]

FUSED_DOMAIN = "com.microsoft"  # domain of ONNX Runtime's own operators
MAX_INT8 = 127  # absolute value of an 8-bit weight
MIN_SCALE = np.float32(1e-12)  # smallest scale


class QuantisedInput(NamedTuple):
    """A layer's input in 8 bits, by node names: ``numbers`` times ``scale`` times each token's ``rows``."""

    numbers: str
    scale: str
    zero: str
    rows: str


class GraphBlocks:
    """Nodes and constants of a graph under construction; each method adds a block and returns its output's name.

    Values between blocks are float32 of shape (texts, tokens, numbers).
    """

    def __init__(self, name: str, precision: Precision) -> None:
        self.precision = precision
        self.file = OnnxFile(f"{name}-{precision}")
        self.nodes = 0
        self.constants = 0

    def add_layer_norm(self, hidden: str, norm: Norm) -> str:
        """Add layer normalisation over the last axis."""
        even = self.node("MeanVarianceNormalization", [hidden], axes=[2])
        return self.node("Add", [self.node("Mul", [even, self.constant(norm.gain)]), self.constant(norm.bias)])

    def quantise(self, hidden: str) -> QuantisedInput | None:
        """Quantise to 8 bits, if dense layers need it: scale each token by its largest number, then all of them."""
        if self.precision == "float":
            return None
        largest = self.node("ReduceMax", [self.node("Abs", [hidden]), self.constant(np.array([2]))], keepdims=1)
        rows = self.node("Max", [largest, self.constant(np.array(MIN_SCALE))])
        numbers = self.node("DynamicQuantizeLinear", [self.node("Div", [hidden, rows])], outputs=3)
        return QuantisedInput(numbers, f"{numbers}.1", f"{numbers}.2", rows)

    def dense(self, dense: Dense, hidden: str, scaled: QuantisedInput | None) -> str:
        """Multiply by a dense layer's matrix and add its bias."""
        if scaled is None:
            product = self.node("MatMul", [hidden, self.constant(dense.matrix)])
        else:
            scales = np.maximum(np.abs(dense.matrix).max(axis=0) / MAX_INT8, MIN_SCALE)
            integers = np.rint(dense.matrix / scales).astype(np.int8)
            inputs = [scaled.numbers, self.constant(integers), scaled.scale, self.constant(scales), scaled.zero]
            product = self.node("Mul", [self.node("MatMulIntegerToFloat", inputs, FUSED_DOMAIN), scaled.rows])
        return self.node("Add", [product, self.constant(dense.bias)])

    def constant(self, value: Constant) -> str:
        name = f"constant{self.constants}"
        self.file.add_constant(name, value)
        self.constants += 1
        return name

    def node(
        self, operator: str, inputs: list[str], domain: str = "", outputs: int = 1, **attributes: Attribute
    ) -> str:
        """Add an operator and return its first output; further outputs have the same name with ``.1``, ``.2``."""
        name = f"{operator}{self.nodes}"
        names = [name, *(f"{name}.{number}" for number in range(1, outputs))]
        self.file.add_node(operator, inputs, names, domain, attributes)
        self.nodes += 1
        return name


SIGN_MASK = np.uint8(0x88)  # converts two numbers 0..15 around 8 to signed ones around 0


def build_graph(weights: BertWeights, precision: Precision = "float") -> bytes:
    """Return the model's file: int32 ``input_ids`` of shape (texts, tokens), without padding.

    Outputs, float32: ``sentence_embedding`` (texts, dimensions), each of length 1; ``token_embeddings`` (texts, tokens,
    dimensions).
    """
    graph = _BertGraph(weights, precision)
    hidden = graph.embeddings()
    for layer in weights.layers:
        hidden = graph.layer(layer, hidden)
    graph.add_pooling(hidden)
    graph.file.add_input("input_ids", "int32", ["texts", "tokens"])
    graph.file.add_output("sentence_embedding", "float32", ["texts", weights.dimensions])
    graph.file.add_output("token_embeddings", "float32", ["texts", "tokens", weights.dimensions])
    return graph.file.to_bytes({FUSED_DOMAIN: 1})


class _BertGraph(GraphBlocks):
    def __init__(self, weights: BertWeights, precision: Precision) -> None:
        super().__init__("bert", precision)
        self.weights = weights

    def embeddings(self) -> str:
        count = self.node("Shape", ["input_ids"], start=1, end=2)
        first = self.constant(np.array([0]))
        rows = self.node("Slice", [self.constant(self.weights.positions), first, count, first])
        return self.add_layer_norm(self.node("Add", [self.words(), rows]), self.weights.norm)

    def words(self) -> str:
        """Look up the words' vectors; a packed table is only unpacked for these."""
        words = self.weights.words
        if not isinstance(words, PackedTable):
            return self.node("Gather", [self.constant(words), "input_ids"])
        shape = (len(words.scales), words.scales.shape[1] * BLOCK_SIZE)
        self.file.add_packed("words", shape, (words.numbers ^ SIGN_MASK).tobytes())
        self.constants += 1
        inputs = ["words", "input_ids", self.constant(words.scales)]
        return self.node(
            "GatherBlockQuantized", inputs, FUSED_DOMAIN, block_size=BLOCK_SIZE, gather_axis=0, quantize_axis=1
        )

    def layer(self, layer: Layer, hidden: str) -> str:
        scaled = self.quantise(hidden)
        parts = [self.dense(part, hidden, scaled) for part in (layer.query, layer.key, layer.value)]
        context = self.node("MultiHeadAttention", parts, FUSED_DOMAIN, num_heads=self.weights.heads)
        hidden = self.add_residual(layer.context, context, hidden, layer.context_norm)
        inner = self.node("Gelu", [self.dense(layer.inner, hidden, self.quantise(hidden))], FUSED_DOMAIN)
        return self.add_residual(layer.outer, inner, hidden, layer.outer_norm)

    def add_residual(self, dense: Dense, hidden: str, skip: str, norm: Norm) -> str:
        return self.add_layer_norm(self.node("Add", [self.dense(dense, hidden, self.quantise(hidden)), skip]), norm)

    def add_pooling(self, hidden: str) -> None:
        mean = self.node("ReduceMean", [hidden, self.constant(np.array([1]))], keepdims=0)
        self.file.add_node("Identity", [hidden], ["token_embeddings"])
        self.file.add_node("LpNormalization", [mean], ["sentence_embedding"], attributes={"axis": -1, "p": 2})


# Writer for the ONNX file format, as far as our graphs need it.
#
# The format is protocol buffers: a message is a sequence of fields, each with a number, a wire type and content
# (https://protobuf.dev/programming-guides/encoding; the numbers are those of onnx.proto). The package ``onnx`` writes
# the same bytes, which a test verifies, but takes 25 MB with its dependencies; ONNX Runtime reads files without it.

Attribute = int | float | str | list[int]
Constant = NDArray[np.float32] | NDArray[np.int8] | NDArray[np.int64]
Pieces = list[bytes]  # of a message, joined once at the end because weights are large

_VARINT, _BYTES, _FLOAT = 0, 2, 5  # wire types
_TYPES = {"float32": 1, "int8": 3, "int32": 6, "int64": 7}  # element types by their NumPy names
_INT4 = 22
IR_VERSION, OPSET = 10, 18
PRODUCER = "rag-workbench"


class OnnxFile:
    """The nodes, constants, inputs and outputs of one graph; each method adds one of them."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._nodes: Pieces = []
        self._constants: Pieces = []
        self._inputs: Pieces = []
        self._outputs: Pieces = []

    def add_node(
        self,
        operator: str,
        inputs: Sequence[str],
        outputs: Sequence[str],
        domain: str = "",
        attributes: Mapping[str, Attribute] | None = None,
    ) -> None:
        """Add an operator between named values; ``domain`` "" is ONNX itself."""
        pieces = [piece for name in inputs for piece in _text(1, name)]
        pieces += [piece for name in outputs for piece in _text(2, name)]
        pieces += _text(4, operator)
        for name, value in (attributes or {}).items():
            pieces += _message(5, _attribute(name, value))
        self._nodes += _message(1, [*pieces, *_text(7, domain)])

    def add_constant(self, name: str, value: Constant) -> None:
        """Add an array of any shape, of type float32, int8 or int64."""
        rows = np.ascontiguousarray(value).reshape(value.shape)  # ascontiguousarray makes scalars one-dimensional
        self._constants += _tensor(name, value.shape, _TYPES[value.dtype.name], rows.tobytes())

    def add_packed(self, name: str, shape: Sequence[int], data: bytes) -> None:
        """Add an array of signed four-bit numbers, two per byte, the lower half first."""
        self._constants += _tensor(name, shape, _INT4, data)

    def add_input(self, name: str, kind: str, axes: Sequence[str | int]) -> None:
        """Add an input; ``kind`` is a NumPy type, and the length of an axis is a number or a symbolic name."""
        self._inputs += _message(11, _end(name, kind, axes))

    def add_output(self, name: str, kind: str, axes: Sequence[str | int]) -> None:
        """Add an output; arguments as for ``add_input``."""
        self._outputs += _message(12, _end(name, kind, axes))

    def to_bytes(self, domains: Mapping[str, int] | None = None) -> bytes:
        """Return the file; ``domains`` gives the versions of additional operator domains."""
        graph = [*self._nodes, *_text(2, self._name), *self._constants, *self._inputs, *self._outputs]
        model = [*_number(1, IR_VERSION), *_text(2, PRODUCER), *_message(7, graph)]
        for domain, version in {"": OPSET, **(domains or {})}.items():
            model += _message(8, [*_text(1, domain), *_number(2, version)])
        return b"".join(model)


def _tensor(name: str, shape: Sequence[int], kind: int, data: bytes) -> Pieces:
    sizes = [piece for size in shape for piece in _number(1, size)]
    return _message(5, [*sizes, *_number(2, kind), *_text(8, name), *_message(9, [data])])


def _end(name: str, kind: str, axes: Sequence[str | int]) -> Pieces:
    sizes: Pieces = []
    for axis in axes:
        sizes += _message(1, _text(2, axis) if isinstance(axis, str) else _number(1, axis))
    tensor = [*_number(1, _TYPES[kind]), *_message(2, sizes)]
    return [*_text(1, name), *_message(2, _message(1, tensor))]


def _attribute(name: str, value: Attribute) -> Pieces:
    """Return the message of one attribute; its last field identifies the value field."""
    if isinstance(value, float):
        held, kind = [_tag(2, _FLOAT), struct.pack("<f", value)], 1
    elif isinstance(value, int):
        held, kind = _number(3, value), 2
    elif isinstance(value, str):
        held, kind = _text(4, value), 3
    else:
        held, kind = [piece for number in value for piece in _number(8, number)], 7
    return [*_text(1, name), *held, *_number(20, kind)]


def _text(number: int, text: str) -> Pieces:
    return _message(number, [text.encode()])


def _message(number: int, pieces: Pieces) -> Pieces:
    return [_tag(number, _BYTES), _varint(sum(map(len, pieces))), *pieces]


def _number(number: int, value: int) -> Pieces:
    return [_tag(number, _VARINT), _varint(value)]


def _tag(number: int, coding: int) -> bytes:
    return _varint(number << 3 | coding)


def _varint(value: int) -> bytes:
    """Encode an integer with seven bits per byte, lowest first; a negative one is written as 64 bits."""
    value &= (1 << 64) - 1
    coded = bytearray()
    while value > 0x7F:
        coded.append(value & 0x7F | 0x80)
        value >>= 7
    coded.append(value)
    return bytes(coded)
