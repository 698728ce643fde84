"""Access control of the HTTP server: Host, Origin, bearer token and body size."""

from __future__ import annotations

import hmac
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from mcp_app.tool import dump_json
from workbench.errors import ConfigurationError
from workbench.formatting import MB

LOOPBACK_HOSTS = ("127.0.0.1", "localhost", "[::1]")
MAX_BODY_BYTES = 8 * MB  # bytes; twice the limit of tool arguments, so that their error comes first
_CORS_HEADERS = (  # headers that web pages may send
    *("Authorization", "Content-Type", "If-None-Match", "Last-Event-ID"),
    *("Mcp-Method", "Mcp-Name", "Mcp-Protocol-Version", "Mcp-Session-Id"),
)
_PUBLIC_PATHS = ("/health",)  # reveals only that the server is running


@dataclass(frozen=True, slots=True)
class AccessPolicy:
    """Which requests are allowed."""

    hosts: tuple[str, ...]  # Host headers; ":*" at the end allows any port
    origins: tuple[str, ...]  # Origin headers; ":*" at the end allows any port
    token: str | None = None  # bearer token; None: not required
    largest_body: int = MAX_BODY_BYTES  # bytes


def make_access_policy(host: str, port: int, token: str | None, hosts: str = "", origins: str = "") -> AccessPolicy:
    """Return the access policy of a server; ``hosts`` and ``origins`` add headers, separated by commas.

    Raises:
        ConfigurationError: The server would be open to other machines without a token.
    """
    if not is_loopback(host) and not token:
        raise ConfigurationError(
            f"Listening on {host} opens the server to other machines. Set WORKBENCH_MCP_TOKEN, or listen on 127.0.0.1."
        )
    names = [*LOOPBACK_HOSTS, *([host] if host not in ("0.0.0.0", "::", "") and not is_loopback(host) else [])]
    own = [name if ":" not in name or name.startswith("[") else f"[{name}]" for name in names]
    return AccessPolicy(
        hosts=(*own, *(f"{name}:*" for name in own), *_split(hosts)),
        origins=(*(f"http://{name}:*" for name in own), *(f"http://{name}" for name in own), *_split(origins)),
        token=token or None,
    )


def is_loopback(host: str) -> bool:
    """Return whether an address is reachable from this machine only."""
    return host in ("localhost", "::1", "[::1]") or host.startswith("127.")


class HostMiddleware:
    """ASGI middleware that rejects requests according to the access policy, with errors in JSON.

    Host and Origin are checked first. The token is checked after CORS preflight requests are answered, because browsers
    send those without it.
    """

    def __init__(self, app: ASGIApp, gate: AccessPolicy) -> None:
        self._gate = gate
        self._inner = add_cors(BearerAuthMiddleware(app, gate), gate)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":  # /mcp/ is served as /mcp; a redirect would lose a path prefix added by a proxy
            path = scope["path"].rstrip("/") or "/"
            scope = {**scope, "path": path, "raw_path": path.encode()}
        refusal = self._check(Headers(scope=scope)) if scope["type"] == "http" else None
        with suppress(ClientDisconnect):  # the client has gone
            await (_make_refusal(*refusal) if refusal else self._inner)(scope, receive, send)

    def _check(self, headers: Headers) -> tuple[int, str, str] | None:
        """Return (status, error, suggestion), or None if the request is allowed."""
        if not is_allowed(headers.get("host", ""), self._gate.hosts):
            return 421, "This Host is not allowed", "Add it to WORKBENCH_MCP_ALLOWED_HOSTS"
        origin = headers.get("origin")
        if origin and not is_allowed(origin, self._gate.origins):
            return 403, "This Origin is not allowed", "Add it to WORKBENCH_MCP_ALLOWED_ORIGINS"
        return None


class BearerAuthMiddleware:
    """ASGI middleware that checks the bearer token and the Content-Length."""

    def __init__(self, app: ASGIApp, gate: AccessPolicy) -> None:
        self._app, self._gate = app, gate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = self._check(scope["path"], Headers(scope=scope)) if scope["type"] == "http" else None
        await (_make_refusal(*refusal) if refusal else self._app)(scope, receive, send)

    def _check(self, path: str, headers: Headers) -> tuple[int, str, str] | None:
        gate = self._gate
        if (
            gate.token is not None
            and path not in _PUBLIC_PATHS
            and not _has_token(headers.get("authorization", ""), gate.token)
        ):
            return 401, "The bearer token is missing or invalid", "Send 'Authorization: Bearer TOKEN'"
        length = headers.get("content-length", "")
        if length.isdigit() and int(length) > gate.largest_body:
            return 413, format_too_large(gate.largest_body), "Save a long text as a file and give its file_path"
        return None


def add_cors(app: ASGIApp, gate: AccessPolicy) -> ASGIApp:
    """Add CORS headers for the allowed origins."""
    patterns = [re.escape(origin).replace(r":\*", r":\d+") for origin in gate.origins]
    return CORSMiddleware(
        app,
        allow_origin_regex="|".join(patterns),
        allow_methods=("GET", "POST", "DELETE", "OPTIONS"),
        allow_headers=_CORS_HEADERS,
        expose_headers=("Mcp-Session-Id", "ETag"),
    )


def format_too_large(largest: int) -> str:
    """Return the error for a body that is too large."""
    return f"The request is too large; the limit is {largest:,} bytes"


def is_allowed(value: str, allowed: Sequence[str]) -> bool:
    """Return whether a Host or Origin is allowed; ``:*`` at the end of an allowed value means any port."""
    lowered = value.lower()
    if lowered in allowed:
        return True
    stem, colon, port = lowered.rpartition(":")
    return bool(colon) and port.isdigit() and f"{stem}:*" in allowed


def _has_token(header: str, token: str) -> bool:
    scheme, _, credential = header.partition(" ")
    return scheme.lower() == "bearer" and hmac.compare_digest(credential.strip().encode(), token.encode())


def _split(values: str) -> tuple[str, ...]:
    return tuple(value.strip().lower() for value in values.split(",") if value.strip())


def _make_refusal(status: int, error: str, suggestion: str) -> Response:
    body = dump_json({"success": False, "error": error, "suggestion": suggestion})
    headers = {"www-authenticate": 'Bearer realm="rag-workbench"'} if status == 401 else None
    return Response(body, status, headers, media_type="application/json")
