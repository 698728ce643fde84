"""Long work as the app sees it: a view of the jobs in the database, whichever process started or runs them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from workbench.app.state.shared import OPENING
from workbench.jobs.worker import STALLED
from workbench.storage.job_parts import FileTally
from workbench.storage.jobs import Job


@dataclass(frozen=True, slots=True)
class Work:
    """One job as it stood at ``moment``; ``tally`` counts its files, if any; ``heard`` is its worker's last pulse."""

    job: Job
    tally: FileTally
    moment: datetime
    heard: datetime | None = None

    @property
    def running(self) -> bool:
        """True until it has ended, by itself or by being stopped."""
        return not self.job.is_finished

    @property
    def share(self) -> float:
        """The share of the work that is done, 0..1."""
        return self.job.share

    @property
    def seconds_left(self) -> float | None:
        """The seconds that are likely left; None if unknown, or if the estimate has passed."""
        return self.job.seconds_left

    @property
    def quiet_for(self) -> float:
        """The seconds since its worker was last heard of, once it counts as dead; 0 before, or where no worker has it.

        A long step without a word is no silence: a worker whose heart beats keeps its job.
        """
        if self.job.status != "running" or self.job.updated_at is None:
            return 0.0
        silence = (self.moment - max(self.job.updated_at, self.heard or self.job.updated_at)).total_seconds()
        return silence if silence > STALLED else 0.0


class Works:
    """The work people want to see, oldest first: what goes on, and what ended until it is put away."""

    def all(self) -> dict[str, Work]:
        """Return the work in view by its job's id. Raises StorageError."""
        jobs, moment = OPENING.workbench.jobs, datetime.now(UTC)
        view = jobs.in_view()
        heard = jobs.heard() if any(job.status == "running" for job in view) else {}
        return {
            job.id: Work(job, jobs.tally(job.id) if job.kind == "ingest" else FileTally(), moment, heard.get(job.id))
            for job in view
        }


WORKS = Works()
