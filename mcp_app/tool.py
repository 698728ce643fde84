"""A tool as a row of a table, and the input of its function."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from mcp_app.arguments import Argument, make_missing_error
from mcp_app.file_roots import FileRoots
from mcp_app.paging import MAX_TITLE_CHARS, Items, TextPart, cut, format_next_call
from workbench import WorkbenchError
from workbench.services.article_files import ArticleFolder
from workbench.types import Interleaving, JsonObject, JsonValue, OnProgress, SearchResult, Value

if TYPE_CHECKING:
    from workbench.opening import Opening
    from workbench.services.folders import SearchedFolder
    from workbench.storage.jobs import Job
    from workbench.workbench import Workbench

# Output schemas of tools


def make_schema(at_times: Mapping[str, str] | None = None, /, **always: str) -> JsonObject:
    """Return the JSON schema of an answer, by the JSON types of its optional and its required fields."""
    kinds = {**always, **(at_times or {})}
    properties: JsonObject = {name: {"type": kind} for name, kind in kinds.items()}
    return {"type": "object", "properties": properties, "required": list(always)}


def make_action_schema(**at_times: str) -> JsonObject:
    """Return the schema of a tool with actions: ``success`` and optional fields."""
    return make_schema(at_times, success="boolean")


def pick(value: Value, *names: str) -> JsonObject:
    """Return some fields of a value as JSON; a long title is cut."""
    answer = value.to_dict()
    return {name: cut(str(answer[name]), MAX_TITLE_CHARS) if name == "title" else answer[name] for name in names}


# Notes on a search


def notes_json(nothing_close: str, degraded: Sequence[str], suggestion: str = "Use other words") -> JsonObject:
    """Return the notes on a search: why nothing is close, with a suggestion, and which parts of it failed."""
    notes: JsonObject = {"nothing_close": nothing_close, "suggestion": suggestion} if nothing_close else {}
    return notes | ({"degraded": list(degraded)} if degraded else {})


# Jobs in answers, and the call that follows them

JOB_TOOLS = (("get_job", {}), ("manage_crawl_job", {"action": "get"}))  # tools that show a job, preferred first


def name_tools(message: str) -> str:
    """Return a message with the call that resumes an experiment in place of the command."""
    call = re.sub(r"workbench experiments resume (\w+)", r'run_experiment(resume="\1")', message)
    return call.replace(") --budget DOLLARS", ", budget=DOLLARS)")


def job_json(job: Job) -> JsonObject:
    """Return a job as the tools show it."""
    names = ("title", "kind", "status", "done", "total", "seconds_left", "error", "source_id", "created_at")
    shown: JsonObject = {"job_id": job.id, **pick(job, *names, "completed_at"), "message": name_tools(job.message)}
    if not job.is_finished:
        shown["percent"] = int(job.share * 100)
    return shown | {"stalled": job.stalled} if job.stalled else shown


def format_follow_up(call: Call, job: Job) -> str:
    """Return " Next: " and the call that shows a job; "" if no such tool is offered."""
    names = (format_next_call(name, given, job_id=job.id) for name, given in JOB_TOOLS if call.offers(name))
    return next((f" Next: {name}" for name in names), "")


def format_resume(call: Call, job: Job) -> str:
    """Return " Next: " and the call that resumes a job, or shows it if resuming is not offered."""
    may_write = call.offers("crawl_website")  # a read-only server offers manage_crawl_job without resume
    if not (may_write and call.offers("manage_crawl_job")):
        return format_follow_up(call, job)
    return f" Next: {format_next_call('manage_crawl_job', {'action': 'resume', 'job_id': job.id})}"


def delegate_to_job(call: Call, folder: SearchedFolder) -> JsonObject:
    """Start a job for a folder that is about to be searched, if many of its files have changed.

    Returns:
        ``job`` and ``message`` for the answer from the indexed files; empty if no job is needed.
    """
    left = call.wb.folder_work.find_job(folder)
    if left is None:
        return {}
    if not left.job.is_finished:
        call.opening.work_jobs()
    then = format_resume(call, left.job) if left.job.is_finished else format_follow_up(call, left.job)
    return {"job": job_json(left.job), "message": f"{left.sentence}{then}"}


START_TIMEOUT_S = 180.0  # seconds that a call waits for the workbench; the first start compiles the model


@dataclass(frozen=True, slots=True)
class Call:
    """What a tool's function receives in addition to its arguments."""

    opening: Opening
    articles: ArticleFolder
    files: FileRoots  # folders that the tool may read
    offered: frozenset[str] | None = None  # names of the tools that an answer may mention; None for all
    flush_log: Callable[[], None] = lambda: None  # writes the calls so far to the log, for tools that read it
    stop: threading.Event = field(default_factory=threading.Event)  # set on timeout or cancellation
    on_progress: OnProgress | None = None  # None: the client asked for no progress
    interleavings: list[Interleaving] = field(default_factory=list)  # of its searches, for the log

    @property
    def wb(self) -> Workbench:
        """The workbench; waits while it is opening.

        Raises:
            WorkbenchError: It is still starting, or could not be opened.
        """
        self.opening.again()
        wb = self.opening.wait(START_TIMEOUT_S)
        if wb is None:
            raise WorkbenchError("The workbench is still starting; try again in a minute.")
        return wb

    def offers(self, name: str) -> bool:
        """Return whether the server offers a tool."""
        return self.offered is None or name in self.offered

    def describe_search(
        self, result: SearchResult, *, is_empty: bool, suggestion: str = "Use other words"
    ) -> JsonObject:
        """Return the notes on a search; that two strategies are mixed is also logged."""
        notes: JsonObject = {"preferring": [name.text for name in result.preferring]} if result.preferring else {}
        notes |= notes_json("" if is_empty else result.evidence.reason, result.degraded, suggestion)
        if result.interleaving is None:
            return notes
        self.interleavings[:] = [result.interleaving]
        return notes | {"interleaved": list(result.interleaving.strategies)}

    def should_stop(self) -> bool:
        """Return whether the call was cancelled or timed out."""
        return self.stop.is_set()


