"""Pages that need JavaScript: rendered by Chromium over CDP through crawl4ai's browser strategy."""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import Any
from urllib.parse import urlsplit

from workbench.crawling.chromium import Chromium
from workbench.crawling.egress import Guard
from workbench.crawling.fetched import USER_AGENT, Fetched, FetchFailed
from workbench.crawling.framework import AsyncPlaywrightCrawlerStrategy, BrowserConfig, CrawlerRunConfig
from workbench.crawling.proxy import GuardingProxy
from workbench.crawling.urls import canonical
from workbench.errors import CrawlRefused

SETTLE = 3_000  # milliseconds a page may go on fetching after it has loaded
# What the page hides by style is marked, so that the reader of its HTML leaves it out.
MARK_HIDDEN = """() => { for (const e of document.querySelectorAll('body *')) {
  const s = getComputedStyle(e);
  if (s.display === 'none' || s.visibility === 'hidden' || s.fontSize === '0px') e.setAttribute('hidden', '');
} }"""


class Browser:
    """A browser for one crawl: our own Chromium behind the guarding proxy, or a given one by its CDP address.

    A given browser resolves names by itself, maybe on another machine: requests are checked before they leave it,
    but what its own network may reach is for whoever runs it to confine.
    """

    def __init__(self, guard: Guard, *, timeout: float, max_bytes: int, cdp_url: str = "") -> None:
        self._guard, self._timeout, self._max_bytes, self._given = guard, timeout, max_bytes, cdp_url
        self.proxy = GuardingProxy(guard)
        self._chromium: Chromium | None = None
        self._strategy: Any = None
        self._starting = asyncio.Lock()

    @property
    def is_running(self) -> bool:
        """True once it has started."""
        return self._strategy is not None

    async def fetch(self, url: str) -> Fetched:
        """Render a page and return its HTML as it stands after its scripts ran.

        Raises:
            CrawlRefused: the address may not be fetched, or there is no browser.
            FetchFailed: the page did not load in time, or is too large.
        """
        self._guard.check(url)
        await self._start()
        began = time.perf_counter()
        config = CrawlerRunConfig(
            page_timeout=int(self._timeout * 1000), wait_until="load", verbose=False, delay_before_return_html=0.0
        )
        try:
            answer = await asyncio.wait_for(self._strategy.crawl(url, config=config), self._timeout + 10)
        except TimeoutError as error:
            raise FetchFailed(f"The browser did not load it within {self._timeout:g} s.", retry=True) from error
        except (RuntimeError, ConnectionError, OSError) as error:
            reason = " ".join(str(error).split())[:160]
            raise FetchFailed(f"The browser could not load it ({reason}).", retry=True) from error
        final = str(answer.redirected_url or url).split("#")[0]
        if {url, final} & set(self.proxy.refused):
            raise CrawlRefused(f"It leads to {final}, which may not be fetched.")
        seconds = time.perf_counter() - began
        if canonical(final) != url:  # it sent the browser on: the frontier decides about where to
            return Fetched(url, 302, {"location": final}, b"", seconds, rendered=True)
        body = answer.html.encode("utf-8", "replace")
        if len(body) > self._max_bytes:
            raise FetchFailed(f"It is larger than {self._max_bytes / 1e6:g} MB.", retry=False)
        headers = {str(key).lower(): str(value) for key, value in (answer.response_headers or {}).items()}
        headers |= {"content-type": "text/html; charset=utf-8"}
        return Fetched(url, answer.status_code or 200, headers, body, seconds, rendered=True)

    async def close(self) -> None:
        """End the browser."""
        if self._strategy is not None:
            await self._strategy.close()
        if self._chromium is not None:
            await self._chromium.close()
        await self.proxy.close()

    async def _start(self) -> None:
        async with self._starting:
            if self._strategy is not None:
                return
            await self.proxy.start()
            cdp_url = self._given
            if not cdp_url:
                self._chromium = Chromium(self.proxy.url)
                await self._chromium.start()
                cdp_url = self._chromium.cdp_url
            config = BrowserConfig(
                browser_mode="cdp",
                cdp_url=cdp_url,
                create_isolated_context=True,
                cdp_cleanup_on_close=True,
                cdp_close_delay=0,
                user_agent=USER_AGENT,
                ignore_https_errors=False,
                verbose=False,
            )
            strategy = AsyncPlaywrightCrawlerStrategy(browser_config=config)
            strategy.set_hook("on_page_context_created", self._guard_requests)
            strategy.set_hook("before_return_html", _settle)
            await strategy.__aenter__()
            self._strategy = strategy

    async def _guard_requests(self, page: Any, context: Any = None, **_: Any) -> Any:
        """Check requests before they leave a browser that is not behind our proxy."""
        if self._given:

            async def check(route: Any) -> None:
                parts = urlsplit(route.request.url)
                try:
                    self._guard.check(route.request.url)
                    await asyncio.to_thread(self._guard.addresses, parts.hostname or "", parts.port)
                except (CrawlRefused, OSError):
                    await route.abort()
                else:
                    await route.continue_()

            await page.route("**/*", check)
        return page


async def _settle(page: Any, *_: Any, **__: Any) -> Any:
    """Let a page finish its own requests, within bounds, and mark what it hides."""
    from playwright.async_api import Error

    with contextlib.suppress(Error):  # it goes on talking; what is there now is taken
        await page.wait_for_load_state("networkidle", timeout=SETTLE)
    await page.evaluate(MARK_HIDDEN)
    return page
