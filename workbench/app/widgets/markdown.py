"""Markdown as elements: markdown-it-py parses it with HTML switched off, so a tag in a document is shown as written.

No link is live and no picture is loaded: a link shows its words, with the address as its title; a picture its
description.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from html import unescape
from typing import TYPE_CHECKING
from urllib.parse import unquote

from markdown_it import MarkdownIt
from markdown_it.ruler import RuleOptionsType
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markdown_it.tree import SyntaxTreeNode
from mdit_py_plugins.dollarmath import dollarmath_plugin

from workbench.app.widgets.elements import Element, Node, TextRun, shown_text
from workbench.app.widgets.source_places import Cursor, NotingParser, SourceLines, flat, places_of
from workbench.app.widgets.tables import with_figures_to_the_right, with_record_tables
from workbench.types.json import JsonObject, JsonValue
from workbench.types.results import Span

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element as XmlElement

# --- Formulas as MathML, which browsers draw themselves; a formula that cannot be converted stands as it was ---

LONGEST = 2_000  # characters: the converter takes a formula apart by recursion
# fmt: off
TAGS = frozenset((
    "mrow", "mi", "mn", "mo", "ms", "mtext", "mspace", "mfrac", "msqrt", "mroot", "msub", "msup", "msubsup", "munder",
    "mover", "munderover", "mtable", "mtr", "mtd", "mstyle", "mpadded", "mphantom", "menclose", "mmultiscripts",
    "mprescripts", "none",
))
_ATTRIBUTES = frozenset((
    "stretchy", "fence", "form", "largeop", "movablelimits", "linethickness", "columnalign", "width",
))
# fmt: on
_ENVIRONMENTS = {"aligned": "split"}  # those that the converter does not know, as ones it does
_PLAIN_VALUE = frozenset("0123456789abcdefghijklmnopqrstuvwxyz.- ")


def formula(written: str, span: Span, *, is_block: bool) -> Element:
    """Return a formula of TeX, marked as a whole."""
    math = _math(written.strip(), is_block)
    kind = "formula block" if is_block else "formula"
    if math is None:
        return Element("code", (TextRun(written.strip(), *span),), {"class": kind, "dir": "ltr"})
    return Element("span", (math,), {"class": kind, "title": written.strip(), "dir": "ltr"}, span)


@lru_cache(maxsize=512)
def _math(written: str, is_block: bool) -> Element | None:
    """Return the MathML of TeX; None where the converter fails or leaves a command or a column of TeX as a word."""
    if len(written) > LONGEST or not written:
        return None
    from latex2mathml.converter import convert_to_element

    for name, known in _ENVIRONMENTS.items():
        written = written.replace(f"{{{name}}}", f"{{{known}}}")
    try:
        root = convert_to_element(written, display="block" if is_block else "inline")
        children = tuple(_element(child) for child in root)
    except Exception:  # noqa: BLE001 - a parser of foreign text fails in any way it likes
        return None
    if any("\\" in text or text == "&" for child in root.iter() for text in (child.text or "",)):
        return None
    return Element("math", children, {"display": "block" if is_block else "inline"})


def _element(xml: XmlElement) -> Element:
    """Return a part of a formula; of its attributes only those that load and style nothing."""
    if xml.tag not in TAGS:
        raise ValueError(f"'{xml.tag}' is no part of a formula.")
    words: tuple[Node, ...] = (TextRun(unescape(xml.text), 0, 0),) if xml.text else ()
    attributes = {
        name: value for name, value in xml.attrib.items() if name in _ATTRIBUTES and set(value) <= _PLAIN_VALUE
    }
    return Element(xml.tag, (*words, *(_element(child) for child in xml)), attributes)


# --- The notes of GitHub's Markdown: a quotation that begins with [!NOTE] or [!WARNING], shown with its label ---

_LABEL = re.compile(r"\[!(note|tip|important|warning|caution)\]\s*", re.IGNORECASE)


def labelled_note(children: tuple[Node, ...]) -> tuple[Node, ...]:
    """Return what is in a quotation, with the mark of a note turned into its label in bold; others as they are."""
    first = children[0] if children else None
    if not isinstance(first, Element) or first.tag != "p":
        return children
    mark: list[TextRun] = []
    for node in first.children:
        if not isinstance(node, TextRun) or node.text == "\n":
            break
        mark.append(node)
    match = _LABEL.fullmatch("".join(run.text for run in mark))
    if match is None:
        return children
    label = Element("strong", (TextRun(match[1].capitalize(), mark[0].start, mark[-1].end),))
    rest = first.children[len(mark) + 1 :]
    return (Element("p", (label, Element("br"), *rest) if rest else (label,)), *children[1:])


# --- Formulas between TeX's own brackets: ``\( … \)`` among words, and ``\[ … \]`` on lines of their own ---

_AMONG_WORDS = re.compile(r"\\\(((?:[^\n]|\n(?!\s*\n))+?)\\\)")
_ON_LINES = re.compile(r"\\\[(.*)\\\]\s*", re.DOTALL)
_LIKE_MATHEMATICS = re.compile(r"[\\^_=<>+*/]|^\s*\w\s*$")
_LONGEST = 60  # lines of a formula


def tex_brackets_plugin(parser: MarkdownIt) -> None:
    """Let a parser know the brackets; its tokens are ``math_inline`` and ``math_block``, as for dollars."""
    parser.inline.ruler.before("escape", "tex_brackets", _among_words)
    interrupts: RuleOptionsType = {"alt": ["paragraph", "reference", "blockquote", "list"]}
    parser.block.ruler.before("fence", "tex_brackets_block", _on_lines, interrupts)


def _among_words(state: StateInline, silent: bool) -> bool:
    match = _AMONG_WORDS.match(state.src, state.pos, state.posMax)
    if match is None or not _LIKE_MATHEMATICS.search(match[1]):
        return False
    if not silent:
        token = state.push("math_inline", "math", 0)
        token.content, token.markup = match[1], r"\("
    state.pos = match.end()
    return True


def _on_lines(state: StateBlock, first: int, last: int, silent: bool) -> bool:
    start = state.bMarks[first] + state.tShift[first]
    if state.is_code_block(first) or not state.src.startswith(r"\[", start):
        return False
    for line in range(first, min(last, first + _LONGEST)):
        if state.isEmpty(line) or state.sCount[line] < state.blkIndent:
            return False
        if state.src[state.bMarks[line] : state.eMarks[line]].rstrip().endswith(r"\]"):
            return _block(state, first, line + 1, silent)
    return False


def _block(state: StateBlock, first: int, after: int, silent: bool) -> bool:
    match = _ON_LINES.fullmatch(state.getLines(first, after, state.blkIndent, False).strip())
    if match is None or r"\]" in match[1] or not re.search(r"[\\^_=]", match[1]):
        return False
    if not silent:
        token = state.push("math_block", "math", 0)
        token.content, token.markup, token.map = match[1].strip(), r"\[", [first, after]
        token.block = True
        state.line = after
    return True


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
