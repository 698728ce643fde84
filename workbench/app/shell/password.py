"""The password of the app: a form, and a signed cookie for thirty days, which also opens the page's websocket."""

from __future__ import annotations

import hashlib
import hmac
import re
import time
from dataclasses import dataclass
from html import escape
from urllib.parse import urlencode

from starlette.requests import HTTPConnection
from starlette.responses import HTMLResponse, Response

COOKIE = "rag_workbench"
DAYS = 30
WANTED = "wanted"  # the parameter of the form that names the page
WAIT = 0.5  # seconds after a wrong password, so that trying many takes long

# one slash, then no second one, nor what browsers read as one; no space or sign that could end a header
_OF_THE_APP = re.compile(r"/(?![/\\])[!-\[\]-~]*")

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

    def form(self, said: str = "", *, wanted: str = "/") -> Response:
        """Return the page that asks for the password; ``wanted`` is the page of the app that opens after it."""
        action = f"{self.base_path}/login?{urlencode({WANTED: wanted})}"
        page = _PAGE.format(action=escape(action), said=escape(said))
        return HTMLResponse(page, 401 if said else 200, {"cache-control": "no-store"})

    def let_in(self, *, wanted: str = "/", secure: bool) -> Response:
        """Return the answer to the right password: the cookie, and the way to the page that was wanted.

        A page is named by its path below the app's; what leads elsewhere is taken for the first page.
        """
        until = str(int(time.time()) + DAYS * 86_400)
        place = f"{self.base_path}{wanted if _OF_THE_APP.fullmatch(wanted) else '/'}"
        answer = Response(status_code=303, headers={"location": place, "cache-control": "no-store"})
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
