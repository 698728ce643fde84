"""A large page converted in parts gives the same result as converted whole."""

from __future__ import annotations

import pytest
from lxml import html

from workbench.ingestion.readers.html import PART_CHARS, read_html, split_element

SECTION = "<section><h2>Part {0}</h2><p>Words of <b>part</b> {0}.</p><pre><code>code {0}</code></pre>tail {0}</section>"


@pytest.mark.slow
def test_a_large_page_comes_out_as_its_parts_in_order() -> None:
    count = 4 * PART_CHARS // len(SECTION)
    source = "<main><h1>Book</h1>" + "".join(SECTION.format(n) for n in range(count)) + "</main>"
    draft = read_html(source.encode(), "book.html")
    expected = [f"## Part {n}\n\nWords of **part** {n}.\n\n```\ncode {n}\n```\n\ntail {n}" for n in range(count)]
    assert draft.text.strip() == "\n\n".join(["# Book", *expected])


def test_parts_are_cut_between_blocks_only_and_lose_nothing() -> None:
    inline = "<i>a</i> b " * (PART_CHARS // 8)
    listed = "<ul>" + "<li>item</li>" * (PART_CHARS // 8) + "</ul>"
    page = html.fromstring(f"<div>{inline}<div>{'<p>x &amp; y</p>' * (PART_CHARS // 8)}</div>&lt;end {listed}</div>")
    parts = list(split_element(page))
    assert len(parts) > 4
    assert parts[0] == inline and parts[-1] == listed
    assert all(len(part) <= PART_CHARS for part in parts[1:-1])
    whole = html.fromstring(f"<div>{''.join(parts)}</div>")
    assert "".join(whole.itertext()) == "".join(page.itertext())
