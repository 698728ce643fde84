"""Runs the server over stdio, for one client, or over HTTP, for many."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

from mcp_app.server import WARM_UP_DELAY_S, MessageMiddleware, WorkbenchServer, create_server
from workbench.errors import ConfigurationError, InvalidInput, list_choices
from workbench.opening import Opening, end_soon, end_soon_on_signals
from workbench.runtime import exit_now, ignore_signals

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from mcp_app.guard import AccessPolicy
    from workbench.settings import Settings

TRANSPORTS = ("stdio", "http")
MCP_PATH = "/mcp"
DEFAULT_HOST, DEFAULT_PORT = "127.0.0.1", 8765
# seconds between thread switches: each step of a call waits that long (Python's default is 0.005)
SWITCH_INTERVAL_S = 0.0005
LOG_TIMEOUT_S = 0.2  # seconds for the last entries of the call log
KEEP_ALIVE_S = 75  # seconds; longer than clients keep idle connections, so that no call meets a closing connection


def serve(
    transport: str = "stdio",
    *,
    host: str = DEFAULT_HOST,
    port: int = DEFAULT_PORT,
    toolsets: Iterable[str] | None = None,
    read_only: bool = False,
    client: str | None = None,
) -> None:
    """Serve until the client disconnects (stdio) or a signal ends the process (HTTP).

    The arguments are the options of ``python -m mcp_app``; no toolsets means the default tools.

    Raises:
        InvalidInput: The transport or a toolset does not exist.
        ConfigurationError: A setting is invalid, or HTTP would be open to other machines without a token.
    """
    if transport not in TRANSPORTS:
        raise InvalidInput(f"Unknown transport: {transport!r}. Use {list_choices(TRANSPORTS)}.")
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    _start_telemetry()
    opening = Opening()
    server = create_server(opening, toolsets=toolsets, read_only=read_only, client=client)
    try:
        if transport == "stdio":
            server.run("stdio")
        else:
            from workbench.settings import load_settings

            serve_http(server, load_settings(), host, port)
    except KeyboardInterrupt:
        pass
    except BaseExceptionGroup as several:  # a signal that arrived before the event loop handled signals
        if several.subgroup(KeyboardInterrupt) is None:
            raise
    finally:
        ignore_signals()
        end_soon()
        server.boundary.log.flush(LOG_TIMEOUT_S)
        if not opening.close():
            exit_now()
    exit_now()  # skip half a second of interpreter shutdown


def _start_telemetry() -> None:
    """Start telemetry before the first call; calls report invalid settings."""
    from workbench.settings import load_settings
    from workbench.telemetry import export

    with suppress(ConfigurationError):
        if load_settings().telemetry:
            export()


def serve_http(server: WorkbenchServer, settings: Settings, host: str, port: int) -> None:
    """Serve over HTTP. Raises ConfigurationError if the address is unavailable, or needs a token."""
    import socket

    import uvicorn

    from mcp_app.guard import HostMiddleware, make_access_policy

    token = settings.mcp_token.get_secret_value() if settings.mcp_token else None
    gate = make_access_policy(host, port, token, settings.mcp_allowed_hosts, settings.mcp_allowed_origins)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # IPPROTO_TCP explicitly: only then does asyncio turn off Nagle's algorithm (40 ms per answer)
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host.strip("[]"), port))
        listening.listen(512)  # before the address is printed, so that early clients wait instead of being refused
    except OSError as error:
        raise ConfigurationError(
            f"Cannot listen on {host}:{port} ({error.strerror}). Choose another with --host or --port."
        ) from error
    listening.set_inheritable(True)
    bound = listening.getsockname()[1]
    name = f"[{host}]" if ":" in host and not host.startswith("[") else host
    print(f"Serving MCP at http://{name}:{bound}/mcp", file=sys.stderr, flush=True)
    config = uvicorn.Config(
        HostMiddleware(make_web_app(server, gate), gate),
        log_level="warning",
        access_log=False,
        timeout_keep_alive=KEEP_ALIVE_S,
        lifespan="on",
    )
    uvicorn.Server(config).run(sockets=[listening])


def make_web_app(server: WorkbenchServer, gate: AccessPolicy) -> Starlette:
    """Return the routes without access control, to be combined with other routes."""
    from mcp.server.transport_security import TransportSecuritySettings

    from mcp_app.http_api import add_routes

    app = server.streamable_http_app(
        streamable_http_path=MCP_PATH,
        transport_security=TransportSecuritySettings(
            enable_dns_rebinding_protection=True, allowed_hosts=list(gate.hosts), allowed_origins=list(gate.origins)
        ),
        max_request_body_size=gate.largest_body,
    )
    app.add_middleware(MessageMiddleware, MCP_PATH, gate.largest_body)
    app.router.redirect_slashes = False
    add_routes(app, server)
    inner = app.router.lifespan_context

    @asynccontextmanager
    async def lifespan(web: Starlette) -> AsyncGenerator[Mapping[str, Any]]:
        async with inner(web) as state:
            end_soon_on_signals()
            asyncio.get_running_loop().call_later(WARM_UP_DELAY_S, server.opening.start)
            yield state or {}

    app.router.lifespan_context = lifespan
    return app
