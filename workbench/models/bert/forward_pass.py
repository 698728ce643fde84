"""The forward pass: texts of one length go through a session together, several at once, stopped where asked."""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, cast

import numpy as np

from workbench.models.encoder import FloatArray

if TYPE_CHECKING:
    from onnxruntime import InferenceSession
    from onnxruntime.capi.onnxruntime_pybind11_state import RunOptions

ASK = 0.1  # seconds
BATCH_TOKENS = 2048  # of texts of one length that share a run
Output = tuple[
    FloatArray, ...
]  # vectors (texts, dimensions) and, of some models, (texts, tokens, dimensions) of tokens


@dataclass(frozen=True, slots=True)
class ForwardPass:
    """A session and how it is used best: ``workers`` runs at once, and texts ``together`` in one run or each alone.

    In 8 bits each text runs alone: its scales are its own, so that a text has the same vector whatever comes with it.
    """

    session: InferenceSession
    workers: int
    together: bool

    def run(self, ids: Sequence[Sequence[int]], options: RunOptions | None = None) -> Output:
        """Return what the model says of texts of one length."""
        outputs = self.session.run(None, {"input_ids": np.array(ids, dtype=np.int32)}, options)
        return cast(Output, tuple(outputs))

    def batches(
        self, ids: Sequence[Sequence[int]], ask: Callable[[], None] | None = None
    ) -> Iterator[tuple[list[int], Output]]:
        """Yield places and outputs, longest texts first: those need most memory, and fail early if at all.

        ``ask`` is called every tenth of a second meanwhile, and may raise to stop: runs end before their next operator.
        """
        import onnxruntime

        options = onnxruntime.RunOptions()
        with ThreadPoolExecutor(self.workers, thread_name_prefix="model") as pool:
            pending: deque[tuple[list[int], Future[Output]]] = deque()
            try:
                for places in self._parts(ids):
                    pending.append((places, pool.submit(self.run, [ids[place] for place in places], options)))
                    if len(pending) > 2 * self.workers:
                        yield _finished(*pending.popleft(), ask)
                while pending:
                    yield _finished(*pending.popleft(), ask)
            except BaseException:
                options.terminate = True
                pool.shutdown(wait=False, cancel_futures=True)
                raise

    def _parts(self, ids: Sequence[Sequence[int]]) -> Iterator[list[int]]:
        order = sorted(range(len(ids)), key=lambda place: -len(ids[place]))
        for length, group in groupby(order, key=lambda place: len(ids[place])):
            places = list(group)
            size = max(1, BATCH_TOKENS // length) if self.together else 1
            yield from (places[start : start + size] for start in range(0, len(places), size))


def _finished(places: list[int], future: Future[Output], ask: Callable[[], None] | None) -> tuple[list[int], Output]:
    while ask is not None and not wait([future], timeout=ASK).done:
        ask()
    return places, future.result()


def usable_cores() -> int:
    """Return the number of cores this process may use."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
