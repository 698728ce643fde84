"""Canonical addresses, which identify pages, and the bounds of a crawl."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import parse_qsl, quote, unquote, unquote_to_bytes, urljoin, urlsplit, urlunsplit

from workbench.types import JsonValue, Value, as_text

MAX_URL_CHARS = 2_000  # characters; longer ones are traps or form state, not pages
MAX_RAW_URL_CHARS = 4 * MAX_URL_CHARS  # before normalisation; data: URLs contain whole images
DEFAULT_PORTS = {"http": 80, "https": 443}
TRACKING_PARAMETER = re.compile(
    r"^(utm_\w+|gclid|dclid|fbclid|msclkid|yclid|igshid|mc_cid|mc_eid|_ga|_gl|_hsenc|_hsmi|mkt_tok|vero_id|wickedid"
    r"|phpsessid|jsessionid)$",
    re.IGNORECASE,
)
SESSION_PARAMETER = re.compile(r"^(?:session_?id|aspsessionid\w*)$", re.IGNORECASE)
# Session ids are long and random; "sessionId=101" or "session=KubeConKeynote2026" is the page of a talk.
SESSION_VALUE = re.compile(r"^(?=\d*(?:[A-Za-z]+\d+){3})[0-9A-Za-z]{16,}$")
SESSION_PATH = re.compile(r";jsessionid=[^/?#]*", re.IGNORECASE)
ESCAPE = re.compile(r"%[0-9a-fA-F]{2}")
UNRESERVED_CHARS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
# Names of files without a suffix
PLAIN_FILE = re.compile(
    r"(?:index|default|readme|licen[cs]e|changelog|copying|notice|authors|makefile|dockerfile)", re.I
)
FILE_SUFFIX = re.compile(
    r"\.(?:png|jpe?g|gif|webp|avif|svg|ico|bmp|tiff?|css|js|mjs|map|woff2?|ttf|otf|eot|mp[34]|m4[av]|webm|ogg|wav|avi|mov"
    r"|zip|gz|tgz|bz2|xz|7z|rar|tar|exe|dmg|msi|deb|rpm|apk|iso|jar|whl|bin|dll|so|wasm|rss|atom|ics|torrent)$",
    re.IGNORECASE,
)
# Names that end like a file: Node.js, Socket.so. A capital letter shows that it is a page title.
FILE_LIKE_TITLE = re.compile(r"[A-Z][\w-]*\.(?:js|mjs|css|map|so|bin|jar|wasm|ico)", re.ASCII)
DOCUMENT_SUFFIX = re.compile(
    r"\.(?:x?html?|shtml|php\d?|aspx?|jspx?|cgi|pl|cfm|do|md|mdx|markdown|rst|adoc|txt|text|xml|xsl|json|jsonl|ya?ml|toml"
    r"|csv|tsv|pdf|docx?|pptx?|xlsx?|odt|ods|odp|rtf|epub|eml|tex|ipynb|py|java|c|h|cpp|go|rs|rb|ts|tsx|jsx)$",
    re.IGNORECASE,
)


def canonicalize(url: str, base: str | None = None, *, keeps_sessions: bool = False) -> str | None:
    """Return the canonical form of an address, resolved against ``base``, or None if it does not lead to a web page.

    Scheme and host are in lower case (IDNA), without default port, fragment, dot segments, tracking and session
    parameters, and unnecessary escapes. The order of parameters is kept, because it matters to some sites.
    ``keeps_sessions`` keeps values that look like session ids but are known to be something else.
    """
    if len(url) > MAX_RAW_URL_CHARS:
        return None
    try:
        joined = urljoin(base, url.strip()) if base else url.strip()
        parts = urlsplit(joined)
        host, port = parts.hostname, parts.port
    except ValueError:
        return None
    if parts.scheme not in DEFAULT_PORTS or not host or "@" in parts.netloc:
        return None
    host = _canonical_host(host)
    if host is None:
        return None
    netloc = host if port in (None, DEFAULT_PORTS[parts.scheme]) else f"{host}:{port}"
    try:
        path = _remove_dot_segments(_normalize_escapes(SESSION_PATH.sub("", parts.path), "/!$&'()*+,;=:@")) or "/"
        pieces = (piece for piece in parts.query.split("&") if piece and not _is_noise(piece, keeps_sessions))
        query = _normalize_escapes("&".join(pieces), "/!$'()*+,;=:@?&")
    except ValueError:  # an unpaired surrogate
        return None
    address = urlunsplit((parts.scheme, netloc, path, query, ""))
    return address if len(address) <= MAX_URL_CHARS else None


def url_host(url: str) -> str:
    """Return the host and port of a canonical address."""
    return urlsplit(url).netloc


def url_path(url: str) -> str:
    """Return the path and query of a canonical address, as matched by robots.txt rules."""
    parts = urlsplit(url)
    return parts.path + (f"?{parts.query}" if parts.query else "")


def file_suffix(url: str) -> str | None:
    """Return an address's suffix if it names a file without text (image, script, archive), or None.

    ``/wiki/Node.js`` and ``/index.php/File:Plan.png`` are pages whose titles look like file names.
    """
    folder, _, name = unquote(urlsplit(url).path).rpartition("/")
    match = FILE_SUFFIX.search(name)
    if match is None or ":" in name or FILE_LIKE_TITLE.fullmatch(name) or folder.lower().endswith("/wiki"):
        return None
    return match.group().lower()


def is_folder(url: str) -> bool:
    """Return whether an address without a trailing slash is a folder: ``/docs`` and ``/docs/v1.2``, not ``/a.html``."""
    name = urlsplit(url).path.rpartition("/")[2]
    return bool(name) and not (PLAIN_FILE.fullmatch(name) or DOCUMENT_SUFFIX.search(name) or FILE_SUFFIX.search(name))


def _canonical_host(host: str) -> str | None:
    if ":" in host:
        return f"[{host}]"
    host = host.rstrip(".").lower()
    if not host.isascii():
        try:
            host = host.encode("idna").decode("ascii")
        except UnicodeError:
            return None
    return host if host and re.fullmatch(r"[a-z0-9._-]+", host) else None


def names_sessions(hrefs: Sequence[str]) -> bool:
    """Return whether the session parameters in a page's links identify the visitor's session.

    A site that tracks visitors by address writes the same value into most links of a page. Different values, or a value
    in only a few links, mean something else, such as the talks of a conference.
    """
    queries = [parse_qsl(href.partition("?")[2].partition("#")[0]) for href in hrefs if "?" in href]
    values = [value for pairs in queries for name, value in pairs if SESSION_PARAMETER.match(name)]
    return len(set(values)) == 1 and 2 * len(values) >= len(hrefs)


def _is_noise(piece: str, keeps_sessions: bool) -> bool:
    """Return whether a parameter is used for tracking: campaigns, clicks, sessions."""
    pairs = parse_qsl(piece, keep_blank_values=True)
    name, value = pairs[0] if pairs else ("", "")
    is_session = SESSION_PARAMETER.match(name) and SESSION_VALUE.match(value) and not keeps_sessions
    return bool(TRACKING_PARAMETER.match(name) or is_session)


def _normalize_escapes(text: str, safe: str) -> str:
    """Escape only the necessary characters, with escapes in upper case."""

    def escape(match: re.Match[str]) -> str:
        char = unquote_to_bytes(match.group()).decode("latin-1")
        return char if char in UNRESERVED_CHARS else match.group().upper()

    return quote(ESCAPE.sub(escape, text), safe=safe + "%")


def _remove_dot_segments(path: str) -> str:
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


class FoundAddress(NamedTuple):
    """An address, how it was found, and the date in the sitemap that lists it, as written."""

    url: str
    via: str
    lastmod: str | None = None


# --- Bounds of a crawl ---


@dataclass(frozen=True, slots=True)
class CrawlBounds(Value):
    """Bounds of a crawl."""

    host: str  # host, with port if given
    prefix: str = "/"  # prefix of paths
    subdomains: bool = False  # whether subdomains are included

    def contains(self, url: str) -> bool:
        """Return whether a canonical address is inside; http and https are equivalent."""
        parts = urlsplit(url)
        bare, own = parts.netloc.removeprefix("www."), self.host.removeprefix("www.")
        if bare != own and not (self.subdomains and bare.endswith("." + own)):
            return False
        return parts.path.startswith(self.prefix) or parts.path == self.prefix.rstrip("/")


def parse_bounds(values: Mapping[str, JsonValue]) -> CrawlBounds:
    """Return the bounds written by ``CrawlBounds.to_dict``."""
    return CrawlBounds(as_text(values["host"]), as_text(values["prefix"]), bool(values["subdomains"]))


def make_bounds(url: str, within: str) -> CrawlBounds:
    """Return the bounds for a start page: its folder, its host, or its host with subdomains.

    The folder of ``/docs/``, ``/docs/index.html`` and ``/docs`` is ``/docs/``; ``/docs/v1.2`` is also a folder.
    """
    parts = urlsplit(url)
    if within != "path":
        return CrawlBounds(parts.netloc, "/", subdomains=within == "domain")
    prefix = f"{parts.path}/" if is_folder(url) else f"{parts.path.rpartition('/')[0]}/"
    return CrawlBounds(parts.netloc, prefix)
