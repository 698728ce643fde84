"""Code in HTML before it becomes Markdown: its lines and indentation, without line numbers and copy buttons."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lxml.html import HtmlElement

LINE_TAGS = frozenset(("div", "li", "p", "tr"))
LINE_CLASS = re.compile(r"(?:^|[\s_-])lines?(?:$|[\s_])|token-line|code-line|ec-line", re.IGNORECASE)
NUMBER_CLASS = re.compile(
    r"(?:^|\s|-)(?:gutter|linenos?|linenodiv|line-?numbers?|line-?num|ln|lnt|blob-num|rouge-gutter|gl)(?:$|\s|-)",
    re.IGNORECASE,
)
NUMBERS = re.compile(r"[\s\d.:|]*")
CODE_CLASS = re.compile(r"(?:^|\s|-)(?:code|blob-code)(?:$|\s|-)", re.IGNORECASE)
PREFORMATTED = re.compile(r"white-space\s*:\s*pre(?![\w-])", re.IGNORECASE)
MONOSPACE = re.compile(r"font-family\s*:[^;]*(?:mono|courier|consolas|menlo)", re.IGNORECASE)
INVISIBLE = str.maketrans({"\u00a0": " ", "\u200b": None, "\u00ad": None, "\ufeff": None, "\u2060": None})
LANGUAGE = re.compile(r"(?:^|\s)(?:language-|lang-|highlight-source-|highlight-)([\w+#.-]+)")
BACKTICKS = re.compile(r"`+")


def straighten_code(root: HtmlElement) -> None:
    """Give every block of code in a tree the form <pre><code>text</code></pre>; change inline code to its letters."""
    for block in [each for each in root.iter("div", "span") if _is_preformatted(each)]:
        block.tag = "pre"
    for table in list(root.iter("table")):
        _unfold_table(table)
    for block in [block for block in root.iter("pre") if block.find(".//pre") is not None]:
        block.drop_tag()  # a frame around a code block, which would become a fence around a fence
    for block in list(root.iter("pre")):
        _set_text(block, _lines_of(block))
    for code in root.iter("code", "kbd", "samp"):
        for mark in list(code.iter("wbr")):
            mark.drop_tag()
        for part in code.iter():
            part.text = part.text and part.text.translate(INVISIBLE)
            if part is not code:
                part.tail = part.tail and part.tail.translate(INVISIBLE)


def _is_preformatted(element: HtmlElement) -> bool:
    style = element.get("style", "")
    return bool(style) and bool(PREFORMATTED.search(style) and MONOSPACE.search(style))


def _unfold_table(table: HtmlElement) -> None:
    """Replace a table that sets code beside its line numbers by the code."""
    if table.getparent() is None:
        return
    rows = [list(row.iterchildren("td", "th")) for row in table.iter("tr")]
    rows = [row for row in rows if row]
    if not rows or not all(_is_numbered(row) for row in rows):
        return
    blocks = [row[-1].find(".//pre") for row in rows]
    if len(rows) == 1 and blocks[0] is not None:
        text, source = _lines_of(blocks[0]), blocks[0]
    else:
        text, source = "\n".join(_lines_of(row[-1]).strip("\n") for row in rows), rows[0][-1]
    language = _language(source)
    table.tag = "pre"
    if language:
        table.set("class", f"language-{language}")
    _set_text(table, text)


def _is_numbered(cells: list[HtmlElement]) -> bool:
    """Return whether a row is a line number, or all of them, and code."""
    numbers, code = cells[:-1], cells[-1]
    if not numbers or not all(NUMBERS.fullmatch("".join(cell.itertext())) for cell in numbers):
        return False
    marked = any(
        NUMBER_CLASS.search(part.get("class", "")) or "data-line-number" in part.attrib
        for cell in numbers
        for part in cell.iter()
        if isinstance(part.tag, str)
    )
    has_code = code.find(".//pre") is not None or code.find(".//code") is not None
    return (marked and (has_code or bool(CODE_CLASS.search(code.get("class", ""))))) or (
        has_code and numbers[0].find(".//pre") is not None
    )


class _Lines:
    """The text of a block of code while it is put together; a line's break is written if the page did not."""

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self._is_pending = False  # a line has ended, and its break is not written yet

    def add(self, text: str | None) -> None:
        if not text:
            return
        if self._is_pending and not text.startswith(("\n", "\r\n")):
            if not text.strip() and "\n" not in text:
                return  # blanks between the elements of two lines
            self.pieces.append("\n")
        self._is_pending = False
        self.pieces.append(text.translate(INVISIBLE))

    def start(self) -> int:
        if self._is_pending:
            self.pieces.append("\n")
            self._is_pending = False
        return len(self.pieces)

    def end(self, start: int) -> None:
        self._is_pending = len(self.pieces) == start or not self.pieces[-1].endswith("\n")


