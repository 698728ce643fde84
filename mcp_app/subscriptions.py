"""Changes that clients subscribe to: sources that come and go, and documents with a new text, from any process.

The database is asked while somebody listens, because a crawl, the app or another process may make the change.
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

from workbench.errors import WorkbenchError
from workbench.opening import Opening

if TYPE_CHECKING:
    from workbench.workbench import Workbench

LOOK = 1.0  # seconds between two looks at the database
MOST_DOCUMENTS = 1000  # that are told of in one look


@dataclass(frozen=True, slots=True)
class Stand:
    """The sources by id with their marks of change, and the documents changed since the look before, with sources.

    A mark is None where it was not read.
    """

    sources: Mapping[str, tuple[object, ...] | None]
    documents: Mapping[str, str] = field(default_factory=dict[str, str])
    at: datetime = field(default_factory=lambda: datetime.now(UTC))


class ChangeBus(InMemorySubscriptionBus):
    """The SDK's bus, which looks for changes as long as it has listeners."""

    def __init__(self, opening: Opening) -> None:
        super().__init__()
        self._opening, self._count, self._reading_count = opening, 0, 0
        self._watch: asyncio.Task[None] | None = None

    @property
    def listeners(self) -> int:
        """The number of those who are told of changes."""
        return self._count

    def subscribe(self, listener: Callable[[ServerEvent], None], *, lists_only: bool = False) -> Callable[[], None]:
        """Register a listener; with the first one the looking begins.

        While every listener is told of sources that come and go only (``lists_only``), nothing but their ids is read.
        """
        leave = super().subscribe(listener)
        self._count += 1
        self._reading_count += not lists_only
        if self._watch is None or self._watch.done():
            self._watch = asyncio.get_running_loop().create_task(self._look())

        is_over = False

        def unsubscribe() -> None:
            nonlocal is_over
            leave()
            if not is_over:
                self._count -= 1
                self._reading_count -= not lists_only
            is_over = True

        return unsubscribe

    async def _look(self) -> None:
        before: Stand | None = None
        while self._count > 0:
            read = stand_of if self._reading_count else listed_in
            try:
                wb = await self._opening.ready()
                after = await anyio.to_thread.run_sync(read, wb, before)
            except WorkbenchError:  # the database is away; changes are told when it is back
                await asyncio.sleep(LOOK)
                continue
            for event in differences(before, after) if before is not None else ():
                await self.publish(event)
            before = after
            await asyncio.sleep(LOOK)


def listed_in(wb: Workbench, before: Stand | None) -> Stand:
    """Read which sources there are now, nothing else. Raises StorageError."""
    known = before.sources if before is not None else {}
    return Stand({key: known.get(key) for key in wb.sources.ids()})


def stand_of(wb: Workbench, before: Stand | None) -> Stand:
    """Read how the corpus stands now. Raises StorageError."""
    sources = {
        source.id: (source.title, source.updated_at, source.documents_count, source.passages_count)
        for source in wb.sources.list()
    }
    last = before.at if before is not None else None
    changed, at = wb.documents.changed_since(last, MOST_DOCUMENTS)
    return Stand(sources, changed, at)


def differences(before: Stand, after: Stand) -> list[ServerEvent]:
    """Return the events between two looks."""
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


# --- Clients of the protocol with a handshake, which hear of changes on their own connection; later ones open a ---

if TYPE_CHECKING:
    from mcp.server.connection import Connection
    from mcp.server.context import ServerRequestContext

    Context = ServerRequestContext[dict[str, object]]


class Followers:
    """The clients that follow the list of resources (all that began with a handshake), and those that follow one."""

    def __init__(self, bus: ChangeBus) -> None:
        self._bus = bus
        self._followed: dict[tuple[Connection, str], Callable[[], None]] = {}
        self._sending: set[asyncio.Task[None]] = set()

    async def begin(self, ctx: Context, params: NotificationParams) -> None:
        """Tell a client that has shaken hands of resources that come and go, until its connection closes."""
        del params
        connection = _connection(ctx)

        def tell(event: ServerEvent) -> None:
            if isinstance(event, ResourcesListChanged):
                self._send(connection.send_resource_list_changed())

        connection.exit_stack.callback(self._bus.subscribe(tell, lists_only=True))

    async def subscribe(self, ctx: Context, params: SubscribeRequestParams) -> EmptyResult:
        """Tell a client of a resource's changes, until it leaves or its connection closes."""
        connection, uri = _connection(ctx), str(params.uri)

        def tell(event: ServerEvent) -> None:
            if isinstance(event, ResourceUpdated) and event.uri == uri:
                self._send(connection.send_resource_updated(uri))

        if (connection, uri) not in self._followed:
            self._followed[connection, uri] = self._bus.subscribe(tell)
            connection.exit_stack.callback(self._leave, connection, uri)
        return EmptyResult()

    async def unsubscribe(self, ctx: Context, params: UnsubscribeRequestParams) -> EmptyResult:
        """Tell a client no more of a resource's changes."""
        self._leave(_connection(ctx), str(params.uri))
        return EmptyResult()

    def _leave(self, connection: Connection, uri: str) -> None:
        leave = self._followed.pop((connection, uri), None)
        if leave is not None:
            leave()

    def _send(self, message: Awaitable[None]) -> None:
        task = asyncio.ensure_future(_sent(message))
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)


async def _sent(message: Awaitable[None]) -> None:
    await message


def _connection(ctx: Context) -> Connection:
    """Return the client's connection, which outlives the request; docs/decisions/027-mcp.md says why it is private."""
    return ctx.session._connection  # pyright: ignore[reportPrivateUsage]