@dataclass(frozen=True, slots=True)
class ToolFamily:
    """The form of answers and errors for the tools of one specification."""

    render: Callable[[JsonValue], str]
    failure: Callable[[str, str, Mapping[str, object]], str]  # error, suggestion, arguments as sent


def dump_json(value: JsonValue) -> str:
    """Serialise as JSON without whitespace or ASCII escapes."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)


def make_family(empty: JsonObject, **repeated: str) -> ToolFamily:
    """Return a family whose answers and errors are JSON, the errors with the fields of an empty answer.

    Args:
        empty: The fields with their values.
        repeated: By field, the argument that it repeats if that is a non-empty string.
    """

    def failure(error: str, suggestion: str, given: Mapping[str, object]) -> str:
        texts = {field: text for field, name in repeated.items() if isinstance(text := given.get(name), str) and text}
        fields = empty | {field: text[:MAX_TITLE_CHARS] for field, text in texts.items()}
        return dump_json({"success": False, "error": error, "suggestion": suggestion, **fields})

    return ToolFamily(render=dump_json, failure=failure)


PLAIN_FAMILY = make_family({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One tool, which decorates its function: ``@Tool(title=..., arguments=..., output=...)``."""

    title: str
    arguments: tuple[Argument, ...]
    output: Mapping[str, JsonValue]  # JSON schema of the answer, which is also sent as structured content
    name: str = ""  # that of the decorated function
    description: str = ""  # its docstring, unless given
    run: Callable[..., JsonValue] = lambda: None  # run(call, **arguments) returns the value that is rendered
    family: ToolFamily = PLAIN_FAMILY
    read_only: bool = True
    destructive: bool = False
    idempotent: bool = True
    open_world: bool = False
    from_files: bool = False  # answers from files, before the workbench is open
    reading_actions: tuple[str, ...] = ()  # values of ``action`` that a read-only server offers
    reading_description: str = ""  # replaces ``description`` in a read-only server
    reading_advice: str = ""  # replaces ``advice`` in a read-only server
    parts: Items | TextPart | None = None  # the list or text that is cut if the answer is too long
    advice: str = ""  # the tool's line in the server's instructions
    documents: str = ""  # field with the id of a document that it finds, opens or cites, for the log

    def __call__(self, run: Callable[..., JsonValue]) -> Tool:
        """Return the tool of a function; in its docstring, "Use it ..." and "Example: ..." start lines."""
        text = re.sub(r"\s+", " ", run.__doc__ or "").strip()
        description = self.description or re.sub(" (?=Use it |Example: )", "\n", text)
        return replace(self, name=run.__name__, description=description, run=run)

    def reads(self, arguments: Mapping[str, JsonValue]) -> bool:
        """Return whether a call with these arguments changes nothing."""
        return self.read_only or arguments.get("action") in self.reading_actions

    def to_read_only(self) -> Tool | None:
        """Return the tool as a read-only server offers it, or None."""
        tool = replace(
            self, description=self.reading_description or self.description, advice=self.reading_advice or self.advice
        )
        if self.read_only:
            return tool
        if not self.reading_actions:
            return None
        arguments = tuple(
            replace(argument, choices=self.reading_actions, why=f"{' or '.join(self.reading_actions)}.")
            if argument.name == "action"
            else argument
            for argument in self.arguments
            if argument.reading
        )
        return replace(tool, arguments=arguments, read_only=True, destructive=False, idempotent=True, open_world=False)


def require(value: str, name: str, action: str, how: str) -> str:
    """Return the value of an argument that an action requires. Raises Refused if the value is empty."""
    if not value:
        raise make_missing_error(name, f"{name} is required for {action}. {how}")
    return value
