"""The server of the app, in this process: ``workbench app`` and ``workbench serve`` call ``serve``."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import threading
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.app.state.shared import OPENING
from workbench.ending import end_now
from workbench.errors import ConfigurationError
from workbench.opening import open_configured, start_database
from workbench.settings import load_settings
from workbench.types import ShouldStop

if TYPE_CHECKING:
    import streamlit as st
    from starlette.middleware import Middleware

    from workbench.app.shell.one_port import AgentSide
    from workbench.settings import Settings
    from workbench.workbench import Workbench

Prepare = Callable[["Workbench", ShouldStop], None]


@dataclass(frozen=True, slots=True)
class PublicPlace:
    """The address of app and agents together: the path they are under, and the tools that agents are offered."""

    base_path: str = ""
    toolsets: tuple[str, ...] = ()
    read_only: bool = False


TURN = 0.0005  # seconds that one thread may keep the interpreter: a page asks for its files while the rest is imported
OPEN_AFTER = 0.1  # seconds after the server has started; the first page begins to open, too, if it comes earlier
LOOPBACK = ("127.0.0.1", "localhost")
MAIN = Path(__file__).parent.parent / "frame" / "main.py"


def serve(
    port: int = 8501,
    *,
    host: str = "127.0.0.1",
    home: Path | str | None = None,
    database_url: str | None = None,
    settings: Settings | None = None,
    prepare: Prepare | None = None,
    public: PublicPlace | None = None,
) -> int:
    """Serve the pages until interrupted; the workbench opens while the first page is painted. Returns the exit code.

    ``prepare`` gets the workbench before the first page does, in the thread that opens it. ``public`` serves agents at
    the same address, and asks for a password where one is set.

    Raises:
        ConfigurationError: the port is taken, or ``public`` would be open to other machines without a token.
    """
    _check_free(host, port)
    sys.setswitchinterval(TURN)
    with suppress(ConfigurationError):  # which the first page tells
        start_database(settings or load_settings(home=home, database_url=database_url))
    public_settings = (settings or load_settings()) if public is not None else None
    agents = _agent_side(public, host, port, public_settings) if public and public_settings else None
    ending = threading.Event()
    OPENING.configure(lambda: _prepared(open_configured(home, database_url, settings), prepare, ending.is_set))
    base_path = public.base_path if public is not None else ""
    if agents is not None and public_settings is not None:
        app = _application(base_path, _one_port(agents, base_path, public_settings), agents.life)
    else:
        app = _application(base_path, _own_names_only(host), nullcontext)
    name = "localhost" if host in ("127.0.0.1", "::1") else host
    also = f", MCP at {base_path}/mcp" if agents else ""
    print(f"RAG Workbench: http://{name}:{port}{base_path}{also}  (Ctrl+C stops it)", file=sys.stderr, flush=True)
    look_for_no_components()
    sys.argv = [str(MAIN)]  # Streamlit takes the script it anchors its settings to from here
    os.environ.setdefault("STREAMLIT_BROWSER_GATHER_USAGE_STATS", "false")
    try:
        where = {"server.address": host, "server.port": port, "server.baseUrlPath": base_path.strip("/")}
        app.run(config={**where, "server.headless": True, **_QUIET, **_ONE_RUN})
    except KeyboardInterrupt:
        return 0
    finally:
        ending.set()
        if not OPENING.close():
            end_now()
    return 0


def _prepared(workbench: Workbench, prepare: Prepare | None, should_stop: ShouldStop) -> Workbench:
    """Return the workbench once ``prepare`` is done with it; where that fails it is closed."""
    if prepare is not None:
        try:
            prepare(workbench, should_stop)
        except BaseException:
            workbench.close()
            raise
    return workbench


def _application(
    base_path: str, middleware: list[Middleware], beside: Callable[[], AbstractAsyncContextManager[None]]
) -> st.App:
    """Return the pages under a path, behind a middleware, and with a part that lives as long."""
    import streamlit as st
    from starlette.middleware import Middleware
    from starlette.routing import Route

    from workbench.app.shell import finder, originals, page_view
    from workbench.app.shell.nested_paths import NestedPaths

    @asynccontextmanager
    async def life(app: st.App) -> AsyncGenerator[None]:
        """Begin to open when the server listens: imports in two threads would take turns, and the first reply wait."""
        del app
        asyncio.get_running_loop().call_later(OPEN_AFTER, OPENING.start)
        async with beside():
            yield

    own = [*originals.ROUTES, *page_view.ROUTES, *finder.ROUTES]
    routes = [Route(f"{base_path}{route.path}", route.endpoint) for route in own]
    nested = Middleware(NestedPaths, base_path=base_path, own=[route.path.split("/")[1] for route in own])
    return st.App(MAIN, routes=routes, middleware=[*middleware, nested], lifespan=life)


def look_for_no_components() -> None:
    """Spare the start a look for components: Streamlit reads what every installed package says of itself, four times.

    The app's own are registered by name, and it uses none of other packages.
    """
    try:
        from streamlit.components.v2 import manifest_scanner
    except ImportError:  # it is no part of Streamlit's promised interface: without it the start takes a little longer
        return

    def none(max_workers: int | None = None) -> list[tuple[manifest_scanner.ComponentManifest, Path]]:
        del max_workers
        return []

    manifest_scanner.scan_component_manifests = none


def _agent_side(public: PublicPlace, host: str, port: int, settings: Settings) -> AgentSide:
    """Return the server of agents over the app's own workbench. Raises ConfigurationError or InvalidInput."""
    from mcp_app.guard import gate_for
    from mcp_app.server import create_server
    from workbench.app.shell.one_port import AgentSide

    token = settings.mcp_token.get_secret_value() if settings.mcp_token else None
    gate = gate_for(host, port, token, settings.mcp_allowed_hosts, settings.mcp_allowed_origins)
    return AgentSide(create_server(OPENING, toolsets=public.toolsets, read_only=public.read_only), gate)


def _one_port(agents: AgentSide, base_path: str, settings: Settings) -> list[Middleware]:
    """Return the middleware that parts agents from people; these give the app's password, else the token."""
    from starlette.middleware import Middleware

    from workbench.app.shell.one_port import OnePort
    from workbench.app.shell.password import Password

    secret = settings.app_password or settings.mcp_token
    password = Password(secret.get_secret_value(), base_path) if secret else None
    return [Middleware(OnePort, agents=agents, base_path=base_path, password=password)]


def _own_names_only(host: str) -> list[Middleware]:
    """Refuse requests under other names on loopback, so that no page elsewhere reaches the app by rebinding its own."""
    from starlette.middleware import Middleware
    from starlette.middleware.trustedhost import TrustedHostMiddleware

    return [Middleware(TrustedHostMiddleware, allowed_hosts=list(LOOPBACK))] if host in LOOPBACK else []


_QUIET = {"browser.gatherUsageStats": False, "browser.serverAddress": "localhost", "logger.hideWelcomeMessage": True}
# One run of a page at a time: with fast reruns a second click starts a run beside the first, whose callback dies.
_ONE_RUN = {"runner.fastReruns": False}


def _check_free(host: str, port: int) -> None:
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise ConfigurationError(
                f"Port {port} on {host} cannot be used ({error.strerror}); stop what listens "
                "there or choose another port."
            ) from error
