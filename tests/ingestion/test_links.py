"""The targets of a text's links, and the addresses that a link may refer to."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.ingestion.links import (
    document_keys,
    extract_links,
    find_mention_keys,
    link_context,
    target_keys,
    url_key,
)

WRITTEN = {
    "See [the guide](guides/setup.md).": ("link", "guides/setup.md"),
    "See [`where`](/functions/where/#top) here.": ("link", "/functions/where/"),
    "See [a](<my file.md>) and more": ("link", "my file.md"),
    'See [a](b.md "A title (x)").': ("link", "b.md"),
    "See [wiki](https://en.wikipedia.org/wiki/A_(letter)).": ("link", "https://en.wikipedia.org/wiki/A_(letter)"),
    "See [the guide][g].\n\n[G]: guides/setup.md 'Setup'": ("reference", "guides/setup.md"),
    "See [g][].\n\n[g]: <guides/setup.md>": ("reference", "guides/setup.md"),
    "See [g] for it.\n\n[g]: guides/setup.md": ("reference", "guides/setup.md"),
    "See https://example.com/a_b, or ask.": ("url", "https://example.com/a_b"),
    "See (https://example.com/a(b)).": ("url", "https://example.com/a(b)"),
    "See <https://example.com/a>.": ("url", "https://example.com/a"),
    "See [[Setup Guide#Linux|how to set up]].": ("wiki", "Setup Guide"),
    "Read ../guides/setup.md first.": ("path", "../guides/setup.md"),
    "Read `docs/setup.md` first.": ("path", "docs/setup.md"),
    '<p><a class="x" href="b.html">B</a></p>': ("html", "b.html"),
    "[![logo](logo.png)](https://example.com/)": ("link", "https://example.com/"),
    'See [x]({{< relref "setup.md" >}}).': ("link", "setup.md"),
}  # fmt: skip
NO_LINKS = (
    "![picture](a.png)", "[mail](mailto:a@b.c)", "[top](#top)", "```\n[a](b.md)\n```", "`[a](b.md)`",
    "<!-- [a](b.md) -->", "[ ] a task", "[x] a task", "a footnote[^1]\n\n[^1]: a note", "[[tables]]\nname = 1",
    "v1.2.3 and a.b", "[empty]()", "", "[unclosed](b.md", "[[unclosed", "[run](javascript:alert(1))",
)  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), WRITTEN.items())
def test_every_way_to_write_a_link_is_read(text: str, expected: tuple[str, str]) -> None:
    assert [(link.kind, link.target) for link in extract_links(text)] == [expected]


@pytest.mark.parametrize("text", NO_LINKS)
def test_what_is_no_link_to_a_document_is_left_out(text: str) -> None:
    assert extract_links(text) == []


@given(st.text("[]()<>`!#*_a./:\\\"'\n {%|-=h", max_size=400))
def test_broken_markdown_never_raises_and_spans_lie_in_the_text(text: str) -> None:
    for link in extract_links(text):
        assert 0 <= link.start < link.end <= len(text)
        assert link_context(text, link)


def test_the_context_is_the_sentence_around() -> None:
    text = "First one. For more on it, see [this](b.md) or ask. Last one."
    (link,) = extract_links(text)
    assert link_context(text, link) == "For more on it, see [this](b.md) or ask."


def test_a_path_from_the_root_is_tried_below_every_folder_above_the_citing_document() -> None:
    keys, url = target_keys("link", "/functions/Where/", "content/en/a/b.md", None)
    assert keys[:3] == ["page:functions/where", "page:content/functions/where", "page:content/en/functions/where"]
    assert url is None


def test_a_relative_path_is_first_a_file_next_to_the_citing_document() -> None:
    keys, _ = target_keys("link", "../c.md", "a/b.md", None)
    assert keys == ["file:c.md", "page:c"]
    assert target_keys("link", "d", "a/b.md", None)[0] == ["file:a/d", "page:a/d", "page:a/b/d"]


def test_a_link_of_a_page_with_a_url_becomes_absolute() -> None:
    keys, url = target_keys("link", "../x/", None, "https://www.Example.com/a/b.html")
    assert (keys, url) == (["url:example.com/x"], "https://www.Example.com/x/")
    assert url_key("http://example.com:80/x/index.html#part") == "url:example.com/x"


def test_a_document_can_be_cited_by_path_name_title_url_and_aliases() -> None:
    metadata = {"url": "https://example.com/ml", "aliases": ["/old/place/", "The Old Name"]}
    keys = {key for key, _ in document_keys("Machine  Learning", "notes/ML intro.md", None, metadata)}
    assert keys == {
        "title:machine learning", "file:notes/ML intro.md", "page:notes/ml intro", "name:ml-intro",
        "url:example.com/ml", "site:old/place", "title:the old name",
    }  # fmt: skip


def test_titles_in_quotes_emphasis_or_capitals_may_be_mentions() -> None:
    keys = find_mention_keys(
        'It builds on "machine learning basics", *deep nets today* and The Theory of Everything Else.'
    )
    assert {"title:machine learning basics", "title:deep nets today", "title:theory of everything"} <= set(keys)
    assert "title:theory" not in keys


@pytest.mark.parametrize("mark", ["`", "~", "> ```", "<!--", "[["])
def test_a_megabyte_of_one_mark_is_read_at_once(mark: str) -> None:
    assert extract_links(mark * (1_000_000 // len(mark)) + "\n\n") == []
