"""Addresses of several parts, of which the app has none for people: they lead to the page that says so.

A page of Streamlit asks for its files beside its own address, so one at /a/b would ask for /a/static and stay blank.
"""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Receive, Scope, Send

MISSING = "missing"
LONGEST = 200  # characters of a path that are passed on
# The first parts of addresses under which Streamlit itself serves files.
STREAMLIT = ("_stcore", "app", "component", "media", "oauth2callback", "static", "vendor")


class NestedPaths:
    """An ASGI middleware over the pages; ``own`` are the first parts of the app's own addresses of several parts."""

    def __init__(self, app: ASGIApp, base_path: str = "", own: Sequence[str] = ()) -> None:
        self._app, self._base, self._served = app, base_path, (*STREAMLIT, *own)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = str(scope.get("path", "")).removeprefix(self._base)
        if scope["type"] == "http" and self._is_unknown(path) and _is_visit(Request(scope)):
            told = urlencode({"path": path[:LONGEST]})
            await RedirectResponse(f"{self._base}/{MISSING}?{told}", 302)(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    def _is_unknown(self, path: str) -> bool:
        parts = [part for part in path.split("/") if part]
        return len(parts) > 1 and parts[0] not in self._served


def _is_visit(request: Request) -> bool:
    """Tell whether a person goes to the address, and no page asks for a part of itself."""
    return request.method == "GET" and "text/html" in request.headers.get("accept", "")
