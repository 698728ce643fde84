"""A graph in ONNX Runtime: built once into a file, and opened."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.errors import ModelError
from workbench.models.bert.files import write_whole
from workbench.models.bert.graph_blocks import Precision

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

GRAPH_VERSION = 3  # raise it when graphs change, so that one in a file is not taken for the new one


@dataclass(frozen=True, slots=True)
class PublishedWeights:
    """A model's published weights: the name and sha256 of their file, and how a graph is built from them."""

    name: str
    sha256: str
    build: Callable[[Precision], bytes]

    def graph_path(self, models_dir: Path, precision: Precision) -> Path:
        """Return where a graph is kept; the name changes with the graph and with the weights."""
        return models_dir / f"{self.name}-graph{GRAPH_VERSION}-{precision}-{self.sha256[:12]}.onnx"

    def ensure_graph(self, models_dir: Path, precision: Precision) -> Path:
        """Return the graph's file, building it the first time (about a second); processes may do so at once.

        Raises:
            ModelError: the weights are missing or not the published ones, or the folder cannot be written.
        """
        path = self.graph_path(models_dir, precision)
        if not path.is_file():
            write_whole(path, self.build(precision))
        return path

    def opened(self, models_dir: Path, precision: Precision, threads: int) -> InferenceSession:
        """Open the graph; a file that a full disk or a crash damaged is built anew."""
        path = self.ensure_graph(models_dir, precision)
        try:
            return open_session(path, threads)
        except ModelError:
            path.unlink(missing_ok=True)
            return open_session(self.ensure_graph(models_dir, precision), threads)


def open_session(path: Path, threads: int) -> InferenceSession:
    """Open a graph on the processor; ``threads`` work on one run.

    Raises:
        ModelError: ONNX Runtime refuses the file.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # leave the cores to the database between
    options.log_severity_level = 3  # errors only: it warns of missing graphics cards otherwise
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # its errors have no class in common
        raise ModelError(f"ONNX Runtime cannot open {path} ({error}); remove the file and try again.") from error
