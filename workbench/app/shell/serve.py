"""The server of the app, for ``workbench app`` and ``workbench serve``: pages, password, and MCP on one port."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import os
import re
import socket
import sys
import threading
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import cache
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

import anyio
from starlette.requests import HTTPConnection, Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from mcp_app.guard import AccessPolicy, HostMiddleware, is_allowed
from mcp_app.serving import make_web_app
from workbench.app.state.shared import OPENING
from workbench.errors import ConfigurationError
from workbench.opening import end_soon, end_soon_on_signals, open_configured, start_database
from workbench.runtime import exit_now
from workbench.settings import load_settings
from workbench.types import ShouldStop

if TYPE_CHECKING:
    import streamlit as st
    from starlette.applications import Starlette
    from starlette.middleware import Middleware

    from mcp_app.server import WorkbenchServer
    from workbench.settings import Settings
    from workbench.workbench import Workbench

# The document of every page; unknown nested paths lead to the page "not found"

MISSING_PAGE = "missing"
MAX_PATH_CHARS = 200  # characters of a path that are forwarded
# First parts of paths that Streamlit serves.
STREAMLIT_PATHS = ("_stcore", "app", "component", "media", "oauth2callback", "static", "vendor")


@cache
def _read_index(base_path: str) -> str:
    """Return Streamlit's HTML document with our title and the address of its server.

    Without the address, the browser tries the path of each page first, such as /library/_stcore/health, and gets a 404.
    """
    import streamlit as st

    text = (Path(st.__file__).parent / "static" / "index.html").read_text(encoding="utf-8")
    address = f"window.__streamlit = {{ BACKEND_BASE_URL: window.location.origin + {json.dumps(base_path + '/')} }}"
    return re.sub("<title>.*?</title>", "<title>RAG Workbench</title>", text).replace(
        "<head>", f"<head><script>{address}</script>", 1
    )


class Visits:
    """ASGI middleware that answers visits of pages with their HTML document, and redirects unknown nested paths.

    Args:
        app: The pages.
        base_path: Path of the app.
        own: First parts of nested paths that the app serves.
    """

    def __init__(self, app: ASGIApp, base_path: str = "", own: Sequence[str] = ()) -> None:
        self._app, self._base, self._served = app, base_path, (*STREAMLIT_PATHS, *own)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = str(scope.get("path", "")).removeprefix(self._base)
        parts = [part for part in path.split("/") if part]
        if scope["type"] != "http" or (parts and parts[0] in self._served) or not _is_visit(Request(scope)):
            await self._app(scope, receive, send)
        elif len(parts) > 1:
            query = urlencode({"path": path[:MAX_PATH_CHARS]})
            await RedirectResponse(f"{self._base}/{MISSING_PAGE}?{query}", 302)(scope, receive, send)
        elif path.count("/") == 1 and "." not in path:  # else a file, or a slash at the end, which Streamlit removes
            await HTMLResponse(_read_index(self._base), headers={"cache-control": "no-cache"})(scope, receive, send)
        else:
            await self._app(scope, receive, send)


def _is_visit(request: Request) -> bool:
    """Return whether a request is for a page rather than for one of its resources."""
    return request.method == "GET" and "text/html" in request.headers.get("accept", "")


# Password form and signed cookie

COOKIE_NAME = "rag_workbench"
COOKIE_DAYS = 30
PAGE_PARAMETER = "wanted"  # parameter of the form with the page to open
WRONG_PASSWORD_DELAY_S = 0.5  # seconds of delay after a wrong password, against guessing

# One slash, not followed by another or a backslash (which browsers treat as one); no characters that end a header.
_APP_PATH_PATTERN = re.compile(r"/(?![/\\])[!-\[\]-~]*")

_LOGIN_HTML = """<!doctype html><html lang="en"><meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>RAG Workbench</title>
<style>:root{{color-scheme:light dark}}
body{{font:16px/1.5 system-ui,sans-serif;margin:15vh auto;max-width:20rem;padding:1rem}}
input,button{{font:inherit;width:100%;box-sizing:border-box;padding:.5rem;margin:.25rem 0}}</style>
<main><h1>RAG Workbench</h1>
<form method="post" action="{action}"><label>Password
<input type="password" name="password" autocomplete="current-password" required autofocus></label>
<button>Open</button><p role="alert">{message}</p></form></main></html>"""


@dataclass(frozen=True, slots=True)
class Password:
    """The password and the base path of the app."""

    text: str
    base_path: str = ""

    def fits(self, given: str) -> bool:
        """Return whether a text is the password, in constant time."""
        return hmac.compare_digest(given.encode(), self.text.encode())

    def opens(self, connection: HTTPConnection) -> bool:
        """Return whether a request has a valid cookie, or the password as its bearer token."""
        scheme, _, token = connection.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and self.fits(token.strip()):
            return True
        until, _, signature = connection.cookies.get(COOKIE_NAME, "").partition(".")
        known = hmac.compare_digest(signature, self._signature(until))
        return known and until.isdigit() and int(until) > time.time()

    def form(self, message: str = "", *, wanted: str = "/") -> Response:
        """Return the login page; ``wanted`` is the page to open after login."""
        action = f"{self.base_path}/login?{urlencode({PAGE_PARAMETER: wanted})}"
        page = _LOGIN_HTML.format(action=escape(action), message=escape(message))
        return HTMLResponse(page, 401 if message else 200, {"cache-control": "no-store"})

    def accept_login(self, *, wanted: str = "/", secure: bool) -> Response:
        """Return the response to the right password: the cookie, and a redirect to the wanted page.

        The page is a path below the base path; anything else is replaced by the first page.
        """
        until = str(int(time.time()) + COOKIE_DAYS * 86_400)
        place = f"{self.base_path}{wanted if _APP_PATH_PATTERN.fullmatch(wanted) else '/'}"
        answer = Response(status_code=303, headers={"location": place, "cache-control": "no-store"})
        answer.set_cookie(
            COOKIE_NAME,
            f"{until}.{self._signature(until)}",
            max_age=COOKIE_DAYS * 86_400,
            path=f"{self.base_path}/",
            httponly=True,
            samesite="lax",
            secure=secure,
        )
        return answer

    def _signature(self, until: str) -> str:
        return hmac.new(self.text.encode(), f"rag-workbench {until}".encode(), hashlib.sha256).hexdigest()


# App, MCP, HTTP API and health on one port

AGENT_PATHS = ("/mcp", "/health", "/api")
MAX_FORM_BYTES = 10_000  # bytes


class AgentApp:
    """The MCP server and HTTP API as an ASGI application within a larger one."""

    def __init__(self, server: WorkbenchServer, gate: AccessPolicy) -> None:
        self.gate = gate
        self._web: Starlette = make_web_app(server, gate)
        self.app: ASGIApp = HostMiddleware(self._web, gate)

    @asynccontextmanager
    async def life(self) -> AsyncGenerator[None]:
        """Run the MCP server's session manager while the server runs."""
        async with self._web.router.lifespan_context(self._web):
            yield


