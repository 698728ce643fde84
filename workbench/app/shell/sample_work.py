"""The sample corpus as a job, for people who start the app on an empty database."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from workbench.workbench import Workbench

TITLE = "Loading the sample"


def start_sample(workbench: Workbench) -> str:
    """Hand the sample's articles to a worker, unless one has them already; returns the job's id."""
    from workbench.services.sample_corpus import SAMPLE_TAGS, SAMPLE_TITLE, sample_files

    for job in workbench.jobs.in_view():
        if job.title == TITLE and not job.is_finished:
            return job.id
    files = sample_files()
    return workbench.jobs.enqueue_ingest(files=files, source=SAMPLE_TITLE, tags=SAMPLE_TAGS, title=TITLE).id
