"""The sharing of one job by several workers: one leads it, others take parts of it, each part whole or not at all."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import replace

from workbench.errors import StorageError
from workbench.jobs.assignment import TELL, Assignment
from workbench.storage.ids import new_id
from workbench.storage.job_parts import PartsInHand
from workbench.storage.job_table import Jobs
from workbench.types import OnProgress, Progress


@contextmanager
def shared(jobs: Jobs, assignment: Assignment, plan: Callable[[], None]) -> Generator[PartsInHand]:
    """Yield the parts of a job for this worker's hands; what is still in them at the end waits for others.

    ``plan`` writes the parts, once: a worker that takes the job over from a dead one finds them, and what is done.
    """
    job, holder = assignment.job, new_id("hand")
    with jobs.hold(holder):
        if assignment.leads and not jobs.parts.are_planned(job.id):
            plan()
        parts = PartsInHand(
            jobs.parts,
            job.id,
            holder,
            leads=assignment.leads,
            invite=lambda: jobs.invite(job.id, job.kind),
            is_wanted_elsewhere=assignment.is_wanted_elsewhere,
        )
        try:
            yield parts
            if assignment.leads:
                tally = parts.tally()
                assignment.progress(Progress(tally.items_done, tally.items, "Every part is done."))
        finally:
            with suppress(StorageError):  # the first error tells more, and the lock ends anyway
                parts.give_back()


def progress_of(assignment: Assignment, parts: PartsInHand, unit: str) -> OnProgress | None:
    """Return what tells how far the whole job is, by its parts; None for helping hands, which tell nothing.

    Once others did some of it, the time left is told by the pace of the whole and not by what these hands expect.
    """
    if not assignment.leads:
        return None
    told = float("-inf")

    def tell(progress: Progress) -> None:
        nonlocal told
        if time.monotonic() - told < TELL:
            return
        told = time.monotonic()
        tally = parts.tally()
        if tally.holders < 2 and tally.done <= parts.done_here:
            assignment.progress(replace(progress, done=tally.items_done, total=tally.items))
            return
        workers = f", by {tally.holders} workers" if tally.holders > 1 else ""
        message = f"{tally.items_done:,} of {tally.items:,} {unit}{workers}"
        assignment.progress(Progress(tally.items_done, tally.items, message, progress.part))

    return tell