def _lines_of(block: HtmlElement) -> str:
    """Return the text of a block of code with a break after each element that is a line."""
    lines = _Lines()
    stack: list[tuple[HtmlElement, int | None]] = [(block, None)]  # with where its line began, if it is done
    while stack:
        element, start = stack.pop()
        is_line = element is not block and _is_line(element)
        if start is None and isinstance(element.tag, str) and not (_is_number(element) or element.tag == "button"):
            stack.append((element, lines.start() if is_line else 0))
            lines.add("\n" if element.tag == "br" else element.text)
            stack.extend((child, None) for child in reversed(element))
            continue
        if start is not None and is_line:
            lines.end(start)
        if element is not block:
            lines.add(element.tail)
    return "".join(lines.pieces).replace("\r\n", "\n")


def _is_line(element: HtmlElement) -> bool:
    return element.tag in LINE_TAGS or (element.tag == "span" and bool(LINE_CLASS.search(element.get("class", ""))))


def _is_number(element: HtmlElement) -> bool:
    """Return whether an element holds nothing but line numbers."""
    is_marked = NUMBER_CLASS.search(element.get("class", "")) or "data-line-number" in element.attrib
    return bool(is_marked) and NUMBERS.fullmatch("".join(element.itertext())) is not None


def _language(block: HtmlElement) -> str:
    """Return the language that a block, the code in it or a frame around it names."""
    code = block.find(".//code")
    frames = list(block.iterancestors("div", "figure"))[:3]
    for element in (block, code, *frames):
        if element is None:
            continue
        named = element.get("data-language") or element.get("data-lang")
        match = LANGUAGE.search(element.get("class", ""))
        if named or match:
            return (named or (match.group(1) if match else "")).lower()
    return ""


def _set_text(block: HtmlElement, text: str) -> None:
    language, tail = _language(block), block.tail
    block.clear()
    block.tail = tail
    if language:
        block.set("class", f"language-{language}")
    code = block.makeelement("code")
    code.text = text.strip("\n")
    block.append(code)


@cache
def code_converter() -> type[Any]:
    """Return the converter to Markdown whose fences are longer than any run of backticks inside them."""
    from markdownify import MarkdownConverter

    class CodeConverter(MarkdownConverter):
        """markdownify's converter with safe fences."""

        def convert_pre(self, el: Any, text: str, parent_tags: set[str]) -> str:  # noqa: ANN401 - markdownify's types
            """Return a fenced block."""
            fenced: str = super().convert_pre(el, text, parent_tags)  # pyright: ignore[reportAttributeAccessIssue]
            longest = max((len(run) for run in BACKTICKS.findall(text)), default=0)
            if longest < 3 or "```" not in fenced:
                return fenced
            fence = "`" * (longest + 1)
            head, _, rest = fenced.partition("```")
            body, _, end = rest.rpartition("```")
            return f"{head}{fence}{body}{fence}{end}"

    return CodeConverter
