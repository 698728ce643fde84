"""The password of the app: a form, and a signed cookie for thirty days, which also opens the page's websocket."""

from __future__ import annotations

import hashlib
import hmac
import time
from dataclasses import dataclass
from html import escape

from starlette.requests import HTTPConnection
from starlette.responses import HTMLResponse, Response

COOKIE = "rag_workbench"
DAYS = 30
WAIT = 0.5  # seconds after a wrong password, so that trying many takes long

_PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>RAG Workbench</title>
<style>:root{{color-scheme:light dark}}
body{{font:16px/1.5 system-ui,sans-serif;margin:15vh auto;max-width:20rem;padding:1rem}}
input,button{{font:inherit;width:100%;box-sizing:border-box;padding:.5rem;margin:.25rem 0}}</style>
<main><h1>RAG Workbench</h1>
<form method="post" action="{action}"><label>Password
<input type="password" name="password" autocomplete="current-password" required autofocus></label>
<button>Open</button><p role="alert">{said}</p></form></main></html>"""


@dataclass(frozen=True, slots=True)
class Password:
    """A password and the path of the app that it opens."""

    text: str
    base_path: str = ""

    def fits(self, given: str) -> bool:
        """Tell whether a text is the password, in a time that does not depend on it."""
        return hmac.compare_digest(given.encode(), self.text.encode())

    def opens(self, connection: HTTPConnection) -> bool:
        """Tell whether a request brings the cookie, or the password as its bearer token."""
        scheme, _, token = connection.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and self.fits(token.strip()):
            return True
        until, _, signature = connection.cookies.get(COOKIE, "").partition(".")
        known = hmac.compare_digest(signature, self._signature(until))
        return known and until.isdigit() and int(until) > time.time()

    def form(self, said: str = "") -> Response:
        """Return the page that asks for the password."""
        page = _PAGE.format(action=escape(f"{self.base_path}/login"), said=escape(said))
        return HTMLResponse(page, 401 if said else 200, {"cache-control": "no-store"})

    def let_in(self, *, secure: bool) -> Response:
        """Return the answer to the right password: the cookie, and the way to the first page."""
        until = str(int(time.time()) + DAYS * 86_400)
        answer = Response(status_code=303, headers={"location": f"{self.base_path}/", "cache-control": "no-store"})
        answer.set_cookie(
            COOKIE,
            f"{until}.{self._signature(until)}",
            max_age=DAYS * 86_400,
            path=f"{self.base_path}/",
            httponly=True,
            samesite="lax",
            secure=secure,
        )
        return answer

    def _signature(self, until: str) -> str:
        return hmac.new(self.text.encode(), f"rag-workbench {until}".encode(), hashlib.sha256).hexdigest()
