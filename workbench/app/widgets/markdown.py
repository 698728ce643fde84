"""Markdown as elements, parsed by markdown-it-py with HTML turned off, so that tags are shown as text.

Links and images are not active: a link is its text with the URL as title, an image its alt text.
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

from workbench.app.widgets.elements import Element, Node, TextRun, plain_text
from workbench.app.widgets.source_places import RecordingParser, SourceLines, TokenCursor, flatten_tokens, map_content
from workbench.app.widgets.tables import align_figures, convert_records
from workbench.types import JsonObject, JsonValue, Span

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element as XmlElement

# Formulas as MathML

MAX_FORMULA_CHARS = 2_000  # characters, because the converter is recursive
# fmt: off
MATH_TAGS = frozenset((
    "mrow", "mi", "mn", "mo", "ms", "mtext", "mspace", "mfrac", "msqrt", "mroot", "msub", "msup", "msubsup", "munder",
    "mover", "munderover", "mtable", "mtr", "mtd", "mstyle", "mpadded", "mphantom", "menclose", "mmultiscripts",
    "mprescripts", "none",
))
_MATH_ATTRIBUTES = frozenset((
    "stretchy", "fence", "form", "largeop", "movablelimits", "linethickness", "columnalign", "width",
))
# fmt: on
_ENVIRONMENT_ALIASES = {"aligned": "split"}  # unsupported by the converter -> supported equivalent
_ATTRIBUTE_CHARS = frozenset("0123456789abcdefghijklmnopqrstuvwxyz.- ")


def render_formula(written: str, span: Span, *, is_block: bool) -> Element:
    """Return a TeX formula as MathML, or as code if conversion fails."""
    math = _convert_math(written.strip(), is_block)
    kind = "formula block" if is_block else "formula"
    if math is None:
        return Element("code", (TextRun(written.strip(), *span),), {"class": kind, "dir": "ltr"})
    return Element("span", (math,), {"class": kind, "title": written.strip(), "dir": "ltr"}, span)


@lru_cache(maxsize=512)
def _convert_math(written: str, is_block: bool) -> Element | None:
    """Return TeX as MathML; None if the conversion fails or leaves a TeX command in the text."""
    if len(written) > MAX_FORMULA_CHARS or not written:
        return None
    from latex2mathml.converter import convert_to_element

    for name, known in _ENVIRONMENT_ALIASES.items():
        written = written.replace(f"{{{name}}}", f"{{{known}}}")
    try:
        root = convert_to_element(written, display="block" if is_block else "inline")
        children = tuple(_convert_element(child) for child in root)
    except Exception:  # noqa: BLE001 - the parser may raise anything
        return None
    if any("\\" in text or text == "&" for child in root.iter() for text in (child.text or "",)):
        return None
    return Element("math", children, {"display": "block" if is_block else "inline"})


def _convert_element(xml: XmlElement) -> Element:
    """Return a part of a formula, with only attributes that load and style nothing."""
    if xml.tag not in MATH_TAGS:
        raise ValueError(f"Unexpected element '{xml.tag}' in a formula.")
    words: tuple[Node, ...] = (TextRun(unescape(xml.text), 0, 0),) if xml.text else ()
    attributes = {
        name: value for name, value in xml.attrib.items() if name in _MATH_ATTRIBUTES and set(value) <= _ATTRIBUTE_CHARS
    }
    return Element(xml.tag, (*words, *(_convert_element(child) for child in xml)), attributes)


# GitHub alerts such as [!NOTE]

_ALERT_PATTERN = re.compile(r"\[!(note|tip|important|warning|caution)\]\s*", re.IGNORECASE)


def label_alert(children: tuple[Node, ...]) -> tuple[Node, ...]:
    """Return the content of a block quote, with an alert marker replaced by a bold label."""
    first = children[0] if children else None
    if not isinstance(first, Element) or first.tag != "p":
        return children
    mark: list[TextRun] = []
    for node in first.children:
        if not isinstance(node, TextRun) or node.text == "\n":
            break
        mark.append(node)
    match = _ALERT_PATTERN.fullmatch("".join(run.text for run in mark))
    if match is None:
        return children
    label = Element("strong", (TextRun(match[1].capitalize(), mark[0].start, mark[-1].end),))
    rest = first.children[len(mark) + 1 :]
    return (Element("p", (label, Element("br"), *rest) if rest else (label,)), *children[1:])


# Formulas in TeX brackets: \( … \) inline and \[ … \] as blocks

_INLINE_MATH_PATTERN = re.compile(r"\\\(((?:[^\n]|\n(?!\s*\n))+?)\\\)")
_BLOCK_MATH_PATTERN = re.compile(r"\\\[(.*)\\\]\s*", re.DOTALL)
_MATH_HINT_PATTERN = re.compile(r"[\\^_=<>+*/]|^\s*\w\s*$")
_MAX_FORMULA_LINES = 60  # lines of a formula


def add_tex_brackets(parser: MarkdownIt) -> None:
    """Add the brackets to a parser; tokens are ``math_inline`` and ``math_block``, as for dollars."""
    parser.inline.ruler.before("escape", "tex_brackets", _parse_inline_math)
    interrupts: RuleOptionsType = {"alt": ["paragraph", "reference", "blockquote", "list"]}
    parser.block.ruler.before("fence", "tex_brackets_block", _parse_block_math, interrupts)


def _parse_inline_math(state: StateInline, silent: bool) -> bool:
    match = _INLINE_MATH_PATTERN.match(state.src, state.pos, state.posMax)
    if match is None or not _MATH_HINT_PATTERN.search(match[1]):
        return False
    if not silent:
        token = state.push("math_inline", "math", 0)
        token.content, token.markup = match[1], r"\("
    state.pos = match.end()
    return True


def _parse_block_math(state: StateBlock, first: int, last: int, silent: bool) -> bool:
    start = state.bMarks[first] + state.tShift[first]
    if state.is_code_block(first) or not state.src.startswith(r"\[", start):
        return False
    for line in range(first, min(last, first + _MAX_FORMULA_LINES)):
        if state.isEmpty(line) or state.sCount[line] < state.blkIndent:
            return False
        if state.src[state.bMarks[line] : state.eMarks[line]].rstrip().endswith(r"\]"):
            return _push_block(state, first, line + 1, silent)
    return False


def _push_block(state: StateBlock, first: int, after: int, silent: bool) -> bool:
    match = _BLOCK_MATH_PATTERN.fullmatch(state.getLines(first, after, state.blkIndent, False).strip())
    if match is None or r"\]" in match[1] or not re.search(r"[\\^_=]", match[1]):
        return False
    if not silent:
        token = state.push("math_block", "math", 0)
        token.content, token.markup, token.map = match[1].strip(), r"\[", [first, after]
        token.block = True
        state.line = after
    return True


# Tags of token types that need no further handling.
_PLAIN_TAGS = {
    "paragraph": "p", "bullet_list": "ul", "list_item": "li", "table": "table",
    "thead": "thead", "tbody": "tbody", "tr": "tr", "em": "em", "strong": "strong", "s": "s",
}  # fmt: skip
_ALIGNMENTS = ("left", "right", "center")


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading: its level from 1 to 6, its text, and its start in characters."""

    level: int
    words: str
    start: int


