"""Markdown as elements: every piece has its position in the text, and nothing in a document is active."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from workbench.app.widgets.elements import Element, Node, TextRun, plain_text, to_json
from workbench.app.widgets.markdown import MATH_TAGS as FORMULA_TAGS
from workbench.app.widgets.markdown import parse_markdown
from workbench.app.widgets.reader import RAW, RENDERED, build_reader_data, choose_form
from workbench.app.widgets.source_places import TintedText, choose_part
from workbench.types import Document, JsonValue

ARTICLES = sorted((Path(__file__).parents[2] / "workbench" / "sample" / "articles").rglob("*.md"))
# fmt: off
TAGS = FORMULA_TAGS | {
    "p", "ul", "ol", "li", "blockquote", "pre", "code", "table", "thead", "tbody", "tr", "th", "td", "em", "strong",
    "s", "br", "hr", "span", "math", "h1", "h2", "h3", "h4", "h5", "h6",
}
# fmt: on
SIGNS = "ab *_`[]()<>!|#-\n\n\\$&;:~>1."


def elements(nodes: Sequence[Node]) -> Iterator[Element]:
    for node in nodes:
        if isinstance(node, Element):
            yield node
            yield from elements(node.children)


def runs(nodes: Sequence[Node]) -> Iterator[TextRun]:
    for node in nodes:
        if isinstance(node, TextRun):
            yield node
        else:
            yield from runs(node.children)


def marked(text: str, quote: str) -> str:
    """Return the words marked as found if the passage is a quotation."""
    start = text.index(quote)
    place = (start, start + len(quote))
    tints = TintedText(text, [place], place)

    def found(parts: Sequence[JsonValue]) -> str:
        return "".join(
            str(part["text"]) if "text" in part and part["kind"] == "found" else found(part.get("in", ()))
            for part in parts
            if isinstance(part, dict)
        )

    return found(to_json(parse_markdown(text).blocks, tints.pieces, tints.whole))


@pytest.mark.parametrize("path", ARTICLES, ids=lambda path: path.stem)
def test_every_stretch_of_an_article_is_where_it_claims(path: Path) -> None:
    text = path.read_text()
    at = 0
    for run in runs(parse_markdown(text).blocks):
        if run.start < run.end:
            assert run.start >= at
            at = run.end
            if run.is_exact:
                assert text[run.start : run.end].replace("\n", " ") == run.text.replace("\n", " ")


@given(st.text(SIGNS, max_size=80))
@example("a **b** c\n> d `e\n> f` g")
@example("| a | b\\|c |\n|---|---|\n| 1 | 1 |")
@example("- [a](b)b <http://c> \\* &amp;")
@example("a\n\\[ x^2\n\\] b\n> \\[\n> y=1 \\]\n\n\\(z_1\\) \\(z")
@example("> [!note]\n> *a*\n\n> [!TIP] b")
def test_any_text_is_rendered_with_places_inside_it_and_known_tags(text: str) -> None:
    tree = parse_markdown(text)
    for run in runs(tree.blocks):
        assert 0 <= run.start <= run.end <= len(text)
    assert {element.tag for element in elements(tree.blocks)} <= TAGS


@pytest.mark.parametrize(
    ("text", "quote", "shown"),
    [
        ("One **bold word** here.", "bold word", "bold word"),
        ("a **b** a **b** a", "b** a **b", "b a b"),
        ("See [the gauge](gauge.md)gauge.", ")gauge.", "gauge."),
        ("> quoted\n> lines *of* two", "lines *of", "lines of"),
        ("| n | n |\n|---|---|\n| n | x n |\n", "x n", "x n"),
        ("- one\n\n  ```\n  def f():\n      pass\n  ```\n", "pass", "pass"),
        ("A \\* star &amp; more", "star &amp; m", "star & m"),
        ("`code\nover lines` and on", "over lines` and", "over lines and"),
        ("# Title *of* it #\n\nText", "of* it", "of it"),
        ("Title\n=====\n\nText", "Title\n=====", "Title"),
    ],
)
def test_a_quotation_is_marked_to_the_letter(text: str, quote: str, shown: str) -> None:
    assert marked(text, quote) == shown


def test_html_is_shown_as_written_and_no_address_is_an_attribute_that_loads() -> None:
    text = (
        '<img src="http://x/a.png"> <script>alert(1)</script>\n\n<div onclick="x">\n\n'
        "[a](javascript:alert(1)) [b](http://x/b) ![c](http://x/c.png) <http://x/d> $\\href{http://x/e}{y}$ "
        "$\\style{background:url(http://x/f)}{z}$"
    )
    blocks = parse_markdown(text).blocks
    assert plain_text(blocks[:1]) == '<img src="http://x/a.png"> <script>alert(1)</script>'
    attributes = {name for element in elements(blocks) for name in element.attributes}
    assert attributes <= {"class", "title", "dir", "display", "stretchy"}
    links = [element for element in elements(blocks) if element.attributes.get("class") == "link"]
    assert [link.attributes["title"] for link in links] == ["http://x/b", "http://x/d"]
    assert [plain_text([one]) for one in elements(blocks) if one.attributes.get("class") == "picture"] == ["c"]


def test_a_formula_is_drawn_and_a_broken_one_is_as_written() -> None:
    [whole, broken, prices] = parse_markdown("$\\frac{a}{b}$\n\n$\\nonsense{a}$\n\nIt costs $5 or $6.").blocks
    assert [one.tag for one in elements([whole])][-5:] == ["mfrac", "mrow", "mi", "mrow", "mi"]
    assert plain_text([broken]) == "\\nonsense{a}" and [one.tag for one in elements([broken])] == ["p", "code"]
    assert plain_text([prices]) == "It costs $5 or $6."


def test_formulas_between_the_brackets_of_tex_are_drawn_and_lists_of_works_are_none() -> None:
    text = "\\[\n\\begin{aligned}\na &= b \\\\\nc &= d\n\\end{aligned}\n\\]\n\nWhere \\(a_1\\) is \\(see below\\).\n"
    display, words = parse_markdown(text).blocks
    assert [one.tag for one in elements([display])].count("mtr") == 2 and "&" not in plain_text([display])
    assert isinstance(display, Element) and display.span == (0, text.index("\n\nWhere"))
    assert [one.tag for one in elements([words])] == ["p", "span", "math", "mrow", "msub", "mi", "mn"]
    assert plain_text([words]) == "Where a1 is (see below)."
    assert marked(text, "see below") == "see below"
    works = "\\[1\\] Smith, A.\n\n\\[2\\]\n\n\\[ x = 1 \\] and more"
    assert [plain_text([one]) for one in parse_markdown(works).blocks] == ["[1] Smith, A.", "[2]", "[ x = 1 ] and more"]
    unknown = parse_markdown("$$\\begin{gathered}a &= b\\end{gathered}$$").blocks
    assert [one.tag for one in elements(unknown)][-1] == "code"  # as written, not with a stray sign in it


def test_a_note_of_github_has_its_label_and_another_quotation_none() -> None:
    text = "> [!NOTE]\n> The gauge *drifts*.\n\n> It said [!NOTE] once."
    note, quotation = parse_markdown(text).blocks
    assert [one.tag for one in elements([note])] == ["blockquote", "p", "strong", "br", "em"]
    assert plain_text([note]) == "NoteThe gauge drifts."
    assert marked(text, "gauge *drifts") == "gauge drifts"
    assert plain_text([quotation]) == "It said [!NOTE] once."


def test_headings_are_listed_with_their_levels_and_places() -> None:
    text = "# One *a*\n\n> ## Two\n\n```\n# none\n```\n\nThree\n-----\n"
    assert [(one.level, one.words, text[one.start :][:3]) for one in parse_markdown(text).headings] == [
        (1, "One a", "# O"), (2, "Two", "> #"), (2, "Three", "Thr"),
    ]  # fmt: skip


def test_a_long_text_is_cut_at_blocks_and_its_parts_are_the_whole() -> None:
    text = "".join(f"## {n}\n\n```\n# no heading\n\nx = {n}\n```\n\nWords of {n}.\n\n" for n in range(300))
    start, parts = 0, []
    while start < len(text):
        start, end = choose_part(text, start, None, size=1000)
        parts.append(text[start:end])
        start = end
    assert "".join(parts) == text and len(parts) > 5
    words = [[heading.words for heading in parse_markdown(part).headings] for part in parts]
    assert [word for part in words for word in part] == [str(n) for n in range(300)]  # no part starts in code


def test_the_part_around_a_place_holds_it_and_a_short_text_is_whole() -> None:
    text = "".join(f"Line {n} of the log.\n" for n in range(3000))
    at = text.index("Line 2000")
    start, end = choose_part(text, None, (at, at + 30), size=2000)
    assert start <= at < at + 30 <= end and end - start <= 4000 and text[start - 1] == "\n"
    assert choose_part(text[:3000], 2000, None, size=2000) == (0, 3000)
    assert choose_part("x" * 9000, None, (5000, 5001), size=2000)[0] == 4000


def test_a_document_is_rendered_by_its_type_and_in_the_requested_form() -> None:
    assert [choose_form(kind, "") for kind in ("markdown", "html", "text", "pdf", "code")] == [
        RENDERED,
        RENDERED,
        RAW,
        RENDERED,  # a report's tables are tables
        RAW,
    ]
    assert [choose_form(kind, RENDERED) for kind in ("text", "code")] == [RENDERED, RAW]
    document = Document("d", "s", "T", document_type="markdown", text="# A\n\nb **c**")
    assert json.loads(json.dumps(build_reader_data(document, [], (5, 6), None)))["blocks"][1]["in"][0] == {
        "text": "b", "kind": "found", "passage": None,
    }  # fmt: skip
    raw = build_reader_data(document, [], None, None, form=RAW)
    assert raw["stretches"] == [{"text": document.text, "passage": None, "kind": "bare"}] and "blocks" not in raw
