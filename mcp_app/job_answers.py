"""Long work: from which size on a tool answers with a job, and the job as the tools show it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp_app.fitting import LONGEST_TITLE, cut
from mcp_app.parts import next_call
from workbench.types.json import JsonObject

if TYPE_CHECKING:  # importing it brings the database driver along
    from mcp_app.tool import Call
    from workbench.storage.job_table import Job

FOLLOWERS = (("get_job", {}), ("manage_crawl_job", {"action": "get"}))  # the tools that show a job, the better first
LARGE = 150_000  # bytes: about two seconds of embedding on two cores; larger work becomes a job


def job_json(job: Job) -> JsonObject:
    """Return a job as the tools show it; ``status`` is queued, running, or how it ended."""
    answer = job.to_dict()
    names = ("kind", "status", "done", "total", "message", "seconds_left", "error", "source_id", "created_at")
    names += ("completed_at",)
    return {"job_id": job.id, "title": cut(job.title, LONGEST_TITLE)} | {name: answer[name] for name in names}


def followed_by(call: Call, job: Job) -> str:
    """Return the sentence, after a space, with the next call that shows a job; "" where no such tool is offered."""
    names = (next_call(name, given, job_id=job.id) for name, given in FOLLOWERS if call.offers(name))
    return next((f" Next: {name}" for name in names), "")
