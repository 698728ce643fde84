"""Parts of HTML pages that the converter alone would lose, join or number wrongly."""

from __future__ import annotations

import pytest
from lxml import html

from workbench.ingestion.metadata import document_date
from workbench.ingestion.raw import RawDocument
from workbench.ingestion.readers.formats import read_bytes
from workbench.ingestion.readers.html import PART_CHARS, make_draft_from_tree, parse_page, read_html, split_element
from workbench.ingestion.text import open_reading

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


def read(page: str, name: str = "page.html") -> RawDocument:
    return read_bytes(page.encode(), name)


def test_xhtml_is_read_without_prefixes_entities_and_marks_of_data() -> None:
    page = """<?xml version="1.0"?><!DOCTYPE h:html [<!ENTITY firm "Pegel AG">]>
    <h:html xmlns:h="http://www.w3.org/1999/xhtml"><h:head><h:title>Gauge</h:title></h:head><h:body><h:h1>Head</h:h1>
    <h:p/><h:p>By &firm; &amp; sons.</h:p><![CDATA[1 < 2]]><h:table><h:tr><h:td>a</h:td></h:tr></h:table>
    </h:body></h:html>"""
    document = read(page, "gauge.xhtml")
    assert document.title == "Gauge"
    assert document.text.split("\n\n") == ["# Head", "By Pegel AG & sons.", "1 < 2", "| a |\n| --- |"]


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ('<div><img alt="Pump"><img alt="Valve"></div>', "Pump Valve"),
        ("<fieldset><legend>Way</legend>Post</fieldset>", "Way\n\nPost"),
        ("<center>One</center><center>Two</center>", "One\n\nTwo"),
        ("<select><option>Red</select><select><option>Blue</select>", "Red Blue"),
        ("<p>a <x-card>One</x-card><x-card>Two</x-card></p>", "a One Two"),
        ("<p>on<x-b>ly</x-b>, <x-c>x</x-c>y</p>", "on ly, xy"),
        ('<p>In <span style="display: block">one</span><span style="display:flex">two</span></p>', "In one two"),
        ('<p>the <img alt="O">pen gate</p>', "the Open gate"),
        ("<details><summary>Why</summary>Salt</details>Signed", "Why\n\nSalt\n\nSigned"),
    ],
)
def test_parts_that_a_page_shows_apart_do_not_join(page: str, text: str) -> None:
    assert read(f"<body>{page}</body>").text.strip() == text


@pytest.mark.parametrize(
    ("attributes", "labels"),
    [
        ("", ["1.", "12.", "13."]),
        ("start=5", ["5.", "12.", "13."]),
        ("reversed", ["3.", "12.", "11."]),
        ("type=a", ["a.", "l.", "m."]),
        ("type=I", ["I.", "XII.", "XIII."]),
        ('style="list-style-type: lower-roman"', ["i.", "xii.", "xiii."]),
        ("type=A start=28", ["AB.", "L.", "M."]),
    ],
)
def test_items_have_the_numbers_that_a_page_shows(attributes: str, labels: list[str]) -> None:
    text = read(f"<ol {attributes}><li>one</li><li value=12>two</li><li>three</li></ol>").text
    assert [line.split()[0] for line in text.splitlines()] == labels


def test_a_page_drawn_by_scripts_is_read_from_its_linked_data_or_noted() -> None:
    data = """{"@type": "FAQPage", "mainEntity": [{"@type": "Question", "name": "Who \\"sells\\" rope?",
      "acceptedAnswer": {"@type": "Answer", "text": "<p>The <b>chandler</b>.</p>"}}], "author": {"name": "Ann"}}"""
    script = "<script>draw()</script><main>Loading</main>"
    document = read(f'<script type="application/ld+json">{data}</script>{script}')
    assert document.text.split("\n\n") == ["Loading", 'Who "sells" rope?', "The **chandler**."]
    assert "left_out" not in document.metadata
    assert read(script).metadata["left_out"] == {"parts that scripts draw": 1}
    assert "left_out" not in read("<main>A short page.</main>").metadata


LINKED_ANSWERS = """<script type="application/ld+json">[{"@type": "FAQPage", "mainEntity": [
  {"@type": "Question", "name": "When does the gate open?",
   "acceptedAnswer": {"text": "<p>At six in the <b>morning</b>.</p>"}},
  {"@type": "Question", "name": "Who sells rope?", "acceptedAnswer": {"text": "The chandler on the east pier."}}]},
  {"@type": "Recipe", "name": "Fish soup", "recipeIngredient": ["two cod", "an onion"],
   "recipeInstructions": [{"@type": "HowToStep", "text": "Simmer gently."}]},]</script>"""


