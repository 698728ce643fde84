"""The tree of a crawled site."""

from __future__ import annotations

from workbench.app.crawl.page import MARKS, build_tree, render_legend, render_tree
from workbench.services.crawls import PAGE_OUTCOMES
from workbench.storage.crawls import CrawlPage


def crawled(url: str, outcome: str | None = "added", **more: object) -> CrawlPage:
    """Return a page of a crawl."""
    values = dict.fromkeys(CrawlPage.__dataclass_fields__) | {"url": url, "outcome": outcome, "state": "done"}
    return CrawlPage(**(values | more))  # pyright: ignore[reportArgumentType]


def test_pages_are_under_their_folders() -> None:
    root = build_tree(
        [crawled("http://h/"), crawled("http://h/a/"), crawled("http://h/a/b?x=1"), crawled("http://k/a")]
    )
    host = root.children["h"]
    assert list(root.children) == ["h", "k"]
    assert set(host.children) == {"/", "a"}
    assert host.children["a"].page is not None
    assert list(host.children["a"].children) == ["b?x=1"]


def test_every_outcome_has_a_mark_of_its_own() -> None:
    assert {*PAGE_OUTCOMES, "queued", "fetched"} == set(MARKS)
    assert len({mark for mark, _ in MARKS.values()}) == len(MARKS)


def test_nothing_from_the_site_comes_unescaped() -> None:
    evil = crawled("http://h/%3Cscript%3E", "failed", reason="<b>", title="<i>x")
    html = render_tree([evil]) + render_legend({"failed": 1})
    assert "<script>" not in html and '<b>"' not in html and "&lt;script&gt;" in html and "&lt;i&gt;x" in html
