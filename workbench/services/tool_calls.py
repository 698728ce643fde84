"""Calls of agents: kept, listed and forgotten."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.services.corpus import Corpus
from workbench.storage.tool_calls import Caller, ToolCall, ToolCalls

__all__ = ["Caller", "ToolCall", "ToolCallService"]


class ToolCallService:
    """The verbs over the log of tool calls."""

    def __init__(self, corpus: Corpus) -> None:
        self._calls = ToolCalls(corpus.database)

    def add(self, calls: Sequence[ToolCall]) -> None:
        """Write calls down; the newest 50,000 stay."""
        self._calls.add(calls)

    def list(
        self,
        *,
        tool: str | None = None,
        zero_only: bool = False,
        queries_only: bool = False,
        limit: int = 50,
        offset: int = 0,
    ) -> list[ToolCall]:
        """Return the last calls, newest first; ``zero_only`` those that found nothing, ``queries_only`` searches."""
        return self._calls.list(tool=tool, zero_only=zero_only, queries_only=queries_only, limit=limit, offset=offset)

    def count(self, *, tool: str | None = None, zero_only: bool = False, queries_only: bool = False) -> int:
        """Return how many calls are kept under the same conditions."""
        return self._calls.count(tool=tool, zero_only=zero_only, queries_only=queries_only)

    def callers(self) -> dict[str, Caller]:
        """Return the clients whose calls are kept, by name: how many there are, and when the last one came."""
        return self._calls.callers()

    def clear(self) -> None:
        """Forget every call."""
        self._calls.clear()
