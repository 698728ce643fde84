"""Check the built site: every link of ours leads somewhere, and nothing is loaded from another address."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit

SITE = Path(__file__).parents[2] / "artifacts" / "site" / "html"
LOADING = {"img": "src", "script": "src", "iframe": "src", "source": "src", "link": "href"}


@dataclass
class Page(HTMLParser):
    """The anchors of a page, the addresses it links to, and those it loads."""

    anchors: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    loaded: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what the tag names, links to and loads."""
        values = {name: value or "" for name, value in attrs}
        self.anchors |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        if tag in LOADING and LOADING[tag] in values and values.get("rel") != "canonical":
            self.loaded.append(values[LOADING[tag]])


def faults(site: Path) -> Iterator[str]:
    """Yield a sentence for each link that leads nowhere and each file that would come from another address."""
    pages = {path: _read(path) for path in sorted(site.rglob("*.html")) if path.name != "404.html"}
    if not pages:
        yield f"There is no page below {site}; run 'make site'."
    for path, page in pages.items():
        where = path.relative_to(site)
        yield from (f"{where} would load {address}." for address in page.loaded if urlsplit(address).netloc)
        for address in [*page.links, *page.loaded]:
            if urlsplit(address).scheme or urlsplit(address).netloc:
                continue
            place, anchor = urldefrag(address)
            target = (path.parent / unquote(urlsplit(place).path)).resolve() if place else path
            target = target / "index.html" if target.is_dir() else target
            if not target.exists():
                yield f"{where} links to {address}, which is not there."
            elif anchor and target in pages and unquote(anchor) not in pages[target].anchors:
                yield f"{where} links to {address}, but that page has no such heading."


def _read(path: Path) -> Page:
    page = Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page
