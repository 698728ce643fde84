"""The sample corpus as a piece of work, for whoever starts the app on an empty database."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.app.work import WORKS, Work
from workbench.types import Progress

if TYPE_CHECKING:
    from workbench.workbench import Workbench


def start_sample(workbench: Workbench) -> str:
    """Begin to load the sample's articles; returns the work's id."""
    from workbench.services.sample_corpus import load_sample

    def do(work: Work) -> str:
        def show(progress: Progress) -> None:
            work.tell(progress.done / max(1, progress.total), progress.message)

        report = load_sample(workbench.knowledge, on_progress=show, should_stop=work.stopping)
        return (
            f"{report.added + report.updated + report.unchanged} articles are there, {report.passages:,} passages new"
        )

    return WORKS.start(Work("Loading the sample"), do)
