"""Writer for the subset of the ONNX file format that our graphs need.

The format is protocol buffers: a message is a sequence of fields, each with a number, a wire type and content
(https://protobuf.dev/programming-guides/encoding; the numbers are those of onnx.proto). The package ``onnx`` writes the
same bytes, which a test verifies, but takes 25 MB with its dependencies; ONNX Runtime reads files without it.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

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
