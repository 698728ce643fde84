"""The MCP server: tools, resources, prompts and completions on the official SDK."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING
from uuid import uuid4

import anyio
import anyio.to_thread
from mcp.server import MCPServer, NotificationOptions
from mcp.shared.exceptions import MCPError
from mcp.types import (
    INVALID_PARAMS,
    CallToolResult,
    GetPromptResult,
    InputRequiredResult,
    ListResourcesResult,
    NotificationParams,
    PaginatedRequestParams,
    SubscribeRequestParams,
    TextContent,
    ToolAnnotations,
    UnsubscribeRequestParams,
)
from mcp.types import Tool as ListedTool

from mcp_app.arguments import make_input_schema
from mcp_app.boundary import Boundary
from mcp_app.paging import Items
from mcp_app.prompts import add_completions, add_prompts, build_instructions
from mcp_app.resources import add_resources, list_source_resources
from mcp_app.stdio import cancel_on_signal, clean_message, make_errors, open_standard_streams
from mcp_app.subscriptions import ChangeBus, Subscribers
from mcp_app.tool import Tool
from mcp_app.tools import select_tools
from workbench import __version__
from workbench.errors import WorkbenchError, list_choices
from workbench.opening import Opening, end_soon
from workbench.telemetry import is_enabled
from workbench.types import JsonObject, JsonValue

if TYPE_CHECKING:
    from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
    from mcp.server.mcpserver import Context
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from workbench.workbench import Workbench

SERVER_NAME = "rag-workbench"
SESSION_HEADER = "mcp-session-id"  # over HTTP, before the protocol of 2026-07-28
WARM_UP_DELAY_S = 0.1  # seconds after the first reply; starting earlier would delay the client's next requests

UNTRUSTED: dict[str, object] = {"rag-workbench/untrusted": True}  # texts in answers are data, never instructions

EmptyState = dict[str, object]


class WorkbenchServer(MCPServer[EmptyState]):
    """An MCPServer whose tools come from a table and whose calls all go through the boundary."""

    def __init__(
        self, boundary: Boundary, tools: Sequence[Tool], *, read_only: bool, client: str | None = None
    ) -> None:
        super().__init__(
            SERVER_NAME,
            title="RAG Workbench",
            description="Search and keep one corpus of documents.",
            instructions=build_instructions(tools, read_only=read_only),
            version=__version__,
            log_level="WARNING",
            lifespan=_flush_log_on_exit,
            subscriptions=(changes := ChangeBus(boundary.opening)),
        )
        self.changes = changes
        self._follow(Subscribers(changes))
        self.boundary, self.opening = boundary, boundary.opening
        self.tools = {tool.name: tool for tool in tools}
        self.read_only = read_only
        self.session: str | None = None  # id of the only connection over stdio
        self.client = client  # name from the client's configuration; None: the name it sends on connecting
        if not is_enabled():  # without telemetry the SDK need not create spans
            self.middleware[:] = [each for each in self.middleware if type(each).__name__ != "OpenTelemetryMiddleware"]
        self.middleware.append(self._warm_after_first_reply)
        self._warming = threading.Event()

    async def list_tools(self) -> list[ListedTool]:
        """List the tools with lean schemas."""
        return [to_listed_tool(tool) for tool in self.tools.values()]

    async def call_tool(
        self, name: str, arguments: dict[str, object], context: Context[EmptyState] | None = None
    ) -> CallToolResult:
        """Serve one call. A failure is a result with `isError`, never an exception."""
        tool = self.tools.get(name)
        session = (context.headers or {}).get(SESSION_HEADER, self.session) if context is not None else None
        caller = self.client or _get_client_name(context)
        answer = await self.boundary.serve(tool, name, arguments, context, caller, session)
        return CallToolResult(
            content=[TextContent(type="text", text=answer.text)],
            structured_content=None if tool is None or answer.failed else structure_answer(tool, answer.value),
            is_error=answer.failed,
            _meta=None if answer.failed else UNTRUSTED,
        )

    async def get_prompt(
        self, name: str, arguments: dict[str, str] | None = None, context: Context[EmptyState] | None = None
    ) -> GetPromptResult | InputRequiredResult:
        """Return a prompt. Raises MCPError if the prompt does not exist; the message lists those that do."""
        names = [prompt.name for prompt in await self.list_prompts()]
        if name not in names:
            raise MCPError(code=INVALID_PARAMS, message=f"Unknown prompt: {name[:100]}. Use {list_choices(names)}.")
        return await super().get_prompt(name, arguments, context)

    async def _list_resources(
        self, ctx: ServerRequestContext[EmptyState], params: PaginatedRequestParams | None
    ) -> ListResourcesResult:
        """List the tag catalogue and a page of sources, newest first.

        If the database is unavailable, only the catalogue is listed.
        """
        cursor = params.cursor if params is not None else None
        catalogue = await self.list_resources() if cursor is None else []
        try:
            wb = await self.opening.ready()
            sources = await anyio.to_thread.run_sync(list_source_resources, wb, cursor)
        except WorkbenchError:
            return ListResourcesResult(resources=catalogue)
        return sources.model_copy(update={"resources": catalogue + sources.resources})

    def _follow(self, followers: Subscribers) -> None:
        """Register change notifications for clients that start with a handshake.

        The SDK itself handles clients of later protocol versions.
        """
        inner = self._lowlevel_server
        inner.add_notification_handler("notifications/initialized", NotificationParams, followers.begin)
        inner.add_request_handler("resources/list", PaginatedRequestParams, self._list_resources)
        inner.add_request_handler("resources/subscribe", SubscribeRequestParams, followers.subscribe)
        inner.add_request_handler("resources/unsubscribe", UnsubscribeRequestParams, followers.unsubscribe)
        options = partial(inner.create_initialization_options, NotificationOptions(resources_changed=True))
        inner.create_initialization_options = options  # pyright: ignore[reportAttributeAccessIssue] - the only place

    async def run_stdio_async(self) -> None:
        """Serve over stdin and stdout until the client disconnects or a signal ends the process."""
        self.session = uuid4().hex
        async with anyio.create_task_group() as group:
            group.start_soon(cancel_on_signal, group.cancel_scope, end_soon)
            async with open_standard_streams(end_soon) as (incoming, outgoing):
                options = self._lowlevel_server.create_initialization_options()
                await self._lowlevel_server.run(incoming, outgoing, options)
            group.cancel_scope.cancel()

    async def _warm_after_first_reply(
        self, ctx: ServerRequestContext[EmptyState], call_next: CallNext
    ) -> HandlerResult:
        try:
            return await call_next(ctx)
        finally:
            if not self._warming.is_set():
                self._warming.set()
                asyncio.get_running_loop().call_later(WARM_UP_DELAY_S, self.opening.start)


class MessageMiddleware:
    """ASGI middleware that reads and answers messages at a path as the server does over stdio.

    The SDK would accept a request whose id is null without an answer, and reject a byte order mark. Bodies that are
    larger than ``largest`` bytes are left to the application, which rejects them.
    """

    def __init__(self, app: ASGIApp, path: str, largest: int) -> None:
        self._app, self._path, self._largest = app, path, largest

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        from starlette.responses import Response

        if scope["type"] != "http" or (scope["method"], scope["path"]) != ("POST", self._path):
            await self._app(scope, receive, send)
            return
        body, received = bytearray(), [await receive()]
        body += received[0].get("body", b"")
        while received[-1].get("more_body") and len(body) <= self._largest:
            received.append(await receive())
            body += received[-1].get("body", b"")
        if received[-1]["type"] == "http.request" and len(body) <= self._largest:
            text = clean_message(body.decode(errors="replace"))
            if errors := [error.model_dump_json(exclude_unset=True) for error in make_errors(text)]:
                content = errors[0] if len(errors) == 1 else f"[{','.join(errors)}]"
                await Response(content, 400, media_type="application/json")(scope, receive, send)
                return
            received = [{"type": "http.request", "body": text.encode()}]

        async def receive_again() -> Message:
            return received.pop(0) if received else await receive()

        await self._app(scope, receive_again, send)


@asynccontextmanager
async def _flush_log_on_exit(server: MCPServer[EmptyState]) -> AsyncGenerator[EmptyState]:
    """Flush the call log before the workbench is closed."""
    assert isinstance(server, WorkbenchServer)
    try:
        yield {}
    finally:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(server.boundary.log.flush)


def create_server(
    opening: Opening | Workbench,
    *,
    toolsets: Iterable[str] | None = None,
    read_only: bool = False,
    client: str | None = None,
) -> WorkbenchServer:
    """Build the server.

    Args:
        opening: A workbench, open or still opening.
        toolsets: Names of toolsets to offer; None offers the default tools.
        read_only: Offer only tools and actions that change nothing.
        client: Name of the client for the call log; None uses the name the client sends.

    Raises:
        InvalidInput: A toolset does not exist.
    """

    chosen = select_tools(toolsets, read_only=read_only)
    offered = frozenset(tool.name for tool in chosen)
    boundary = Boundary(opening if isinstance(opening, Opening) else Opening.from_open_workbench(opening), offered)
    server = WorkbenchServer(boundary, chosen, read_only=read_only, client=client)
    add_resources(server, server.opening)
    add_prompts(server, offered)
    add_completions(server, server.opening)
    return server


def _get_client_name(context: Context[EmptyState] | None) -> str | None:
    """Return the name that the client sent when it connected."""
    parameters = context.session.client_params if context is not None else None
    return parameters.client_info.name if parameters is not None else None


def structure_answer(tool: Tool, value: JsonValue) -> JsonObject | None:
    """Return an answer as structured content; a bare array is wrapped in an object under its key."""
    if isinstance(value, list) and isinstance(tool.parts, Items):
        return {tool.parts.key: value}
    return value if isinstance(value, dict) else None


def to_listed_tool(tool: Tool) -> ListedTool:
    """Return a tool in the SDK's form, as clients see it."""
    return ListedTool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=make_input_schema(tool.arguments),
        output_schema=dict(tool.output),
        annotations=ToolAnnotations(
            read_only_hint=tool.read_only,
            destructive_hint=tool.destructive,
            idempotent_hint=tool.idempotent,
            open_world_hint=tool.open_world,
        ),
    )
