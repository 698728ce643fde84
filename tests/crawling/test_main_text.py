"""The text that is kept of a page, and duplicates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.crawling.site import TestSite, outcomes, page, reason
from workbench import Workbench
from workbench.crawling.duplicates import PageToCompare, repeats
from workbench.crawling.extraction import extract
from workbench.crawling.furniture import furniture_of, without_furniture
from workbench.crawling.replies import Reply
from workbench.crawling.urls import canonical

Crawl = Callable[..., dict[str, Any]]


def text_of(html: str) -> str:
    """Return the main text of a page."""
    return extract(Reply("http://h.test/d/p", 200, {"content-type": "text/html"}, html.encode())).body.decode()


def test_headings_code_and_tables_are_kept_and_links_made_absolute() -> None:
    text = text_of(
        "<nav>Menu</nav><main><h1>Title</h1><p>See <a href='../x?utm_source=a#f'>that</a>.</p>"
        "<pre><pre><code class='language-python'>def f():\n    return 1</code></pre></pre>"
        "<table><tr><th>K</th><th>V</th></tr><tr><td>a</td><td>1</td></tr></table></main><footer>(c)</footer>"
    )
    assert text.startswith("# Title")
    assert "[that](http://h.test/x" in text
    assert "```python\ndef f():\n    return 1\n```" in text
    assert "| a | 1 |" in text
    assert "Menu" not in text and "(c)" not in text


def test_a_page_without_head_and_body_tags_is_read() -> None:
    assert text_of("<!doctype html><title>T</title><main><h1>H</h1><p>Words.</p></main>").strip() == "# H\n\nWords."


def test_text_hidden_from_readers_is_not_read() -> None:
    hidden = [
        "<p style='display:none'>SECRET</p>", "<p style='font-size:0px'>SECRET</p>", "<p hidden>SECRET</p>",
        "<div style='height:0;overflow:hidden'>SECRET</div>", "<!-- SECRET -->", "<p class='x gone'>SECRET</p>",
        "<p id='away'>SECRET</p>", "<p style='opacity: 0'>SECRET</p>", "<template>SECRET</template>",
        "<p aria-hidden='true'>SECRET</p>", "<p style='text-indent:-9999px'>SECRET</p>",
    ]  # fmt: skip
    style = "<style>.gone, .other{display:none} #away{visibility: hidden} @media print{.seen{display:none}}</style>"
    text = text_of(f"<head>{style}</head><body><p class=seen style='line-height:0.9'>Seen.</p>{''.join(hidden)}</body>")
    assert text.strip() == "Seen."


def test_menus_in_plain_elements_are_left_out_because_they_repeat(wb: Workbench, site: TestSite, crawl: Crawl) -> None:
    names = [f"/p{number}" for number in range(8)]
    menu = "<div>" + "".join(f"<div><a href='{name}'>Chapter {name}</a></div>" for name in names) + "</div>"

    def with_menu(name: str) -> str:
        words = f"<h1>About {name}</h1><p>Only here: marvel{name[2:]}.</p><h2>See also</h2><p>Nothing on {name}.</p>"
        return f"<body>{menu}<div>{words}</div><div>Made with care by the makers.</div></body>"

    site.put({"/": with_menu("/p9")} | {name: with_menu(name) for name in names})
    crawl(f"{site.url}/")
    texts = [wb.documents.get(document.id).text for document in wb.documents.list()]
    assert len(texts) == 9
    assert all((text or "").startswith("# About /p") and "See also" in (text or "") for text in texts)
    assert not any("Chapter" in (text or "") or "Made with care" in (text or "") for text in texts)


def test_furniture_is_taken_from_the_ends_only_and_never_all_of_a_page() -> None:
    pages = [f"Menu\n\n# Title {n}\n\nNote\n\nText {n}.\n\nFooter" for n in range(5)]
    furniture = furniture_of(pages)
    assert without_furniture(pages[0], furniture) == "# Title 0\n\nNote\n\nText 0."
    assert without_furniture("Menu\n\nFooter", furniture) == "Menu\n\nFooter"
    assert furniture_of(pages[:3]) == frozenset()


def test_the_same_text_at_two_addresses_is_stored_once(wb: Workbench, site: TestSite, crawl: Crawl) -> None:
    site.put({
        "/": page("Start", links=["/a", "/copy", "/a?utm_source=x", "/a#part", "/c?v=1"]), "/a": page("A"),
        "/copy": page("A"),
        "/c?v=1": page("C", head="<link rel=canonical href='/c'>"),
    })  # fmt: skip
    crawled = crawl(f"{site.url}/")
    assert outcomes(wb, crawled) == {"": "added", "a": "added", "copy": "duplicate", "c?v=1": "added"}
    assert reason(wb, crawled, "/copy") == f"the same text as {site.url}/a"
    assert {d.url for d in wb.documents.list()} == {f"{site.url}{path}" for path in ("/", "/a", "/c")}


def test_a_print_page_that_holds_the_book_again_is_left_out(wb: Workbench, site: TestSite, crawl: Crawl) -> None:
    chapters = {
        f"/c{n}": "".join(f"<p>Sentence {i} of chapter {n} says what no other says.</p>" for i in range(6))
        for n in range(6)
    }
    site.put(
        {"/": page("Book", links=["/print", *chapters]), "/print": "<main>" + "".join(chapters.values()) + "</main>"}
    )
    site.put({path: f"<main><h1>Chapter {path}</h1>{text}</main>" for path, text in chapters.items()})
    crawled = crawl(f"{site.url}/")
    assert outcomes(wb, crawled) == {"": "added", "print": "duplicate"} | {path[1:]: "added" for path in chapters}
    assert reason(wb, crawled, "/print") == "holds 6 other pages again"
    again = crawl(f"{site.url}/")
    assert again["report"] | {"removed": 0} == {"added": 0, "changed": 0, "unchanged": 7, "removed": 0, "failed": 0}


def test_nearly_equal_pages_count_once_and_pages_with_a_common_frame_do_not() -> None:
    frame = tuple(range(100, 120))
    pages = [PageToCompare(f"p{n}", (*frame, n * 10, n * 10 + 1, n * 10 + 2, n * 10 + 3, n * 10 + 4)) for n in range(6)]
    assert repeats(pages) == {}
    near = [
        PageToCompare("one", tuple(range(40))),
        PageToCompare("two", tuple(range(1, 41))),
        PageToCompare("three", (900, 901)),
    ]
    assert repeats(near) == {"two": "nearly the same text as one"}


def test_an_address_has_one_spelling() -> None:
    spellings = [
        "HTTP://H.test:80/a/./b/../c?utm_medium=x&q=1#top",
        "http://h.test/a/c?q=1",
        "http://h.TEST./%61/c?q=1&fbclid=2",
    ]
    assert {canonical(spelling) for spelling in spellings} == {"http://h.test/a/c?q=1"}
    assert canonical("http://h.test/b?y=1&x=2") == "http://h.test/b?y=1&x=2"
    assert [canonical(odd) for odd in ("mailto:a@b", "http://u:p@h/", "http://h:x/", "", "http://h/" + "a" * 3000)] == [
        None
    ] * 5
