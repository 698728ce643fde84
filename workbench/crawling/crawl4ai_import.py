"""The only module that imports crawl4ai, after disabling its notices and moving its files out of the home folder."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("CRAWL4AI_NO_CLOUD_NOTICE", "1")
os.environ.setdefault(
    "CRAWL4_AI_BASE_DIRECTORY",  # one per user; on Windows the temporary folder already is
    str(Path(tempfile.gettempdir()) / f"rag-workbench-crawl4ai-{'' if sys.platform == 'win32' else os.getuid()}"),
)

from crawl4ai import BrowserConfig, CrawlerRunConfig, ProxyConfig
from crawl4ai.async_crawler_strategy import AsyncHTTPCrawlerStrategy, AsyncPlaywrightCrawlerStrategy
from crawl4ai.models import AsyncCrawlResponse

__all__ = [
    "AsyncCrawlResponse",
    "AsyncHTTPCrawlerStrategy",
    "AsyncPlaywrightCrawlerStrategy",
    "BrowserConfig",
    "CrawlerRunConfig",
    "ProxyConfig",
]
