"""Clients of the protocol with a handshake, which hear of changes on their own connection; later ones open a stream."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from mcp.server.subscriptions import ResourcesListChanged, ResourceUpdated, ServerEvent
from mcp.types import EmptyResult, NotificationParams, SubscribeRequestParams, UnsubscribeRequestParams

from mcp_app.changes import ChangeBus

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
    """Return the client's connection, which outlives the request; see docs/decisions/027-mcp.md."""
    return ctx.session._connection  # pyright: ignore[reportPrivateUsage]
