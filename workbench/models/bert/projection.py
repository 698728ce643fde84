"""One-bit token vectors through ONNX Runtime: numpy's own product wakes threads that spin, which halves the speed."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import cast

import numpy as np

from workbench.models.bert.onnx_file import OnnxFile
from workbench.models.encoder import FloatArray
from workbench.models.token_axes import TokenAxes, load_token_axes


class BitProjection:
    """The product with a model's token axes in a session of its own, on the calling thread."""

    def __init__(self, axes: TokenAxes) -> None:
        import onnxruntime

        graph = OnnxFile("token-axes")
        graph.add_constant("axes", axes.axes.T)
        graph.add_constant("middle", axes.axes @ axes.mean)
        graph.add_node("MatMul", ["tokens", "axes"], ["product"])
        graph.add_node("Sub", ["product", "middle"], ["coordinates"])
        graph.add_input("tokens", "float32", ["tokens", axes.axes.shape[1]])
        graph.add_output("coordinates", "float32", ["tokens", len(axes.axes)])
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(graph.to_bytes(), options, providers=["CPUExecutionProvider"])

    def bits(self, tokens: FloatArray) -> bytes:
        """Return 16 bytes for each row of ``tokens`` (tokens, dimensions), as ``TokenAxes.bits`` does."""
        (coordinates,) = self._session.run(None, {"tokens": tokens})
        return np.packbits(cast(FloatArray, coordinates) > 0, axis=1).tobytes()


@cache
def load_projection(path: Path) -> BitProjection:
    """Return the projection on the axes of a file."""
    return BitProjection(load_token_axes(path))