class PortRouter:
    """ASGI middleware that routes agents to their application, and checks the password for pages."""

    def __init__(self, app: ASGIApp, agents: AgentApp, base_path: str = "", password: Password | None = None) -> None:
        self._app, self._agents, self._base, self._password = app, agents, base_path, password

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        path = str(scope["path"]).removeprefix(self._base)
        if path.startswith(tuple(f"{place}/" for place in AGENT_PATHS)) or path in AGENT_PATHS:
            await self._agents.app({**scope, "path": path, "raw_path": path.encode()}, receive, send)
            return
        if self._base and scope["type"] == "http" and scope["path"] in ("/", self._base):
            await RedirectResponse(f"{self._base}/")(scope, receive, send)
            return
        await self._to_the_pages(path, scope, receive, send)

    async def _to_the_pages(self, path: str, scope: Scope, receive: Receive, send: Send) -> None:
        connection, password = HTTPConnection(scope), self._password
        if not is_allowed(connection.headers.get("host", ""), self._agents.gate.hosts):
            refused = "Host not allowed. Add it to WORKBENCH_MCP_ALLOWED_HOSTS."
            await _refuse(refused, 421, scope, receive, send)
        elif password is None or path == "/_stcore/health" or password.opens(connection):
            await self._app(scope, receive, send)
        elif scope["type"] != "http":
            await _refuse("", 403, scope, receive, send)
        elif path == "/login" and scope["method"] == "POST":
            await self._login(password, Request(scope, receive), scope, receive, send)
        elif scope["method"] == "GET" and "text/html" in connection.headers.get("accept", ""):
            await password.form(wanted=_target_url(path, connection))(scope, receive, send)
        else:
            await _refuse("Password required. Open the app in a browser and log in.", 401, scope, receive, send)

    async def _login(self, password: Password, request: Request, scope: Scope, receive: Receive, send: Send) -> None:
        wanted = _target_url("/login", request)
        length = request.headers.get("content-length", "")
        given = ""
        if length.isdigit() and int(length) <= MAX_FORM_BYTES:
            async with request.form() as form:
                given = str(form.get("password", ""))
        if password.fits(given):
            await password.accept_login(wanted=wanted, secure=request.url.scheme == "https")(scope, receive, send)
        else:
            await anyio.sleep(WRONG_PASSWORD_DELAY_S)
            await password.form("Wrong password.", wanted=wanted)(scope, receive, send)


