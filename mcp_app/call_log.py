"""The log of calls, written behind the answers: a call never waits for it and never fails because of it."""

from __future__ import annotations

import json
import logging
import queue
import threading
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from mcp_app.engine import Engine
from workbench.errors import WorkbenchError

logger = logging.getLogger(__name__)

LONGEST_QUERY = 2000  # characters of a question that are kept
LINGER = 1.0  # seconds between a call and its line in the log: writing at once would take the core from the answer
_SCOPE = ("scope", "project_id", "source_id", "folder_name", "tags", "workspace_path", "category")
_COUNTED = ("results", "documents", "sources", "folders", "crawl_jobs", "articles")


class CallLog:
    """Takes calls down and writes them in a thread of its own."""

    def __init__(self, engine: Engine) -> None:
        """Whether the log is kept at all is the workbench's setting ``mcp_log_calls``."""
        self._engine = engine
        self._queue: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._hurry = threading.Event()

    def record(
        self, tool: str, given: Mapping[str, Any], seconds: float, answer: str, value: Any, error: str | None
    ) -> None:
        """Note one call: of its arguments only sizes, scope and the question."""
        if not self._engine.is_ready or not self._engine.wait().settings.mcp_log_calls:
            return
        self._start()
        self._queue.put((tool, dict(given), datetime.now(UTC), seconds, len(answer), counted(value), error))

    def flush(self, timeout: float = 5.0) -> None:
        """Wait until what was noted so far is written."""
        if self._thread is None:
            return
        done = threading.Event()
        self._queue.put(done)
        self._hurry.set()
        done.wait(timeout)

    def _start(self) -> None:
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._write, name="call-log", daemon=True)
                self._thread.start()

    def _write(self) -> None:
        while True:
            batch = [self._queue.get()]
            self._hurry.wait(LINGER)
            self._hurry.clear()
            while not self._queue.empty():
                batch.append(self._queue.get())
            calls = [item for item in batch if not isinstance(item, threading.Event)]
            if calls and self._engine.is_ready:
                try:
                    self._engine.wait().tool_calls.add([_tool_call(*call) for call in calls])
                except WorkbenchError as error:
                    logger.warning("The call log could not be written: %s", error)
            for item in batch:
                if isinstance(item, threading.Event):
                    item.set()


def counted(value: Any) -> int | None:
    """Return how many things an answer holds, where it is a list of things."""
    if isinstance(value, list):
        return len(value)
    if isinstance(value, Mapping):
        return next((len(value[name]) for name in _COUNTED if isinstance(value.get(name), list)), None)
    return None


def _tool_call(
    tool: str,
    given: dict[str, Any],
    at: datetime,
    seconds: float,
    chars: int,
    results: int | None,
    error: str | None,
) -> Any:
    from workbench.services.tool_calls import ToolCall

    query = given.get("query")
    return ToolCall(
        tool=tool,
        called_at=at,
        duration_ms=round(seconds * 1000, 3),
        answer_chars=chars,
        query=query[:LONGEST_QUERY] if isinstance(query, str) else None,
        argument_sizes={str(name)[:60]: len(json.dumps(value, default=str)) for name, value in given.items()},
        scope={name: given[name] for name in _SCOPE if _short(given.get(name))},
        results=results,
        error=error,
    )


def _short(value: Any) -> bool:
    return bool(value) and len(json.dumps(value, default=str)) <= 500
