"""Blocks that the graphs of our models are put together from: dense layers in floats or 8-bit integers, normalisation.

In 8 bits a dense layer multiplies integers (Jacob et al. 2018, arXiv:1712.05877): weights have one scale for each
output, a layer's input one for each token (Yao et al. 2022, arXiv:2206.01861), so that a token with a few large
numbers does not coarsen the others. Layer normalisation is written as MeanVarianceNormalization and a gain, which runs
four times as fast as ONNX Runtime's fused operator.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from workbench.models.bert.onnx_file import Attribute, Constant, OnnxFile
from workbench.models.bert.weights import Dense, Norm

Precision = Literal["float", "int8"]

FUSED = "com.microsoft"  # the domain of ONNX Runtime's own operators
LARGEST = 127  # of a weight in 8 bits
TINY = np.float32(1e-12)  # no scale is smaller


class Scaled(NamedTuple):
    """A layer's input in 8 bits, by the names of its nodes: ``numbers`` times ``scale`` times each token's ``rows``."""

    numbers: str
    scale: str
    zero: str
    rows: str


class GraphBlocks:
    """Nodes and constants while a graph is put together; each method adds one block and returns its output's name.

    Values that go through them are float32 of shape (texts, tokens, numbers).
    """

    def __init__(self, name: str, precision: Precision) -> None:
        self.precision = precision
        self.file = OnnxFile(f"{name}-{precision}")
        self.nodes = 0
        self.constants = 0

    def normalised(self, hidden: str, norm: Norm) -> str:
        """Add layer normalisation over the last axis."""
        even = self.node("MeanVarianceNormalization", [hidden], axes=[2])
        return self.node("Add", [self.node("Mul", [even, self.constant(norm.gain)]), self.constant(norm.bias)])

    def scaled(self, hidden: str) -> Scaled | None:
        """Scale to 8 bits, where the dense layers want it: first each token by its largest number, then all of them."""
        if self.precision == "float":
            return None
        largest = self.node("ReduceMax", [self.node("Abs", [hidden]), self.constant(np.array([2]))], keepdims=1)
        rows = self.node("Max", [largest, self.constant(np.array(TINY))])
        numbers = self.node("DynamicQuantizeLinear", [self.node("Div", [hidden, rows])], outputs=3)
        return Scaled(numbers, f"{numbers}.1", f"{numbers}.2", rows)

    def dense(self, dense: Dense, hidden: str, scaled: Scaled | None) -> str:
        """Multiply by a dense layer's matrix and add its bias."""
        if scaled is None:
            product = self.node("MatMul", [hidden, self.constant(dense.matrix)])
        else:
            scales = np.maximum(np.abs(dense.matrix).max(axis=0) / LARGEST, TINY)
            integers = np.rint(dense.matrix / scales).astype(np.int8)
            inputs = [scaled.numbers, self.constant(integers), scaled.scale, self.constant(scales), scaled.zero]
            product = self.node("Mul", [self.node("MatMulIntegerToFloat", inputs, FUSED), scaled.rows])
        return self.node("Add", [product, self.constant(dense.bias)])

    def constant(self, value: Constant) -> str:
        """Add an array and return its name."""
        name = f"constant{self.constants}"
        self.file.add_constant(name, value)
        self.constants += 1
        return name

    def node(
        self, operator: str, inputs: list[str], domain: str = "", outputs: int = 1, **attributes: Attribute
    ) -> str:
        """Add an operator and return its first output; the others are called the same with ``.1``, ``.2``."""
        name = f"{operator}{self.nodes}"
        names = [name, *(f"{name}.{number}" for number in range(1, outputs))]
        self.file.add_node(operator, inputs, names, domain, attributes)
        self.nodes += 1
        return name
