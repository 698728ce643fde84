"""The ONNX graph of a BERT encoder, built from its weights in full precision or in 8-bit integers.

BERT (Devlin et al. 2019, arXiv:1810.04805), then mean pooling over the tokens (Reimers & Gurevych 2019,
arXiv:1908.10084). Texts that go through it together have the same number of tokens: without padding there is no mask,
and attention runs in ONNX Runtime's fused operator for that case, three times as fast as the one with a mask.

In 8 bits every dense layer multiplies integers. Embeddings, attention's own products, normalisations and the
perceptron's curve stay float.
"""

from __future__ import annotations

import numpy as np

from workbench.models.bert.graph_blocks import FUSED, GraphBlocks, Precision
from workbench.models.bert.weights import BLOCK, BertWeights, Dense, Layer, Norm, PackedTable

SIGNS = np.uint8(0x88)  # turns two numbers 0..15 around 8 into signed ones around 0


def build_graph(weights: BertWeights, precision: Precision = "float") -> bytes:
    """Return the model's file: int32 ``input_ids`` of shape (texts, tokens), without padding.

    Outputs, float32: ``sentence_embedding`` (texts, dimensions), each of length 1; ``token_embeddings`` (texts, tokens,
    dimensions).
    """
    graph = _BertGraph(weights, precision)
    hidden = graph.embeddings()
    for layer in weights.layers:
        hidden = graph.layer(layer, hidden)
    graph.pooling(hidden)
    graph.file.add_input("input_ids", "int32", ["texts", "tokens"])
    graph.file.add_output("sentence_embedding", "float32", ["texts", weights.dimensions])
    graph.file.add_output("token_embeddings", "float32", ["texts", "tokens", weights.dimensions])
    return graph.file.to_bytes({FUSED: 1})


class _BertGraph(GraphBlocks):
    """The blocks of a BERT encoder."""

    def __init__(self, weights: BertWeights, precision: Precision) -> None:
        super().__init__("bert", precision)
        self.weights = weights

    def embeddings(self) -> str:
        """Add words plus positions, normalised."""
        count = self.node("Shape", ["input_ids"], start=1, end=2)
        first = self.constant(np.array([0]))
        rows = self.node("Slice", [self.constant(self.weights.positions), first, count, first])
        return self.normalised(self.node("Add", [self.words(), rows]), self.weights.norm)

    def words(self) -> str:
        """Look the words' vectors up; those of a packed table stay packed until then."""
        words = self.weights.words
        if not isinstance(words, PackedTable):
            return self.node("Gather", [self.constant(words), "input_ids"])
        shape = (len(words.scales), words.scales.shape[1] * BLOCK)
        self.file.add_packed("words", shape, (words.numbers ^ SIGNS).tobytes())
        self.constants += 1
        inputs = ["words", "input_ids", self.constant(words.scales)]
        return self.node("GatherBlockQuantized", inputs, FUSED, block_size=BLOCK, gather_axis=0, quantize_axis=1)

    def layer(self, layer: Layer, hidden: str) -> str:
        """Add one transformer layer."""
        scaled = self.scaled(hidden)
        parts = [self.dense(part, hidden, scaled) for part in (layer.query, layer.key, layer.value)]
        context = self.node("MultiHeadAttention", parts, FUSED, num_heads=self.weights.heads)
        hidden = self.added(layer.context, context, hidden, layer.context_norm)
        inner = self.node("Gelu", [self.dense(layer.inner, hidden, self.scaled(hidden))], FUSED)
        return self.added(layer.outer, inner, hidden, layer.outer_norm)

    def added(self, dense: Dense, hidden: str, skip: str, norm: Norm) -> str:
        """Add a dense layer, its input again, and layer normalisation."""
        return self.normalised(self.node("Add", [self.dense(dense, hidden, self.scaled(hidden)), skip]), norm)

    def pooling(self, hidden: str) -> None:
        """Add the mean of the tokens, scaled to length 1."""
        mean = self.node("ReduceMean", [hidden, self.constant(np.array([1]))], keepdims=0)
        self.file.add_node("Identity", [hidden], ["token_embeddings"])
        self.file.add_node("LpNormalization", [mean], ["sentence_embedding"], attributes={"axis": -1, "p": 2})
