"""Markdown as elements: markdown-it-py parses it with HTML switched off, so a tag in a document is shown as written.

No link is live and no picture is loaded: a link shows its words, with the address as its title; a picture its
description.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from urllib.parse import unquote

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markdown_it.tree import SyntaxTreeNode
from mdit_py_plugins.dollarmath import dollarmath_plugin

from workbench.app.widgets.rendered.drawn_tables import with_figures_to_the_right, with_record_tables
from workbench.app.widgets.rendered.elements import Element, Node, TextRun, shown_text
from workbench.app.widgets.rendered.formulas import formula
from workbench.app.widgets.rendered.notes import labelled_note
from workbench.app.widgets.rendered.source_places import Cursor, NotingParser, SourceLines, flat, places_of
from workbench.app.widgets.rendered.tex_brackets import tex_brackets_plugin
from workbench.types.json import JsonObject, JsonValue
from workbench.types.results import Span

# The parser's types of elements without anything of their own, by the tag that shows them.
_PLAIN = {
    "paragraph": "p", "bullet_list": "ul", "list_item": "li", "table": "table",
    "thead": "thead", "tbody": "tbody", "tr": "tr", "em": "em", "strong": "strong", "s": "s",
}  # fmt: skip
_SIDES = ("left", "right", "center")


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading of the text: its level from 1 to 6, its words, and the character where it begins."""

    level: int
    words: str
    start: int


@dataclass(frozen=True, slots=True)
class MarkdownTree:
    """A parsed text: its blocks, and its headings in order."""

    blocks: tuple[Node, ...]
    headings: tuple[Heading, ...]


def markdown_tree(text: str, *, has_indented_code: bool = True, has_records: bool = False) -> MarkdownTree:
    """Parse Markdown with tables, formulas, struck words and the notes of GitHub; line ends are newlines.

    Formulas stand between dollars, or between TeX's \\( and \\) or \\[ and \\].

    Where four blanks before a line mean no code, as in a plain text, ``has_indented_code`` is false. Where rows of a
    sheet may stand as "name: value" lines, ``has_records`` makes tables of them.
    """
    root = SyntaxTreeNode(_parser(has_indented_code).parse(text))
    reading = _Reading(SourceLines(text))
    blocks = tuple(reading.block(node) for node in root.children)
    return MarkdownTree(with_record_tables(blocks) if has_records else blocks, tuple(reading.headings))


@cache
def _parser(has_indented_code: bool) -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False})
    parser.inline = NotingParser()
    parser.enable(["table", "strikethrough"]).disable("text_join")  # joined, an escaped sign lost its place
    if not has_indented_code:
        parser.disable("code")
    parser.use(dollarmath_plugin, allow_space=False, allow_digits=False, double_inline=True)
    return parser.use(tex_brackets_plugin)


class _Reading:
    """Turns one parsed text into elements, in the text's order, and collects its headings."""

    def __init__(self, lines: SourceLines) -> None:
        self.lines = lines
        self.headings: list[Heading] = []

    def block(self, node: SyntaxTreeNode) -> Node:
        """Return the element of a block."""
        if node.type in ("fence", "code_block"):
            return self._code(node)
        if node.type in ("math_block", "math_block_label"):
            return formula(node.content, self._span(node), is_block=True)
        if node.type == "hr":
            return Element("hr")
        if node.type == "heading":
            return self._heading(node)
        children = self._children(node)
        if node.type == "ordered_list":
            return Element("ol", children, {"start": int(node.attrs.get("start", 1))})
        if node.type in ("th", "td"):
            return Element(node.type, children, _side(node))
        if node.type == "blockquote":
            return Element("blockquote", labelled_note(children))
        tag = _PLAIN.get(node.type)
        if tag is None:  # a type this reader does not know stays as it was written
            start, end = self._span(node)
            return Element("p", (TextRun(self.lines.text[start:end], start, end),))
        if node.type == "paragraph" and node.hidden:
            return Element("span", children)
        element = Element(tag, children)
        return with_figures_to_the_right(element) if tag == "table" else element

    def _children(self, node: SyntaxTreeNode) -> tuple[Node, ...]:
        if len(node.children) == 1 and node.children[0].type == "inline":
            return self._inline(node.children[0])
        return tuple(self.block(child) for child in node.children)

    def _heading(self, node: SyntaxTreeNode) -> Element:
        children, level = self._children(node), int(node.tag[1])
        self.headings.append(Heading(level, " ".join(shown_text(children).split()), self._span(node)[0]))
        return Element(f"h{level}", children, {"level": level, "number": len(self.headings) - 1})

    def _code(self, node: SyntaxTreeNode) -> Element:
        first = node.map[0] if node.map else 0
        runs = self.lines.runs(node.content, first + (node.type == "fence"))
        language = node.info.split()[0] if node.info.strip() else ""
        attributes: JsonObject = {"dir": "ltr"}
        return Element("pre", (Element("code", runs),), attributes | ({"title": language} if language else {}))

    def _span(self, node: SyntaxTreeNode) -> Span:
        return self.lines.span(*node.map) if node.map else (0, 0)

    def _inline(self, node: SyntaxTreeNode) -> tuple[Node, ...]:
        token = node.token
        cursor = Cursor(places_of(self.lines, token) if token else None, self._span(node))
        return _inlines(node.children, cursor)


def _inlines(nodes: Sequence[SyntaxTreeNode], cursor: Cursor) -> tuple[Node, ...]:
    return tuple(made for node in nodes if (made := _one_inline(node, cursor)) is not None)


def _one_inline(node: SyntaxTreeNode, cursor: Cursor) -> Node | None:
    if node.type == "softbreak":
        return TextRun("\n", 0, 0)
    if node.type == "hardbreak":
        return Element("br")
    if node.type == "link":
        return Element("span", _inlines(node.children, cursor), {"class": "link", "title": _address(node)})
    if node.type in _PLAIN:
        return Element(_PLAIN[node.type], _inlines(node.children, cursor))
    token = node.token
    if token is None:
        return None
    if node.type == "text":
        return cursor.run(token, token.content, token.content) if token.content else None
    if node.type == "text_special":
        return cursor.run(token, token.content, token.markup)
    if node.type == "code_inline":
        return Element("code", (cursor.run(token, token.content, token.content),), {"dir": "ltr"})
    if node.type == "image":
        return _picture(token, node, cursor)
    if node.type in ("math_inline", "math_inline_double"):
        run = cursor.run(token, token.content, token.content)
        return formula(token.content, (run.start, run.end), is_block=node.type == "math_inline_double")
    return cursor.run(token, token.content, token.content)


def _picture(token: Token, node: SyntaxTreeNode, cursor: Cursor) -> Element:
    run = cursor.run(token, token.content, token.content)
    words = flat(token.children or []) or "without a description"
    title = f"Picture, not loaded: {_address(node, 'src')}"
    return Element("span", (TextRun(words, run.start, run.end),), {"class": "picture", "title": title})


def _address(node: SyntaxTreeNode, name: str = "href") -> str:
    return unquote(str(node.attrs.get(name, "")))[:500]


def _side(node: SyntaxTreeNode) -> dict[str, JsonValue]:
    side = str(node.attrs.get("style", "")).removeprefix("text-align:")
    return {"align": side} if side in _SIDES else {}
