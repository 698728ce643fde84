"""The sample corpus on a first run, so that there is something to search."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.cli.lifetime import stoppable

if TYPE_CHECKING:
    from workbench.cli.output import Out
    from workbench.types import ShouldStop
    from workbench.workbench import Workbench


def load_sample_once(workbench: Workbench, out: Out, should_stop: ShouldStop | None = None) -> None:
    """Load the sample into a workbench without a source, or go on where that was cut short; else do nothing.

    Raises:
        Cancelled: ``should_stop``, or without it Ctrl-C, said so.
    """
    from workbench.services.sample_corpus import load_sample, needs_sample

    if not needs_sample(workbench.sources):
        return
    out.message("First run: loading the sample corpus, about 50 articles on retrieval.")
    with out.progress("Sample") as show, stoppable(out) as interrupted:
        stop = should_stop or interrupted
        report = load_sample(workbench.documents, on_progress=show, should_stop=stop)
    out.message(f"Loaded {report.added + report.unchanged:,} articles in {report.seconds:.0f} s.")