@dataclass(frozen=True, slots=True)
class MarkdownTree:
    """A parsed text: its blocks and its headings, in order."""

    blocks: tuple[Node, ...]
    headings: tuple[Heading, ...]


def parse_markdown(text: str, *, has_indented_code: bool = True, has_records: bool = False) -> MarkdownTree:
    """Parse Markdown with tables, formulas (in dollars or TeX brackets), strikethrough and GitHub alerts.

    Args:
        text: The text, with newlines as line ends.
        has_indented_code: False if indented lines are not code, as in plain text.
        has_records: True to convert "name: value" lines of a sheet to tables.
    """
    root = SyntaxTreeNode(_make_parser(has_indented_code).parse(text))
    reading = _TreeBuilder(SourceLines(text))
    blocks = tuple(reading.block(node) for node in root.children)
    return MarkdownTree(convert_records(blocks) if has_records else blocks, tuple(reading.headings))


@cache
def _make_parser(has_indented_code: bool) -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False})
    parser.inline = RecordingParser()
    parser.enable(["table", "strikethrough"]).disable("text_join")  # joining loses the position of escaped characters
    if not has_indented_code:
        parser.disable("code")
    parser.use(dollarmath_plugin, allow_space=False, allow_digits=False, double_inline=True)
    return parser.use(add_tex_brackets)


