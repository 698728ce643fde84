"""The addresses that the crawler may connect to, asked before every connection: public ones, and named hosts.

The addresses that are approved are the ones connected to: a name is resolved once for each connection, by us, so
that it cannot answer differently a moment later.
"""

from __future__ import annotations

import ipaddress
import re
import socket
import threading
import unicodedata
from collections.abc import Callable, Iterable
from queue import Empty, SimpleQueue
from urllib.parse import urlsplit

from workbench.errors import CrawlRefused

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Resolve = Callable[[str], Iterable[str]]
NUMERIC = re.compile(r"(?:0[xX][0-9a-fA-F]*|\d+)(?:\.(?:0[xX][0-9a-fA-F]*|\d+)){0,3}\.?")
NAT64 = (ipaddress.IPv6Network("64:ff9b::/96"), ipaddress.IPv6Network("64:ff9b:1::/48"))
COMPATIBLE = ipaddress.IPv6Network("::/96")
PORTS = {"http": 80, "https": 443}
LOOPBACK_NAMES = frozenset(("localhost", "localhost.localdomain", "ip6-localhost", "ip6-loopback"))
LOOKUP = 3.0  # seconds that a name's address is waited for before a crawl is accepted


def system_resolve(host: str) -> list[str]:
    """Return a name's addresses as the system resolves it. Raises OSError."""
    return list(dict.fromkeys(str(info[4][0]) for info in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)))


class Guard:
    """The guard of every connection; ``resolve`` is the only way it learns a name's addresses."""

    def __init__(self, allow_hosts: Iterable[str] = (), resolve: Resolve = system_resolve) -> None:
        """Take ``allow_hosts`` ("host" or "host:port", as they stand in an address), which may be private."""
        self._allowed = frozenset(_plain(host) for host in allow_hosts if host.strip())
        self._resolve = resolve

    def allows_by_name(self, host: str, port: int | None = None) -> bool:
        """Tell whether the owner named this host."""
        plain = _plain(host)
        return plain in self._allowed or (port is not None and f"{plain}:{port}" in self._allowed)

    def check(self, url: str) -> None:
        """Refuse an address without asking a resolver: by scheme, credentials, literal address, name for loopback.

        Raises:
            CrawlRefused: the sentence says why.
        """
        try:
            parts = urlsplit(url)
            host, port = parts.hostname, parts.port
        except ValueError:
            raise CrawlRefused(f"{url[:200]!r} is not a web address.") from None
        if parts.scheme not in PORTS:
            raise CrawlRefused(f"Only http and https addresses are fetched, not {parts.scheme or url[:40]!r}.")
        if not host:
            raise CrawlRefused(f"{url[:200]!r} names no host.")
        if "@" in parts.netloc:
            raise CrawlRefused("Addresses with a user name in them are not fetched.")
        if self.allows_by_name(host, port or PORTS[parts.scheme]):
            return
        address = literal(host)
        if address is not None:
            self._refuse_private(host, address)
        if is_loopback_name(host):
            raise _refusal(host, "this machine")

    def check_name(self, url: str, within: float = LOOKUP) -> None:
        """Refuse a host whose name leads to a private address, where the resolver answers within so many seconds.

        A name without an answer passes: the worker may know it, and asks again before it connects.

        Raises:
            CrawlRefused: the sentence says why.
        """
        parts = urlsplit(url)
        answers: SimpleQueue[CrawlRefused | None] = SimpleQueue()

        def look_up() -> None:
            refusal = None
            try:
                self.addresses(parts.hostname or "", parts.port or PORTS[parts.scheme])
            except CrawlRefused as error:
                refusal = error
            except OSError:
                pass  # no address, which the worker may know
            answers.put(refusal)

        threading.Thread(target=look_up, name="crawl-lookup", daemon=True).start()
        try:
            refusal = answers.get(timeout=within)
        except Empty:
            return
        if refusal is not None:
            raise refusal

    def addresses(self, host: str, port: int | None = None) -> tuple[str, ...]:
        """Return the addresses to connect to for a host.

        Raises:
            CrawlRefused: one of them is not public, and the owner did not name the host.
            OSError: the name has no address.
        """
        address = literal(host)
        addresses = (str(address),) if address is not None else tuple(self._resolve(_plain(host)))
        if not addresses:
            raise OSError(f"{host} has no address")
        if not self.allows_by_name(host, port):
            for each in addresses:
                self._refuse_private(host, _parsed(each))
        return addresses

    def _refuse_private(self, host: str, address: Address | None) -> None:
        if address is None or not is_public(address):
            raise _refusal(host, str(address or "no valid address"))


def _refusal(host: str, place: str) -> CrawlRefused:
    return CrawlRefused(
        f"{host} leads to {place}, which is not on the public internet; "
        "it is not fetched unless WORKBENCH_CRAWL_ALLOW_HOSTS names that host."
    )


def is_loopback_name(host: str) -> bool:
    """Tell whether a name stands for the machine itself wherever it is asked (RFC 6761: localhost and below it)."""
    plain = _plain(host)
    return plain in LOOPBACK_NAMES or plain.endswith(".localhost")


def literal(host: str) -> Address | None:
    """Return the address a host is written as, in any of the forms that systems understand; None for a name.

    Decimal (2130706433), hexadecimal, octal and short (127.1) forms count, and IPv6 with or without brackets.
    """
    plain = _plain(host)
    address = _parsed(plain)
    if address is None and NUMERIC.fullmatch(plain):
        try:
            return ipaddress.IPv4Address(socket.inet_aton(plain.rstrip(".")))
        except OSError:
            return ipaddress.IPv4Address(0)  # a number that is no address: never public
    return address


def is_public(address: Address) -> bool:
    """Tell whether an address is on the public internet, looking inside the IPv6 forms that carry an IPv4 one."""
    if isinstance(address, ipaddress.IPv6Address):
        inside = address.ipv4_mapped or address.sixtofour or (address.teredo[1] if address.teredo else None)
        if inside is None and (any(address in net for net in NAT64) or (address in COMPATIBLE and int(address) > 1)):
            inside = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if inside is not None:
            return is_public(inside)
    return address.is_global and not (address.is_multicast or address.is_reserved or address.is_unspecified)


def _parsed(text: str) -> Address | None:
    try:
        return ipaddress.ip_address(text.split("%", 1)[0])
    except ValueError:
        return None


def _plain(host: str) -> str:
    """Return a host in lower case, without brackets or trailing dot, full-width digits and dots as ASCII ones."""
    text = unicodedata.normalize("NFKC", host.strip()).replace("\u3002", ".").lower()
    if text.startswith("["):
        inner, _, rest = text[1:].partition("]")
        return inner + rest
    return text.rstrip(".")
