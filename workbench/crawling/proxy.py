"""A small forward proxy on loopback through which our browser must go, so that the guard sees its every request.

Every request of a page (redirects, scripts, images, frames, sockets) comes through here, is resolved here, once, and
connects to the address that was approved.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from urllib.parse import urlsplit

from workbench.crawling.egress import Guard
from workbench.errors import CrawlRefused
from workbench.sizes import KB

LONGEST_HEAD = 64 * KB  # bytes of a request's head
CHUNK = 64 * KB  # bytes read at once
CONNECT_WITHIN = 10.0  # seconds
HOP_BY_HOP = ("proxy-connection:", "connection:", "proxy-authorization:", "keep-alive:")


class GuardingProxy:
    """An HTTP proxy (absolute addresses and CONNECT); one request a connection for plain HTTP."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._nonce = secrets.token_urlsafe(16)
        self.refused: set[str] = set()  # addresses that the browser asked for and did not get
        self.is_proven = False  # a browser asked for ``proof_url`` through this proxy

    @property
    def url(self) -> str:
        """The address it listens on."""
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    @property
    def proof_url(self) -> str:
        """An address on loopback that only a browser behind this proxy gets an answer for."""
        return f"{self.url}/{self._nonce}"

    async def start(self) -> None:
        """Listen on a free loopback port."""
        if self._server is not None:
            return
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=LONGEST_HEAD)

    async def close(self) -> None:
        """Stop listening and drop every connection."""
        if self._server is not None:
            self._server.close()
            for writer in list(self._writers):
                writer.close()
            await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            await self._forward(head.decode("latin-1"), reader, writer)
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError, TimeoutError):
            pass  # the browser left, or sent no request
        finally:
            self._writers.discard(writer)
            with contextlib.suppress(ConnectionError):
                writer.close()

    async def _forward(self, head: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line, *headers = head.split("\r\n")
        method, _, rest = line.partition(" ")
        target = rest.rpartition(" ")[0]
        if target == self.proof_url:
            self.is_proven = True
            await _answer(writer, "200 OK", "guarded")
            return
        url = f"https://{target}" if method == "CONNECT" else target
        try:
            far_reader, far_writer = await self._connect(url)
        except CrawlRefused as error:
            self.refused.add(url)
            await _answer(writer, "403 Forbidden", str(error))
            return
        except (OSError, TimeoutError) as error:
            await _answer(writer, "502 Bad Gateway", f"The connection failed ({type(error).__name__}).")
            return
        if method == "CONNECT":
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            await writer.drain()
        else:
            far_writer.write(_as_origin_request(method, target, headers))
        try:
            await asyncio.gather(_pipe(reader, far_writer), _pipe(far_reader, writer))
        finally:
            far_writer.close()

    async def _connect(self, url: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        self._guard.check(url)
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
        addresses = await asyncio.to_thread(self._guard.addresses, host, port)
        failure: OSError | None = None
        for address in addresses:
            try:
                return await asyncio.wait_for(asyncio.open_connection(address, port), CONNECT_WITHIN)
            except OSError as error:
                failure = error
        raise failure or OSError("no address")


def _as_origin_request(method: str, target: str, headers: list[str]) -> bytes:
    parts = urlsplit(target)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    passed = [header for header in headers if header and not header.lower().startswith(HOP_BY_HOP)]
    return "\r\n".join([f"{method} {path} HTTP/1.1", *passed, "Connection: close", "", ""]).encode("latin-1")


async def _pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while piece := await reader.read(CHUNK):
            writer.write(piece)
            await writer.drain()
    except ConnectionError:
        pass  # one side left; the other is closed below
    finally:
        with contextlib.suppress(ConnectionError, RuntimeError):
            writer.close()


async def _answer(writer: asyncio.StreamWriter, status: str, reason: str) -> None:
    body = reason.encode()
    head = f"HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {len(body)}\r\n"
    writer.write(head.encode() + b"Connection: close\r\n\r\n" + body)
    await writer.drain()
