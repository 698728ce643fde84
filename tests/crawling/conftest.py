"""A site to crawl, written by each test, and a workbench that may crawl it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.crawling.site import QUICK, TestSite, finish, serving_site
from workbench import Workbench
from workbench.settings import Settings


@pytest.fixture
def site() -> Iterator[TestSite]:
    """A fresh server process with no pages."""
    with serving_site() as served:
        yield served


@pytest.fixture
def wb(make_settings: Callable[..., Settings]) -> Iterator[Workbench]:
    """A workbench that may crawl this machine."""
    with Workbench.open(settings=make_settings(crawl_allow_hosts="127.0.0.1")) as workbench:
        yield workbench


@pytest.fixture
def crawl(wb: Workbench) -> Callable[..., dict[str, Any]]:
    """Crawl to the end in this thread; returns the crawl as ``wb.crawls.get`` does."""

    def run(url: str, **options: Any) -> dict[str, Any]:
        started = wb.crawls.start(url, **(QUICK | {"browser": "never"} | options))
        return finish(wb, started.id)

    return run
