"""The addresses a site lists itself: sitemap.xml (and indexes of sitemaps, also gzipped), llms.txt, llms-full.txt."""

from __future__ import annotations

import gzip
import zlib
from dataclasses import dataclass
from itertools import islice
from typing import Any, cast

from workbench.crawling.markdown_links import markdown_links
from workbench.crawling.pieces import pieces
from workbench.crawling.urls import canonical
from workbench.ingestion.readers.package import XmlElement
from workbench.sizes import MB

MOST_SITEMAPS = 500  # files that are read: with half a second between them some four minutes
MOST_ADDRESSES = 50_000  # addresses of one sitemap, by its protocol
LARGEST = 50 * MB  # bytes of a sitemap after decompression, by its protocol


@dataclass(frozen=True, slots=True)
class ListedAddress:
    """An address that a site lists; ``lastmod`` as it stands there."""

    url: str
    via: str
    lastmod: str | None = None


def read_sitemap(data: bytes, base: str) -> tuple[list[ListedAddress], list[str]]:
    """Return (pages, further sitemaps) of a sitemap or sitemap index; a plain list of addresses is one, too."""
    from lxml import etree as lxml_etree  # pyright: ignore[reportAttributeAccessIssue, reportUnknownVariableType]

    etree = cast("Any", lxml_etree)  # lxml ships no types
    data = _unzipped(data)
    parser = etree.XMLParser(resolve_entities=False, no_network=True, recover=True, huge_tree=False)
    try:
        root = etree.fromstring(data.strip(), parser) if data.strip() else None
    except etree.XMLSyntaxError:
        root = None
    if root is None:
        text = data.decode("utf-8", "replace")
        words = (word for piece in pieces(text) for word in piece.split() if word.startswith(("http://", "https://")))
        addresses = (canonical(word, base) for word in islice(words, MOST_ADDRESSES))
        return [ListedAddress(url, "sitemap") for url in addresses if url], []
    pages: list[ListedAddress] = []
    further: list[str] = []
    for entry in root.iter("{*}url", "{*}sitemap"):
        url = canonical(_text(entry, "loc"), base)
        if url and entry.tag.endswith("}sitemap" if "}" in entry.tag else "sitemap"):
            further.append(url)
        elif url and len(pages) < MOST_ADDRESSES:
            pages.append(ListedAddress(url, "sitemap", _text(entry, "lastmod") or None))
    return pages, further


def read_llms(text: str, base: str) -> list[ListedAddress]:
    """Return the addresses an llms.txt links to."""
    addresses = (canonical(target, base) for target in markdown_links(text))
    return [ListedAddress(url, "llms") for url in islice(filter(None, addresses), MOST_ADDRESSES)]


def _unzipped(data: bytes) -> bytes:
    if not data.startswith(b"\x1f\x8b"):
        return data[:LARGEST]
    try:
        return zlib.decompressobj(wbits=31).decompress(data, LARGEST)
    except (zlib.error, gzip.BadGzipFile):
        return b""


def _text(entry: XmlElement, name: str) -> str:
    return (entry.findtext(f"{{*}}{name}") or "").strip()
