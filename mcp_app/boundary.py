"""The boundary between clients and the workbench.

Checks arguments, runs the tool in a thread, cuts long answers and turns every error into a message.
"""

from __future__ import annotations

import functools
import itertools
import json
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import anyio
import anyio.from_thread
import anyio.lowlevel
import anyio.to_thread

from mcp_app.arguments import Refused, find_ignored_arguments, read_arguments, select_repeated
from mcp_app.call_log import CallLog
from mcp_app.file_roots import FileRoots
from mcp_app.paging import MAX_TITLE_CHARS, Items, cut, cut_to_budget, to_one_line
from mcp_app.tool import START_TIMEOUT_S, Call, Tool, dump_json
from mcp_app.tools import filter_clauses
from workbench.errors import (
    Ambiguous,
    Cancelled,
    ConfigurationError,
    Conflict,
    CrawlRefused,
    ModelError,
    NotFound,
    OtherVersion,
    ScopeError,
    StatementRejected,
    StorageError,
    UnreadableDocument,
    WorkbenchError,
)
from workbench.opening import Opening
from workbench.runtime import find_missing_extra
from workbench.sample import articles_dir
from workbench.services.article_files import ArticleFolder
from workbench.telemetry import TOOL, measure
from workbench.types import (
    Countdown,
    Interleaving,
    JsonObject,
    JsonValue,
    OnProgress,
    Progress,
    as_items,
    as_object,
    time_left_text,
)

if TYPE_CHECKING:
    from workbench.settings import Settings

# Progress reports to the client


