"""Graphs in ONNX Runtime: build them once as files, open them, and compare both precisions."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import platform
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from workbench.errors import ModelError
from workbench.models.bert.graph import Precision
from workbench.runtime import replace_file
from workbench.types import Value

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

# Model files: published weights and graphs built from them


def find_packaged_file(package: str, name: str, install: str) -> Path:
    """Return a data file of an installed package without importing it.

    Raises:
        ModelError: The package or the file is missing; the message ends with ``install``.
    """
    spec = importlib.util.find_spec(package)
    for folder in (spec.submodule_search_locations or []) if spec else []:
        path = Path(folder) / name
        if path.is_file():
            return path
    raise ModelError(f"The model file {Path(name).name} is missing; run: pip install {install}.")


def read_checked_bytes(path: Path, sha256: str, install: str) -> bytes:
    """Read a file and check its digest. Raises ModelError if it is unreadable, or its sha256 differs."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ModelError(f"The model file {path} is not readable ({error.strerror}).") from error
    digest = hashlib.sha256(data).hexdigest()
    if digest != sha256:
        raise ModelError(
            f"The model file {path} is damaged (sha256 {digest[:12]}..., expected {sha256[:12]}...); "
            f"run: pip install --force-reinstall {install}."
        )
    return data


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file atomically: readers find the whole file or none, and concurrent writers do not interleave.

    Raises:
        ModelError: The folder is not writable.
    """
    try:
        replace_file(path, data)
    except OSError as error:
        raise ModelError(
            f"Failed to write the model to {path.parent} ({error.strerror}); free up space there or set WORKBENCH_HOME."
        ) from error


GRAPH_VERSION = 3  # increase it when graphs change, so that older files are not used


@dataclass(frozen=True, slots=True)
class PublishedWeights:
    """A model's published weights: the name and sha256 of their file, and a function that builds graphs from them."""

    name: str
    sha256: str
    build: Callable[[Precision], bytes]

    def graph_path(self, models_dir: Path, precision: Precision) -> Path:
        return models_dir / f"{self.name}-graph{GRAPH_VERSION}-{precision}-{self.sha256[:12]}.onnx"

    def ensure_graph(self, models_dir: Path, precision: Precision) -> Path:
        """Return the graph's file, building it on first use (about a second); concurrent processes are safe.

        Raises:
            ModelError: The weights are missing or not the published ones, or the folder is not writable.
        """
        path = self.graph_path(models_dir, precision)
        if not path.is_file():
            write_atomically(path, self.build(precision))
        return path

    def open_session(self, models_dir: Path, precision: Precision, threads: int) -> InferenceSession:
        """Open the graph; a damaged file (full disk, crash) is rebuilt."""
        path = self.ensure_graph(models_dir, precision)
        try:
            return open_session(path, threads)
        except ModelError:
            path.unlink(missing_ok=True)
            return open_session(self.ensure_graph(models_dir, precision), threads)


def open_session(path: Path, threads: int) -> InferenceSession:
    """Open a graph on the CPU; ``threads`` share one run. Raises ModelError if ONNX Runtime rejects the file."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    # leaves the cores to the database in between
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.log_severity_level = 3  # errors only, since it warns of missing GPUs
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # its errors have no common class
        raise ModelError(f"ONNX Runtime cannot open {path} ({error}); remove the file and try again.") from error


# Trial of 8 bits against full precision for passages

TRIAL_TOKENS = 128  # of the trial text
TRIAL_RUNS = 4  # per precision; the fastest counts
MIN_SPEEDUP = 1.1  # minimum speedup for 8 bits
MIN_COSINE = 0.98  # minimum cosine of the two vectors; 0.99 is usual, integer overflow gives far less


@dataclass(frozen=True, slots=True)
class PrecisionChoice(Value):
    """The result of a trial on this machine."""

    precision: Precision
    times: float  # speedup of 8 bits
    cosine: float  # of the vectors in both precisions

    @property
    def sentence(self) -> str:
        if self.precision == "int8":
            return f"passages in 8 bits, {self.times:g} times as fast here as in full precision"
        rest = f"8 bits are {self.times:g} times as fast here, with a cosine of {self.cosine:g}"
        return f"passages in full precision; {rest}"


def load_precision_choice(name: str, models_dir: Path) -> PrecisionChoice | None:
    """Return the stored choice for a model on this machine; None if there was no trial."""
    try:
        stored = json.loads((models_dir / f"{name}-passages.json").read_text(encoding="utf-8"))
        if stored["machine"] != machine_key():
            return None
        precision: Precision = "int8" if stored["precision"] == "int8" else "float"
        return PrecisionChoice(precision, float(stored["times"]), float(stored["cosine"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def choose_precision(name: str, models_dir: Path, open_session: Callable[[Precision], InferenceSession]) -> Precision:
    """Return the precision for passages: the stored choice, or the result of a trial.

    ``open_session`` opens a graph for one thread. If the folder is not writable, the next process repeats the trial.
    """
    stored = load_precision_choice(name, models_dir)
    if stored is not None:
        return stored.precision
    speedup, cosine = compare_sessions(open_session("float"), open_session("int8"))
    precision: Precision = "int8" if speedup >= MIN_SPEEDUP and cosine >= MIN_COSINE else "float"
    choice = PrecisionChoice(precision, round(speedup, 2), round(cosine, 4))
    with suppress(ModelError):
        text = json.dumps({"machine": machine_key(), **choice.to_dict()}, indent=1)
        write_atomically(models_dir / f"{name}-passages.json", text.encode())
    return precision


def compare_sessions(full: InferenceSession, integers: InferenceSession) -> tuple[float, float]:
    """Return the speedup of the second session, and the cosine between both sessions' vectors for the same tokens.

    CPU time of the thread is measured, so other processes do not distort it.
    """
    ids = np.random.default_rng(0).integers(1000, 20_000, (1, TRIAL_TOKENS)).astype(np.int32)
    sessions = (full, integers)
    first, second = (session.run(["sentence_embedding"], {"input_ids": ids})[0] for session in sessions)
    fastest = [float("inf"), float("inf")]
    for _ in range(TRIAL_RUNS):
        for place, session in enumerate(sessions):
            begun = time.thread_time()
            session.run(["sentence_embedding"], {"input_ids": ids})
            fastest[place] = min(fastest[place], time.thread_time() - begun)
    cosine = float(np.sum(np.asarray(first) * np.asarray(second)))
    return fastest[0] / max(fastest[1], 1e-9), cosine


def machine_key() -> str:
    """Return a key that depends on the processor, ONNX Runtime and the graph version."""
    import onnxruntime

    return f"{_processor()}, onnxruntime {onnxruntime.__version__}, graph {GRAPH_VERSION}"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
    return model or platform.processor() or platform.machine()
