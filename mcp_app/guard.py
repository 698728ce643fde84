"""The gate of the HTTP server: who may speak to it, under which name, from which page, with how much."""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mcp_app.tool import compact
from workbench.errors import ConfigurationError

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
LARGEST_BODY = 8 * 2**20  # bytes; the tools themselves take 4 MB, so that their own sentence reaches the agent first
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


class Guard:
    """An ASGI wrapper that turns away what the gate does not let in, each time with a sentence in JSON."""

    def __init__(self, app: Any, gate: Gate) -> None:
        self._app, self._gate = app, gate

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        refusal = self._refusal(scope["path"], headers)
        if refusal is not None:
            await _refuse(send, *refusal)
            return
        await self._app(scope, receive, send)

    def _refusal(self, path: str, headers: dict[str, str]) -> tuple[int, str, str] | None:
        """Return (status, error, suggestion), or None for who may pass."""
        gate = self._gate
        if not _known(headers.get("host", ""), gate.hosts):
            return 421, "This server does not answer to that Host", "Name the host in WORKBENCH_MCP_ALLOWED_HOSTS"
        origin = headers.get("origin")
        if origin and not _known(origin, gate.origins):
            return 403, "Web pages of that Origin may not call this server", "Name it in WORKBENCH_MCP_ALLOWED_ORIGINS"
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


def too_large(largest: int) -> str:
    """Say that a body is too large."""
    return f"The request is too large; at most {largest:,} bytes are taken"


def _known(value: str, allowed: Sequence[str]) -> bool:
    lowered = value.lower()
    if lowered in allowed:
        return True
    stem, colon, port = lowered.rpartition(":")
    return bool(colon) and port.isdigit() and f"{stem}:*" in allowed


def _has_token(header: str, token: str) -> bool:
    scheme, _, given = header.partition(" ")
    return scheme.lower() == "bearer" and hmac.compare_digest(given.strip().encode(), token.encode())


def _listed(values: str) -> tuple[str, ...]:
    return tuple(value.strip().lower() for value in values.split(",") if value.strip())


async def _refuse(send: Any, status: int, error: str, suggestion: str) -> None:
    body = compact({"success": False, "error": error, "suggestion": suggestion}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if status == 401:
        headers.append((b"www-authenticate", b'Bearer realm="rag-workbench"'))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
