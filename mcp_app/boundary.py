"""The one boundary between a client and the workbench: arguments in, one text out, every failure a sentence."""

from __future__ import annotations

import asyncio
import functools
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import anyio
import anyio.to_thread

from mcp_app.arguments import Refused, ignored_arguments, read_arguments, telling
from mcp_app.call_log import CallLog
from mcp_app.failures import AGAIN, explained
from mcp_app.file_roots import FileRoots
from mcp_app.paging import LONGEST_TITLE, Items, cut, given_in_parts, one_line
from mcp_app.tool import LONGEST_START, Call, Tool, compact
from mcp_app.tools import naming_only
from workbench.errors import StatementRefused, StorageError
from workbench.opening import Opening
from workbench.sample import articles_dir
from workbench.services.articles import ArticleFolder
from workbench.telemetry import TOOL, measured
from workbench.types import Countdown, OnProgress, Progress, time_left
from workbench.types.json import JsonObject, JsonValue

if TYPE_CHECKING:
    from workbench.settings import Settings

# --- Progress from a worker thread to the client; reports that the client did not ask for go nowhere ---


class ProgressClient(Protocol):
    """The part of the SDK's context that tells a client how far its call is."""

    async def report_progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Send one report."""


class Reports:
    """The sender of reports, in the order in which they were made, from the running event loop."""

    def __init__(self, client: ProgressClient | None) -> None:
        self._client, self._loop = client, asyncio.get_running_loop()
        self._steps, self._countdown = 0, Countdown()
        self._last: asyncio.Task[None] | None = None

    @property
    def report(self) -> OnProgress | None:
        """The function that work calls, or None where there is no client to tell."""
        return self._take if self._client is not None else None

    async def sent(self) -> None:
        """Wait until everything reported is with the client, so that no report follows the answer."""
        if self._last is not None:
            await self._last

    def _take(self, progress: Progress) -> None:
        self._loop.call_soon_threadsafe(self._queue, progress)

    def _queue(self, progress: Progress) -> None:
        self._steps += 1
        left = self._countdown.take(progress)
        self._last = self._loop.create_task(self._send(self._steps, progress, left, self._last))

    async def _send(self, step: int, progress: Progress, left: float | None, before: asyncio.Task[None] | None) -> None:
        if before is not None:
            await before
        assert self._client is not None
        message = f"{progress.done} of {progress.total}: {progress.message}" if progress.total > 1 else progress.message
        message = ", ".join(filter(None, (message, time_left(left))))
        await self._client.report_progress(step, None, message)


_WRITERS = 2  # writing calls at once; more would only take each other's core


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """The text a client gets, and the value it was written from; ``status`` is the HTTP status that says the same."""

    text: str
    failed: bool = False
    status: int = 200
    value: JsonValue = None


@dataclass(frozen=True, slots=True)
class Ground:
    """The settings, the articles and the allowed folders, which are there before the workbench is open."""

    settings: Settings
    articles: ArticleFolder
    files: FileRoots


class Boundary:
    """The server of calls: checks them, works in a thread for a limited time, answers in parts, keeps the log."""

    def __init__(self, opening: Opening, offered: frozenset[str] | None = None) -> None:
        """Take what can be set from the workbench's settings, once that is open; ``offered`` are the tools' names."""
        self.opening, self.log, self.offered = opening, CallLog(opening), offered
        self._grounds: Ground | None = None
        self._limiters: dict[bool, anyio.CapacityLimiter] = {}

    async def serve(
        self,
        tool: Tool | None,
        name: str,
        given: Mapping[str, object],
        client: ProgressClient | None = None,
        caller: str | None = None,
    ) -> ToolAnswer:
        """Serve one call to its end; raises nothing but the cancellation of the call itself.

        ``client`` is told of progress; ``caller`` is its name for the log.
        """
        began = time.perf_counter()
        error: str | None = None
        if tool is None:
            error = one_line(f"Unknown tool: {name}")
            answer = ToolAnswer(error, failed=True, status=404)
        else:
            answer, error = await self._answered(tool, given, client)
        results = counted(answer.value, tool)
        self.log.record(name, given, time.perf_counter() - began, len(answer.text), results, error, caller)
        return answer

    async def _answered(
        self, tool: Tool, given: Mapping[str, object], client: ProgressClient | None
    ) -> tuple[ToolAnswer, str | None]:
        """Return a known tool's answer, and the error that it tells of or None."""
        with measured(TOOL, tool.name) as call:
            try:
                arguments = read_arguments(tool.name, tool.arguments, given)
                value = await self._value(tool, arguments, client)
                value = noting_ignored(value, tool, ignored_arguments(tool.arguments, given))
                repeated = telling(tool.arguments, given)
                value, text = given_in_parts(value, tool.parts, tool.family.render, tool.name, arguments, repeated)
                call.tell(characters=len(text))
                return ToolAnswer(text, value=value), None
            except Exception as raised:  # noqa: BLE001 - the boundary: the client gets a sentence for any error
                call.failed(type(raised).__name__)
                failure = explained(raised, tool)
                error = one_line(failure.error)
                suggestion = failure.suggestion
                if self.offered is not None:
                    suggestion = naming_only(suggestion, self.offered) or AGAIN
                text = tool.family.failure(error, one_line(suggestion), given)
                text = compact(json.loads(text) | failure.fields) if failure.fields else text
                return ToolAnswer(text, failed=True, status=failure.status), error

    async def _value(self, tool: Tool, arguments: JsonObject, client: ProgressClient | None) -> JsonValue:
        reports = Reports(client)
        reads = tool.reads(arguments)
        if not tool.from_files:
            with anyio.fail_after(LONGEST_START):
                await self.opening.ready()
        ground = self._ground()
        settings = ground.settings
        call = Call(self.opening, ground.articles, ground.files, self.offered, on_progress=reports.report)
        seconds = settings.mcp_call_seconds if reads else settings.mcp_write_seconds
        work = functools.partial(_run, tool, call, arguments, again=reads)
        try:
            with anyio.fail_after(seconds):
                limiter = self._limiter(reads, settings.pool_size)
                value = await anyio.to_thread.run_sync(work, abandon_on_cancel=True, limiter=limiter)
        except TimeoutError:
            raise Refused(
                f"{tool.name} was stopped after {seconds:g} seconds", "Ask for less, or try again later"
            ) from None
        finally:
            call.stop.set()  # timed out or cancelled: the work in the thread stops at its next step
        await reports.sent()
        return value

    def _ground(self) -> Ground:
        """Return what calls stand on beside the workbench; read once. Raises ConfigurationError."""
        if self._grounds is None:
            settings = self.opening.settings
            articles = ArticleFolder(settings.articles_dir or articles_dir())
            self._grounds = Ground(settings, articles, FileRoots(settings.file_roots))
        return self._grounds

    def _limiter(self, reads: bool, connections: int) -> anyio.CapacityLimiter:
        """Return the limiter of reading or of writing calls; made here, because it belongs to the running loop."""
        if not self._limiters:
            self._limiters = {
                True: anyio.CapacityLimiter(max(2, connections - _WRITERS)),
                False: anyio.CapacityLimiter(_WRITERS),
            }
        return self._limiters[reads]


