"""A crawled site as a tree of its folders, each page with a mark, a colour and a word for how it ended."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from urllib.parse import unquote, urlsplit

from workbench.crawling.extraction import word
from workbench.storage.crawls import CrawlPage

MARKS: dict[str, tuple[str, str]] = {
    "added": ("●", "good"),
    "changed": ("▲", "good"),
    "unchanged": ("○", "same"),
    "duplicate": ("◇", "same"),
    "redirected": ("→", "same"),
    "removed": ("–", "gone"),
    "held": ("?", "wait"),
    "forbidden": ("⊘", "gone"),
    "not_allowed": ("⊗", "gone"),
    "left_out": ("…", "gone"),
    "failed": ("✕", "bad"),
    "fetched": ("◐", "wait"),
    "queued": ("·", "wait"),
}
SHOWN = 800  # pages; a larger tree is no longer read


@dataclass(slots=True)
class TreeNode:
    """A folder or a page of the tree."""

    name: str
    page: CrawlPage | None = None
    children: dict[str, TreeNode] = field(default_factory=dict)


def outcome_of(page: CrawlPage) -> str:
    """Return how a page ended, or where it is."""
    return page.outcome or page.state


def tree_of(pages: Iterable[CrawlPage]) -> TreeNode:
    """Return the pages as a tree: hosts, then folders, then pages."""
    root = TreeNode("")
    for page in pages:
        parts = urlsplit(page.url)
        path = [segment for segment in parts.path.split("/") if segment]
        last = (path.pop() if path else "/") + (f"?{parts.query}" if parts.query else "")
        node = root
        for name in [parts.netloc, *path]:
            node = node.children.setdefault(name, TreeNode(name))
        if last in node.children:
            node.children[last].page = page
        else:
            node.children[last] = TreeNode(last, page)
    return root


def tree_html(pages: Sequence[CrawlPage]) -> str:
    """Return the tree as HTML, folders open; nothing in it comes unescaped."""
    listed = pages[:SHOWN]
    more = f"<p>and {len(pages) - SHOWN:,} more pages</p>" if len(pages) > SHOWN else ""
    items = "".join(_item(child) for child in tree_of(listed).children.values())
    return f'<div class="wb-tree" role="group" aria-label="Pages of the site"><ul>{items}</ul>{more}</div>'


def legend_html(counts: Mapping[str, int]) -> str:
    """Return what the marks mean, with how many pages have each."""
    parts = [
        f'<span class="{tone}"><b aria-hidden="true">{mark}</b> {counts[name]:,} {word(name)}</span>'
        for name, (mark, tone) in MARKS.items()
        if counts.get(name)
    ]
    return f'<p class="wb-legend">{"".join(parts)}</p>'


def _item(node: TreeNode) -> str:
    inside = "".join(_item(child) for child in node.children.values())
    label = _label(node)
    if not inside:
        return f"<li>{label}</li>"
    return f"<li><details open><summary>{label}</summary><ul>{inside}</ul></details></li>"


def _label(node: TreeNode) -> str:
    name = escape(unquote(node.name))
    page = node.page
    if page is None:
        return f'<span class="folder">{name}</span>'
    mark, tone = MARKS[outcome_of(page)]
    outcome = escape(word(outcome_of(page)) + (f": {page.reason}" if page.reason else ""))
    title = f" <i>{escape(page.title[:80])}</i>" if page.title else ""
    return (
        f'<span class="{tone}" title="{outcome}"><b>{mark}</b> {name}{title}<span class="said"> {outcome}</span></span>'
    )
