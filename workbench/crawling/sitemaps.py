"""The addresses a site lists itself: sitemap.xml (and indexes of sitemaps, also gzipped), llms.txt, llms-full.txt."""

from __future__ import annotations

import gzip
import re
import zlib
from dataclasses import dataclass
from typing import Any

from workbench.crawling.extraction import MARKDOWN_LINK
from workbench.crawling.urls import canonical

MOST_SITEMAPS = 50  # files of one index that are read
MOST_ADDRESSES = 50_000  # what one sitemap may hold, says its protocol
LARGEST = 50_000_000  # bytes of a sitemap after decompression, says its protocol


@dataclass(frozen=True, slots=True)
class Listed:
    """An address that a site lists; ``lastmod`` as it stands there."""

    url: str
    via: str
    lastmod: str | None = None


def read_sitemap(data: bytes, base: str) -> tuple[list[Listed], list[str]]:
    """Return (pages, further sitemaps) of a sitemap or sitemap index; a plain list of addresses is one, too."""
    from lxml import etree  # pyright: ignore[reportAttributeAccessIssue]

    data = _unzipped(data)
    parser = etree.XMLParser(resolve_entities=False, no_network=True, recover=True, huge_tree=False)
    try:
        root = etree.fromstring(data.strip(), parser) if data.strip() else None
    except etree.XMLSyntaxError:
        root = None
    if root is None:
        lines = data.decode("utf-8", "replace").split()
        found = [canonical(line, base) for line in lines[:MOST_ADDRESSES] if re.match(r"https?://", line)]
        return [Listed(url, "sitemap") for url in found if url], []
    pages: list[Listed] = []
    further: list[str] = []
    for entry in root.iter("{*}url", "{*}sitemap"):
        url = canonical(_text(entry, "loc"), base)
        if url and entry.tag.endswith("}sitemap" if "}" in entry.tag else "sitemap"):
            further.append(url)
        elif url and len(pages) < MOST_ADDRESSES:
            pages.append(Listed(url, "sitemap", _text(entry, "lastmod") or None))
    return pages, further


def read_llms(text: str, base: str) -> list[Listed]:
    """Return the addresses an llms.txt links to."""
    targets = [next(filter(None, found)) for found in MARKDOWN_LINK.findall(text)]
    return [Listed(url, "llms") for target in targets if (url := canonical(target, base))]


def _unzipped(data: bytes) -> bytes:
    if not data.startswith(b"\x1f\x8b"):
        return data[:LARGEST]
    try:
        return zlib.decompressobj(wbits=31).decompress(data, LARGEST)
    except (zlib.error, gzip.BadGzipFile):
        return b""


def _text(entry: Any, name: str) -> str:
    return (entry.findtext(f"{{*}}{name}") or "").strip()