class ProgressClient(Protocol):
    """The part of the SDK's context that sends progress."""

    async def report_progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Send one report."""


def make_progress_callback(client: ProgressClient | None) -> OnProgress | None:
    """Return a callback for threads, which returns when its report is sent; None if there is no client.

    So the reports are in order, and none arrives after the answer.
    """
    if client is None:
        return None
    token, steps, countdown = anyio.lowlevel.current_token(), itertools.count(1), Countdown()

    def report(progress: Progress) -> None:
        message = f"{progress.done} of {progress.total}: {progress.message}" if progress.total > 1 else progress.message
        message = ", ".join(filter(None, (message, time_left_text(countdown.take(progress)))))
        anyio.from_thread.run(client.report_progress, next(steps), None, message, token=token)

    return report


_MAX_WRITERS = 2  # concurrent calls that write; more would compete for the CPU


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """An answer to a call."""

    text: str  # what the client gets
    failed: bool = False
    status: int = 200  # HTTP status
    value: JsonValue = None  # what the text was rendered from


class Boundary:
    """Serves calls: checks arguments, enforces time limits, cuts long answers and logs.

    Answers mention only tools that are offered, or all if that is None. Settings are read on the first call.
    """

    def __init__(self, opening: Opening, offered: frozenset[str] | None = None) -> None:
        self.opening, self.log, self.offered = opening, CallLog(opening), offered
        self._limiters: dict[bool, anyio.CapacityLimiter] = {}

    async def serve(
        self,
        tool: Tool | None,
        name: str,
        given: Mapping[str, object],
        client: ProgressClient | None = None,
        caller: str | None = None,
        session: str | None = None,
    ) -> ToolAnswer:
        """Serve one call; errors become answers, only cancellation is raised.

        The tool is None if its name is unknown. The log gets the caller, which is the name of the client, and the
        session, the id of its connection.
        """
        started = time.perf_counter()
        error: str | None = None
        mixed: list[Interleaving] = []
        if tool is None:
            error = to_one_line(f"Unknown tool: {name}")
            answer = ToolAnswer(error, failed=True, status=404)
        else:
            answer, error = await self._answer(tool, given, client, mixed)
        seconds, results = time.perf_counter() - started, count_results(answer.value, tool)
        found = list_document_ids(answer.value, tool.documents) if tool is not None and tool.documents else []
        self.log.record(
            name, given, seconds, len(answer.text), results, error, caller, session, found, mixed[0] if mixed else None
        )
        return answer

    async def _answer(
        self, tool: Tool, given: Mapping[str, object], client: ProgressClient | None, mixed: list[Interleaving]
    ) -> tuple[ToolAnswer, str | None]:
        """Return the tool's answer and its error message, or None."""
        with measure(TOOL, tool.name) as call:
            try:
                arguments = read_arguments(tool.name, tool.arguments, given)
                value = await self._run_tool(tool, arguments, client, mixed)
                value = note_ignored_arguments(value, tool, find_ignored_arguments(tool.arguments, given))
                repeated = select_repeated(tool.arguments, given)
                value, text = cut_to_budget(value, tool.parts, tool.family.render, tool.name, arguments, repeated)
                call.add_attributes(characters=len(text))
                call.add_call(given, text)
                return ToolAnswer(text, value=value), None
            except Exception as raised:  # noqa: BLE001 - the boundary: every error becomes an answer
                call.record_failure(type(raised).__name__)
                failure = explain_error(raised, tool)
                error = to_one_line(failure.error)
                suggestion = failure.suggestion or DEFAULT_SUGGESTION
                if self.offered is not None:
                    suggestion = filter_clauses(suggestion, self.offered) or DEFAULT_SUGGESTION
                text = tool.family.failure(error, to_one_line(suggestion), given)
                text = dump_json(json.loads(text) | failure.fields) if failure.fields else text
                return ToolAnswer(text, failed=True, status=failure.status), error

    async def _run_tool(
        self, tool: Tool, arguments: JsonObject, client: ProgressClient | None, mixed: list[Interleaving]
    ) -> JsonValue:
        reads = tool.reads(arguments)
        if not tool.from_files:
            with anyio.fail_after(START_TIMEOUT_S):
                await self.opening.ready()
        settings, articles, files = self._settings_and_folders
        report = make_progress_callback(client)
        call = Call(
            self.opening, articles, files, self.offered, self.log.flush, on_progress=report, interleavings=mixed
        )
        seconds = settings.mcp_call_seconds if reads else settings.mcp_write_seconds
        work = functools.partial(_run, tool, call, arguments, again=reads)
        try:
            with anyio.fail_after(seconds):
                limiter = self._get_limiter(reads, settings.pool_size)
                return await anyio.to_thread.run_sync(work, abandon_on_cancel=True, limiter=limiter)
        except TimeoutError:
            remedy = SLOW_REMEDY if self.opening.is_warm else LOADING_REMEDY
            raise Refused(f"{tool.name} was stopped after {seconds:g} seconds", remedy, status=503) from None
        finally:
            call.stop.set()  # after a timeout or cancellation the thread stops at its next step

    @functools.cached_property
    def _settings_and_folders(self) -> tuple[Settings, ArticleFolder, FileRoots]:
        """The settings, and the folders that tools may read; raises ConfigurationError if a setting is invalid."""
        settings = self.opening.settings
        return settings, ArticleFolder(settings.articles_dir or articles_dir()), FileRoots(settings.file_roots)

    def _get_limiter(self, reads: bool, connections: int) -> anyio.CapacityLimiter:
        """Return the limiter for reading or writing calls; created here because it belongs to the running loop."""
        if not self._limiters:
            sizes = {True: max(2, connections - _MAX_WRITERS), False: _MAX_WRITERS}
            self._limiters = {reading: anyio.CapacityLimiter(size) for reading, size in sizes.items()}
        return self._limiters[reads]


def _run(tool: Tool, call: Call, arguments: JsonObject, *, again: bool) -> JsonValue:
    """Run a tool; with ``again``, retry once if the database connection was lost."""
    try:
        return tool.run(call, **arguments)
    except StorageError as error:
        if not again or isinstance(error, StatementRejected):
            raise
    return tool.run(call, **arguments)


