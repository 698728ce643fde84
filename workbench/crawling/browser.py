"""Render pages that need JavaScript in Chromium, over CDP with crawl4ai's browser strategy."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.crawling.crawl4ai_import import (
    AsyncCrawlResponse,
    AsyncPlaywrightCrawlerStrategy,
    BrowserConfig,
    CrawlerRunConfig,
    ProxyConfig,
)
from workbench.crawling.egress import Guard, GuardingProxy
from workbench.crawling.http import USER_AGENT, FetchFailed, Response
from workbench.crawling.urls import canonicalize
from workbench.errors import CrawlRefused
from workbench.formatting import MB
from workbench.ingestion.readers.html import STYLED_ATTRIBUTE

if TYPE_CHECKING:
    from playwright.async_api import Page
    from playwright.async_api import Response as PageResponse

# --- Managed Chromium behind the guarding proxy ---

CHROMIUM_NAMES = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
    "chromium-headless-shell",
)
START_TIMEOUT_S = 30.0  # seconds
CHROMIUM_FLAGS = (
    "--headless", "--disable-gpu", "--disable-quic", "--no-first-run", "--no-default-browser-check", "--mute-audio",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-extensions",
    "--disable-dev-shm-usage", "--disable-default-apps", "--metrics-recording-only", "--disable-domain-reliability",
    "--disable-features=Translate,OptimizationHints,MediaRouter,DialMediaRouteProvider,AutofillServerCommunication",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp", "--force-webrtc-ip-handling-policy",
    "--proxy-bypass-list=<-loopback>", "--remote-debugging-port=0",
)  # fmt: skip
# Runs the browser and kills it when the pipe to this process closes, so that it never outlives it, even after SIGKILL.
WATCHDOG_SCRIPT = """
import os, shutil, signal, subprocess, sys
profile, *command = sys.argv[1:]
browser = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                           start_new_session=True)
sys.stdin.buffer.read()
if os.name == "nt":
    browser.kill()
