"""Graph files have the same bytes as those of the package ``onnx``, and ONNX Runtime reads them without it."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnxruntime import InferenceSession

from workbench.models.bert.graph import (
    IR_VERSION,
    OPSET,
    PRODUCER,
    Attribute,
    Constant,
    OnnxFile,
    Precision,
    build_graph,
)
from workbench.models.minilm import read_weights

ARRAYS = [
    np.array(1e-12, dtype=np.float32),
    np.array([0]),
    np.array([-1, 2**40]),
    np.zeros((0, 3), dtype=np.float32),
    np.arange(300 * 2, dtype=np.float32).reshape(2, 300).T,  # not in a row
    np.array([[-127, 5], [0, 127]], dtype=np.int8),
]
ATTRIBUTES: list[dict[str, Attribute]] = [
    {},
    {"axis": -1, "p": 2},
    {"axes": [2, -1, 300], "alpha": 0.5},
    {"direction": "reverse"},
]


@pytest.mark.parametrize("attributes", ATTRIBUTES, ids=str)
@pytest.mark.parametrize("domain", ["", "com.microsoft"])
@pytest.mark.parametrize("array", ARRAYS, ids=lambda array: f"{array.dtype}{list(array.shape)}")
def test_a_file_has_the_bytes_that_the_package_writes(
    array: Constant, domain: str, attributes: dict[str, Attribute]
) -> None:
    ours = OnnxFile("name å")
    ours.add_constant("constant", array)
    ours.add_packed("packed", [2, 64], bytes(range(64)))
    ours.add_node("Operator", ["given", "constant"], ["result", "result.1"], domain, attributes)
    ours.add_input("given", "int32", ["texts", 384])
    ours.add_output("result", "float32", ["texts", "tokens", 70_000])
    node = helper.make_node("Operator", ["given", "constant"], ["result", "result.1"], domain=domain)
    node.attribute.extend(helper.make_attribute(key, value) for key, value in attributes.items())
    body = helper.make_graph(
        [node],
        "name å",
        [helper.make_tensor_value_info("given", TensorProto.INT32, ["texts", 384])],
        [helper.make_tensor_value_info("result", TensorProto.FLOAT, ["texts", "tokens", 70_000])],
        [
            numpy_helper.from_array(array, "constant"),
            helper.make_tensor("packed", TensorProto.INT4, [2, 64], bytes(range(64)), raw=True),
        ],
    )
    opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid("com.microsoft", 1)]
    theirs = helper.make_model(body, opset_imports=opsets, ir_version=IR_VERSION, producer_name=PRODUCER)
    assert ours.to_bytes({"com.microsoft": 1}) == theirs.SerializeToString(deterministic=True)


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["float", "int8"])
def test_the_graph_of_the_model_is_read_by_the_package_and_by_the_runtime(precision: Precision) -> None:
    file = build_graph(read_weights(), precision)
    model = onnx.load_from_string(file)
    assert model.SerializeToString(deterministic=True) == file
    assert len(model.graph.node) > 100
    session = InferenceSession(file, providers=["CPUExecutionProvider"])
    (vector,) = session.run(["sentence_embedding"], {"input_ids": np.array([[101, 2054, 102]], dtype=np.int32)})
    assert np.linalg.norm(np.asarray(vector)) == pytest.approx(1, abs=1e-5)
