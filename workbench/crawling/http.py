"""Plain HTTP through crawl4ai's strategy, with a guard on the connection and limits on the response.

crawl4ai's own request follows redirects, reads bodies of any size and hides the headers of failed requests. ``crawl``
is therefore overridden: one request, one response, within limits.
"""

from __future__ import annotations

import asyncio
import re
import socket
import string
import time
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from urllib.parse import quote

import aiohttp
from aiohttp import AddrInfoType
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.compression_utils import BrotliDecompressor

from workbench.crawling.crawl4ai_import import AsyncCrawlResponse, AsyncHTTPCrawlerStrategy
from workbench.crawling.egress import Guard
from workbench.errors import CrawlRefused
from workbench.formatting import KB, MB

# --- Responses and failures ---

USER_AGENT = "RAGWorkbench/0.1 (+crawler; obeys robots.txt)"
AGENT_TOKEN = "RAGWorkbench"  # name in robots.txt
REDIRECT_STATUSES = frozenset((301, 302, 303, 307, 308))
GONE_STATUSES = frozenset((404, 410))
MEDIA_TYPE = re.compile(r"[\w!#$&^.+-]+/[\w!#$&^.+-]+", re.ASCII)
RETRY_STATUSES = frozenset((408, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524))


@dataclass(frozen=True, slots=True)
class Response:
    """A response."""

    url: str  # requested address
    status: int  # status code
    headers: Mapping[str, str] = field(default_factory=dict[str, str])  # headers by name in lower case
    body: bytes = b""  # decompressed body
    seconds: float = 0.0  # time from request to last byte
    rendered: bool = False  # True if a browser rendered it

    @property
    def media_type(self) -> str:
        """The content type without its parameters, or "" if there is no valid one."""
        value = self.headers.get("content-type", "").split(";")[0].strip().lower()
        return value if MEDIA_TYPE.fullmatch(value) else ""

    @property
    def charset(self) -> str | None:
        """The charset declared by the content type, or None."""
        for parameter in self.headers.get("content-type", "").split(";")[1:]:
            name, _, value = parameter.partition("=")
            if name.strip().lower() == "charset" and value.strip():
                return value.strip().strip("\"'")
        return None


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why an address is not fetched. Only "forbidden" affects the document that an earlier crawl stored."""

    # "forbidden": the site forbids it; "not_allowed": this workbench may not connect to it; "failed": the site's
    # robots.txt could not be read
    outcome: str
    reason: str  # a sentence


class FetchFailed(Exception):
    """No usable response; ``retry`` if a retry may help, after ``retry_after`` seconds if the host specified them."""

    def __init__(
        self, reason: str, *, retry: bool, retry_after: float | None = None, status: int | None = None
    ) -> None:
        super().__init__(reason)
        self.reason, self.retry, self.retry_after, self.status = reason, retry, retry_after, status


CHUNK_BYTES = 64 * KB  # bytes read at once
CONNECT_TIMEOUT_S = 10.0  # seconds
MAX_HEADER_BYTES = 256 * KB  # bytes of a header or the status line; real policies and cookies have 8 to 64 KB
MAX_HEADERS = 1_000
REQUEST_HEADERS = {
    "User-Agent": USER_AGENT,
    "Accept": "text/html,application/xhtml+xml,text/markdown;q=0.9,application/pdf;q=0.8,*/*;q=0.5",
    "Accept-Language": "en;q=0.9,*;q=0.5",
    "Accept-Encoding": "gzip, deflate",
}
SocketFactory = Callable[[AddrInfoType], socket.socket]


class GuardedResolver(AbstractResolver):
    """A resolver for aiohttp that returns only the addresses that the guard approves at connection time."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """Return the approved addresses.

        Raises:
            CrawlRefused: The host may not be connected to.
            OSError: The name has no address.
        """
        addresses = await asyncio.to_thread(self._guard.addresses, host, port)
        return [
            ResolveResult(
                hostname=host,
                host=address,
                port=port,
                family=socket.AF_INET6 if ":" in address else socket.AF_INET,
                proto=0,
                flags=socket.AI_NUMERICHOST,
            )
            for address in addresses
        ]

    async def close(self) -> None:
        """Do nothing; there are no resources."""


class GuardedHTTPStrategy(AsyncHTTPCrawlerStrategy):
    """crawl4ai's HTTP strategy behind the guard. It makes single requests and follows no redirects."""

    def __init__(
        self, guard: Guard, *, timeout: float, max_bytes: int, socket_factory: SocketFactory | None = None
    ) -> None:
        """Args:
        guard: Decides which addresses may be reached.
        timeout: Seconds for a whole response.
        max_bytes: Maximum size of a body.
        socket_factory: Creates sockets, as in aiohttp.
        """
        super().__init__()
        self._guard, self._timeout, self._max_bytes = guard, timeout, max_bytes
        self._socket_factory = socket_factory

    async def start(self) -> None:
        """Open the session without connecting."""
        if self._session is None:
            connector = aiohttp.TCPConnector(
                limit=32,
                resolver=GuardedResolver(self._guard),
                use_dns_cache=False,
                socket_factory=self._socket_factory,
            )
            self._session = aiohttp.ClientSession(
                connector=connector,
                headers=REQUEST_HEADERS,
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,  # it takes a gzip that ends early as complete
                max_line_size=MAX_HEADER_BYTES,
                max_field_size=MAX_HEADER_BYTES,
                max_headers=MAX_HEADERS,
            )

    async def crawl(self, url: str, config: object = None, **kwargs: object) -> AsyncCrawlResponse:
        """Implement crawl4ai's interface: return the text, decoded with the charset from its header."""
        fetched = await self.fetch(url)
        text = fetched.body.decode(fetched.charset or "utf-8", errors="replace")
        return AsyncCrawlResponse(
            html=text, response_headers=dict(fetched.headers), status_code=fetched.status, redirected_url=url
        )

    async def fetch(self, url: str, headers: Mapping[str, str] | None = None) -> Response:
        """Make one request.

        Raises:
            CrawlRefused: The address may not be connected to; nothing was sent.
            FetchFailed: There was no response, or it was too large, too slow or invalid.
        """
        self._guard.check(url)
        await self.start()
        assert self._session is not None
        began = time.perf_counter()
        timeout = aiohttp.ClientTimeout(total=self._timeout, sock_connect=min(CONNECT_TIMEOUT_S, self._timeout))
        try:
            async with self._session.get(url, headers=headers, allow_redirects=False, timeout=timeout) as answer:
                body = await self._read(answer)
                seconds = time.perf_counter() - began
                return Response(url, answer.status, _decode_headers(answer.headers.items()), body, seconds)
        except FetchFailed:
            raise
        except TimeoutError as error:
            raise FetchFailed(f"It did not respond completely within {self._timeout:g} s.", retry=True) from error
        except (aiohttp.ClientError, OSError, ValueError) as error:
            refused = _find_refusal(error)
            if refused is not None:
                raise refused from error
            raise FetchFailed(_describe_failure(error), retry=True) from error

    async def _read(self, answer: aiohttp.ClientResponse) -> bytes:
        if answer.status == 304:
            return b""
        if (answer.content_length or 0) > self._max_bytes:
            raise FetchFailed(self._too_large(answer.content_length or 0), retry=False, status=answer.status)
        pieces: list[bytes] = []
        size = 0
        async for piece in answer.content.iter_chunked(CHUNK_BYTES):
            pieces.append(piece)
            size += len(piece)
            if size > self._max_bytes:
                raise FetchFailed(self._too_large(size), retry=False, status=answer.status)
        body = _decompress(b"".join(pieces), answer.headers.get("content-encoding", ""), self._max_bytes + 1)
        if len(body) > self._max_bytes:
            raise FetchFailed(self._too_large(len(body)), retry=False, status=answer.status)
        return body

    def _too_large(self, size: int) -> str:
        return f"It is larger than {self._max_bytes / MB:g} MB ({size / MB:.1f} MB or more)."


