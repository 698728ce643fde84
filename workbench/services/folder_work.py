"""Changes of folders that are searched as they are on disk, left to a job where they are large."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Protocol

from workbench.services.job_service import JobService
from workbench.services.mirror import MirroredFolder
from workbench.services.work_size import LARGE
from workbench.storage.jobs import Job


class SearchedFolder(Protocol):
    """The verbs over a folder that its search brings up to date: archives, articles."""

    def mirrored(self) -> MirroredFolder:
        """Return the folder beside its source. Raises ConfigurationError where there is none."""
        ...


@dataclass(frozen=True, slots=True)
class FolderJob:
    """A job that brings a folder's changes in, or that failed at it: until then searches answer with what is there."""

    job: Job

    @property
    def sentence(self) -> str:
        """Say that the answer is not of everything on disk."""
        if self.job.is_finished:
            why = f": {self.job.error.rstrip('.')}" if self.job.error else ""
            return (
                f"Not everything on disk could be searched: the job that was to bring it in is {self.job.status}{why}."
            )
        return "What is new or changed on disk is being brought in; until then the index has what was there before."


class FolderWork:
    """The choice between bringing a folder in where it is searched, and a job."""

    def __init__(self, jobs: JobService) -> None:
        self._jobs, self._lock = jobs, threading.Lock()

    def left_to_job(self, folder: SearchedFolder) -> FolderJob | None:
        """Return the job that is to bring a folder's changes in; None where these are small enough to be waited for.

        Of one state of the folder there is one job: one that failed or was cancelled is not begun anew, and stands
        until it is resumed or the folder changes.
        """
        mirrored = folder.mirrored()
        if mirrored.is_known():
            return None
        with self._lock:  # several searches at once ask for one job
            wanted = {"mirrored": mirrored.kind, "folder": str(mirrored.folder)}
            unfinished = self._jobs.with_parameters("ingest", wanted, unfinished=True)
            if unfinished is not None:
                return FolderJob(unfinished)
            if mirrored.pending().bytes <= LARGE:
                return None
            source_id = mirrored.source()  # made before its state is told
            wanted["state"] = mirrored.state()
            job = self._jobs.with_parameters("ingest", wanted)
            if job is None:
                title = f"Embed {mirrored.folder.name}"
                return FolderJob(self._jobs.enqueue("ingest", title, {"paths": [], **wanted}, source_id=source_id))
            if job.status in ("completed", "completed_with_errors"):  # what is left cannot be read
                mirrored.settle()
                return None
            return FolderJob(job)