def _run(tool: Tool, call: Call, arguments: JsonObject, *, again: bool) -> JsonValue:
    """Run a tool; one that only reads is asked once more where the database went away and may be back by now."""
    try:
        return tool.run(call, **arguments)
    except StorageError as error:
        if not again or isinstance(error, StatementRefused):
            raise
    return tool.run(call, **arguments)


def noting_ignored(value: JsonValue, tool: Tool, names: Sequence[str]) -> JsonValue:
    """Return an answer with a sentence on arguments that were ignored; an answer that is an array has it in its first.

    An empty array has no room for it.
    """
    if not names or not isinstance(value, dict):
        return value
    note: JsonObject = {"ignored_arguments": cut(f"{tool.name} has no {', '.join(names)}; ignored.", LONGEST_TITLE)}
    if not (isinstance(tool.parts, Items) and tool.parts.bare):
        return value | note
    match value.get(tool.parts.key):
        case [dict() as first, *others]:
            return value | {tool.parts.key: [first | note, *others]}
        case _:
            return value


def counted(value: JsonValue, tool: Tool | None) -> int | None:
    """Return how many things an answer holds, where the tool declares that it is a list of things."""
    key = tool.parts.key if tool is not None and isinstance(tool.parts, Items) else None
    items = value if isinstance(value, list) else value.get(key) if isinstance(value, Mapping) and key else None
    return len(items) if isinstance(items, list) else None
