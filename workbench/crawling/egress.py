"""Addresses that the crawler may connect to: public ones and allowed hosts, checked before every connection.

A name is resolved once per connection, and only approved addresses are used, which prevents DNS rebinding.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import re
import secrets
import socket
import threading
import unicodedata
from collections.abc import Callable, Iterable
from urllib.parse import urlsplit

from workbench.errors import CrawlRefused
from workbench.formatting import KB

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Resolve = Callable[[str], Iterable[str]]
NUMERIC_HOST = re.compile(r"(?:0[xX][0-9a-fA-F]*|\d+)(?:\.(?:0[xX][0-9a-fA-F]*|\d+)){0,3}\.?")
NAT64_NETWORKS = (ipaddress.IPv6Network("64:ff9b::/96"), ipaddress.IPv6Network("64:ff9b:1::/48"))
IPV4_COMPATIBLE_NETWORK = ipaddress.IPv6Network("::/96")
DEFAULT_PORTS = {"http": 80, "https": 443}
LOOPBACK_NAMES = frozenset(("localhost", "localhost.localdomain", "ip6-localhost", "ip6-loopback"))
LOOKUP_TIMEOUT_S = 3.0  # seconds to wait for DNS before a crawl is accepted


def resolve_by_system(host: str) -> list[str]:
    """Return a name's addresses from the system resolver. Raises OSError if name resolution failed."""
    return list(dict.fromkeys(str(info[4][0]) for info in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)))


class Guard:
    """Decides which hosts the crawler may connect to; ``resolve`` is its only access to DNS."""

    def __init__(self, allow_hosts: Iterable[str] = (), resolve: Resolve = resolve_by_system) -> None:
        """Args:
        allow_hosts: Hosts that may be private, as "host" or "host:port".
        resolve: Returns the addresses of a name.
        """
        self._allowed = frozenset(_plain_host(host) for host in allow_hosts if host.strip())
        self._resolve = resolve

    def allows_by_name(self, host: str, port: int | None = None) -> bool:
        """Return whether a host is in ``allow_hosts``."""
        plain = _plain_host(host)
        return plain in self._allowed or (port is not None and f"{plain}:{port}" in self._allowed)

    def check(self, url: str) -> None:
        """Check an address without DNS: scheme, credentials, literal address and loopback names.

        Raises:
            CrawlRefused: The address may not be fetched.
        """
        try:
            parts = urlsplit(url)
            host, port = parts.hostname, parts.port
        except ValueError:
            raise CrawlRefused(f"{url[:200]!r} is not a valid URL.") from None
        if parts.scheme not in DEFAULT_PORTS:
            raise CrawlRefused(f"Only http and https are supported, not {parts.scheme or url[:40]!r}.")
        if not host:
            raise CrawlRefused(f"{url[:200]!r} has no host.")
        if "@" in parts.netloc:
            raise CrawlRefused("URLs with a user name are not fetched.")
        if self.allows_by_name(host, port or DEFAULT_PORTS[parts.scheme]):
            return
        address = parse_literal_address(host)
        if address is not None:
            self._refuse_private(host, address)
        if is_loopback_name(host):
            raise _private_refusal(host, "this machine")

    def check_name(self, url: str, within: float = LOOKUP_TIMEOUT_S) -> None:
        """Check whether a host's name resolves to a private address, if DNS answers within ``within`` seconds.

        A name that does not resolve passes; the worker may be able to resolve it, and checks again before connecting.

        Raises:
            CrawlRefused: The host is private and not in ``allow_hosts``.
        """
        parts = urlsplit(url)
        refusals: list[CrawlRefused] = []

        def look_up() -> None:
            try:
                self.addresses(parts.hostname or "", parts.port or DEFAULT_PORTS[parts.scheme])
            except CrawlRefused as error:
                refusals.append(error)
            except OSError:
                pass  # not resolvable here; the worker may resolve it

        lookup = threading.Thread(target=look_up, name="crawl-lookup", daemon=True)
        lookup.start()
        lookup.join(within)
        if refusals:
            raise refusals[0]

    def addresses(self, host: str, port: int | None = None) -> tuple[str, ...]:
        """Return the approved addresses of a host.

        Raises:
            CrawlRefused: One of them is not public, and the host is not in ``allow_hosts``.
            OSError: The name has no address.
        """
        address = parse_literal_address(host)
        addresses = (str(address),) if address is not None else tuple(self._resolve(_plain_host(host)))
        if not addresses:
            raise OSError(f"{host} has no address")
        if not self.allows_by_name(host, port):
            for each in addresses:
                self._refuse_private(host, _parse_address(each))
        return addresses

    def _refuse_private(self, host: str, address: Address | None) -> None:
        if address is None or not is_public(address):
            raise _private_refusal(host, str(address or "no valid address"))


def _private_refusal(host: str, place: str) -> CrawlRefused:
    return CrawlRefused(
        f"{host} resolves to {place}, which is not on the public internet. "
        "To allow it, add the host to WORKBENCH_CRAWL_ALLOW_HOSTS."
    )


