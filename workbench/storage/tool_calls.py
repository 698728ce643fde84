"""The log of tool calls, and the history of comparisons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from psycopg.types.json import Jsonb

from workbench.storage.database import Table, clean_parameters, statement
from workbench.types import JsonValue, Value

MAX_CALLS_KEPT = 50_000  # calls; older ones are deleted, so that the log never outgrows the corpus
MAX_HISTORY_KEPT = 1_000  # comparisons that are not saved; older ones are deleted


@dataclass(frozen=True, slots=True)
class ToolCall(Value):
    """One call; ``argument_sizes`` counts characters of JSON; ``results`` is None if the tool does not count them.

    ``documents`` are the ids of those that a search found, best first, or that were opened or cited. ``promotion`` and
    ``teams``, the strategy of each document, belong to an interleaved search.
    """

    tool: str
    called_at: datetime
    duration_ms: float
    answer_chars: int
    query: str | None = None
    argument_sizes: Mapping[str, int] = field(default_factory=dict)
    scope: Mapping[str, JsonValue] = field(default_factory=dict)
    results: int | None = None
    error: str | None = None
    client: str | None = None
    session: str | None = None
    documents: Sequence[str] = ()
    promotion: str | None = None
    teams: Sequence[str] = ()
    id: int = 0
    zero_result: bool = False


@dataclass(frozen=True, slots=True)
class Caller(Value):
    """A client with the number of its logged calls and the time of the last one."""

    client: str
    calls: int
    last: datetime


class ToolCalls(Table):
    def add(self, calls: Sequence[ToolCall]) -> None:
        """Store calls in one transaction and delete the oldest."""
        with self._database.transaction() as connection:
            for call in calls:
                plain = ("called_at", "tool", "query", "duration_ms", "answer_chars", "results", "error", "client")
                values = {name: getattr(call, name) for name in (*plain, "session", "promotion")}
                values |= {"documents": list(call.documents), "teams": list(call.teams)}
                sizes, scope = Jsonb(dict(call.argument_sizes)), Jsonb(clean_parameters(dict(call.scope)))
                statement_values = clean_parameters(values) | {"argument_sizes": sizes, "scope": scope}
                connection.execute(statement("tool_call_insert"), statement_values)
            connection.execute(statement("tool_call_prune"), {"keep": MAX_CALLS_KEPT})

    def list(
        self,
        *,
        tool: str | None = None,
        zero_only: bool = False,
        queries_only: bool = False,
        limit: int | None = 50,
        offset: int = 0,
    ) -> list[ToolCall]:
        """Return the last calls, newest first; all of them if ``limit`` is None."""
        parameters = {"tool": tool, "zero_only": zero_only, "queries_only": queries_only}
        rows = self._rows("tool_call_list", parameters | {"limit": limit, "offset": offset})
        return [ToolCall(**row) for row in rows]

    def count(self, *, tool: str | None = None, zero_only: bool = False, queries_only: bool = False) -> int:
        """Return the number of calls that ``list`` would return without a limit."""
        return int(self._value("tool_call_count", {"tool": tool, "zero_only": zero_only, "queries_only": queries_only}))

    def callers(self) -> dict[str, Caller]:
        rows = self._rows("tool_call_callers")
        return {str(row["client"]): Caller(str(row["client"]), int(row["calls"]), row["last"]) for row in rows}

    def clear(self) -> None:
        self._rows("tool_call_clear")


@dataclass(frozen=True, slots=True)
class PastComparison(Value):
    """A comparison that was shown."""

    question: str  # the question
    address: str  # the query of its URL: question, strategies, parameters and scope
    asked_at: datetime  # when it was last shown
    saved: bool = False  # true if it is kept until someone removes it
    id: int = 0  # key of its row


class History(Table):
    """The table ``history``: the comparisons shown in the app."""

    def add(self, question: str, address: str) -> None:
        """Store a comparison, or the new time of a known one, and delete the oldest that are not saved."""
        values = clean_parameters({"question": question, "address": address})
        with self._database.transaction() as connection:
            connection.execute(statement("history_insert"), values)
            connection.execute(statement("history_prune"), {"keep": MAX_HISTORY_KEPT})

    def list(self, *, saved_only: bool = False, limit: int = 100) -> list[PastComparison]:
        """Return the last comparisons, newest first."""
        return [PastComparison(**row) for row in self._rows("history_list", {"saved_only": saved_only, "limit": limit})]

    def save(self, addresses: Sequence[str], *, saved: bool = True) -> None:
        """Mark comparisons as saved, or as not saved."""
        self._rows("history_save", {"addresses": list(addresses), "saved": saved})

    def clear(self) -> None:
        """Delete the comparisons that are not saved."""
        self._rows("history_clear")