def note_ignored_arguments(value: JsonValue, tool: Tool, names: Sequence[str]) -> JsonValue:
    """Add a note on ignored arguments to an answer.

    In a bare array the note goes into the first item; an empty one gets none.
    """
    if not names or not isinstance(value, dict):
        return value
    note: JsonObject = {"ignored_arguments": cut(f"{tool.name} has no {', '.join(names)}; ignored.", MAX_TITLE_CHARS)}
    if not (isinstance(tool.parts, Items) and tool.parts.bare):
        return value | note
    match value.get(tool.parts.key):
        case [dict() as first, *others]:
            return value | {tool.parts.key: [first | note, *others]}
        case _:
            return value


def count_results(value: JsonValue, tool: Tool | None) -> int | None:
    """Return the number of items in an answer, 0 if none is close, or None if the tool does not answer with a list."""
    if isinstance(value, Mapping) and value.get("nothing_close"):
        return 0
    key = tool.parts.key if tool is not None and isinstance(tool.parts, Items) else None
    items = value if isinstance(value, list) else value.get(key) if isinstance(value, Mapping) and key else None
    return len(items) if isinstance(items, list) else None


def list_document_ids(value: JsonValue, field: str) -> list[str]:
    """Return the distinct ids of the documents in an answer: those of its results, or the one of the answer itself."""
    answer = as_object(value)
    rows = map(as_object, as_items(answer.get("results", [answer])))
    ids = (row.get(field) or as_object(row.get("metadata")).get("document_id") for row in rows)
    return list(dict.fromkeys(str(one) for one in ids if one))


# --- Exceptions as clients see them: error, suggestion and HTTP status ---

logger = logging.getLogger(__name__)

SLOW_REMEDY = "Request less, or check the database with 'workbench doctor', then call again"
LOADING_REMEDY = "The call is valid: the model is still loading, which a search waits for; call again in a minute"
DEFAULT_SUGGESTION = "Check the arguments and try again"
# The first matching row applies. Status 400 is the client's mistake, 500 the server's.
_REMEDIES: tuple[tuple[type[WorkbenchError], str, int], ...] = (
    (OtherVersion, "The call is valid: export and import the database as the message describes", 500),
    (StorageError, "The call is valid: start the database (see 'workbench doctor'), then call again", 500),
    (ModelError, "The call is valid: check the model with 'workbench doctor', then call again", 500),
    (ConfigurationError, "The call is valid: correct the setting and restart the server", 500),
    (Conflict, "Use the existing one, or choose another name", 400),
    (UnreadableDocument, "Check that the file opens in another program, or send its text as content", 400),
    (CrawlRefused, "Use a public http:// or https:// address", 400),
    (Cancelled, "Finished work is kept; call again to continue", 400),
    (WorkbenchError, DEFAULT_SUGGESTION, 400),
)


def explain_error(error: Exception, tool: Tool) -> Refused:
    """Convert an exception to a failure as clients see it."""
    named = isinstance(error, ScopeError) and isinstance(error.__cause__, NotFound | Ambiguous)
    cause = error.__cause__ if named else error
    if isinstance(cause, ModuleNotFoundError):
        cause = find_missing_extra(cause) or cause
    match cause:
        case Refused():
            return cause
        case Ambiguous():
            return Refused(str(cause), f"Give the id of one {cause.kind}")
        case NotFound():
            return Refused(str(cause), f"Check the {cause.kind}'s id, or list the valid ones", status=404)
        case WorkbenchError():
            remedy, status = next((row[1], row[2]) for row in _REMEDIES if isinstance(cause, row[0]))
            return Refused(str(cause), remedy, status=status)
        case TimeoutError():
            return Refused("The workbench is still starting", "Try again in a minute", status=503)
        case _:
            logger.error("%s failed", tool.name, exc_info=error)
            what = f"{tool.name} failed unexpectedly ({type(error).__name__})"
            return Refused(what, "See the server's log for details", status=500)
