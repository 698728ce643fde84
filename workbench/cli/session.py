"""The workbench of one command, and cancellation with Ctrl-C."""

from __future__ import annotations

import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

from workbench.cli.output import Output
from workbench.types import ShouldStop

if TYPE_CHECKING:
    from workbench.workbench import Workbench


def open_workbench() -> Workbench:
    """Open the workbench configured by the environment; use it in a ``with`` statement, which closes it."""
    from workbench.opening import open_configured

    return open_configured(starts_worker=False)


@contextmanager
def cancel_on_sigint(out: Output) -> Generator[ShouldStop]:
    """Yield ``should_stop``: the first Ctrl-C requests a stop after the current step, the second interrupts."""
    stopping = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stopping.is_set
        return

    def ask(number: int, frame: FrameType | None) -> None:
        if stopping.is_set():
            raise KeyboardInterrupt
        stopping.set()
        out.message("Stopping after the current document; press Ctrl-C again to stop at once.")

    before = signal.signal(signal.SIGINT, ask)
    try:
        yield stopping.is_set
    finally:
        signal.signal(signal.SIGINT, before)


# The sample corpus on first run


def ensure_sample(wb: Workbench, out: Output, should_stop: ShouldStop | None = None) -> None:
    """Load the sample if there is no source yet, or if an earlier load was interrupted.

    Raises:
        Cancelled: ``should_stop`` returned True, or Ctrl-C was pressed if it is None.
    """
    from workbench.services.sample_corpus import load_sample, needs_sample

    if not needs_sample(wb.sources):
        return
    out.message("First run: loading the sample corpus (about 50 articles on retrieval).")
    with out.progress("Sample") as show, cancel_on_sigint(out) as interrupted:
        stop = should_stop or interrupted
        report = load_sample(wb.documents, on_progress=show, should_stop=stop)
    out.message(f"Loaded {report.added + report.unchanged:,} articles in {report.seconds:.0f} s.")