def test_answers_and_recipes_of_linked_data_that_a_page_lacks_follow_its_text() -> None:
    shown = "<p>When does the gate open?</p><p>At six in the morning.</p><p>Who sells rope?</p>"
    shown = f"<main><h1>Questions</h1>{shown}</main>"
    expected = ["# Questions", "When does the gate open?", "At six in the morning.", "Who sells rope?"]
    expected += ["The chandler on the east pier.", "two cod", "an onion", "Simmer gently."]
    page = parse_page(LINKED_ANSWERS + shown)
    assert page is not None
    for draft in (read(LINKED_ANSWERS + shown), make_draft_from_tree(page)):
        assert [line.strip() for line in draft.text.splitlines() if line.strip()] == expected


def test_an_answer_whose_question_is_far_above_follows_its_question() -> None:
    page = "<p>When does the gate open?</p><p>At six in the morning.</p><p>Who sells rope?</p><p>Write to us.</p>"
    assert read(LINKED_ANSWERS + page).text.split("\n\n")[4:6] == ["Who sells rope?", "The chandler on the east pier."]


def test_texts_of_linked_data_are_added_once_and_questions_without_an_answer_not() -> None:
    body = '{"@type": "%s", "articleBody": "桟橋の門は朝六時に開きます。"}'
    listed = '{"@type": "ItemList", "itemListElement": [{"name": "How do you choose pears?"}]}'
    blocks = [body % "Article", body % "NewsArticle", listed]
    scripts = "".join(f'<script type="application/ld+json">{block}</script>' for block in blocks)
    assert read(f"{scripts}<p>Apples.</p>").text == "Apples.\n\n桟橋の門は朝六時に開きます。"
    assert read(f"{scripts}<p>桟橋の<b>門</b>は朝六時に開きます。</p>").text == "桟橋の**門**は朝六時に開きます。"


def test_images_without_alternative_text_are_counted_on_websites_outside_their_margins() -> None:
    images = "<main><p>The pier.</p><img src=pier.png><img src=line.png alt=''></main>"
    images += "<img src=visit.png width=1 height=1><noscript><img src=visit.png></noscript>"
    page = parse_page(f"<header><img src=logo.png></header>{images}")
    assert page is not None
    with open_reading() as reading:
        make_draft_from_tree(page)
    assert reading.metadata == {"left_out": {"images without alternative text": 1}}


def test_labels_of_drawings_are_read_and_templates_counted() -> None:
    page = """<svg><title>Levels</title><desc>Rising since May</desc><path d="M0"/></svg><p><span role="img"
      aria-label="Five stars">★</span></p><template><p>Two words</p></template>"""
    document = read(page)
    assert " ".join(document.text.split()) == "Levels, Rising since May ★ Five stars"
    assert document.metadata["left_out"] == {"words of templates": 2}


def test_an_address_that_is_protected_against_robots_is_decoded() -> None:
    code = bytes([0x6B, *(byte ^ 0x6B for byte in b"ann@example.org")]).hex()
    assert read(f'<p>To <a data-cfemail="{code}">[email protected]</a>.</p>').text == "To ann@example.org."


def test_a_table_has_one_rule_and_escapes_the_bars_in_cells() -> None:
    rows = "<tfoot><tr><td>Sum</td><td>3</td></tr></tfoot><thead><tr><th>Gate</th><th>m</th></tr></thead>"
    rows += "<tbody><tr><td>a|b</td><td>1</td></tr></tbody><tbody><tr><td>c</td><td>2</td></tr></tbody>"
    assert read(f"<table>{rows}</table>").text.strip().splitlines() == [
        "| Gate | m |", "| --- | --- |", "| a\\|b | 1 |", "| c | 2 |", "| Sum | 3 |",
    ]  # fmt: skip


def test_a_long_table_is_read_in_parts_that_repeat_its_first_row() -> None:
    rows = "".join(f"<tr><td>{number:04}<td>{'rope ' * 30}" for number in range(1_500))
    page = f"<p>Store</p><table><caption>Parts</caption><tr><th>Part<th>What{rows}</table><p>End</p>"
    lines = [line for line in read(page, "parts.html").text.split("\n") if line]
    assert [line[2:6] for line in lines if line[2:6].isdecimal()] == [f"{number:04}" for number in range(1_500)]
    assert lines[:3] == ["Store", "Parts", "| Part | What |"] and lines[-1] == "End"
    assert lines.count("| Part | What |") == 2


def test_tasks_struck_prices_meanings_and_images_of_fast_pages_are_read() -> None:
    page = """<ul><li><input type="checkbox" checked> Oil the winch</li><li><input type="checkbox">Paint</li></ul>
      <p>Fee <strike>5</strike> 8, set by the <abbr title="Harbour Office">HO</abbr>; ask the
      <abbr title="Harbour Office">HO</abbr>.</p><amp-img alt="Crane seven" src="a.png"></amp-img>"""
    document = read(page)
    assert document.text.split("\n") == [
        "- [x] Oil the winch", "- [ ] Paint", "", "Fee ~~5~~ 8, set by the HO (Harbour Office); ask the", "HO.", "",
        "Crane seven",
    ]  # fmt: skip
    assert "left_out" not in document.metadata


