"""Long work: the job that a tool answers with, and the next call that follows it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp_app.fitting import LONGEST_TITLE, cut
from mcp_app.parts import next_call
from workbench.types.json import JsonObject

if TYPE_CHECKING:
    from mcp_app.tool import Call
    from workbench.services.folders import SearchedFolder
    from workbench.storage.jobs import Job

FOLLOWERS = (("get_job", {}), ("manage_crawl_job", {"action": "get"}))  # the tools that show a job, the better first


def job_json(job: Job) -> JsonObject:
    """Return a job as the tools show it; ``status`` is queued, running, or how it ended."""
    answer = job.to_dict()
    names = ("kind", "status", "done", "total", "message", "seconds_left", "error", "source_id", "created_at")
    names += ("completed_at",)
    shown = {"job_id": job.id, "title": cut(job.title, LONGEST_TITLE)} | {name: answer[name] for name in names}
    if not job.is_finished:
        shown["percent"] = int(job.share * 100)
    return shown | {"stalled": job.stalled} if job.stalled else shown


def followed_by(call: Call, job: Job) -> str:
    """Return the sentence, after a space, with the next call that shows a job; "" where no such tool is offered."""
    names = (next_call(name, given, job_id=job.id) for name, given in FOLLOWERS if call.offers(name))
    return next((f" Next: {name}" for name in names), "")


def resumed_by(call: Call, job: Job) -> str:
    """Return the sentence, after a space, with the call that lets a job go on, or else with one that shows it."""
    may_write = call.offers("crawl_website")  # a server that only reads offers the other with its reading actions
    if not (may_write and call.offers("manage_crawl_job")):
        return followed_by(call, job)
    return f" Next: {next_call('manage_crawl_job', {'action': 'resume', 'job_id': job.id})}"


def left_to_job(call: Call, folder: SearchedFolder) -> JsonObject:
    """Let a job bring in what changed in a folder that is to be searched, where it is much; it begins now.

    Returns what an answer of what is there already says of it, as ``job`` and ``message``; nothing where no job is
    needed.
    """
    left = call.workbench.folder_work.left_to_job(folder)
    if left is None:
        return {}
    if not left.job.is_finished:
        call.work_jobs()
    then = resumed_by(call, left.job) if left.job.is_finished else followed_by(call, left.job)
    return {"job": job_json(left.job), "message": f"{left.sentence}{then}"}
