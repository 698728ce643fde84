"""One address, one spelling: the canonical form by which pages are told apart."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, quote, unquote_to_bytes, urljoin, urlsplit, urlunsplit

LONGEST = 2_000  # characters; a longer one is a trap or a form's state, not a page
LONGEST_WRITTEN = 4 * LONGEST  # before dot segments and escapes are gone; data: addresses hold whole pictures
DEFAULT_PORTS = {"http": 80, "https": 443}
TRACKING = re.compile(
    r"^(utm_\w+|gclid|dclid|fbclid|msclkid|yclid|igshid|mc_cid|mc_eid|_ga|_gl|_hsenc|_hsmi|mkt_tok|vero_id|wickedid"
    r"|phpsessid|jsessionid|sessionid)$",
    re.IGNORECASE,
)
SESSION_PATH = re.compile(r";jsessionid=[^/?#]*", re.IGNORECASE)
ESCAPE = re.compile(r"%[0-9a-fA-F]{2}")
UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
NOT_PAGES = re.compile(
    r"\.(?:png|jpe?g|gif|webp|avif|svg|ico|bmp|tiff?|css|js|mjs|map|woff2?|ttf|otf|eot|mp[34]|m4[av]|webm|ogg|wav|avi|mov"
    r"|zip|gz|tgz|bz2|xz|7z|rar|tar|exe|dmg|msi|deb|rpm|apk|iso|jar|whl|bin|dll|so|wasm|rss|atom|ics|torrent)$",
    re.IGNORECASE,
)


def canonical(url: str, base: str | None = None) -> str | None:
    """Return the canonical form of an address, resolved against ``base``; None where it is no web page's address.

    Scheme and host in lower case (IDNA), no default port, no fragment, no dot segments, no tracking or session
    parameters, escapes only where they are needed. The order of parameters is kept: some sites mind it.
    """
    if len(url) > LONGEST_WRITTEN:
        return None
    try:
        joined = urljoin(base, url.strip()) if base else url.strip()
        parts = urlsplit(joined)
        host, port = parts.hostname, parts.port
    except ValueError:
        return None
    if parts.scheme not in DEFAULT_PORTS or not host or "@" in parts.netloc:
        return None
    host = _host(host)
    if host is None:
        return None
    netloc = host if port in (None, DEFAULT_PORTS[parts.scheme]) else f"{host}:{port}"
    path = _without_dots(_escaped(SESSION_PATH.sub("", parts.path), "/!$&'()*+,;=:@")) or "/"
    address = urlunsplit((parts.scheme, netloc, path, _query(parts.query), ""))
    return address if len(address) <= LONGEST else None


def host_of(url: str) -> str:
    """Return host and port of a canonical address."""
    return urlsplit(url).netloc


def path_of(url: str) -> str:
    """Return path and query of a canonical address, as robots.txt rules see it."""
    parts = urlsplit(url)
    return parts.path + (f"?{parts.query}" if parts.query else "")


def looks_like_page(url: str) -> bool:
    """Tell by the address whether text can be expected there (not an image, a script or an archive)."""
    return NOT_PAGES.search(urlsplit(url).path) is None


def _host(host: str) -> str | None:
    if ":" in host:
        return f"[{host}]"
    host = host.rstrip(".").lower()
    if not host.isascii():
        try:
            host = host.encode("idna").decode("ascii")
        except UnicodeError:
            return None
    return host if host and re.fullmatch(r"[a-z0-9._-]+", host) else None


def _query(query: str) -> str:
    pieces = [piece for piece in query.split("&") if piece and not TRACKING.match(_name(piece))]
    return _escaped("&".join(pieces), "/!$'()*+,;=:@?&")


def _name(piece: str) -> str:
    pairs = parse_qsl(piece, keep_blank_values=True)
    return pairs[0][0] if pairs else ""


def _escaped(text: str, safe: str) -> str:
    """Escape what needs it, unescape what does not, and write escapes in capitals."""

    def escape(match: re.Match[str]) -> str:
        char = unquote_to_bytes(match.group()).decode("latin-1")
        return char if char in UNRESERVED else match.group().upper()

    return quote(ESCAPE.sub(escape, text), safe=safe + "%")


def _without_dots(path: str) -> str:
    names: list[str] = []
    segments = path.split("/")
    for segment in segments[1:]:
        if segment == "..":
            names = names[:-1]
        elif segment != ".":
            names.append(segment)
    if segments[-1] in (".", "..") and (not names or names[-1]):
        names.append("")
    return "/" + "/".join(names)
