"""App, MCP, HTTP API and health behind one address: what agents ask goes to their server, all else to the pages."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING
from urllib.parse import quote

import anyio
from starlette.requests import HTTPConnection, Request
from starlette.responses import JSONResponse, RedirectResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from mcp_app.guard import Gate, HostGuard, is_allowed
from mcp_app.serving import web_app
from workbench.app.shell.password import WAIT, WANTED, Password

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from mcp_app.server import WorkbenchServer

AGENTS = ("/mcp", "/health", "/api")
LONGEST_FORM = 10_000  # bytes


class AgentSide:
    """The server of agents as a part of a larger one: its application, and its life from start to end."""

    def __init__(self, server: WorkbenchServer, gate: Gate) -> None:
        self.gate = gate
        self._web: Starlette = web_app(server, gate)
        self.app: ASGIApp = HostGuard(self._web, gate)

    @asynccontextmanager
    async def life(self) -> AsyncGenerator[None]:
        """Keep its sessions while the whole is served."""
        async with self._web.router.lifespan_context(self._web):
            yield


class OnePort:
    """An ASGI middleware over the app: it sends agents to their side, and lets people in with the password."""

    def __init__(self, app: ASGIApp, agents: AgentSide, base_path: str = "", password: Password | None = None) -> None:
        self._app, self._agents, self._base, self._password = app, agents, base_path, password

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        path = str(scope["path"]).removeprefix(self._base)
        if path.startswith(tuple(f"{place}/" for place in AGENTS)) or path in AGENTS:
            await self._agents.app({**scope, "path": path, "raw_path": path.encode()}, receive, send)
            return
        if self._base and scope["type"] == "http" and scope["path"] in ("/", self._base):
            await RedirectResponse(f"{self._base}/")(scope, receive, send)
            return
        await self._to_the_pages(path, scope, receive, send)

    async def _to_the_pages(self, path: str, scope: Scope, receive: Receive, send: Send) -> None:
        connection, password = HTTPConnection(scope), self._password
        if not is_allowed(connection.headers.get("host", ""), self._agents.gate.hosts):
            refused = "This server does not answer to that Host; name it in WORKBENCH_MCP_ALLOWED_HOSTS."
            await _refused(refused, 421, scope, receive, send)
        elif password is None or path == "/_stcore/health" or password.opens(connection):
            await self._app(scope, receive, send)
        elif scope["type"] != "http":
            await _refused("", 403, scope, receive, send)
        elif path == "/login" and scope["method"] == "POST":
            await self._login(password, Request(scope, receive), scope, receive, send)
        elif scope["method"] == "GET" and "text/html" in connection.headers.get("accept", ""):
            await password.form(wanted=_wanted(path, connection))(scope, receive, send)
        else:
            await _refused("Open the app in a browser and give its password first.", 401, scope, receive, send)

    async def _login(self, password: Password, request: Request, scope: Scope, receive: Receive, send: Send) -> None:
        wanted = _wanted("/login", request)
        length = request.headers.get("content-length", "")
        given = ""
        if length.isdigit() and int(length) <= LONGEST_FORM:
            async with request.form() as form:
                given = str(form.get("password", ""))
        if password.fits(given):
            await password.let_in(wanted=wanted, secure=request.url.scheme == "https")(scope, receive, send)
        else:
            await anyio.sleep(WAIT)
            await password.form("That is not the password.", wanted=wanted)(scope, receive, send)


def _wanted(path: str, connection: HTTPConnection) -> str:
    """Return the page that is asked for, with its question; the form itself has it from the one before."""
    if path == "/login":
        return connection.query_params.get(WANTED, "/")
    query = connection.url.query
    return f"{quote(path)}?{query}" if query else quote(path)


async def _refused(sentence: str, status: int, scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008})
    else:
        await JSONResponse({"error": sentence}, status)(scope, receive, send)
