"""The one boundary between a client and the workbench: arguments in, one text out, every failure a sentence."""

from __future__ import annotations

import asyncio
import functools
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import anyio
import anyio.to_thread

from mcp_app.arguments import Refused, read_arguments
from mcp_app.call_log import CallLog
from mcp_app.engine import Engine
from mcp_app.file_roots import FileRoots
from mcp_app.fitting import fit, one_line
from mcp_app.tool import Call, Tool
from workbench.errors import NotFound, ScopeError, WorkbenchError
from workbench.types import Progress

logger = logging.getLogger(__name__)

LONGEST_START = 180.0  # seconds that a call waits for the engine: on its first start it builds the model's graph
_WRITERS = 2  # writing calls at once; more would only take each other's core
_AGAIN = "Check the arguments and try again"


@dataclass(frozen=True, slots=True)
class Answer:
    """The text a client gets; ``status`` is the HTTP status that says the same."""

    text: str
    failed: bool = False
    status: int = 200


@dataclass(frozen=True, slots=True)
class Failure:
    """What went wrong, what to do about it, and the HTTP status that says the same."""

    error: str
    suggestion: str
    status: int


class Boundary:
    """Serves calls: checks, waits for the engine, runs in a thread, limits the time, fits the answer, keeps the log."""

    def __init__(self, engine: Engine) -> None:
        """What can be set comes from the workbench's settings, once that is open."""
        self.engine, self.log = engine, CallLog(engine)
        self._files: FileRoots | None = None
        self._readers: anyio.CapacityLimiter | None = None
        self._writers: anyio.CapacityLimiter | None = None

    async def serve(self, tool: Tool | None, name: str, given: Mapping[str, Any], context: Any = None) -> Answer:
        """Serve one call to its end; raises nothing but the cancellation of the call itself."""
        began = time.perf_counter()
        value: Any = None
        error: str | None = None
        if tool is None:
            error = one_line(f"Unknown tool: {name}")
            answer = Answer(error, failed=True, status=404)
        else:
            try:
                value = await self._value(tool, given, context)
                answer = Answer(fit(value, tool.family.render, tool.rest))
            except Exception as raised:  # noqa: BLE001 - the boundary: whatever it is, the client gets a sentence
                failure = explained(raised, tool)
                error = one_line(failure.error)
                text = tool.family.failure(error, one_line(failure.suggestion), given)
                answer = Answer(text, failed=True, status=failure.status)
        self.log.record(name, given, time.perf_counter() - began, answer.text, value, error)
        return answer

    async def _value(self, tool: Tool, given: Mapping[str, Any], context: Any) -> Any:
        arguments = read_arguments(tool.name, tool.arguments, given)
        with anyio.fail_after(LONGEST_START):
            workbench = await self.engine.ready()
        reports = Reports(context)
        settings = workbench.settings
        if self._files is None:
            self._files = FileRoots(settings.file_roots)
        call = Call(workbench, self._files, on_progress=reports.report, work_jobs=self.engine.work_jobs)
        seconds = settings.mcp_call_seconds if tool.read_only else settings.mcp_write_seconds
        limiter = self._limiter(tool, settings.pool_size)
        work = functools.partial(tool.run, call, **arguments)
        try:
            with anyio.fail_after(seconds):
                value = await anyio.to_thread.run_sync(work, abandon_on_cancel=True, limiter=limiter)
        except TimeoutError:
            raise Refused(
                f"{tool.name} was stopped after {seconds:g} seconds", "Ask for less, or try again later"
            ) from None
        finally:
            call.stop.set()  # timed out or cancelled: the work in the thread stops at its next step
        await reports.sent()
        return value

    def _limiter(self, tool: Tool, connections: int) -> anyio.CapacityLimiter:
        """Return the limiter of the tool's kind; made here, because it belongs to the running event loop."""
        if self._readers is None or self._writers is None:
            self._readers, self._writers = (
                anyio.CapacityLimiter(max(2, connections - _WRITERS)),
                anyio.CapacityLimiter(_WRITERS),
            )
        return self._readers if tool.read_only else self._writers


class Reports:
    """Progress from a worker thread to the client; what the client did not ask for goes nowhere."""

    def __init__(self, context: Any) -> None:
        self._context, self._loop = context, asyncio.get_running_loop()
        self._steps = 0
        self._last: asyncio.Task[None] | None = None

    @property
    def report(self) -> Callable[[Progress], None] | None:
        """The function that work calls, or None where there is no client to tell."""
        return self._take if self._context is not None else None

    async def sent(self) -> None:
        """Wait until everything reported is with the client, so that no report follows the answer."""
        if self._last is not None:
            await self._last

    def _take(self, progress: Progress) -> None:
        self._loop.call_soon_threadsafe(self._queue, progress)

    def _queue(self, progress: Progress) -> None:
        self._steps += 1
        self._last = self._loop.create_task(self._send(self._steps, progress, self._last))

    async def _send(self, step: int, progress: Progress, before: asyncio.Task[None] | None) -> None:
        if before is not None:
            await before
        what = f"{progress.done} of {progress.total}: {progress.message}" if progress.total > 1 else progress.message
        await self._context.report_progress(step, None, what)


def explained(error: Exception, tool: Tool) -> Failure:
    """Say in sentences what an exception means to a client."""
    cause = error.__cause__ if isinstance(error, ScopeError) and isinstance(error.__cause__, NotFound) else error
    match cause:
        case Refused():
            return Failure(cause.error, cause.suggestion or _AGAIN, 400)
        case NotFound():
            return Failure(str(cause), f"Verify the {cause.kind}'s id, or list what there is", 404)
        case WorkbenchError():
            return Failure(str(cause), _AGAIN, 500 if type(cause).__name__ in _OURS else 400)
        case TimeoutError():
            return Failure("The workbench is still starting", "Try again in a minute", 503)
    logger.error("%s failed", tool.name, exc_info=error)
    return Failure(f"{tool.name} failed unexpectedly ({type(error).__name__})", "The server's log has the details", 500)


_OURS = ("StorageError", "ModelError", "ConfigurationError")  # not the caller's doing