def is_loopback_name(host: str) -> bool:
    """Return whether a name always means this machine (RFC 6761: localhost and names below it)."""
    plain = _plain_host(host)
    return plain in LOOPBACK_NAMES or plain.endswith(".localhost")


def parse_literal_address(host: str) -> Address | None:
    """Return the IP address that a host spells out, in any notation that systems accept, or None for a name.

    These are decimal (2130706433), hexadecimal, octal and short (127.1) forms, and IPv6 with or without brackets.
    """
    plain = _plain_host(host)
    address = _parse_address(plain)
    if address is None and NUMERIC_HOST.fullmatch(plain):
        try:
            return ipaddress.IPv4Address(socket.inet_aton(plain.rstrip(".")))
        except OSError:
            return ipaddress.IPv4Address(0)  # not a valid address; never public
    return address


def is_public(address: Address) -> bool:
    """Return whether an address is public, also checking IPv4 addresses embedded in IPv6."""
    if isinstance(address, ipaddress.IPv6Address):
        inside = address.ipv4_mapped or address.sixtofour or (address.teredo[1] if address.teredo else None)
        if inside is None and (
            any(address in net for net in NAT64_NETWORKS) or (address in IPV4_COMPATIBLE_NETWORK and int(address) > 1)
        ):
            inside = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if inside is not None:
            return is_public(inside)
    return address.is_global and not (address.is_multicast or address.is_reserved or address.is_unspecified)


def _parse_address(text: str) -> Address | None:
    try:
        return ipaddress.ip_address(text.split("%", 1)[0])
    except ValueError:
        return None


def _plain_host(host: str) -> str:
    """Return a host in lower case without brackets and trailing dot, with full-width digits and dots as ASCII."""
    text = unicodedata.normalize("NFKC", host.strip()).replace("\u3002", ".").lower()
    if text.startswith("["):
        inner, _, rest = text[1:].partition("]")
        return inner + rest
    return text.rstrip(".")


# --- Forward proxy that checks the browser's requests ---

MAX_HEAD_BYTES = 64 * KB  # bytes of a request's header section
CHUNK_BYTES = 64 * KB  # bytes read at once
CONNECT_TIMEOUT_S = 10.0  # seconds
HOP_BY_HOP_HEADERS = ("proxy-connection:", "connection:", "proxy-authorization:", "keep-alive:")


class GuardingProxy:
    """An HTTP proxy on loopback (absolute URLs and CONNECT), with one request per plain HTTP connection."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._nonce = secrets.token_urlsafe(16)
        self.refused: set[str] = set()  # addresses refused to the browser
        self.is_proven = False  # a browser has requested ``proof_url`` through this proxy

    @property
    def url(self) -> str:
        """The address it listens on."""
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    @property
    def proof_url(self) -> str:
        """A loopback address that only a browser behind this proxy can reach."""
        return f"{self.url}/{self._nonce}"

    async def start(self) -> None:
        """Listen on a free loopback port."""
        if self._server is not None:
            return
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=MAX_HEAD_BYTES)

    async def close(self) -> None:
        """Stop listening and close all connections."""
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
            pass  # the browser disconnected or sent no request
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
            await _send_response(writer, "200 OK", "guarded")
            return
        url = f"https://{target}" if method == "CONNECT" else target
        try:
            far_reader, far_writer = await self._connect(url)
        except CrawlRefused as error:
            self.refused.add(url)
            await _send_response(writer, "403 Forbidden", str(error))
            return
        except (OSError, TimeoutError) as error:
            await _send_response(writer, "502 Bad Gateway", f"The connection failed ({type(error).__name__}).")
            return
        if method == "CONNECT":
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            await writer.drain()
        else:
            parts = urlsplit(target)
            path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
            passed = [header for header in headers if header and not header.lower().startswith(HOP_BY_HOP_HEADERS)]
            lines = [f"{method} {path} HTTP/1.1", *passed, "Connection: close", "", ""]
            far_writer.write("\r\n".join(lines).encode("latin-1"))
        try:
            await asyncio.gather(_pipe(reader, far_writer), _pipe(far_reader, writer))
        finally:
            far_writer.close()

    async def _connect(self, url: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        self._guard.check(url)
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port or DEFAULT_PORTS[parts.scheme]
        addresses = await asyncio.to_thread(self._guard.addresses, host, port)
        for address in addresses[:-1]:
            with contextlib.suppress(OSError):
                return await asyncio.wait_for(asyncio.open_connection(address, port), CONNECT_TIMEOUT_S)
        return await asyncio.wait_for(asyncio.open_connection(addresses[-1], port), CONNECT_TIMEOUT_S)


async def _pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while piece := await reader.read(CHUNK_BYTES):
            writer.write(piece)
            await writer.drain()
    except ConnectionError:
        pass  # one side disconnected; the other is closed below
    finally:
        with contextlib.suppress(ConnectionError, RuntimeError):
            writer.close()


async def _send_response(writer: asyncio.StreamWriter, status: str, reason: str) -> None:
    body = reason.encode()
    head = f"HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {len(body)}\r\n"
    writer.write(head.encode() + b"Connection: close\r\n\r\n" + body)
    await writer.drain()