else:
    try:
        os.killpg(browser.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
browser.wait()
shutil.rmtree(profile, ignore_errors=True)
"""


def find_chromium() -> str | None:
    """Return the path of a Chromium on this machine, or None."""
    return next((path for name in CHROMIUM_NAMES if (path := shutil.which(name))), None)


SETTLE_TIMEOUT_MS = 3_000  # milliseconds for requests after a page has loaded
# Marks invisible elements, unmarks visible ones and inlines shadow roots, so that the HTML reader does not have to
# interpret style sheets. Visibility and font size are inherited, so only the outermost or innermost element is marked.
MARK_HIDDEN_SCRIPT = """mark => {
  document.documentElement.setAttribute(mark, '');
  const unseen = e => ['hidden', 'collapse'].includes(getComputedStyle(e).visibility);
  const read = root => { for (const e of root.querySelectorAll('*')) {
    if (root === document && !e.closest('body')) continue;
    const s = getComputedStyle(e);
    const outer = e.parentElement;
    const isHidden = s.display === 'none' || (unseen(e) && !(outer && unseen(outer)))
      || (s.fontSize === '0px' && !e.children.length)
      || s.clip.startsWith('rect(0px, 0px') || parseFloat(s.textIndent) <= -100
      || /^inset\\((50|100)%/.test(s.clipPath)
      || (['absolute', 'fixed'].includes(s.position) && Math.min(parseFloat(s.left), parseFloat(s.top)) <= -999);
    const isUntilFound = e.getAttribute('hidden') === 'until-found';
    if (isHidden && !isUntilFound && e !== document.body) e.setAttribute('hidden', '');
    else if (!isUntilFound) e.removeAttribute('hidden');
    if (e.shadowRoot) {
      read(e.shadowRoot);
      const inside = document.createElement('template');
      inside.setAttribute('shadowrootmode', 'open');
      inside.innerHTML = e.shadowRoot.innerHTML;
      e.prepend(inside);
    }
  } };
  read(document);
}"""


# WebRTC bypasses proxies, and reading a page does not need it.
DISABLE_WEBRTC_SCRIPT = "for (const n of ['RTCPeerConnection', 'webkitRTCPeerConnection']) delete globalThis[n];"
UNGUARDED_MESSAGE = (
    "The browser at WORKBENCH_CRAWL_BROWSER_URL does not use the workbench's guarding proxy, so it is not used. "
    "Run it on the workbench's machine, leave the setting empty, or crawl without a browser."
)


class Browser:
    """The browser of one crawl: a managed Chromium, or an existing browser by its CDP address.

    Every request of its context, including loopback, goes through the guarding proxy. The browser is used only after a
    test request of that context has reached the proxy, so an existing browser must be able to reach this process's
    loopback address.
    """

    def __init__(self, guard: Guard, *, timeout: float, max_bytes: int, cdp_url: str = "") -> None:
        """Args:
        guard: Decides which addresses may be reached.
        timeout: Seconds per page.
        max_bytes: Maximum size of a page's HTML.
        cdp_url: Address of an existing browser; empty for a managed Chromium.
        """
        self._guard, self._timeout, self._max_bytes, self._cdp_url = guard, timeout, max_bytes, cdp_url
        self._proxy = GuardingProxy(guard)
        self._keeper: subprocess.Popen[bytes] | None = None  # of a managed Chromium
        self._strategy: AsyncPlaywrightCrawlerStrategy | None = None
        self._starting = asyncio.Lock()
        self._robots_lines: dict[str, str] = {}  # X-Robots-Tag headers of pages being visited, one a line

    @property
    def is_running(self) -> bool:
        """True once it has started."""
        return self._strategy is not None

    async def fetch(self, url: str) -> Response:
        """Render a page and return its HTML after its scripts have run.

        Raises:
            CrawlRefused: The address may not be fetched, or there is no browser.
            FetchFailed: The page did not load in time, or is too large.
        """
        self._guard.check(url)
        strategy = await self._ensure_started()
        began = time.perf_counter()
        answer = await self._visit(strategy, url)
        final = str(answer.redirected_url or url).split("#")[0]
        if {url, final} & self._proxy.refused:
            raise CrawlRefused(f"It redirects to {final}, which may not be fetched.")
        seconds = time.perf_counter() - began
        if url not in (canonicalize(final), canonicalize(final, keeps_sessions=True)):
            # it redirected; the frontier decides whether to follow
            return Response(url, 302, {"location": final}, b"", seconds, rendered=True)
        body = answer.html.encode("utf-8", "replace")
        if len(body) > self._max_bytes:
            raise FetchFailed(f"It is larger than {self._max_bytes / MB:g} MB.", retry=False)
        headers = {str(key).lower(): str(value) for key, value in (answer.response_headers or {}).items()}
        headers |= {"content-type": "text/html; charset=utf-8", "x-robots-tag": self._robots_lines.pop(url, "")}
        return Response(url, answer.status_code or 200, headers, body, seconds, rendered=True)

    async def close(self) -> None:
        """Stop a managed browser, leave an existing one running, and stop the proxy."""
        if self._strategy is not None:
            await self._strategy.close()
        await self._stop_chromium()
        await self._proxy.close()

    async def _ensure_started(self) -> AsyncPlaywrightCrawlerStrategy:
        async with self._starting:
            if self._strategy is None:
                await self._proxy.start()
                self._cdp_url = self._cdp_url or await self._start_chromium()
                strategy = await self._connect(self._cdp_url)
                try:
                    with contextlib.suppress(FetchFailed):
                        await self._visit(strategy, self._proxy.proof_url)  # only the proxy answers it
                    if not self._proxy.is_proven:
                        raise CrawlRefused(UNGUARDED_MESSAGE)
                except BaseException:
                    await strategy.close()
                    raise
                self._strategy = strategy
            return self._strategy

    async def _start_chromium(self) -> str:
        """Start Chromium behind the proxy and return its CDP address once it answers.

        Raises:
            CrawlRefused: Chromium is not installed or does not start.
        """
        path = find_chromium()
        if path is None:
            raise CrawlRefused("Chromium was not found. Install it, or crawl with browser 'never'.")
        profile = tempfile.mkdtemp(prefix="workbench-chromium-")
        root = ["--no-sandbox"] if sys.platform != "win32" and os.geteuid() == 0 else []  # its sandbox refuses root
        own = [f"--proxy-server={self._proxy.url}", f"--user-data-dir={profile}", "about:blank"]
        command = [sys.executable, "-c", WATCHDOG_SCRIPT, profile, path, *CHROMIUM_FLAGS, *root, *own]
        self._keeper = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)  # misses Ctrl-C
        port_file = Path(profile) / "DevToolsActivePort"
        for _ in range(int(START_TIMEOUT_S / 0.1)):
            if self._keeper.poll() is not None:
                break
            lines = port_file.read_text().split() if port_file.exists() else []
            if lines:
                return f"http://127.0.0.1:{lines[0]}"
            await asyncio.sleep(0.1)
        await self._stop_chromium()
        raise CrawlRefused(f"Chromium ({path}) did not start within {START_TIMEOUT_S:g} s. Crawl with browser 'never'.")

    async def _stop_chromium(self) -> None:
        """Stop a managed Chromium; its keeper removes the profile."""
        if self._keeper is not None and self._keeper.stdin is not None:
            self._keeper.stdin.close()
            await asyncio.to_thread(self._keeper.wait)
            self._keeper = None

    async def _connect(self, cdp_url: str) -> AsyncPlaywrightCrawlerStrategy:
        config = BrowserConfig(
            browser_mode="cdp",
            cdp_url=cdp_url,
            create_isolated_context=True,
            cdp_cleanup_on_close=True,
            cdp_close_delay=0,
            user_agent=USER_AGENT,
            ignore_https_errors=False,
            init_scripts=[DISABLE_WEBRTC_SCRIPT],
            verbose=False,
        )
        strategy: Any = AsyncPlaywrightCrawlerStrategy(browser_config=config)  # its methods are untyped
        strategy.set_hook("after_goto", self._keep_robots_lines)
        strategy.set_hook("before_retrieve_html", _settle_page)
        try:
            await strategy.__aenter__()
        except Exception as error:  # crawl4ai raises plain exceptions
            reason = " ".join(str(error).split())[:160]
            raise CrawlRefused(
                f"The browser at {cdp_url} does not answer ({reason}). Check WORKBENCH_CRAWL_BROWSER_URL, or crawl "
                "with browser 'never'."
            ) from error
        return strategy

    async def _keep_robots_lines(self, _: Page, *, url: str, response: PageResponse | None, **__: object) -> None:
        """Keep X-Robots-Tag headers separate: if joined, a robot named in one would seem to apply to all."""
        headers = await response.headers_array() if response is not None else []
        self._robots_lines[url] = "\n".join(h["value"] for h in headers if h["name"].lower() == "x-robots-tag")

    async def _visit(self, strategy: AsyncPlaywrightCrawlerStrategy, url: str) -> AsyncCrawlResponse:
        config = CrawlerRunConfig(
            page_timeout=int(self._timeout * 1000),
            wait_until="load",
            verbose=False,
            delay_before_return_html=0.0,
            proxy_config=ProxyConfig(server=self._proxy.url),  # the context reaches nothing without the proxy
        )
        try:
            return await asyncio.wait_for(strategy.crawl(url, config=config), self._timeout + 10)
        except TimeoutError as error:
            raise FetchFailed(f"The browser did not load it within {self._timeout:g} s.", retry=True) from error
        except (RuntimeError, ConnectionError, OSError) as error:
            raise FetchFailed(f"The browser could not load it ({_find_reason(error)}).", retry=True) from error


def _find_reason(error: Exception) -> str:
    """Return the reason that Chromium gave, without the places in crawl4ai and Playwright that passed it on."""
    found = re.search(r"net::ERR_([A-Z_]+)|Timeout (\d+)ms exceeded|Page crashed", str(error))
    if found is None:
        return " ".join(str(error).split("Call log:")[0].split())[:160]
    if found.group(2):
        return f"no answer within {int(found.group(2)) / 1000:g} s"
    return found.group(1).replace("_", " ").lower() if found.group(1) else "the page crashed"


async def _settle_page(page: Page, *_: object, **__: object) -> Page:
    """Let a page finish its requests, up to a limit, and mark what it hides."""
    from playwright.async_api import Error

    with contextlib.suppress(Error):  # it is still loading; use the page as it is
        await page.wait_for_load_state("networkidle", timeout=SETTLE_TIMEOUT_MS)
    await page.evaluate(MARK_HIDDEN_SCRIPT, STYLED_ATTRIBUTE)
    return page
