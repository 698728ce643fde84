"""The main text of a page, and duplicates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.crawling.site import TestSite, outcomes, page, reason
from workbench import Workbench
from workbench.crawling.crawl import PageBlocks, find_repeats
from workbench.crawling.extraction import extract_page, find_boilerplate, strip_boilerplate
from workbench.crawling.http import Response
from workbench.crawling.urls import canonicalize

Crawl = Callable[..., dict[str, Any]]


def read_text(html: str) -> str:
    """Return the main text of a page."""
    return extract_page(Response("http://h.test/d/p", 200, {"content-type": "text/html"}, html.encode())).body.decode()


def test_headings_code_and_tables_are_kept_and_links_made_absolute() -> None:
    text = read_text(
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
    assert read_text("<!doctype html><title>T</title><main><h1>H</h1><p>Words.</p></main>").strip() == "# H\n\nWords."


@pytest.mark.parametrize("kind", ["", "1e9", "text/html/x", "application/octet-stream"])
def test_html_without_a_valid_content_type_is_read(kind: str) -> None:
    for start in ("<!doctype html>", "\ufeff<html>", "<!-- a -->\n<head></head>", "<?xml version='1.0'?><html>"):
        page = extract_page(Response("http://h.test/p", 200, {"content-type": kind}, f"{start}<p>Text.".encode()))
        assert page.body == b"Text."


def test_a_page_with_an_invalid_base_is_read() -> None:
    page = extract_page(
        Response("http://h.test/d/p", 200, {"content-type": "text/html"}, b"<base href='http://['><a href=q>Text.</a>")
    )
    assert (page.body, page.links) == (b"[Text.](http://h.test/d/q)", ("http://h.test/d/q",))


def test_text_hidden_from_readers_is_not_read() -> None:
    hidden = [
        "<p style='display:none'>SECRET</p>", "<p style='font-size:0px'>SECRET</p>", "<p hidden>SECRET</p>",
        "<div style='height:0;overflow:hidden'>SECRET</div>", "<!-- SECRET -->", "<p class='x gone'>SECRET</p>",
        "<p id='away'>SECRET</p>", "<p style='opacity: 0'>SECRET</p>", "<template>SECRET</template>",
        "<p aria-hidden='true'>SECRET</p>", "<p style='text-indent:-9999px'>SECRET</p>",
    ]  # fmt: skip
    style = "<style>.gone, .other{display:none} #away{visibility: hidden} @media print{.seen{display:none}}</style>"
    text = read_text(
        f"<head>{style}</head><body><p class=seen style='line-height:0.9'>Seen.</p>{''.join(hidden)}</body>"
    )
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


def test_boilerplate_is_taken_from_the_ends_only_and_never_all_of_a_page() -> None:
    pages = [f"Menu\n\n# Title {n}\n\nNote\n\nText {n}.\n\nFooter" for n in range(5)]
    boilerplate = find_boilerplate(pages)
    assert strip_boilerplate(pages[0], boilerplate) == "# Title 0\n\nNote\n\nText 0."
    assert strip_boilerplate("Menu\n\nFooter", boilerplate) == "Menu\n\nFooter"
    assert find_boilerplate(pages[:3]) == frozenset()


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
    assert reason(wb, crawled, "/print") == "repeats 6 other pages"
    again = crawl(f"{site.url}/")
    assert again["report"] | {"removed": 0} == {"added": 0, "changed": 0, "unchanged": 7, "removed": 0, "failed": 0}


def test_nearly_equal_pages_count_once_and_pages_with_a_common_frame_do_not() -> None:
    frame = tuple(range(100, 120))
    pages = [PageBlocks(f"p{n}", (*frame, n * 10, n * 10 + 1, n * 10 + 2, n * 10 + 3, n * 10 + 4)) for n in range(6)]
    assert find_repeats(pages) == {}
    near = [
        PageBlocks("one", tuple(range(40))),
        PageBlocks("two", tuple(range(1, 40))),
        PageBlocks("four", tuple(range(1, 41))),  # one line of its own
        PageBlocks("three", (900, 901)),
    ]
    assert find_repeats(near) == {"two": "nearly the same text as one"}


def test_pages_that_differ_in_a_line_that_many_have_are_both_kept() -> None:
    sheet = tuple(range(40))
    pages = [PageBlocks("sold out", (*sheet, 901)), PageBlocks("available", (*sheet, 900))]
    pages += [PageBlocks(f"p{n}", (900, *range(1000 * n, 1000 * n + 9))) for n in range(1, 6)]  # 900: "Available"
    assert find_repeats(pages) == {}


def test_sheets_with_the_same_lines_in_another_order_are_both_kept() -> None:
    volt, five, amp, three, watt = range(5)
    sheet = tuple(range(100, 130))
    first = PageBlocks("one", (*sheet, volt, five, amp, three, watt, five))
    for values in ((volt, three, amp, five, watt, five), (volt, five, amp, three, watt, three)):
        assert find_repeats([first, PageBlocks("two", (*sheet, *values))]) == {}
    assert find_repeats([first, PageBlocks("two", first.blocks)]) == {"two": "nearly the same text as one"}


def test_a_page_that_adds_a_sentence_to_others_is_kept() -> None:
    chapters = [PageBlocks(f"c{n}", tuple(range(100 * n, 100 * n + 20))) for n in range(1, 5)]
    book = tuple(block for chapter in chapters for block in chapter.blocks)
    assert find_repeats([*chapters, PageBlocks("print", (1, 2, *book))]) == {"print": "repeats 4 other pages"}
    assert find_repeats([*chapters, PageBlocks("compared", (*book[:50], 1, *book[50:]))]) == {}


def test_an_address_has_one_spelling() -> None:
    spellings = [
        "HTTP://H.test:80/a/./b/../c?utm_medium=x&q=1#top",
        "http://h.test/a/c?q=1",
        "http://h.TEST./%61/c?q=1&fbclid=2",
    ]
    assert {canonicalize(spelling) for spelling in spellings} == {"http://h.test/a/c?q=1"}
    assert canonicalize("http://h.test/b?y=1&x=2") == "http://h.test/b?y=1&x=2"
    assert [
        canonicalize(odd) for odd in ("mailto:a@b", "http://u:p@h/", "http://h:x/", "", "http://h/" + "a" * 3000)
    ] == [None] * 5


def test_pages_that_claim_one_address_are_kept_if_their_texts_differ(
    wb: Workbench, site: TestSite, crawl: Crawl
) -> None:
    def claims(name: str, to: str) -> str:
        return page(name, f"What {name} says, and no other page says.", head=f"<link rel=canonical href='{to}'>")

    paths = ["/t?id=1", "/t?id=2", "/t?id=3", "/v?page=2", "/v?page=1", "/item.html", "/item/"]
    claimed = ["/t", "/t", "/t", "/v?page=1", "/v?page=1", "/item/", "/item/"]
    site.put({"/": page("Start", links=paths)} | {p: claims(p, to) for p, to in zip(paths, claimed, strict=True)})
    crawled = crawl(f"{site.url}/")
    assert crawled["outcomes"]["added"] == 8
    assert {d.url for d in wb.documents.list()} == {f"{site.url}{path}" for path in ["/", *paths]}
    again = crawl(f"{site.url}/")
    assert (again["outcomes"]["unchanged"], wb.documents.count()) == (8, 8)


def test_data_sheets_that_differ_in_a_number_are_both_kept(wb: Workbench, site: TestSite, crawl: Crawl) -> None:
    common = "".join(
        f"<p>Paragraph {n} of the instructions is the same for all the pumps of this make.</p>" for n in range(30)
    )

    def sheet(bar: int) -> str:
        return f"<main><h1>Pump {bar}</h1><p>{bar} bar</p>{common}</main>"

    sheets = {f"/pump-{bar}": sheet(bar) for bar in (40, 60, 80)}
    site.put({"/": page("Pumps", links=list(sheets)), **sheets})
    assert crawl(f"{site.url}/")["outcomes"]["duplicate"] == 0
    assert wb.documents.count() == 4


SHOWN = {
    "a tab": "<div role=tabpanel hidden>SEEN</div>",
    "found by search": "<div hidden=until-found>SEEN</div>",
    "an aside": "<aside class=note><p>SEEN</p></aside>",
    "an answer": "<button aria-controls=x>Q</button><div id=x aria-hidden=true>SEEN</div>",
    "a question": "<h3><button aria-expanded=false>SEEN</button></h3>",
    "an accordion": "<div class=accordion-body style='max-height:0'>SEEN</div>",
    "an open dialog": "<dialog open>SEEN</dialog>",
    "a fading part": "<div class=fade style='opacity:0'>SEEN</div>",
    "a chosen pane": "<style>.pane{display:none}.pane.active{display:block}</style><div class='pane active'>SEEN</div>",
    "a later rule": "<style>.s{display:none} .s{display:block}</style><div class=s>SEEN</div>",
    "a grid": "<style>.g{font-size:0} .g .c{font-size:14px}</style><div class=g><i class=c>SEEN</i></div>",
    "on paper only": "<style media=print>.p{display:none}</style><p class=p>SEEN</p>",
    "without scripts": "<noscript><style>.l{display:none}</style></noscript><p class=l>SEEN</p>",
    "a part that a script shows": "<p id=later style='display:none'>SEEN</p><script>$('#later').show()</script>",
    "a shadow root": "<x-y><template shadowrootmode=open><p>SEEN</p></template></x-y>",
    "a frame": "<iframe srcdoc='&lt;p&gt;SEEN&lt;/p&gt;'></iframe>",
    "a quotation's author": "<blockquote>Words<footer>SEEN</footer></blockquote>",
    "a heading in the page's head": "<header><h1>SEEN</h1></header>",
    "a formula": "<math><annotation encoding='application/x-tex'>SEEN</annotation></math>",
    "a part after its switch": "<h3 onclick='open(this)'>Q</h3><div style='display:none'>SEEN</div>",
    "an answer in nameless classes": "<button class=c1>Why?</button><div class=c2 style='display:none'>SEEN</div>",
    "a question without attributes": "<div><button class=faq-q>SEEN</button><div>A</div></div>",
    "a part before its switch": "<div style='max-height:0;overflow:hidden'>SEEN</div><button>Read more</button>",
    "a part that Alpine shows": "<div x-show=open style='display:none'>SEEN</div>",
    "a named region": "<div role=region aria-labelledby=h hidden>SEEN</div>",
    "an element's own style": "<style>.s{display:none}</style><div class=s style='display:block'>SEEN</div>",
    "a rule for its id": "<style>.s{display:none} #k{display:flex}</style><div class=s id=k>SEEN</div>",
    "a class that fades in": "<style>.js{opacity:0}</style><section class=js>SEEN</section>",
    "an animation's start": "<div class=wow style='visibility:hidden;animation-name:none'>SEEN</div>",
    "no height but all of its text": "<div style='flex:1 1 0;height:0'>SEEN</div>",
    "a tab of an element of its own": "<sl-tab-panel hidden>SEEN</sl-tab-panel>",
    "a drawing's words": "<svg><text>SEEN</text></svg>",
    "a definition": "<dl><dt>Term</dt><dd style='display:none'>SEEN</dd></dl>",
    "a part with data for a script": "<div data-aos=fade style='opacity:0'>SEEN</div>",
    "the rest of a paragraph": "<p>It<span id=more style='display:none'>SEEN</span></p><button>Read more</button>",
    "a pane next to the chosen one": "<div><input type=radio></div><div><pre>a</pre><p hidden>SEEN</p></div>",
    "a picture in several sizes": "<picture><source srcset=a><img alt='SEEN: a pump with pipes'></picture>",
    "a choice": "<select><option>SEEN</option></select>",
    "nothing but links": "<nav><a href='/a'>SEEN</a></nav>",
}
UNSEEN = {
    "a menu": "<nav><a href=/a>NOT</a></nav>",
    "a sidebar": "<aside class=sidebar>NOT</aside>",
    "links to others": "<aside><a href=/a>NOT</a> <a href=/b>NOT</a></aside>",
    "a footer": "<footer>NOT</footer>",
    "a closed dialog": "<dialog>NOT</dialog>",
    "a copy button": "<button class=copy aria-expanded=false>NOT</button>",
    "a cookie panel": "<div class='cookie panel' hidden>NOT</div>",
    "a drawing's numbers": "<svg><text>10</text><title>NOT</title></svg>",
    "a class for all": "<style>.row{display:flex}</style><div class=row style='display:none'>NOT</div>",
    "a part without height": "<div style='max-height:0;overflow:hidden'>NOT</div>",
    "a part outside the screen": "<div style='position:absolute;left:-9999px'>NOT</div>",
    "a part cut off": "<span style='clip-path:inset(50%)'>NOT</span>",
    "a part that nothing shows": "<div class=x style='display:none'>NOT</div>",
}


@pytest.mark.parametrize("part", SHOWN.values(), ids=SHOWN)
def test_text_that_a_reader_sees_or_can_open_is_read(part: str) -> None:
    intro = "" if part.startswith("<nav") else "<p>Some words before it.</p>"
    assert "SEEN" in read_text(f"<html><body>{intro}{part}</body></html>")


@pytest.mark.parametrize("part", UNSEEN.values(), ids=UNSEEN)
def test_text_that_no_reader_sees_or_that_is_next_to_the_page_is_not_read(part: str) -> None:
    assert "NOT" not in read_text(f"<html><body><p>Some words before it.</p>{part}</body></html>")


def test_the_names_of_tabs_in_a_row_stay_apart() -> None:
    tabs = "".join(f"<button role=tab aria-controls={name}>{name}</button>" for name in ("Mac", "Linux", "BSD"))
    panes = "".join(f"<div role=tabpanel id={name} hidden>For {name}.</div>" for name in ("Mac", "Linux", "BSD"))
    assert "Mac Linux BSD" in read_text(f"<html><body><div role=tablist>{tabs}</div>{panes}</body></html>")
    assert "# Why?\n" in read_text("<body><h1><button aria-expanded=false>Why?</button></h1><p>So.</p></body>")


CODE = "first: 1\n  second: 2\nthird: 3"
LINES = CODE.split("\n")
NUMBERED = "<td class=linenos><div class=linenodiv><pre>1\n2\n3</pre></div></td>"
SHIKI = [f"<span class=line>{line}</span>" for line in LINES]
STARLIGHT = [f"<div class=ec-line><div class=code><span>{line}</span></div></div>" for line in LINES]
GITHUB = [f"<td class=blob-num data-line-number={n}></td><td class=blob-code>{x}</td>" for n, x in enumerate(LINES, 1)]
ROWS = [f"<span class=lineno>{n} </span>{line}" for n, line in enumerate(LINES)]
BLOCKS = {
    "breaks": f"<pre><code>{''.join(f'<span class=token-line>{x}<br></span>' for x in LINES)}</code></pre>",
    "Starlight": f"<pre data-language=yaml><code>{''.join(STARLIGHT)}</code></pre>",
    "Shiki": "<pre><code>" + "\n".join(SHIKI) + "</code></pre>",
    "Sphinx": f"<table><tr>{NUMBERED}<td class=code><div><pre>{CODE}</pre></div></td></tr></table>",
    "Hexo": f"<table><tr><td class=gutter><pre>{'<br>'.join('12')}</pre></td>"
    f"<td class=code><pre>{'<br>'.join(SHIKI)}</pre></td></tr></table>",
    "GitHub": f"<table>{''.join(f'<tr>{row}</tr>' for row in GITHUB)}</table>",
    "Hexo without numbers": f"<table><tr><td class=code><pre>{'<br>'.join(SHIKI)}</pre></td></tr></table>",
    "Rouge": f"<pre><code><table><tr><td class='rouge-gutter gl'><pre>1\n2\n3\n</pre></td>"
    f"<td class=rouge-code><pre>{CODE}\n</pre></td></tr></table></code></pre>",
    "highlight.js": "<pre><code><table>"
    + "".join(f"<tr><td class=hljs-ln-numbers data-line-number={n}></td><td>{x}</td></tr>" for n, x in enumerate(LINES))
    + "</table></code></pre>",
    "GitLab": f"<div><div class=line-numbers>1\n2\n3</div><div><pre><code>{CODE}</code></pre></div></div>",
    "lines without breaks": "<pre><code>" + "".join(f"<span data-line>{x}</span>" for x in LINES) + "</code></pre>",
    "lines of blocks": f"<pre>{''.join(f'<span style=display:block>{x}</span>' for x in LINES)}</pre>",
    "a block of code without pre": f"<code style='display:block;white-space:pre'>{CODE}</code>",
    "numbers in the lines": "<pre>" + "\n".join(ROWS) + "</pre>",
    "Pygments without classes": "<pre>"
    + "".join(f"<span style='color:#777'>{n}</span>{line}\n" for n, line in enumerate(LINES, 8))
    + "</pre>",
    "Chroma without classes": "<pre><code>"
    + "".join(f"<span style=display:flex><span>{n}</span><span>{x}\n</span></span>" for n, x in enumerate(LINES, 1))
    + "</code></pre>",
    "rustdoc": "<pre>" + "\n".join(f"<a href=#{n}>{n}</a>{line}" for n, line in enumerate(LINES, 1)) + "</pre>",
    "Zola": "<pre><code><table>"
    + "".join(f"<tr><td>{n}</td><td><span>{line}\n</span></td></tr>" for n, line in enumerate(LINES, 1))
    + "</table></code></pre>",
    "Javadoc": "<pre>"
    + "\n".join(f"<span class=source-line-no>00{n}</span>{x}" for n, x in enumerate(LINES))
    + "</pre>",
    "Doxygen": "<div class=fragment>"
    + "\n".join(f"<div class=line><span class=lineno>{n}</span>{line}</div>" for n, line in enumerate(LINES))
    + "</div>",
    "CodeMirror": f"<div class=cm-content>{''.join(f'<div class=cm-line>{line}</div>' for line in LINES)}</div>",
    "a list outside pre": f"<ol class=linenums>{''.join(f'<li>{line}</li>' for line in LINES)}</ol>",
    "a folded part": "<pre data-language=yaml><code><details><summary>3 lines</summary>"
    + f"{''.join(STARLIGHT)}</details></code></pre>",
    "Doxygen with folds": "<div class=fragment>"
    + "".join(
        f"<div class=foldopen>\n<div class=line><span class=lineno>{n}</span>&#160;{x}</div>\n</div>\n"
        for n, x in enumerate(LINES)
    )
    + "</div>",
    "Trac": "<table class=code><thead><tr><th class=lineno>Line<th>&nbsp;</tr></thead>"
    + "".join(f"<tr><th id=L{n}><a href=#L{n}>{n}</a></th><td>{x}</td></tr>" for n, x in enumerate(LINES, 1))
    + "</table>",
    "Gitiles": "<table class=FileContents>"
    + "".join(f"<tr class=FileContents-line><td data-line-number={n}><td>{x}</tr>" for n, x in enumerate(LINES, 1))
    + "</table>",
    "ViewVC": "<div id=vc_file><table>"
    + "".join(f"<tr><td class=vc_file_line_number>{n}<td>{x}</tr>" for n, x in enumerate(LINES, 1))
    + "</table></div>",
    "coverage.py": "<div id=source>"
    + "".join(
        f"<p id=t{n}><span class=n><a href=#t{n}>{n}</a></span><span class=t>{x}</span></p>"
        for n, x in enumerate(LINES, 1)
    )
    + "</div>",
    "LaTeXML": "<div class=ltx_listing><div class=ltx_listing_data><a download href='data:text/plain,x'>⬇</a></div>"
    + "".join(
        f"<div class=ltx_listingline><span class=ltx_tag_listingline>{n}</span>{x}</div>" for n, x in enumerate(LINES)
    )
    + "</div>",
    "Ace": f"<div class=ace_text-layer>{''.join(f'<div><div class=ace_line>{x}</div></div>' for x in LINES)}</div>",
    "OpenGrok": "<pre>"
    + "\n".join(f"<a class=l name={n} href=#{n}>{n}</a>{x}" for n, x in enumerate(LINES, 8))
    + "</pre>",
    "Org": "<pre>" + "\n".join(f"<span class=linenr>{n}: </span>{x}" for n, x in enumerate(LINES, 8)) + "</pre>",
    "Javadoc 8": "<pre>"
    + "\n".join(f"<span class=sourceLineNo>00{n}</span>{x}" for n, x in enumerate(LINES))
    + "</pre>",
    "lists of code": f"<ol>{''.join(f'<li><code>{x}</code></li>' for x in LINES)}</ol>",
    "GeSHi": f"<div class=geshi><ol>{''.join(f'<li><pre>{x}</pre></li>' for x in LINES)}</ol></div>",
    "SyntaxHighlighter": "<table><tr><td class=code><div>"
    + "".join(f"<div class=line><code>{x[:3]}</code><code>{x[3:]}</code></div>" for x in LINES)
    + "</div></td></tr></table>",
    "Crayon": f"<div><textarea readonly>{CODE}</textarea><table><tr>"
    + "<td class=crayon-nums><div>1</div><div>2</div><div>3</div></td>"
    + f"<td class=crayon-code><div>{''.join(f'<div>{x}</div>' for x in LINES)}</div></td></tr></table></div>",
    "Writerside": f"<div class=code-block data-lang=yaml>\n{CODE}\n</div>",
    "a style": "<div style='font-family:monospace;white-space:pre-wrap'>"
    + f"{''.join(f'<p>{x}</p>' for x in LINES)}</div>",
    "a terminal with its name": "<figure><figcaption><span class=sr-only>Fenster</span></figcaption>"
    + f"<pre data-language=yaml><code>{CODE}</code></pre><div><span>yaml</span></div><div>Copy</div></figure>",
    "a label in the block": "<pre><div><div>yaml</div><div><span>Copy code</span></div>"
    + f"<div><code class=language-yaml>{CODE}</code></div></div></pre>",
    "a choice of languages": "<div><div><select><option>yaml</select></div>"
    + f"<pre class=language-yaml><code>{CODE}</code></pre></div>",
    "EnlighterJS": f"<div><div><div>Plain text</div><div>Copy to clipboard</div></div><pre>{CODE}</pre></div>",
    "a list": f"<pre><ol>{''.join(f'<li>{line}</li>' for line in LINES)}</ol></pre>",
}


@pytest.mark.parametrize("block", BLOCKS.values(), ids=BLOCKS)
def test_code_keeps_its_lines_and_loses_their_numbers(block: str) -> None:
    text = read_text(f"<html><body><p>Before.</p>{block}<p>After.</p></body></html>")
    assert text.replace("```yaml", "```").strip() == f"Before.\n\n```\n{CODE}\n```\n\nAfter."


def test_numbers_that_do_not_count_the_lines_of_code_are_kept() -> None:
    for numbers in ((1, 2, 4), (10, 20, 30)):
        code = "\n".join(f"<span>{n}</span> PRINT {n}" for n in numbers)
        assert "\n".join(f"{n} PRINT {n}" for n in numbers) in read_text(f"<p>Type:</p><pre>{code}</pre>")
    assert "```\n1\n2\n```" in read_text("<p>Answers:</p><pre><span>1</span>\n<span>2</span></pre>")
    notes = "".join(f"<li><a id=n{n} href=#n{n}>{n}</a> Note {n}.</li>" for n in (1, 2))
    commands = "<li><code>cd /srv</code></li><li><code>make</code></li>"
    verses = (
        "<div class=chapter><p id=v1><a href=#v1>1</a> In the beginning</p><p id=v2><a href=#v2>2</a> And</p></div>"
    )
    for prose in (f"<ol>{notes}</ol>", f"<ol>{commands}</ol>", verses, "<div class=code>Save 10 %\nwith it</div>"):
        assert "```" not in read_text(f"<p>Read:</p>{prose}")
    twice = read_text("<p>On Mac:</p><pre>a\nb</pre><p>On Linux:</p><pre>a\nb</pre>")
    assert twice.count("a\nb") == 2
    assert "```" not in read_text("<p>Slides:</p><div class=fragment><p>First</p><p>Second</p></div>")


def test_code_in_a_table_keeps_its_lines_and_the_name_of_its_file() -> None:
    name = "<tr><th colspan=2 class=filename>conf.yml</th></tr>"
    named = f"<table>{name}<tr>{NUMBERED}<td><pre>{CODE}</pre></td></tr></table>"
    assert read_text(f"<p>x</p>{named}").strip() == f"x\n\nconf.yml\n\n```\n{CODE}\n```"
    options = f"<table><tr><th>Option<th>Example</tr><tr><td>a<td><pre>{CODE}</pre></tr></table>"
    assert f"```\n{CODE}\n```" in read_text(f"<p>x</p>{options}")


def test_the_language_of_code_in_a_figure_is_kept() -> None:
    numbers, code = '<td class="gutter"><pre>1<br>2</pre></td>', '<td class="code"><pre>a = 1<br>b = 2</pre></td>'
    table = f'<figure class="highlight python"><table><tr>{numbers}{code}</tr></table></figure>'
    assert "```python\na = 1\nb = 2\n```" in read_text(f"<body><p>Set both values.</p>{table}</body>")
    rouge = f"<figure><pre><code data-lang=ruby><table><tr>{numbers}{code}</tr></table></code></pre></figure>"
    assert "```ruby\na = 1\nb = 2\n```" in read_text(f"<body><p>Set both values.</p>{rouge}</body>")


def test_a_file_name_next_to_code_is_kept_outside_it() -> None:
    quarto = f"<div class=code-with-filename><div><pre><b>conf.yml</b></pre></div><div><pre><code>{CODE}</code></pre>"
    assert f"```\n{CODE}\n```" in read_text(f"<p>x</p>{quarto}</div></div>")
    titled = f"<div><div class=title>conf.yml</div><pre><code>{CODE}</code></pre></div>"
    assert read_text(f"<p>x</p>{titled}").strip() == f"x\n\nconf.yml\n\n```\n{CODE}\n```"


def test_code_with_blank_lines_and_with_fences_stays_one_block() -> None:
    assert "````\necho ```\nx\n```\n````" in read_text("<pre><code>echo ```\nx\n```\n</code></pre>")
    assert "```\na\n\n\n\n\nb\n```" in read_text("<p>x</p><pre><code>a\n\n\n\n\nb</code></pre>")


@pytest.mark.parametrize(
    ("value", "target"),
    [
        ("0; url=/new", "http://h.test/new"),
        ("0;URL='new'", "http://h.test/d/new"),
        ("1.5.2; url=/new", "http://h.test/new"),  # a browser reads the whole seconds
        (".9 url=/new", "http://h.test/new"),
        ("0; url=http://[", None),
        ("soon", None),
        ("600; url=/new", None),
    ],
)
def test_a_refresh_redirects_in_a_header_as_in_a_meta_tag(value: str, target: str | None) -> None:
    headers = {"content-type": "text/html"}
    in_header = Response("http://h.test/d/p", 200, headers | {"refresh": value}, b"<p>Moved.</p>")
    in_meta = Response(
        "http://h.test/d/p", 200, headers, f'<meta http-equiv="refresh" content="{value}">Moved.'.encode()
    )
    assert extract_page(in_header).redirect == target
    assert extract_page(in_meta).redirect == target


def test_a_refresh_in_a_part_that_is_not_shown_does_not_redirect() -> None:
    for tag in ("template", "noscript", "textarea"):
        stub = f"<{tag}><meta http-equiv=refresh content='0; url=/new'></{tag}><p>The text of the page.</p>"
        assert (
            extract_page(Response("http://h.test/p", 200, {"content-type": "text/html"}, stub.encode())).redirect
            is None
        )


def test_a_page_that_sends_its_reader_on_is_no_document(wb: Workbench, site: TestSite, crawl: Crawl) -> None:
    def stub(content: str, text: str = "Moved.") -> str:
        return f"<html><head><meta http-equiv=Refresh content='{content}'></head><body><p>{text}</p></body></html>"

    site.put({
        "/docs/latest/": stub("0; url=/docs/v3/"), "/docs/v3/": page("V3", links=["old", "soon", "slides", "again"]),
        "/docs/v3/old": stub("0;URL=new"), "/docs/v3/new": page("New"), "/docs/v3/soon": stub("5; url=new"),
        "/docs/v3/slides": stub("20; url=new", "Slide one says something. " * 40),
        "/docs/v3/again": stub("0; url=/docs/v3/again", "It loads itself again and again."),
    })  # fmt: skip
    crawled = crawl(f"{site.url}/docs/latest/")
    assert outcomes(wb, crawled) == {
        "docs/latest/": "redirected", "docs/v3/": "added", "docs/v3/old": "redirected", "docs/v3/soon": "redirected",
        "docs/v3/slides": "added", "docs/v3/again": "added", "docs/v3/new": "added",
    }  # fmt: skip
    read = wb.crawls.fetch(f"{site.url}/docs/v3/old")
    assert (read.url, read.title) == (f"{site.url}/docs/v3/new", "New")
    assert wb.crawls.fetch(f"{site.url}/docs/v3/again").url == f"{site.url}/docs/v3/again"


def test_all_links_of_a_long_list_are_found() -> None:
    listed = "\n".join(f"- [Page {n}](/p{n})" for n in range(8_000))
    kind = {"content-type": "text/markdown"}
    assert len(extract_page(Response("http://h.test/llms.md", 200, kind, listed.encode())).links) == 8_000
