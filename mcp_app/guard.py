"""The gate of the HTTP server: who may speak to it, under which name, from which page, with how much."""

from __future__ import annotations

import hmac
import re
from collections.abc import Sequence
from dataclasses import dataclass

from starlette.middleware.cors import CORSMiddleware
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from mcp_app.tool import compact
from workbench.errors import ConfigurationError
from workbench.formatting import MB

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
LARGEST_BODY = 8 * MB  # bytes; the tools themselves take half, so that their own sentence reaches the agent first
_SENT = (  # the headers that a page may send
    *("Authorization", "Content-Type", "If-None-Match", "Last-Event-ID"),
    *("Mcp-Method", "Mcp-Name", "Mcp-Protocol-Version", "Mcp-Session-Id"),
)
_OPEN = ("/health",)  # tells nothing but that the server is there


@dataclass(frozen=True, slots=True)
class Gate:
    """``hosts`` and ``origins`` are exact values or end in ':*' for any port; ``token`` None asks for none."""

    hosts: tuple[str, ...]
    origins: tuple[str, ...]
    token: str | None = None
    largest_body: int = LARGEST_BODY


def gate_for(host: str, port: int, token: str | None, hosts: str = "", origins: str = "") -> Gate:
    """Return the gate of a server listening on ``host``.

    Raises:
        ConfigurationError: it would listen beyond this machine without a token.
    """
    if not is_loopback(host) and not token:
        raise ConfigurationError(
            f"Listening on {host} lets other machines in; set WORKBENCH_MCP_TOKEN first, or listen on 127.0.0.1."
        )
    names = [*LOOPBACK, *([host] if host not in ("0.0.0.0", "::", "") and not is_loopback(host) else [])]
    own = [name if ":" not in name or name.startswith("[") else f"[{name}]" for name in names]
    return Gate(
        hosts=(*own, *(f"{name}:*" for name in own), *_listed(hosts)),
        origins=(*(f"http://{name}:*" for name in own), *(f"http://{name}" for name in own), *_listed(origins)),
        token=token or None,
    )


def is_loopback(host: str) -> bool:
    """Tell whether only this machine can reach an address."""
    return host in ("localhost", "::1", "[::1]") or host.startswith("127.")


class HostGuard:
    """An ASGI wrapper that turns away what the gate does not let in, each time with a sentence in JSON.

    Host and Origin are judged first; the token after the answer to a web page's question whether it may ask at all
    (CORS), which browsers send without one.
    """

    def __init__(self, app: ASGIApp, gate: Gate) -> None:
        self._gate = gate
        self._shared = shared_with_pages(Keeper(app, gate), gate)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":  # /mcp/ is served as /mcp: a redirect would lose the path that a proxy adds
            path = scope["path"].rstrip("/") or "/"
            scope = {**scope, "path": path, "raw_path": path.encode()}
        refusal = self._refusal(_headers(scope)) if scope["type"] == "http" else None
        await (_refused(*refusal) if refusal else self._shared)(scope, receive, send)

    def _refusal(self, headers: dict[str, str]) -> tuple[int, str, str] | None:
        """Return (status, error, suggestion), or None for a request that may pass."""
        if not is_allowed(headers.get("host", ""), self._gate.hosts):
            return 421, "This server does not answer to that Host", "Name the host in WORKBENCH_MCP_ALLOWED_HOSTS"
        origin = headers.get("origin")
        if origin and not is_allowed(origin, self._gate.origins):
            return 403, "Web pages of that Origin may not call this server", "Name it in WORKBENCH_MCP_ALLOWED_ORIGINS"
        return None


class Keeper:
    """An ASGI wrapper that asks for the token and bounds the body."""

    def __init__(self, app: ASGIApp, gate: Gate) -> None:
        self._app, self._gate = app, gate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = self._refusal(scope["path"], _headers(scope)) if scope["type"] == "http" else None
        await (_refused(*refusal) if refusal else self._app)(scope, receive, send)

    def _refusal(self, path: str, headers: dict[str, str]) -> tuple[int, str, str] | None:
        gate = self._gate
        if (
            gate.token is not None
            and path not in _OPEN
            and not _has_token(headers.get("authorization", ""), gate.token)
        ):
            return 401, "The bearer token is missing or wrong", "Send 'Authorization: Bearer TOKEN'"
        length = headers.get("content-length", "")
        if length.isdigit() and int(length) > gate.largest_body:
            return 413, too_large(gate.largest_body), "Save a long text as a file and give its file_path"
        return None


def shared_with_pages(app: ASGIApp, gate: Gate) -> ASGIApp:
    """Return an application whose answers web pages of the allowed origins may read."""
    patterns = [re.escape(origin).replace(r":\*", r":\d+") for origin in gate.origins]
    return CORSMiddleware(
        app,
        allow_origin_regex="|".join(patterns),
        allow_methods=("GET", "POST", "DELETE", "OPTIONS"),
        allow_headers=_SENT,
        expose_headers=("Mcp-Session-Id", "ETag"),
    )


def too_large(largest: int) -> str:
    """Say that a body is too large."""
    return f"The request is too large; at most {largest:,} bytes are taken"


def is_allowed(value: str, allowed: Sequence[str]) -> bool:
    """Tell whether a Host or an Origin is among the allowed ones; ``:*`` at an end stands for any port."""
    lowered = value.lower()
    if lowered in allowed:
        return True
    stem, colon, port = lowered.rpartition(":")
    return bool(colon) and port.isdigit() and f"{stem}:*" in allowed


def _has_token(header: str, token: str) -> bool:
    scheme, _, credential = header.partition(" ")
    return scheme.lower() == "bearer" and hmac.compare_digest(credential.strip().encode(), token.encode())


def _listed(values: str) -> tuple[str, ...]:
    return tuple(value.strip().lower() for value in values.split(",") if value.strip())


def _headers(scope: Scope) -> dict[str, str]:
    return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}


def _refused(status: int, error: str, suggestion: str) -> Response:
    body = compact({"success": False, "error": error, "suggestion": suggestion})
    headers = {"www-authenticate": 'Bearer realm="rag-workbench"'} if status == 401 else None
    return Response(body, status, headers, media_type="application/json")
