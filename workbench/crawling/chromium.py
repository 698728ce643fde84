"""A Chromium of our own: on loopback, with a fresh profile, behind the guarding proxy, and never left behind."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from workbench.errors import CrawlRefused

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "chromium-headless-shell")
STARTS_WITHIN = 30.0  # seconds
FLAGS = (
    "--headless", "--disable-gpu", "--disable-quic", "--no-first-run", "--no-default-browser-check", "--mute-audio",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-extensions",
    "--disable-dev-shm-usage", "--disable-default-apps", "--metrics-recording-only", "--disable-domain-reliability",
    "--disable-features=Translate,OptimizationHints,MediaRouter,DialMediaRouteProvider,AutofillServerCommunication",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp", "--force-webrtc-ip-handling-policy",
    "--proxy-bypass-list=<-loopback>", "--remote-debugging-port=0",
)  # fmt: skip
# Runs the browser, and ends it when the pipe to us breaks: so it never outlives us, even after SIGKILL.
KEEPER = """
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
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Chromium:
    """One running Chromium; ``cdp_url`` is where crawl4ai reaches it."""

    def __init__(self, proxy_url: str) -> None:
        """Take ``proxy_url``, the proxy that every request goes through, loopback included."""
        self._proxy_url = proxy_url
        self._keeper: subprocess.Popen[bytes] | None = None
        self.cdp_url = ""

    async def start(self) -> None:
        """Start it and wait until it answers.

        Raises:
            CrawlRefused: there is no Chromium here, or it does not start.
        """
        path = find_chromium()
        if path is None:
            raise CrawlRefused("There is no Chromium on this machine; install it, or crawl with browser 'never'.")
        profile = tempfile.mkdtemp(prefix="workbench-chromium-")
        root = ["--no-sandbox"] if sys.platform != "win32" and os.geteuid() == 0 else []  # its sandbox refuses root
        command = [
            path,
            *FLAGS,
            *root,
            f"--proxy-server={self._proxy_url}",
            f"--user-data-dir={profile}",
            "about:blank",
        ]
        self._keeper = subprocess.Popen([sys.executable, "-c", KEEPER, profile, *command], stdin=subprocess.PIPE)
        port_file = Path(profile) / "DevToolsActivePort"
        for _ in range(int(STARTS_WITHIN / 0.1)):
            if self._keeper.poll() is not None:
                break
            lines = port_file.read_text().split() if port_file.exists() else []
            if lines:
                self.cdp_url = f"http://127.0.0.1:{lines[0]}"
                return
            await asyncio.sleep(0.1)
        await self.close()
        raise CrawlRefused(f"Chromium ({path}) did not start within {STARTS_WITHIN:g} s; crawl with browser 'never'.")

    async def close(self) -> None:
        """End it and remove its profile."""
        if self._keeper is not None and self._keeper.stdin is not None:
            self._keeper.stdin.close()
            await asyncio.to_thread(self._keeper.wait)
            self._keeper = None