def _decompress(data: bytes, encoding: str, max_bytes: int) -> bytes:
    """Return the first ``max_bytes`` of a body, decompressed. A body with an unknown encoding is returned unchanged.

    Raises:
        FetchFailed: It is damaged or ends early.
    """
    name = encoding.strip().lower()
    pieces: list[bytes] = []
    room = max_bytes
    is_whole = True
    try:
        if name == "br" and data:  # not asked for, but some servers send nothing else
            brotli = BrotliDecompressor()
            pieces.append(brotli.decompress_sync(data, max_length=max_bytes))
            is_whole = (bool(pieces[0]) and not brotli.data_available) or len(pieces[0]) >= max_bytes
        while data and room and is_whole and name in ("gzip", "x-gzip", "deflate"):
            is_bare = name == "deflate" and data[0] & 15 != zlib.DEFLATED  # without zlib's header
            unzipping = zlib.decompressobj(wbits=-zlib.MAX_WBITS if is_bare else zlib.MAX_WBITS + 32)
            pieces.append(unzipping.decompress(data, room))
            room -= len(pieces[-1])
            is_whole = unzipping.eof or not room
            data = unzipping.unused_data if unzipping.unused_data.startswith(b"\x1f\x8b") else b""
    except Exception as error:  # brotli has exceptions of its own
        raise FetchFailed(f"Its {name} compression is damaged ({_short_message(error)}).", retry=True) from error
    if not is_whole:
        raise FetchFailed(f"Its {name} compression ends early.", retry=True)
    return b"".join(pieces) or data


