"""Subscriptions to changes: sources added or deleted, and documents with new text.

The database is polled while there are listeners, because any process may make the change.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import anyio.to_thread
from mcp.server.subscriptions import InMemorySubscriptionBus, ResourcesListChanged, ResourceUpdated, ServerEvent
from mcp.types import EmptyResult, NotificationParams, SubscribeRequestParams, UnsubscribeRequestParams

from workbench import WorkbenchError
from workbench.opening import Opening

if TYPE_CHECKING:
    from workbench.workbench import Workbench

POLL_INTERVAL_S = 1.0  # seconds between two polls of the database
MAX_CHANGED_DOCUMENTS = 1000  # changed documents reported per poll


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What one poll found."""

    sources: Mapping[str, tuple[object, ...] | None]  # id to a value that changes with the source; None: not read
    documents: Mapping[str, str] = field(default_factory=dict[str, str])  # changed since the last poll: id to source id
    at: datetime = field(default_factory=lambda: datetime.now(UTC))


class ChangeBus(InMemorySubscriptionBus):
    """The SDK's subscription bus; polls for changes while it has listeners."""

    def __init__(self, opening: Opening) -> None:
        super().__init__()
        self._opening = opening
        self.listeners = 0
        self._full_count = 0  # listeners that need more than ids
        self._polling: asyncio.Task[None] | None = None

    def subscribe(self, listener: Callable[[ServerEvent], None], *, lists_only: bool = False) -> Callable[[], None]:
        """Register a listener, start polling if it is the first, and return a function that unregisters it.

        With ``lists_only`` it needs only added and deleted sources; if this holds for all, only ids are read.
        """
        unregister = super().subscribe(listener)
        self.listeners += 1
        self._full_count += not lists_only
        if self._polling is None or self._polling.done():
            self._polling = asyncio.get_running_loop().create_task(self._poll())

        is_over = False

        def unsubscribe() -> None:
            nonlocal is_over
            unregister()
            if not is_over:
                self.listeners -= 1
                self._full_count -= not lists_only
            is_over = True

        return unsubscribe

    async def _poll(self) -> None:
        before: Snapshot | None = None
        while self.listeners > 0:
            read = take_snapshot if self._full_count else read_source_ids
            try:
                wb = await self._opening.ready()
                after = await anyio.to_thread.run_sync(read, wb, before)
            except WorkbenchError:  # the database is unavailable; changes are reported once it is back
                await asyncio.sleep(POLL_INTERVAL_S)
                continue
            for event in diff_snapshots(before, after) if before is not None else ():
                await self.publish(event)
            before = after
            await asyncio.sleep(POLL_INTERVAL_S)


def read_source_ids(wb: Workbench, before: Snapshot | None) -> Snapshot:
    """Read the ids of the sources only. Raises StorageError if the database is unavailable."""
    known = before.sources if before is not None else {}
    return Snapshot({key: known.get(key) for key in wb.sources.ids()})


def take_snapshot(wb: Workbench, before: Snapshot | None) -> Snapshot:
    """Read the sources, and the documents changed since the last poll. Raises StorageError."""
    sources = {
        source.id: (source.title, source.updated_at, source.documents_count, source.passages_count)
        for source in wb.sources.list()
    }
    last = before.at if before is not None else None
    changed, at = wb.documents.list_changed(last, MAX_CHANGED_DOCUMENTS)
    return Snapshot(sources, changed, at)


def diff_snapshots(before: Snapshot, after: Snapshot) -> list[ServerEvent]:
    """Return the events between two polls."""
    events: list[ServerEvent] = []
    if before.sources.keys() != after.sources.keys():
        events.append(ResourcesListChanged())
    touched = {
        key: None
        for key, mark in before.sources.items()
        if key not in after.sources or (mark is not None and after.sources[key] != mark)
    }
    touched |= dict.fromkeys(after.documents.values())
    events += [ResourceUpdated(uri=f"source://{key}") for key in touched]
    events += [ResourceUpdated(uri=f"document://{key}") for key in after.documents]
    return events


# Clients that start with a handshake

if TYPE_CHECKING:
    from mcp.server.connection import Connection
    from mcp.server.context import ServerRequestContext

    Context = ServerRequestContext[dict[str, object]]


class Subscribers:
    """Clients subscribed to the list of resources (all that start with a handshake) or to single resources."""

    def __init__(self, bus: ChangeBus) -> None:
        self._bus = bus
        self._subscriptions: dict[tuple[Connection, str], Callable[[], None]] = {}
        self._sending: set[asyncio.Task[None]] = set()

    async def begin(self, ctx: Context, params: NotificationParams) -> None:
        """Notify a client of added and deleted resources until its connection closes."""
        connection = _get_connection(ctx)

        def notify(event: ServerEvent) -> None:
            if isinstance(event, ResourcesListChanged):
                self._send(connection.send_resource_list_changed())

        connection.exit_stack.callback(self._bus.subscribe(notify, lists_only=True))

    async def subscribe(self, ctx: Context, params: SubscribeRequestParams) -> EmptyResult:
        """Notify a client of changes to a resource until it unsubscribes or its connection closes."""
        connection, uri = _get_connection(ctx), str(params.uri)

        def notify(event: ServerEvent) -> None:
            if isinstance(event, ResourceUpdated) and event.uri == uri:
                self._send(connection.send_resource_updated(uri))

        if (connection, uri) not in self._subscriptions:
            self._subscriptions[connection, uri] = self._bus.subscribe(notify)
            connection.exit_stack.callback(self._cancel, connection, uri)
        return EmptyResult()

    async def unsubscribe(self, ctx: Context, params: UnsubscribeRequestParams) -> EmptyResult:
        """Stop notifying a client of changes to a resource."""
        self._cancel(_get_connection(ctx), str(params.uri))
        return EmptyResult()

    def _cancel(self, connection: Connection, uri: str) -> None:
        unregister = self._subscriptions.pop((connection, uri), None)
        if unregister is not None:
            unregister()

    def _send(self, message: Awaitable[None]) -> None:
        task = asyncio.ensure_future(message)
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)


def _get_connection(ctx: Context) -> Connection:
    """Return the client's connection, which outlives the request (private API: see docs/decisions/027-mcp.md)."""
    return ctx.session._connection  # pyright: ignore[reportPrivateUsage]
