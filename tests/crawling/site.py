"""A site to crawl, as tests see it, and helpers to describe one."""

from __future__ import annotations

import atexit
import base64
import http.client
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from workbench import Workbench
from workbench.jobs.worker import run_job

QUICK = {"backoff": 0.02, "timeout": 5.0, "longest_wait": 5.0}  # shorter than the polite delay


class TestSite:
    """The server process as a test sees it."""

    __test__ = False

    def __init__(self, port: int) -> None:
        self.port = port
        self.url = f"http://127.0.0.1:{port}"

    def put(self, pages: dict[str, Any]) -> None:
        """Add pages: path to text (HTML), bytes, one ``reply`` or a list of them, which are sent in turn."""
        made = []
        for path, content in pages.items():
            replies = content if isinstance(content, list) else [content]
            made.append({"path": path, "replies": [r if isinstance(r, dict) else reply(r) for r in replies]})
        self._ask("PUT", "/__page", json.dumps(made))

    def hits(self, path: str | None = None) -> Any:
        """Return how often a path was requested; without a path, all counts."""
        found = json.loads(self._ask("GET", "/__hits"))["hits"]
        return found if path is None else found.get(path, 0)

    def asked_with(self, path: str) -> dict[str, str]:
        """Return the headers of the last request for a path."""
        return json.loads(self._ask("GET", "/__hits"))["headers"][path]

    def times(self, path: str) -> list[float]:
        """Return the times at which a path was requested, in seconds of the server's clock."""
        return json.loads(self._ask("GET", "/__hits"))["times"][path]

    def most_at_once(self) -> int:
        """Return the maximum number of concurrent requests for pages."""
        return json.loads(self._ask("GET", "/__hits"))["most_at_once"]

    def _ask(self, method: str, path: str, body: str | None = None) -> str:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        connection.request(method, path, body)
        answer = connection.getresponse().read().decode()
        connection.close()
        return answer


@contextmanager
def serving_site() -> Generator[TestSite]:
    """Run a fresh server process with no pages."""
    if _open_nest().poll() is not None:  # ended with a test that took too long
        _open_nest.cache_clear()
    nest = _open_nest()
    assert nest.stdin is not None and nest.stdout is not None
    nest.stdin.write("\n")
    nest.stdin.flush()
    process, port = map(int, nest.stdout.readline().split())
    try:
        yield TestSite(port)
    finally:
        os.kill(process, signal.SIGKILL)


@cache
def _open_nest() -> subprocess.Popen[str]:
    """Start the process that forks servers; it ends with this one."""
    command = [sys.executable, str(Path(__file__).with_name("server.py"))]
    nest = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    atexit.register(nest.communicate)
    return nest


def reply(body: str | bytes = "", status: int = 200, **more: Any) -> dict[str, Any]:
    """Return one response of the server; ``headers``, ``delay`` and ``drip`` as in server.py."""
    headers = {"Content-Type": "text/html; charset=utf-8"} | more.pop("headers", {})
    data = body.encode() if isinstance(body, str) else body
    if "drip" in more:
        more["drip"] = base64.b64encode(more["drip"]).decode()
    return {"status": status, "headers": headers, "body": base64.b64encode(data).decode()} | more


def redirect(to: str, status: int = 301) -> dict[str, Any]:
    """Return a redirect."""
    return reply("", status, headers={"Location": to})


def page(title: str, text: str = "", links: tuple[str, ...] | list[str] = (), head: str = "") -> str:
    """Return an HTML page with a heading, a paragraph and links."""
    anchors = "".join(f'<p><a href="{link}">go to {link}</a></p>' for link in links)
    body = text or f"The page called {title} says a thing or two about {title}, and nobody else does."
    main = f"<main><h1>{title}</h1><p>{body}</p>{anchors}</main>"
    return f"<html lang=en><head><title>{title}</title>{head}</head><body>{main}</body></html>"


def finish(wb: Workbench, job_id: str) -> dict[str, Any]:
    """Run a job to its end in this thread."""
    run_job(wb.jobs.table, wb.runners(), job_id, "test", threading.Event())
    return wb.crawls.get(job_id).to_dict()


def outcomes(wb: Workbench, crawled: dict[str, Any]) -> dict[str, str]:
    """Return {path: outcome} of a crawl's pages."""
    return {p.url.split("/", 3)[3]: p.outcome or p.state for p in wb.crawls.pages(crawled["id"])}


def reason(wb: Workbench, crawled: dict[str, Any], path: str) -> str:
    """Return the reason for a page's outcome."""
    return next(p.reason or "" for p in wb.crawls.pages(crawled["id"]) if p.url.endswith(path))
