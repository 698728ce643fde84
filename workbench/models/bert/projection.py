"""One-bit token vectors through ONNX Runtime: numpy's own product wakes threads that spin, which halves the speed."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import cast

import numpy as np

from workbench.models.encoder import FloatArray
from workbench.models.token_axes import TokenAxes, load_token_axes


class BitProjection:
    """The product with a model's token axes in a session of its own, on the calling thread."""

    def __init__(self, axes: TokenAxes) -> None:
        import onnxruntime
        from onnx import TensorProto, helper, numpy_helper

        size = axes.axes.shape[1]
        constants = [
            numpy_helper.from_array(np.ascontiguousarray(axes.axes.T), "axes"),
            numpy_helper.from_array(axes.axes @ axes.mean, "middle"),
        ]
        nodes = [
            helper.make_node("MatMul", ["tokens", "axes"], ["product"]),
            helper.make_node("Sub", ["product", "middle"], ["coordinates"]),
        ]
        ends = [
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["tokens", columns])]
            for name, columns in (("tokens", size), ("coordinates", len(axes.axes)))
        ]
        body = helper.make_graph(nodes, "token-axes", *ends, initializer=constants)
        model = helper.make_model(body, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )

    def bits(self, tokens: FloatArray) -> bytes:
        """Return 16 bytes for each row of ``tokens`` (tokens, dimensions), as ``TokenAxes.bits`` does."""
        (coordinates,) = self._session.run(None, {"tokens": tokens})
        return np.packbits(cast(FloatArray, coordinates) > 0, axis=1).tobytes()


@cache
def load_projection(path: Path) -> BitProjection:
    """Return the projection on the axes of a file."""
    return BitProjection(load_token_axes(path))
