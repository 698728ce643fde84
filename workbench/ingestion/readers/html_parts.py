"""A large page in parts that are converted one after the other: bounded in memory, and nobody waits for the whole."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import cast

from lxml import html

PART = 200_000  # characters of HTML that are converted at once
CONTAINERS = frozenset(("body", "main", "article", "section", "div", "center", "form", "html", "span", "p"))
# Elements before which a text may be cut without running two paragraphs into one or parting a sentence.
BLOCKS = CONTAINERS - {"span"} | {
    "h1", "h2", "h3", "h4", "h5", "h6", "pre", "ul", "ol", "dl", "table", "blockquote", "hr", "br", "figure", "details",
}  # fmt: skip


def parts_of(element: html.HtmlElement) -> Iterator[str]:
    """Yield an element's HTML in parts of about ``PART`` characters, in order; lists and tables stay whole."""
    source = _written(element, with_tail=False)
    if len(source) <= PART or element.tag not in CONTAINERS:
        yield source
        return
    del source
    pending = [escape(element.text or "")]
    size = len(pending[0])
    for child in element:
        source = _written(child, with_tail=True)
        is_divisible = len(source) > PART and child.tag in CONTAINERS
        if child.tag in BLOCKS and (is_divisible or size + len(source) > PART):
            yield "".join(pending)
            pending, size = [], 0
        if is_divisible and child.tag in BLOCKS:
            yield from parts_of(child)
            source = escape(child.tail or "")
        pending.append(source)
        size += len(source)
    yield "".join(pending)


def _written(element: html.HtmlElement, *, with_tail: bool) -> str:
    return cast("str", html.tostring(element, encoding="unicode", with_tail=with_tail))