def _target_url(path: str, connection: HTTPConnection) -> str:
    """Return the requested page with its query; the login form receives it as a parameter."""
    if path == "/login":
        return connection.query_params.get(PAGE_PARAMETER, "/")
    query = connection.url.query
    return f"{quote(path)}?{query}" if query else quote(path)


async def _refuse(sentence: str, status: int, scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008})
    else:
        await JSONResponse({"error": sentence}, status)(scope, receive, send)


Prepare = Callable[["Workbench", ShouldStop], None]


@dataclass(frozen=True, slots=True)
class PublicServer:
    """What ``workbench serve`` offers: the base path, and the toolsets for agents."""

    base_path: str = ""
    toolsets: tuple[str, ...] = ()
    read_only: bool = False


SWITCH_INTERVAL_S = 0.0005  # thread switch interval in s, so that the first page can load its files during imports
OPENING_DELAY_S = 0.1  # seconds after the server starts; the first page may open the workbench earlier
LOOPBACK_HOSTS = ("127.0.0.1", "localhost")
MAIN_SCRIPT = Path(__file__).parent.parent / "frame" / "main.py"


def serve(
    port: int = 8501,
    *,
    host: str = "127.0.0.1",
    home: Path | str | None = None,
    database_url: str | None = None,
    settings: Settings | None = None,
    prepare: Prepare | None = None,
    public: PublicServer | None = None,
) -> int:
    """Serve the app until interrupted; the workbench opens in the background.

    Args:
        port: Port to listen on.
        host: Address to listen on.
        home: Data folder.
        database_url: Database; by default the embedded one.
        settings: Settings, instead of those from the environment.
        prepare: Called with the workbench before the first page, in the thread that opens it.
        public: Serve agents on the same port, and require the password if one is set.

    Returns:
        The exit code.

    Raises:
        ConfigurationError: The port is in use, or ``public`` would be open to other machines without a token.
    """
    _check_port(host, port)
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    with suppress(ConfigurationError):  # the first page shows it
        start_database(settings or load_settings(home=home, database_url=database_url))
    public_settings = (settings or load_settings()) if public is not None else None
    agents = _make_agent_app(public, host, port, public_settings) if public and public_settings else None
    ending = threading.Event()
    OPENING.configure(lambda: _run_prepare(open_configured(home, database_url, settings), prepare, ending.is_set))
    base_path = public.base_path if public is not None else ""
    if agents is not None and public_settings is not None:
        app = _make_application(base_path, _route_port(agents, base_path, public_settings), agents.life)
    else:
        app = _make_application(base_path, _reject_foreign_hosts(host), nullcontext)
    name = "localhost" if host in ("127.0.0.1", "::1") else host
    also = f", MCP at {base_path}/mcp" if agents else ""
    print(f"RAG Workbench: http://{name}:{port}{base_path}{also}  (press Ctrl+C to stop)", file=sys.stderr, flush=True)
    skip_component_scan()
    sys.argv = [str(MAIN_SCRIPT)]  # Streamlit finds its configuration next to this script
    os.environ.setdefault("STREAMLIT_BROWSER_GATHER_USAGE_STATS", "false")
    try:
        where = {"server.address": host, "server.port": port, "server.baseUrlPath": base_path.strip("/")}
        app.run(config={**where, "server.headless": True, **_QUIET_OPTIONS, **_RUN_OPTIONS})
    except KeyboardInterrupt:
        return 0
    finally:
        end_soon()
        ending.set()
        if not OPENING.close():
            exit_now()
    return 0


