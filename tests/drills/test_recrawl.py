"""A repeated crawl loses no document, whatever goes wrong at any request."""

from __future__ import annotations

import random
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

from tests.crawling.site import finish, page
from workbench import Workbench
from workbench.settings import Settings

WITHIN = 15.0  # seconds, unless the run reports how long its drills take
QUICK: dict[str, Any] = {"browser": "never", "retries": 0, "backoff": 0, "timeout": 0.4, "concurrency": 1}
NAMES = ("alpha", "beta", "gamma", "delta", "epsilon")
BODIES = {
    "/docs/": page("Handbook", links=[f"/docs/{name}" for name in NAMES]),
    **{f"/docs/{name}": page(name.title()) for name in NAMES},
    "/robots.txt": "User-agent: *\nDisallow: /private/\n",
}
MAINTENANCE = page("Maintenance", "We are down for maintenance, request {n}, and will be back in an hour.")
LOGIN = "HTTP/1.1 302 Found\r\nLocation: /login?next=there\r\nContent-Length: 0\r\n\r\n"


def whole(status: int, body: str, kind: str = "text/html") -> bytes:
    """Return a response as sent over the wire."""
    data = body.encode()
    return f"HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\nContent-Length: {len(data)}\r\n\r\n".encode() + data


FAILURES: dict[str, Callable[[int], bytes | None]] = {  # by the number of the request; None sends nothing at all
    **{str(status): lambda n, status=status: whole(status, "<p>busy</p>") for status in (401, 403, 429, 451, 500, 503)},
    "reset": lambda n: b"",
    "timeout": lambda n: None,
    "truncated": lambda n: whole(200, page("Cut", "x" * 400))[:-200],
    "garbage headers": lambda n: b"HTTP/1.1 200 OK\r\n\xff\xfe: \x00\x01\r\nContent-Length: many\r\n\r\n<p>odd</p>",
    "garbage": lambda n: bytes(range(256)),
    "odd charset": lambda n: whole(200, "<p>odd</p>", "text/html; charset=undefined"),
    "odd redirect": lambda n: b"HTTP/1.1 302 X\r\nLocation: http://[\xe9\r\nContent-Length: 0\r\n\r\n",
    "empty page": lambda n: whole(200, ""),
    "maintenance": lambda n: whole(200, MAINTENANCE.format(n=n)),
    "login": lambda n: LOGIN.encode(),
}


class FailingSite:
    """A site that responds normally up to a request, then fails in one way, once or from then on."""

    def __init__(self) -> None:
        self.port = 0
        self.kind, self.first, self.forever = "", 0, False
        self.requests = 0
        self.listener = self.listen()

    def listen(self) -> socket.socket:
        """Start to accept connections, at the same port as before."""
        self.listener = socket.create_server(("127.0.0.1", self.port))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, args=(self.listener,), daemon=True).start()
        return self.listener

    def fail(self, kind: str, first: int, forever: bool) -> None:
        """Fail from the given request on, counted from now; the kind "" never fails."""
        self.kind, self.first, self.forever, self.requests = kind, first, forever, 0
        if self.listener.fileno() == -1:
            self.listen()

    def _accept(self, listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, suppress(OSError):
            head = b""
            while b"\r\n\r\n" not in head:
                piece = connection.recv(4096)
                if not piece:
                    return
                head += piece
            self.requests += 1
            fails = bool(self.kind) and (self.requests == self.first or (self.forever and self.requests > self.first))
            path = head.split()[1].decode()
            if fails and self.kind == "refused":
                self.listener.shutdown(socket.SHUT_RDWR)
                self.listener.close()
            elif fails:
                answer = FAILURES[self.kind](self.requests)
                if answer is None:
                    time.sleep(1)
                connection.sendall(answer or b"")
            else:
                body = BODIES.get(path)
                kind = "text/plain" if path == "/robots.txt" else "text/html"
                answer = whole(404, "") if body is None else whole(200, body, kind)
                connection.sendall(answer.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n", 1))


@pytest.fixture
def seconds(request: pytest.FixtureRequest) -> float:
    """How long the drill runs."""
    try:
        return float(request.getfixturevalue("drill_seconds"))
    except pytest.FixtureLookupError:
        return WITHIN


@pytest.fixture
def site() -> Iterator[FailingSite]:
    """A site that responds normally until it is told to fail."""
    served = FailingSite()
    yield served
    served.listener.close()


def read_texts(wb: Workbench) -> dict[str, str]:
    """Return {address: text} of every document."""
    return {document.url or "": wb.documents.get(document.id).text or "" for document in wb.documents.list()}


def test_no_failure_at_any_request_of_a_recrawl_loses_a_document(
    make_settings: Callable[..., Settings], site: FailingSite, seconds: float
) -> None:
    dice = random.Random(37)
    with Workbench.open(settings=make_settings(crawl_allow_hosts="127.0.0.1")) as wb:
        crawl = finish(wb, wb.crawls.start(f"http://127.0.0.1:{site.port}/docs/", **QUICK).id)
        asked = site.requests
        before = read_texts(wb)
        assert len(before) == 1 + len(NAMES)
        trials = [
            (kind, first, forever)
            for kind in [*FAILURES, "refused"]
            for first in range(1, asked + 1)
            for forever in (False, True)
        ]
        dice.shuffle(trials)
        until = time.monotonic() + seconds
        for kind, first, forever in trials:
            site.fail(kind, first, forever)
            finish(wb, wb.crawls.recrawl(crawl["id"]).id)
            after = read_texts(wb)
            trial = f"{kind} at request {first}{' and after it' if forever else ''}"
            assert before.keys() <= after.keys(), trial
            is_page = kind in ("maintenance", "odd charset", "truncated")  # one page may have new text
            assert sum(after[key] != text for key, text in before.items()) <= is_page, trial
            if after != before:
                site.fail("", 0, False)
                for document in wb.documents.list():
                    if document.url not in before:
                        wb.documents.delete(document.id)
                finish(wb, wb.crawls.recrawl(crawl["id"], refresh=True).id)
            if time.monotonic() > until:
                break
