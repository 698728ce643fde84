"""One page of the web, fetched and read without being stored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from workbench.crawling.replies import REDIRECTS, FetchFailed
from workbench.crawling.urls import canonical
from workbench.errors import CrawlRefused
from workbench.types import Value

if TYPE_CHECKING:
    from workbench.crawling.site import Site

MOST_HOPS = 5  # redirects


@dataclass(frozen=True, slots=True)
class WebPage(Value):
    """A page's main text as Markdown; ``url`` is the address that answered, after redirects."""

    url: str
    title: str
    text: str
    media_type: str


async def read_page(site: Site, url: str) -> WebPage:
    """Return the page at an address, which robots.txt allows to be fetched.

    Raises:
        CrawlRefused: it may not be fetched, or does not answer; the sentence says why.
        UnreadableDocument: it is of a kind that is not read.
    """
    from workbench.ingestion.readers import read_bytes

    for _ in range(MOST_HOPS + 1):
        refusal = await site.refusal_after_asking(url)
        if refusal is not None:
            raise CrawlRefused(f"{url} may not be fetched. {refusal.reason}")
        try:
            fetched, page = await site.page(url, {})
        except FetchFailed as error:
            raise CrawlRefused(f"{url} cannot be fetched. {error.reason}") from error
        if page is not None:
            document = read_bytes(page.body, page.name)
            return WebPage(url, page.title or document.title, document.text, fetched.media_type)
        target = canonical(fetched.headers.get("location", ""), url) if fetched.status in REDIRECTS else None
        if target is None:
            raise CrawlRefused(f"{url} cannot be fetched. It answered {fetched.status}.")
        url = target
    raise CrawlRefused(f"{url} cannot be fetched. It leads on more than {MOST_HOPS} times.")