def _run_prepare(wb: Workbench, prepare: Prepare | None, should_stop: ShouldStop) -> Workbench:
    """Run ``prepare`` and return the workbench; close it if that fails."""
    if prepare is not None:
        try:
            prepare(wb, should_stop)
        except BaseException:
            wb.close()
            raise
    return wb


def _make_application(
    base_path: str, middleware: list[Middleware], lifespan: Callable[[], AbstractAsyncContextManager[None]]
) -> st.App:
    """Return the Streamlit application with its routes, middleware and an additional lifespan."""
    import streamlit as st
    from starlette.middleware import Middleware
    from starlette.routing import Route

    from workbench.app.shell import finder, originals

    @asynccontextmanager
    async def life(app: st.App) -> AsyncGenerator[None]:
        """Open the workbench once the server is listening; importing in two threads would delay the first response."""
        del app
        end_soon_on_signals()
        asyncio.get_running_loop().call_later(OPENING_DELAY_S, OPENING.start)
        async with lifespan():
            yield

    own = [*originals.ORIGINAL_ROUTES, *originals.PAGE_IMAGE_ROUTES, *finder.ROUTES]
    routes = [Route(f"{base_path}{route.path}", route.endpoint) for route in own]
    visits = Middleware(Visits, base_path=base_path, own=[route.path.split("/")[1] for route in own])
    return st.App(MAIN_SCRIPT, routes=routes, middleware=[*middleware, visits], lifespan=life)


def skip_component_scan() -> None:
    """Turn off Streamlit's scan of all installed packages for components, which slows the start.

    The app registers its components by name and uses no others.
    """
    try:
        from streamlit.components.v2 import manifest_scanner
    except ImportError:  # not a public interface of Streamlit; without it the start is a little slower
        return

    def none(max_workers: int | None = None) -> list[tuple[manifest_scanner.ComponentManifest, Path]]:
        del max_workers
        return []

    manifest_scanner.scan_component_manifests = none


def _make_agent_app(public: PublicServer, host: str, port: int, settings: Settings) -> AgentApp:
    """Return the agents' application on the app's workbench.

    Raises:
        ConfigurationError: The server would be open to other machines without a token.
        InvalidInput: A toolset is unknown.
    """
    from mcp_app.guard import make_access_policy
    from mcp_app.server import create_server

    token = settings.mcp_token.get_secret_value() if settings.mcp_token else None
    gate = make_access_policy(host, port, token, settings.mcp_allowed_hosts, settings.mcp_allowed_origins)
    return AgentApp(create_server(OPENING, toolsets=public.toolsets, read_only=public.read_only), gate)


def _route_port(agents: AgentApp, base_path: str, settings: Settings) -> list[Middleware]:
    """Return the middleware that routes agents and users; it checks the app's password, or else the MCP token."""
    from starlette.middleware import Middleware

    secret = settings.app_password or settings.mcp_token
    password = Password(secret.get_secret_value(), base_path) if secret else None
    return [Middleware(PortRouter, agents=agents, base_path=base_path, password=password)]


def _reject_foreign_hosts(host: str) -> list[Middleware]:
    """Reject other Host headers on loopback, against DNS rebinding."""
    from starlette.middleware import Middleware
    from starlette.middleware.trustedhost import TrustedHostMiddleware

    return [Middleware(TrustedHostMiddleware, allowed_hosts=list(LOOPBACK_HOSTS))] if host in LOOPBACK_HOSTS else []


_QUIET_OPTIONS = {
    "browser.gatherUsageStats": False,
    "browser.serverAddress": "localhost",
    "global.disableWidgetStateDuplicationWarning": True,  # see ``show_value``
    "logger.hideWelcomeMessage": True,
}
# One run of a page at a time: with fast reruns, a second click cancels the callback of the first.
_RUN_OPTIONS = {"runner.fastReruns": False}


def _check_port(host: str, port: int) -> None:
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise ConfigurationError(
                f"Cannot listen on {host}:{port} ({error.strerror}). Stop the other server or choose another port."
            ) from error
