"""The trial that chooses, on the machine it runs on, between 8 bits and full precision for passages.

Integers are two to three times as fast where the processor multiplies them in one instruction (AVX-512 VNNI, AVX-VNNI,
AMX, ARM's dot products), and may be slower or less exact elsewhere. So both are tried once on the same tokens, which
takes half a second; the outcome is remembered beside the graphs until the processor or ONNX Runtime change.
"""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from workbench.errors import ModelError
from workbench.models.bert.files import write_whole
from workbench.models.bert.graph_blocks import Precision
from workbench.models.bert.session import GRAPH_VERSION
from workbench.types import Value

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

TOKENS = 128  # of the text that both are tried on
RUNS = 4  # each; the fastest counts
FASTER = 1.1  # times at least, or full precision stays
ALIKE = 0.98  # cosine at least of the two vectors; 0.99 is usual, overflowing integers give far less


@dataclass(frozen=True, slots=True)
class PrecisionChoice(Value):
    """The choice of a trial on this machine; ``times`` as fast are 8 bits, ``cosine`` is of the two vectors."""

    precision: Precision
    times: float
    cosine: float

    @property
    def sentence(self) -> str:
        """The outcome in a sentence."""
        if self.precision == "int8":
            return f"passages in 8 bits, {self.times:g} times as fast here as in full precision"
        rest = f"8 bits are {self.times:g} times as fast here, with a cosine of {self.cosine:g}"
        return f"passages in full precision; {rest}"


def remembered_choice(name: str, models_dir: Path) -> PrecisionChoice | None:
    """Return what was chosen on this machine for a model; None where nothing was tried yet, or there is no choice."""
    remembered = _remembered(models_dir / f"{name}-passages.json")
    if remembered is None or remembered.get("machine") != machine_key():
        return None
    try:
        times, cosine = float(str(remembered["times"])), float(str(remembered["cosine"]))
    except (KeyError, ValueError):
        return None
    return PrecisionChoice("int8" if remembered.get("precision") == "int8" else "float", times, cosine)


def chosen_precision(name: str, models_dir: Path, opened: Callable[[Precision], InferenceSession]) -> Precision:
    """Return the precision for passages: as remembered, or by trying both graphs.

    ``opened`` opens a graph for one thread. Where the folder cannot be written, the next process tries again.
    """
    path = models_dir / f"{name}-passages.json"
    machine = machine_key()
    remembered = _remembered(path)
    if remembered is not None and remembered.get("machine") == machine:
        return "int8" if remembered.get("precision") == "int8" else "float"
    speedup, cosine = tried(opened("float"), opened("int8"))
    precision: Precision = "int8" if speedup >= FASTER and cosine >= ALIKE else "float"
    outcome = {"machine": machine, "precision": precision, "times": round(speedup, 2), "cosine": round(cosine, 4)}
    try:
        write_whole(path, json.dumps(outcome, indent=1).encode())
    except ModelError:
        return precision
    return precision


def tried(full: InferenceSession, integers: InferenceSession) -> tuple[float, float]:
    """Return how many times faster the second session is, and the cosine of their vectors of the same tokens.

    The thread's own time is measured, so that a machine that does other things besides is no disturbance.
    """
    ids = np.random.default_rng(0).integers(1000, 20_000, (1, TOKENS)).astype(np.int32)
    sessions = (full, integers)
    first, second = (session.run(["sentence_embedding"], {"input_ids": ids})[0] for session in sessions)
    fastest = [float("inf"), float("inf")]
    for _ in range(RUNS):
        for place, session in enumerate(sessions):
            begun = time.thread_time()
            session.run(["sentence_embedding"], {"input_ids": ids})
            fastest[place] = min(fastest[place], time.thread_time() - begun)
    cosine = float(np.sum(np.asarray(first) * np.asarray(second)))
    return fastest[0] / max(fastest[1], 1e-9), cosine


def machine_key() -> str:
    """Return a text that changes with the processor, ONNX Runtime and the graphs."""
    import onnxruntime

    return f"{_processor()}, onnxruntime {onnxruntime.__version__}, graph {GRAPH_VERSION}"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
    return model or platform.processor() or platform.machine()


def _remembered(path: Path) -> dict[str, object] | None:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None
