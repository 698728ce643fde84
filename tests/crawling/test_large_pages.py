"""Pages of many megabytes, some designed to slow down a reader, are read in time proportional to their size."""

from __future__ import annotations

import hashlib

import pytest

from workbench.crawling.extraction import (
    PIECE_SIZE,
    Page,
    extract_page,
    find_boilerplate,
    find_markdown_links,
    hash_blocks,
    split_text,
    strip_boilerplate,
)
from workbench.crawling.http import Response
from workbench.crawling.site import read_llms, read_sitemap

pytestmark = pytest.mark.timeout(120)  # read in a way that grows with the square, one of them takes hours
MEGABYTE = 1_000_000
HOSTILE = {
    "brackets": "[" * (4 * MEGABYTE), "pictures": "[![" * MEGABYTE, "open links": "[a](" * MEGABYTE,
    "angles": "<http://" * (MEGABYTE // 2), "definitions": "[a]: " * MEGABYTE, "one word": "a" * (15 * MEGABYTE),
    "blanks": "\n " * MEGABYTE, "parentheses": "[a](b" * MEGABYTE,
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_markdown_page_is_read_like_any_other(kind: str) -> None:
    text = HOSTILE[kind]
    page = extract_page(Response("http://h.test/a.md", 200, {"content-type": "text/markdown"}, text.encode()))
    assert page.body == text.encode()
    hash_blocks(text)
    strip_boilerplate(text, find_boilerplate([text] * 4))
    read_llms(text, "http://h.test/")
    read_sitemap(text.encode(), "http://h.test/s.txt")


@pytest.mark.parametrize(
    "style", ["a" * MEGABYTE, "@" * MEGABYTE, "/*" * MEGABYTE, "a{" * MEGABYTE, "@a{b{}" * MEGABYTE]
)
def test_a_hostile_style_sheet_is_read_like_any_other(style: str) -> None:
    html = f"<style>.gone {{display:none}} {style}</style><main><p>Words.</p><p class=gone>SECRET</p></main>"
    page = extract_page(Response("http://h.test/", 200, {"content-type": "text/html"}, html.encode()))
    assert page.body.strip() == b"Words."


def test_links_are_found_in_every_form_and_pictures_left_aside() -> None:
    text = (
        '[inline](/a) ![picture](/p) [![badge](/b.svg)](/c "title") [empty]() <https://h.test/d>\n'
        "[ref]: /e\n  [far]:\n  </f>\n[two\nlines](</g>) [not\n\n"
    )
    assert list(find_markdown_links(text)) == ["/a", "/c", "https://h.test/d", "/e", "/f", "/g"]
    long = ("words " * 30 + "\n") * 2_000 + "[last](/z)"
    assert len(long) > 4 * PIECE_SIZE
    assert list(find_markdown_links(long)) == ["/z"]


def test_pieces_are_whole_lines_and_make_the_text_again() -> None:
    text = "one\ntwo\n" + "x" * 25 + "\nend"
    assert list(split_text(text, 10)) == ["one\ntwo\n", "x" * 10, "x" * 10, "xxxxx\nend"]


def test_a_content_hash_does_not_change_with_white_space_or_size() -> None:
    body = b"word  and\nword " * 20_000
    expected = hashlib.sha256(b" ".join(body.split())).hexdigest()
    assert Page("page.md", body).content_hash == Page("page.md", b" ".join(body.split())).content_hash == expected


def test_paragraphs_are_reported_by_blank_lines_wherever_a_piece_ends() -> None:
    paragraph = "\n".join(f"Line {n} of a paragraph that is longer than any piece of a text." for n in range(2_000))
    assert len(paragraph) > PIECE_SIZE
    assert hash_blocks(f"{paragraph}\n \n{paragraph}") == hash_blocks(paragraph) * 2
    assert len(hash_blocks(paragraph)) == 1