def test_an_article_has_the_date_and_author_that_it_is_cited_by() -> None:
    head = '<meta name="citation_publication_date" content="2031/02/03"><meta name="citation_author" content="Ann Lee">'
    assert read(f"{head}<p>Tides.</p>").metadata == {"published": "2031/02/03", "author": "Ann Lee"}


def test_a_formula_in_a_script_is_no_drawing() -> None:
    document = read('<p>So <script type="math/tex">x^2</script> grows.</p>')
    assert document.text == "So $x^2$ grows." and "left_out" not in document.metadata


def read_file(body: str) -> RawDocument:
    return read_bytes(f"<html><head><title>T</title></head><body>{body}</body></html>".encode(), "page.html")


@pytest.mark.parametrize(
    "tasks",
    [
        "<ul class='inline-task-list'><li class='checked'>Count keys</li><li>Paint gate</li></ul>",  # Confluence
        "<ul class='to-do-list'><li><div class='checkbox checkbox-on'></div> Count keys</li></ul>"  # Notion
        "<ul class='to-do-list'><li><div class='checkbox checkbox-off'></div> Paint gate</li></ul>",
    ],
)
def test_the_state_of_tasks_that_only_a_class_names_is_read(tasks: str) -> None:
    lines = [" ".join(line.split()) for line in read_file(tasks).text.split("\n") if line.strip()]
    assert lines == ["- [x] Count keys", "- [ ] Paint gate"]


def test_links_that_edit_or_mark_a_heading_are_no_text_and_no_loss() -> None:
    edit = "<span class='mw-editsection'>[<a href='e'>edit</a>]</span>"
    document = read_file(
        f"<h2>History{edit}</h2><h2>Keys<a href='#keys'>§</a></h2><p>Brass <a href='#n'>*</a> and iron.</p>"
        "<p><span class='mw-cite-backlink'><a href='#r'>^</a></span> Berg, Keys. <a href='#r'>↩︎</a></p>"
    )
    assert document.text.split("\n\n") == ["## History", "## Keys", "Brass * and iron.", "Berg, Keys."]
    assert "left_out" not in document.metadata


def test_labels_next_to_each_other_stay_words() -> None:
    assert read_file("<p><span class='badge'>Harbour</span><span class='badge'>Keys</span></p>").text == "Harbour Keys"


@pytest.mark.parametrize(
    ("line", "day"),
    [
        ("This page was last edited on 5 March 2030, at 10:12.", "2030-03-05"),  # MediaWiki
        ("Created by <span>Ada</span>, last modified on Mar 05, 2030", "2030-03-05"),  # Confluence
        ("Last updated: 2030-03-05", "2030-03-05"),
        ("Zuletzt geändert am 05.03.2030", "2030-03-05"),
        ("The bridge was last modified in 1999.", None),
        ("The bridge was last modified on 5 March 1999 and is open.", None),
    ],
)
def test_a_page_has_the_date_of_its_last_change_that_it_names_rather_than_one_of_its_text(
    line: str, day: str | None
) -> None:
    due = "<!-- Last updated: 2001-01-01 --><script>// Last updated: 2002-01-01\n</script>"
    due += "<style>/* Last updated: 2003-01-01 */</style><p>Due on <time datetime='2031-04-01'>1 April</time>.</p>"
    found = document_date(read_file(f"<h1>Keys</h1>{due}<div>{line}</div>").metadata)
    assert str(found) == (day or "2031-04-01")


def test_a_sign_that_links_to_another_page_stays() -> None:
    text = read_file("<h1>Keys<a href='#keys'>¶</a></h1><p>See <a href='/law'>§</a> 5.</p>").text
    assert text == "# Keys\n\nSee [§](/law) 5."


def test_bars_in_a_table_with_a_list_do_not_divide_its_cells() -> None:
    rows = "<tr><th>Gate</th><th>Keys</th></tr><tr><td>East<ul><li>a | b</li></ul></td><td>c | d</td></tr>"
    assert read_file(f"<table>{rows}</table>").text.endswith("| East  - a \\| b | c \\| d |")


def test_a_charset_declared_after_long_comments_is_used() -> None:
    page = f"<html><head><!-- {'x' * 9_000} --><meta charset='euc-jp'></head><body><p>鍵</p></body></html>"
    assert read_bytes(page.encode("euc_jp"), "page.html").text == "鍵"


def test_code_in_the_storage_format_of_a_wiki_keeps_its_lines() -> None:
    code = "<ac:plain-text-body><![CDATA[def f(x: int):\n    return x < 47]]></ac:plain-text-body>"
    page = f"<html xmlns='http://www.w3.org/1999/xhtml' xmlns:ac='a'><body><ac:macro>{code}</ac:macro></body></html>"
    assert read_bytes(page.encode(), "a.html").text == "```\ndef f(x: int):\n    return x < 47\n```"


def test_the_names_of_groups_of_options_are_read() -> None:
    groups = "<optgroup label='Oars'><option>Ash<option label='Spruce'></option></optgroup><option>Other</option>"
    assert read_file(f"<p>Choose <select>{groups}</select></p>").text == "Choose Oars, Ash, Spruce, Other"