class _TreeBuilder:
    """Converts a parsed text to elements and collects its headings."""

    def __init__(self, lines: SourceLines) -> None:
        self.lines = lines
        self.headings: list[Heading] = []

    def block(self, node: SyntaxTreeNode) -> Node:
        """Return the element of a block."""
        if node.type in ("fence", "code_block"):
            return self._code(node)
        if node.type in ("math_block", "math_block_label"):
            return render_formula(node.content, self._span(node), is_block=True)
        if node.type == "hr":
            return Element("hr")
        if node.type == "heading":
            return self._heading(node)
        children = self._children(node)
        if node.type == "ordered_list":
            return Element("ol", children, {"start": int(node.attrs.get("start", 1))})
        if node.type in ("th", "td"):
            return Element(node.type, children, _read_alignment(node))
        if node.type == "blockquote":
            return Element("blockquote", label_alert(children))
        tag = _PLAIN_TAGS.get(node.type)
        if tag is None:  # unknown types are shown as written
            start, end = self._span(node)
            return Element("p", (TextRun(self.lines.text[start:end], start, end),))
        if node.type == "paragraph" and node.hidden:
            return Element("span", children)
        element = Element(tag, children)
        return align_figures(element) if tag == "table" else element

    def _children(self, node: SyntaxTreeNode) -> tuple[Node, ...]:
        if len(node.children) == 1 and node.children[0].type == "inline":
            return self._inline(node.children[0])
        return tuple(self.block(child) for child in node.children)

    def _heading(self, node: SyntaxTreeNode) -> Element:
        children, level = self._children(node), int(node.tag[1])
        self.headings.append(Heading(level, " ".join(plain_text(children).split()), self._span(node)[0]))
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
        cursor = TokenCursor(map_content(self.lines, token) if token else None, self._span(node))
        return _convert_inlines(node.children, cursor)


def _convert_inlines(nodes: Sequence[SyntaxTreeNode], cursor: TokenCursor) -> tuple[Node, ...]:
    return tuple(made for node in nodes if (made := _convert_inline(node, cursor)) is not None)


def _convert_inline(node: SyntaxTreeNode, cursor: TokenCursor) -> Node | None:
    if node.type == "softbreak":
        return TextRun("\n", 0, 0)
    if node.type == "hardbreak":
        return Element("br")
    if node.type == "link":
        return Element("span", _convert_inlines(node.children, cursor), {"class": "link", "title": _read_url(node)})
    if node.type in _PLAIN_TAGS:
        return Element(_PLAIN_TAGS[node.type], _convert_inlines(node.children, cursor))
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
        return _convert_image(token, node, cursor)
    if node.type in ("math_inline", "math_inline_double"):
        run = cursor.run(token, token.content, token.content)
        return render_formula(token.content, (run.start, run.end), is_block=node.type == "math_inline_double")
    return cursor.run(token, token.content, token.content)


def _convert_image(token: Token, node: SyntaxTreeNode, cursor: TokenCursor) -> Element:
    run = cursor.run(token, token.content, token.content)
    words = flatten_tokens(token.children or []) or "no description"
    title = f"Image (not loaded): {_read_url(node, 'src')}"
    return Element("span", (TextRun(words, run.start, run.end),), {"class": "picture", "title": title})


def _read_url(node: SyntaxTreeNode, name: str = "href") -> str:
    return unquote(str(node.attrs.get(name, "")))[:500]


def _read_alignment(node: SyntaxTreeNode) -> dict[str, JsonValue]:
    side = str(node.attrs.get("style", "")).removeprefix("text-align:")
    return {"align": side} if side in _ALIGNMENTS else {}
