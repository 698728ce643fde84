"""A tool as a row: its arguments, its description, its hints, how a long answer is given in parts, and its function."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from mcp_app.arguments import Argument, missing
from mcp_app.file_roots import FileRoots
from mcp_app.paging import LONGEST_TITLE, Items, TextPart, cut, next_call
from workbench.errors import WorkbenchError
from workbench.services.articles import ArticleFolder
from workbench.types import OnProgress
from workbench.types.json import JsonObject, JsonValue

if TYPE_CHECKING:
    from workbench.opening import Opening
    from workbench.services.folders import SearchedFolder
    from workbench.storage.jobs import Job
    from workbench.workbench import Workbench

# --- The declared forms of answers: a JSON schema that names the fields of a tool's answer and their kinds ---


def form(at_times: Mapping[str, str] | None = None, /, **always: str) -> JsonObject:
    """Return the schema of an answer, each field by its JSON type: ``always`` is there, ``at_times`` may be."""
    kinds = {**always, **(at_times or {})}
    properties: JsonObject = {name: {"type": kind} for name, kind in kinds.items()}
    return {"type": "object", "properties": properties, "required": list(always)}


def acted(**at_times: str) -> JsonObject:
    """Return the schema of a tool with actions: each action's answer has some of the fields."""
    return form(at_times, success="boolean")


# --- Long work: the job that a tool answers with, and the next call that follows it ---

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
    left = call.wb.folder_work.left_to_job(folder)
    if left is None:
        return {}
    if not left.job.is_finished:
        call.work_jobs()
    then = resumed_by(call, left.job) if left.job.is_finished else followed_by(call, left.job)
    return {"job": job_json(left.job), "message": f"{left.sentence}{then}"}


LONGEST_START = 180.0  # seconds that a call waits for the workbench: on its first start it builds the model's graph


@dataclass(frozen=True, slots=True)
class Call:
    """The means of a tool while it serves one call: the workbench, the articles, the allowed files, a way to stop.

    ``offered`` are the names of the server's tools, the only ones that an answer may send a client to; None for all.
    """

    opening: Opening
    articles: ArticleFolder
    files: FileRoots
    offered: frozenset[str] | None = None
    stop: threading.Event = field(default_factory=threading.Event)
    on_progress: OnProgress | None = None

    @property
    def wb(self) -> Workbench:
        """The workbench, waited for where it still opens. Raises WorkbenchError."""
        self.opening.again()
        wb = self.opening.wait(LONGEST_START)
        if wb is None:
            raise WorkbenchError("The workbench is still starting; try again in a minute.")
        return wb

    def work_jobs(self) -> None:
        """Let this process take jobs, where one is about to be started."""
        self.opening.work_jobs()

    def offers(self, name: str) -> bool:
        """Tell whether the server that serves this call offers a tool."""
        return self.offered is None or name in self.offered

    def should_stop(self) -> bool:
        """Tell whether the caller has gone or the time is up."""
        return self.stop.is_set()


@dataclass(frozen=True, slots=True)
class ToolFamily:
    """How the tools of one specification write: ``render`` an answer, ``failure`` an error.

    ``failure`` is given the error, the suggestion and the arguments as they came.
    """

    render: Callable[[JsonValue], str]
    failure: Callable[[str, str, Mapping[str, object]], str]


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool of the contract.

    ``run(call, **arguments)`` returns what is rendered as the answer. ``reading_actions`` are the values of the
    argument ``action`` that change nothing: what stays of the tool in a read-only server. There ``reading_description``
    and ``reading_advice`` stand for ``description`` and ``advice`` where these speak of a change. ``parts`` says which
    list or text of the answer is given in parts where it is long; everything else is never shortened. ``from_files``
    says that it answers from files alone, before the workbench is open. ``advice`` is the tool's line in the server's
    instructions. ``output`` is the JSON schema of the answer's fields: every answer also goes out as structured content
    that keeps to it.
    """

    name: str
    title: str
    description: str
    arguments: tuple[Argument, ...]
    run: Callable[..., JsonValue]
    family: ToolFamily
    output: Mapping[str, JsonValue]
    read_only: bool = True
    destructive: bool = False
    idempotent: bool = True
    open_world: bool = False
    from_files: bool = False
    reading_actions: tuple[str, ...] = ()
    reading_description: str = ""
    reading_advice: str = ""
    parts: Items | TextPart | None = None
    advice: str = ""

    def reads(self, arguments: Mapping[str, JsonValue]) -> bool:
        """Tell whether a call with these arguments changes nothing."""
        return self.read_only or arguments.get("action") in self.reading_actions

    def offered_read_only(self) -> Tool | None:
        """Return what a read-only server offers of the tool, or None."""
        told = replace(
            self,
            description=self.reading_description or self.description,
            advice=self.reading_advice or self.advice,
        )
        if self.read_only:
            return told
        if not self.reading_actions:
            return None
        arguments = tuple(
            replace(argument, choices=self.reading_actions, why=f"{' or '.join(self.reading_actions)}.")
            if argument.name == "action"
            else argument
            for argument in self.arguments
            if argument.reading
        )
        return replace(told, arguments=arguments, read_only=True, destructive=False, idempotent=True, open_world=False)


def compact(value: JsonValue) -> str:
    """Write JSON without blanks, text as it is."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)


def failure_json(error: str, suggestion: str, given: Mapping[str, object]) -> str:
    """Write an error as the knowledge and workspace tools do."""
    del given
    return compact({"success": False, "error": error, "suggestion": suggestion})


def needed(value: str, name: str, action: str, how: str) -> str:
    """Return the value of an argument that an action cannot do without. Raises Refused."""
    if not value:
        raise missing(name, f"{name} is required for {action}. {how}")
    return value


PLAIN = ToolFamily(render=compact, failure=failure_json)
__all__ = ["PLAIN", "Call", "JsonObject", "JsonValue", "Tool", "ToolFamily", "compact", "failure_json", "needed"]
