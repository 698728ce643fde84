"""Stop the model in the middle of a batch, which takes seconds on a busy machine: nobody should wait so long."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

ASK = 0.1  # seconds


def run_interruptibly(session: InferenceSession, inputs: Mapping[str, Any], ask: Callable[[], None]) -> Sequence[Any]:
    """Return what ``session.run`` gives; ``ask`` is called every tenth of a second meanwhile.

    What ``ask`` raises ends the run before its next operator, and is raised.
    """
    import onnxruntime

    options = onnxruntime.RunOptions()
    with ThreadPoolExecutor(1, thread_name_prefix="model") as pool:
        running = pool.submit(session.run, None, inputs, options)
        try:
            while not wait([running], timeout=ASK).done:
                ask()
        except BaseException:
            options.terminate = True
            raise
    return running.result()
