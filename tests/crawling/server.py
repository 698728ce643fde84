"""Small web servers in separate processes, with pages written by the tests: real sockets, real misbehaviour.

``PUT /__page`` with {"path", "replies": [...]} makes a page; each request takes the next reply, the last one stays.
A reply: {"status", "headers", "body" (base64), "delay" (s before answering), "drip" (bytes for ever)}.
``GET /__hits`` tells which paths were asked for how often, and with which headers last.
A reply with an ETag or Last-Modified answers 304 to anyone who has it.
"""

from __future__ import annotations

import base64
import json
import os
import signal
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PAGES: dict[str, list[dict]] = {}
HITS: dict[str, int] = {}
HEADERS: dict[str, dict[str, str]] = {}
TIMES: dict[str, list[float]] = {}
UNDER_WAY = {"now": 0, "most": 0}
LOCK = threading.Lock()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        """Log nothing."""

    def do_PUT(self) -> None:
        given = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with LOCK:
            for page in given:
                PAGES[page["path"]] = list(page["replies"])
        self._send(204, {}, b"")

    def do_GET(self) -> None:
        if self.path == "/__hits":
            with LOCK:
                told = {"hits": HITS, "headers": HEADERS, "times": TIMES, "most_at_once": UNDER_WAY["most"]}
                body = json.dumps(told).encode()
            self._send(200, {"Content-Type": "application/json"}, body)
            return
        with LOCK:
            HITS[self.path] = HITS.get(self.path, 0) + 1
            HEADERS[self.path] = dict(self.headers.items())
            TIMES.setdefault(self.path, []).append(time.monotonic())
            replies = PAGES.get(self.path) or PAGES.get(self.path.split("?")[0] + "?*") or []
            reply = replies.pop(0) if len(replies) > 1 else (replies[0] if replies else {"status": 404})
            UNDER_WAY["now"] += 1
            UNDER_WAY["most"] = max(UNDER_WAY.values())
        try:
            self._reply(reply)
        finally:
            with LOCK:
                UNDER_WAY["now"] -= 1

    def _reply(self, reply: dict) -> None:
        time.sleep(reply.get("delay", 0))
        headers = reply.get("headers", {})
        query = self.path.partition("?")[2]
        body = base64.b64decode(reply.get("body", "")).replace(b"{query}", query.encode())
        if query.isdigit():
            body = body.replace(b"{next}", str(int(query) + 1).encode())
            headers = {name: value.replace("{next}", str(int(query) + 1)) for name, value in headers.items()}
        known = (headers.get("ETag"), self.headers.get("If-None-Match")), (
            headers.get("Last-Modified"), self.headers.get("If-Modified-Since"))  # fmt: skip
        if any(ours is not None and ours == theirs for ours, theirs in known):
            self._send(304, headers, b"")
        elif "drip" in reply:
            self._drip(base64.b64decode(reply["drip"]))
        else:
            self._send(reply.get("status", 200), headers, body)

    def _drip(self, piece: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Connection", "close")
        self.end_headers()
        try:
            while True:
                self.wfile.write(piece)
                self.wfile.flush()
                time.sleep(0.02)
        except OSError:
            self.close_connection = True

    def _send(self, status: int, headers: dict[str, str], body: bytes) -> None:
        try:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if status != 304:
                self.wfile.write(body)
        except OSError:
            self.close_connection = True


class QuietServer(ThreadingHTTPServer):
    """A server that tolerates crawlers that disconnect."""

    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, *_: object) -> None:
        """Report nothing."""


def _serve(parent: int) -> None:
    """Serve on a free loopback port, printed after the process id, until this process is killed or its parent ends."""
    server = QuietServer(("127.0.0.1", 0), Handler)
    print(os.getpid(), server.server_address[1], flush=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    while os.getppid() == parent:
        time.sleep(0.5)


def main() -> None:
    """Fork a server for each line on stdin, since starting Python and importing takes longer than most tests serve."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the dead ones leave no zombies
    parent = os.getpid()
    for _ in sys.stdin:
        if os.fork() == 0:
            try:
                _serve(parent)
            finally:
                os._exit(0)


if __name__ == "__main__":
    main()