def _decode_headers(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return headers by name in lower case, as text without surrogates.

    The last of repeated headers is kept, except that X-Robots-Tag headers are joined. aiohttp returns bytes that are
    not UTF-8 as surrogates; they are escaped in addresses and decoded as Latin-1 elsewhere.
    """
    readable: dict[str, str] = {}
    for name, value in headers:
        key, raw = name.lower(), value.encode("utf-8", "surrogateescape")
        if key in ("location", "content-location"):
            text = quote(raw, safe=string.punctuation)
        elif value.isascii():
            text = value
        else:
            text = raw.decode("latin-1")
        if key == "x-robots-tag" and key in readable:
            text = f"{readable[key]}\n{text}"
        readable[key] = text
    return readable


def _find_refusal(error: BaseException | None) -> CrawlRefused | None:
    while error is not None:
        if isinstance(error, CrawlRefused):
            return error
        error = error.__cause__ or error.__context__
    return None


def _describe_failure(error: Exception) -> str:
    """Return one sentence on a connection that failed or ended early."""
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        invalid = error.certificate_error
        return f"The server's certificate is not valid ({getattr(invalid, 'verify_message', '') or invalid})."
    if isinstance(error, aiohttp.ClientConnectorSSLError):
        cause = (getattr(error.os_error, "reason", None) or str(error.os_error)).replace("_", " ").lower()
        return f"The connection failed: the server does not speak https, or not a version that is safe ({cause})."
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return f"The name {error.host} has no address."
    if isinstance(error, aiohttp.ClientPayloadError):
        return "The connection ended before the page was complete."
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "The connection failed: the server closed it without an answer."
    if isinstance(error, aiohttp.ClientConnectorError) and isinstance(error.os_error, ConnectionError):
        kind = "refused" if isinstance(error.os_error, ConnectionRefusedError) else "closed"
        return f"The connection failed: {error.host}:{error.port} {kind} it."
    if isinstance(error, aiohttp.ClientResponseError):
        return f"The server's answer is not valid HTTP ({' '.join(error.message.split())[:160]})."
    return f"The connection failed ({_short_message(error)})."


def _short_message(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:160]}" if text else type(error).__name__
