"""The part of the web that one crawl keeps to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from workbench.crawling.urls import is_folder
from workbench.types import JsonValue, Value, as_text


@dataclass(frozen=True, slots=True)
class CrawlBounds(Value):
    """A host with its port and a path prefix; ``subdomains`` lets its subdomains in, too."""

    host: str
    prefix: str = "/"
    subdomains: bool = False

    def contains(self, url: str) -> bool:
        """Tell whether a canonical address lies inside; http and https are the same place."""
        parts = urlsplit(url)
        bare, own = parts.netloc.removeprefix("www."), self.host.removeprefix("www.")
        if bare != own and not (self.subdomains and bare.endswith("." + own)):
            return False
        return parts.path.startswith(self.prefix) or parts.path == self.prefix.rstrip("/")


def bounds_from(values: Mapping[str, JsonValue]) -> CrawlBounds:
    """Return the bounds that ``CrawlBounds.to_dict`` wrote."""
    return CrawlBounds(as_text(values["host"]), as_text(values["prefix"]), bool(values["subdomains"]))


def bounds_of(url: str, within: str) -> CrawlBounds:
    """Return the bounds of a start page: its folder, its host, or its host with subdomains.

    The folder of ``/docs/``, ``/docs/index.html`` and ``/docs`` is ``/docs/``; ``/docs/v1.2`` is a folder, too.
    """
    parts = urlsplit(url)
    if within != "path":
        return CrawlBounds(parts.netloc, "/", subdomains=within == "domain")
    prefix = f"{parts.path}/" if is_folder(url) else f"{parts.path.rpartition('/')[0]}/"
    return CrawlBounds(parts.netloc, prefix)
