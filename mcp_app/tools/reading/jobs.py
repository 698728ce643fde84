"""get_job: how work in the background is going."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp_app.arguments import Argument, Refused
from mcp_app.forms import acted
from mcp_app.job_answers import job_json
from mcp_app.parts import Items, next_call
from mcp_app.tool import Call, Tool
from mcp_app.tools.reading.family import FAMILY, LIMIT, SKIP
from workbench.errors import NotFound
from workbench.types.json import JsonObject

if TYPE_CHECKING:
    from workbench.storage.jobs import Job


def get_job(call: Call, job_id: str, limit: int, offset: int) -> JsonObject:
    """Return one job, or the newest jobs."""
    jobs = call.workbench.jobs
    if not job_id:
        listed = [job_json(job) for job in jobs.list(limit=limit, offset=offset)]
        return {"success": True, "jobs": listed, "count": len(listed), "total": jobs.count()}
    try:
        job = jobs.get(job_id)
    except NotFound:
        raise Refused(f"Job not found: {job_id}", "get_job() lists the jobs") from None
    parts = jobs.parts(job_id).to_json()
    return {"success": True, "job": job_json(job) | parts | {"result": _result(job, limit, offset)}}


def _result(job: Job, limit: int, offset: int) -> JsonObject:
    """Return a job's result; of each list in it as many items as are asked for, and the call that goes on."""
    longest = max((len(value) for value in job.result.values() if isinstance(value, list)), default=0)
    shown: JsonObject = {
        name: value[offset : offset + limit] if isinstance(value, list) else value for name, value in job.result.items()
    }
    if offset + limit < longest:
        going_on = next_call("get_job", {}, job_id=job.id, limit=limit, offset=offset + limit)
        shown["note"] = f"Items {offset + 1} to {offset + limit} of {longest}. Next: {going_on}"
    return shown


GET_JOB = Tool(
    name="get_job",
    title="Follow a job",
    description=(
        "Show how work in the background is going, or list the newest jobs.\n"
        "Use it after a tool answered with a job; crawls are steered by manage_crawl_job.\n"
        'Example: get_job(job_id="job_123")'
    ),
    reading_description=(
        "Show how work in the background is going, or list the newest jobs.\n"
        "Use it for work of every kind; for crawls alone use manage_crawl_job.\n"
        'Example: get_job(job_id="job_123")'
    ),
    arguments=(Argument("job_id", "string", "The job; empty lists all, newest first.", ""), LIMIT, SKIP),
    run=get_job,
    family=FAMILY,
    parts=Items("jobs", total="total"),
    advice="An answer with a job_id is still being worked on: get_job(job_id) tells how far.",
    output=acted(job="object", jobs="array", total="integer"),
)
