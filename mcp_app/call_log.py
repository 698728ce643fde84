"""The log of calls, written in a thread: calls neither wait for it nor fail with it."""

from __future__ import annotations

import json
import logging
import queue
import threading
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from workbench.errors import WorkbenchError
from workbench.opening import Opening
from workbench.types import Interleaving, JsonObject, to_plain

if TYPE_CHECKING:
    from workbench.storage.tool_calls import ToolCall

logger = logging.getLogger(__name__)

MAX_QUERY_CHARS = 2000  # characters of a query in the log
MAX_QUEUED_CALLS = 1000  # calls queued until the workbench is open
WRITE_DELAY_S = 1.0  # seconds between a call and its write, which would otherwise compete with the answer for the CPU
_SCOPE_ARGUMENTS = ("scope", "project_id", "source_id", "folder_name", "tags", "workspace_path", "category")
_SCOPE_OF_TOOLS: dict[str, JsonObject] = {
    "rag_search_project_knowledge": {"scope": "project"},
    "rag_search_global_knowledge": {"scope": "global"},
}


class CallLog:
    """Logs calls to the database in a separate thread, unless the setting ``mcp_log_calls`` is off."""

    def __init__(self, opening: Opening) -> None:
        self._opening = opening
        self._queue: queue.SimpleQueue[ToolCall | threading.Event] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._flush_now = threading.Event()

    def record(
        self,
        tool: str,
        given: Mapping[str, object],
        seconds: float,
        chars: int,
        results: int | None,
        error: str | None,
        client: str | None = None,
        session: str | None = None,
        documents: Sequence[str] = (),
        mixed: Interleaving | None = None,
    ) -> None:
        """Queue a call; only the sizes of its arguments, the scope, the query and ids of documents are logged."""
        from workbench.storage.tool_calls import ToolCall

        if self._opening.is_ready and not self._opening.workbench.settings.mcp_log_calls:
            return
        self._start_thread()
        query = given.get("query")
        call = ToolCall(
            tool=tool,
            called_at=datetime.now(UTC),
            duration_ms=round(seconds * 1000, 3),
            answer_chars=chars,
            query=query[:MAX_QUERY_CHARS] if isinstance(query, str) else None,
            argument_sizes={str(name)[:60]: len(json.dumps(value, default=str)) for name, value in given.items()},
            scope=_SCOPE_OF_TOOLS.get(tool, {})
            | {name: to_plain(given[name]) for name in _SCOPE_ARGUMENTS if _is_short(given.get(name))},
            results=results,
            error=error,
            client=client[:100] if client else None,
            session=session,
            documents=documents,
            promotion=mixed.promotion if mixed else None,
            teams=[mixed.teams.get(one, "") for one in documents] if mixed else (),
        )
        self._queue.put(call)

    def flush(self, timeout: float = 5.0) -> None:
        """Wait until the calls recorded so far are written."""
        if self._thread is None:
            return
        done = threading.Event()
        self._queue.put(done)
        self._flush_now.set()
        done.wait(timeout)

    def _start_thread(self) -> None:
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._write_batches, name="call-log", daemon=True)
                self._thread.start()

    def _write_batches(self) -> None:
        calls: list[ToolCall] = []
        while True:
            batch = [self._queue.get()]
            self._flush_now.wait(WRITE_DELAY_S)
            self._flush_now.clear()
            while not self._queue.empty():
                batch.append(self._queue.get())
            calls = [*calls, *(item for item in batch if not isinstance(item, threading.Event))][-MAX_QUEUED_CALLS:]
            if calls and self._opening.is_ready:
                self._add(calls)
                calls = []
            for item in batch:
                if isinstance(item, threading.Event):
                    item.set()

    def _add(self, calls: Sequence[ToolCall]) -> None:
        wb = self._opening.workbench
        if not wb.settings.mcp_log_calls:
            return
        try:
            wb.tool_calls.add(calls)
        except WorkbenchError as error:
            logger.warning("The call log could not be written: %s", error)


def _is_short(value: object) -> bool:
    return bool(value) and len(json.dumps(value, default=str)) <= 500
