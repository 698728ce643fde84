"""The server: the tools of the chosen toolsets on the official SDK, resources, prompts and completions beside them."""

from __future__ import annotations

import asyncio
import importlib.util
import threading
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
from mcp.server import MCPServer
from mcp.types import CallToolResult, TextContent, ToolAnnotations
from mcp.types import Tool as ListedTool

from mcp_app.arguments import input_schema
from mcp_app.boundary import Boundary
from mcp_app.engine import Engine
from mcp_app.instructions import instructions
from mcp_app.pipes import standard_streams
from mcp_app.tool import Tool
from mcp_app.tools import TOOLSETS
from workbench import __version__
from workbench.errors import InvalidInput, choices

if TYPE_CHECKING:
    from workbench.workbench import Workbench

NAME = "rag-workbench"
WARM_AFTER = 0.1  # seconds after the first reply: the heavy imports would hold up what a client asks right after it


class WorkbenchServer(MCPServer):
    """An MCPServer whose tools are rows of a table; every call goes through the boundary."""

    def __init__(self, boundary: Boundary, tools: Sequence[Tool], *, read_only: bool) -> None:
        super().__init__(
            NAME,
            title="RAG Workbench",
            description="Search and keep one corpus of documents.",
            instructions=instructions(tools, read_only=read_only),
            version=__version__,
            log_level="WARNING",
            lifespan=_keep_log,
        )
        self.boundary = boundary
        self.tools = {tool.name: tool for tool in tools}
        self.read_only = read_only
        if importlib.util.find_spec("opentelemetry.sdk") is None:  # nobody collects spans: do not make any
            self.middleware[:] = [each for each in self.middleware if type(each).__name__ != "OpenTelemetryMiddleware"]
        self.middleware.append(self._warm_after_first_reply)
        self._warming = threading.Event()

    @property
    def engine(self) -> Engine:
        """The workbench behind the tools."""
        return self.boundary.engine

    async def list_tools(self) -> list[ListedTool]:
        """List the tools with lean schemas."""
        return [listed(tool) for tool in self.tools.values()]

    async def call_tool(self, name: str, arguments: dict[str, Any], context: Any = None) -> CallToolResult:
        """Serve one call; a failure is a result that says so, never an exception."""
        answer = await self.boundary.serve(self.tools.get(name), name, arguments, context)
        return CallToolResult(content=[TextContent(type="text", text=answer.text)], is_error=answer.failed)

    async def run_stdio_async(self) -> None:
        """Serve over stdin and stdout until the client leaves."""
        async with standard_streams() as (incoming, outgoing):
            await self._lowlevel_server.run(incoming, outgoing, self._lowlevel_server.create_initialization_options())

    async def _warm_after_first_reply(self, ctx: Any, call_next: Any) -> Any:
        try:
            return await call_next(ctx)
        finally:
            if not self._warming.is_set():
                self._warming.set()
                asyncio.get_running_loop().call_later(WARM_AFTER, self.engine.start)


@asynccontextmanager
async def _keep_log(server: Any) -> AsyncIterator[dict[str, Any]]:
    """Write the rest of the log before the workbench behind it may be closed."""
    try:
        yield {}
    finally:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(server.boundary.log.flush)


def create_server(
    engine: Engine | Workbench,
    *,
    toolsets: Iterable[str] | None = None,
    read_only: bool = False,
) -> WorkbenchServer:
    """Build the server over an engine, or over a workbench that is open already.

    Raises:
        InvalidInput: there is no such toolset.
    """
    from mcp_app.completions import add_completions
    from mcp_app.prompts import add_prompts
    from mcp_app.resources import add_resources

    boundary = Boundary(engine if isinstance(engine, Engine) else Engine.of(engine))
    chosen = chosen_tools(toolsets)
    if read_only:
        chosen = [tool for tool in (each.offered_read_only() for each in chosen) if tool is not None]
    server = WorkbenchServer(boundary, chosen, read_only=read_only)
    add_resources(server)
    add_prompts(server)
    add_completions(server)
    return server


def chosen_tools(toolsets: Iterable[str] | None) -> list[Tool]:
    """Return the tools of the named toolsets, of all where none is named. Raises InvalidInput."""
    names = list(toolsets or TOOLSETS)
    for name in names:
        if name not in TOOLSETS:
            raise InvalidInput(f"There is no toolset {name!r}; use one or more of {choices(TOOLSETS)}.")
    return [tool for name in dict.fromkeys(names) for tool in TOOLSETS[name]]


def listed(tool: Tool) -> ListedTool:
    """Return a tool as clients see it."""
    return ListedTool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=input_schema(tool.arguments),
        annotations=ToolAnnotations(**hints(tool)),
    )


def hints(tool: Tool) -> Mapping[str, Any]:
    """Return what the tool says of its effects."""
    return {
        "title": tool.title,
        "read_only_hint": tool.read_only,
        "destructive_hint": tool.destructive,
        "idempotent_hint": tool.idempotent,
        "open_world_hint": tool.open_world,
    }
