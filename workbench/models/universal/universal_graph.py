"""The ONNX graph of the Universal Sentence Encoder, multilingual (Yang et al. 2020, arXiv:1907.04307).

Three branches look at two, three and five neighbouring tokens (the convolutions of Kim 2014, arXiv:1408.5882); their
outputs and the words' own vectors are normalised, summed over the text, and go through a perceptron of three layers.
Texts that go through it together have the same number of tokens, so that only a text's ends are filled with zeros.
In 8 bits the branches' dense layers multiply integers; what comes after the sum is small, and stays float.
"""

from __future__ import annotations

import numpy as np

from workbench.models.bert.graph_blocks import FUSED, GraphBlocks, Precision
from workbench.models.bert.weights import Dense
from workbench.models.universal.universal_weights import Branch, UniversalWeights

TO_THE_END = np.iinfo(np.int64).max
FLOAT = 1  # the number of its type in ONNX


def build_universal_graph(weights: UniversalWeights, precision: Precision = "float") -> bytes:
    """Return the model's file: int32 ``input_ids`` of shape (texts, tokens), without padding.

    Its output, float32, is ``sentence_embedding`` (texts, dimensions), each of length 1.
    """
    graph = _UniversalGraph(weights, precision)
    words = graph.words()
    inward = graph.normalised(graph.dense(weights.inward, words, graph.scaled(words)), weights.inward_norm)
    seen = [graph.branch(branch, inward, place) for place, branch in enumerate(weights.branches)]
    graph.perceptron(graph.summed(graph.normalised(graph.node("Concat", [words, *seen], axis=2), weights.norm)))
    graph.file.add_input("input_ids", "int32", ["texts", "tokens"])
    graph.file.add_output("sentence_embedding", "float32", ["texts", weights.dimensions])
    return graph.file.to_bytes({FUSED: 1})


class _UniversalGraph(GraphBlocks):
    """The blocks of a Universal Sentence Encoder."""

    def __init__(self, weights: UniversalWeights, precision: Precision) -> None:
        super().__init__("universal", precision)
        self.weights = weights

    def words(self) -> str:
        """Look the words' vectors up; they stay in 8 bits until then."""
        numbers, scales, shifts = (
            self.node("Gather", [self.constant(table), "input_ids"])
            for table in (self.weights.words, self.weights.scales, self.weights.shifts)
        )
        return self.node("Add", [self.node("Mul", [self.node("Cast", [numbers], to=FLOAT), scales]), shifts])

    def branch(self, branch: Branch, inward: str, place: int) -> str:
        """Add one branch, whose input is the ``place``-th part of what goes inward."""
        size = len(branch.first.bias)
        start, end, axis = (self.constant(np.array([number])) for number in (place * size, (place + 1) * size, 2))
        own = self.node("Slice", [inward, start, end, axis])
        return self.beside(branch.second, branch.width, self.beside(branch.first, branch.width, own))

    def beside(self, dense: Dense, width: int, hidden: str) -> str:
        """Add a dense layer over each token and its neighbours, cut off below zero, and its input again."""
        before = (width - 1) // 2
        ends = self.constant(np.array([0, before, 0, 0, width - 1 - before, 0]))
        filled = self.node("Pad", [hidden, ends])
        axis = self.constant(np.array([1]))
        shifted = [
            self.node("Slice", [filled, self.constant(np.array([start])), self.constant(np.array([end])), axis])
            for start, end in ((place, place - width + 1 or TO_THE_END) for place in range(width))
        ]
        window = self.node("Concat", shifted, axis=2)
        return self.node("Add", [self.node("Relu", [self.dense(dense, window, self.scaled(window))]), hidden])

    def summed(self, hidden: str) -> str:
        """Add the sum over the tokens by the root of their number, brought to the dimensions of a text.

        Each token's bias is in the sum: the number of tokens times as much.
        """
        tokens = self.node("Cast", [self.node("Shape", ["input_ids"], start=1, end=2)], to=FLOAT)
        total = self.node("ReduceSum", [hidden, self.constant(np.array([1]))], keepdims=0)
        projected = self.node("MatMul", [total, self.constant(self.weights.outward.matrix)])
        biases = self.node("Mul", [self.constant(self.weights.outward.bias), tokens])
        return self.node("Div", [self.node("Add", [projected, biases]), self.node("Sqrt", [tokens])])

    def perceptron(self, text: str) -> None:
        """Add the layers for a whole text, each second one with its input again, and scale to length 1."""
        first = self.node("Relu", [self._times(text, "d0")])
        second = self.node("Relu", [self.node("Add", [self._times(text, "p1"), self._times(first, "d1")])])
        third = self.node("Relu", [self._times(second, "d2")])
        last = self.node("Tanh", [self.node("Add", [self._times(second, "p3"), self._times(third, "d3")])])
        self.file.add_node("LpNormalization", [last], ["sentence_embedding"], attributes={"axis": -1, "p": 2})

    def _times(self, hidden: str, name: str) -> str:
        return self.node("MatMul", [hidden, self.constant(self.weights.perceptron[name])])
