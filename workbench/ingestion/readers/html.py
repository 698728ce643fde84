"""Reader of HTML: the main content as Markdown, without boilerplate."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cache
from html import escape
from itertools import islice, pairwise, takewhile
from typing import TYPE_CHECKING, Any, cast

from lxml import (
    etree,  # pyright: ignore[reportAttributeAccessIssue]
    html,
)

from workbench.ingestion.raw import Draft
from workbench.ingestion.readers.grid import format_cell, merge_header_rows
from workbench.ingestion.text import (
    HIDDEN_MARK,
    count_cut_parts,
    decode_text,
    format_superscript,
    leave_out,
    take_hidden,
)

if TYPE_CHECKING:
    from lxml.html import HtmlElement

# --- Code blocks without line numbers and copy buttons ---

CODE_LABELS = ("button", "summary")  # in a code block: "Copy", "12 collapsed lines"
LINE_TAGS = frozenset(("div", "li", "p", "tr"))
CODE_LINE_CLASS = re.compile(r"(?:^|[\s_-])lines?(?:$|[\s_])|token-line|code-line|ec-line", re.IGNORECASE)
NUMBER_CLASS = re.compile(
    r"(?:^|\s|-)(?:gutter|line-?n(?:o|r|um|umber)s?|linenodiv|tag-listingline|nums|ln|lnt|blob-num|gl)(?:$|\s|-)"
)  # of ``_element_names``
LINE_NUMBERS = re.compile(r"[\s\d.:|]*")
# Elements whose children are the lines of a code block: Doxygen, editors, LaTeXML, and lists with line numbers
LINES_CLASS = re.compile(
    r"(?:^|\s)(?:fragment|cm-content|CodeMirror-code|view-lines|ace_text-layer|linenums|ltx_listing|enlighter)(?:$|\s)"
)
MARK = "\ufdd0"  # around a number that may be that of its line; no text may have this character
MARKED_LINE = re.compile(rf"{MARK}\s*(\d+)\s*{MARK}")
CODE_CLASS = re.compile(r"(?:^|\s|-)(?:code|blob-code|geshi)(?:$|\s|-)", re.IGNORECASE)
CODE_BLOCK_CLASS = re.compile(r"(?:^|\s)(?:code-?block|source-?code)(?:$|\s)", re.IGNORECASE)
# Names of the element around numbered lines, or of one around it
CODE_NAME = re.compile(r"(?<![a-z])(?:code|source|src|file|blob|listing|highlight|syntax[a-z]*)(?![a-z])")
CODE_NOTES = frozenset(
    ("terminal window", "copy", "copied", "copied!", "copy code", "copy to clipboard", "run", "plain text")
)
MAX_NOTE_CHARS = 40  # of the text next to a code block in which notes are looked for
NOTE_TAGS = frozenset(("a", "div", "figcaption", "option", "small", "span"))
PREFORMATTED_STYLE = re.compile(r"white-space\s*:\s*pre(?![\w-])", re.IGNORECASE)
WRAPPED_STYLE = re.compile(r"white-space\s*:\s*(?:pre-wrap|break-spaces)", re.IGNORECASE)
BLOCK_STYLE = re.compile(r"display\s*:\s*block", re.IGNORECASE)
MONOSPACE_STYLE = re.compile(r"font-family\s*:[^;]*(?:mono|courier|consolas|menlo)", re.IGNORECASE)
INVISIBLE_CHARACTERS = str.maketrans({"\u00a0": " ", "\u200b": None, "\u00ad": None, "\ufeff": None, "\u2060": None})
LANGUAGE_CLASS = re.compile(
    r"(?:^|\s)(?:language-|lang-|mw-highlight-lang-|highlight-source-|highlight-|brush:\s*|src-)([\w+#.-]+)"
)
HEXO_LANGUAGE_CLASS = re.compile(r"(?:^|\s)(?:language-|highlight\s+)([\w+#.-]+)")  # <figure class="highlight python">
BACKTICKS = re.compile(r"`+")


def normalise_code(root: HtmlElement) -> None:
    """Give every code block the form <pre><code>text</code></pre>, and reduce inline code to its text."""
    for block in [each for each in root.iter("div", "span", "code", "xmp", "listing") if _is_preformatted(each)]:
        block.tag = "pre"
    for lines in [each for each in root.iter("div", "ol", "ul", "main", "section") if _has_code_lines(each)]:
        _join_lines(lines)
    for table in list(root.iter("table")):
        _unwrap_code_table(table)
    for numbers in [each for each in root.iter("div", "td") if _is_number(each) and _is_next_to_code(each)]:
        numbers.drop_tree()
    for block in [block for block in root.iter("pre", "code") if block.find(".//pre") is not None]:
        block.drop_tag()  # a wrapper around a code block, which would give nested fences
    before = None
    for block in list(root.iter("pre")):
        _drop_notes(block)
        _set_code(block, _strip_line_numbers(block))
        if before is not None and _is_copy(before, block):
            block.drop_tree()
        else:
            before = block
    for code in root.iter("code", "kbd", "samp"):
        for mark in list(code.iter("wbr")):
            mark.drop_tag()


def _is_preformatted(element: HtmlElement) -> bool:
    style, names = element.get("style", ""), element.get("class", "")
    if element.tag in ("xmp", "listing"):
        return True
    if CODE_BLOCK_CLASS.search(names) and all(child.tag in INLINE_TAGS for child in element.iterdescendants()):
        return "\n" in element.text_content().strip()
    if element.tag == "code":
        is_block = (
            element.find(".//br") is not None
            or PREFORMATTED_STYLE.search(style) is not None
            or BLOCK_STYLE.search(style) is not None
        )
        return is_block and not any(True for _ in element.iterancestors("pre"))
    is_preformatted = PREFORMATTED_STYLE.search(style) or WRAPPED_STYLE.search(style)
    return is_preformatted is not None and MONOSPACE_STYLE.search(style) is not None


def _has_code_lines(element: HtmlElement) -> bool:
    """Return whether the children of an element outside any <pre> are lines of code."""
    if any(True for _ in element.iterancestors("pre")):
        return False
    if LINES_CLASS.search(element.get("class", "")):
        return element.get("class") != "fragment" or element.find(".//div[@class='line']") is not None
    lines = [child for child in element if isinstance(child.tag, str)]
    if len(lines) < 2 or not all(line.tag in LINE_TAGS for line in lines):
        return False
    first = _read_line_number(lines[0])
    if first is not None and _is_in_code(element):
        return [_read_line_number(line) for line in lines] == list(range(first, first + len(lines)))
    return all(_is_code_only(line) and "\n" not in line.text_content().strip() for line in lines) and (
        any(CODE_CLASS.search(each.get("class", "")) for each in (element, element.getparent()) if each is not None)
        or any(line.text_content()[:1].isspace() for line in lines)
    )


def _join_lines(lines: HtmlElement) -> None:
    """Turn an element whose children are lines of code into one code block."""
    for line in lines.iterdescendants("div", "li", "p", "pre"):
        line.tag = "div"
        line.tail = (line.tail or "").strip() or None
        if len(line) and _is_line(line[0]):
            line.text = (line.text or "").strip() or None
    lines.tag = "pre"


def _is_code_only(line: HtmlElement) -> bool:
    """Return whether an element consists of nothing but code, if anything."""
    return not (line.text or "").strip() and all(
        child.tag in ("code", "pre") and not (child.tail or "").strip() for child in line
    )


def _read_line_number(line: HtmlElement) -> int | None:
    """Return the number at the start of a line, if it is marked as line number or is a link to its own line."""
    part = next((part for part in line.iter() if isinstance(part.tag, str) and (part.text or "").strip()), line)
    text = (part.text or "").strip()
    if part is line or not (text.isascii() and text.isdecimal()):
        return None
    around = [part, *takewhile(lambda outer: outer is not line, part.iterancestors()), line]
    names = {outer.get(name) for outer in around for name in ("id", "name")}
    is_marked = part.get("href", "#")[1:] in names or any(_has_number_name(outer) for outer in around)
    return int(text) if is_marked else None


def _is_in_code(element: HtmlElement) -> bool:
    """Return whether an element, or one of the three around it, has a name that code has."""
    around = [element, *islice(element.iterancestors(), 3)]
    return any(CODE_NAME.search(_element_names(each)) for each in around)


def _is_copy(before: HtmlElement, block: HtmlElement) -> bool:
    """Return whether a code block repeats the one directly before it, such as a plain text for copying."""
    texts = ["".join("".join(each.itertext()).split()) for each in (before, block)]
    if not texts[0] or texts[0] != texts[1]:
        return False
    between = block.xpath("preceding::text()")[len(before.xpath("preceding::text()")) :]
    return "".join("".join(between).split()) == texts[0]


def _drop_notes(block: HtmlElement) -> None:
    """Drop "Copy", the name of the language, and words for screen readers next to the code of a code block."""
    names = {*CODE_NOTES, _read_language(block)} - {""}
    code = block.findall(".//code")
    levels = [code[0], *takewhile(lambda each: each is not block, code[0].iterancestors())] if len(code) == 1 else []
    levels += [block, *takewhile(_frames_one_block, islice(block.iterancestors(), 2))]
    for level in levels:
        for note in [*islice(level.itersiblings(preceding=True), 2), *islice(level.itersiblings(), 2)]:
            if not isinstance(note.tag, str) or _text_length(note) > MAX_NOTE_CHARS:
                continue
            for part in [each for each in note.iter() if each.tag in NOTE_TAGS]:
                is_note = _element_text(part).lower() in names or SCREEN_READER_NAME.search(_element_names(part))
                if is_note and part.getparent() is not None:
                    part.drop_tree()


def _frames_one_block(element: HtmlElement) -> bool:
    return element.tag in ("div", "figure") and len(list(islice(element.iter("pre"), 2))) == 1


def _unwrap_code_table(table: HtmlElement) -> None:
    """Replace a table of line numbers and code with the code, preceded by any rows above it that name the file."""
    if table.getparent() is None:
        return
    rows = [list(row.iterchildren("td", "th")) for row in table.iter("tr")]
    rows = [row for row in rows if row and not _is_number_head(row)]
    # rows above the code that name the file
    names = list(takewhile(lambda row: len(row) == 1 and row[0].tag == "th" and row[0].find(".//pre") is None, rows))
    rows = rows[len(names) :]
    if not rows or not (all(_is_numbered(row) for row in rows) or _is_lone_code(rows)):
        return
    blocks = [row[-1].find(".//pre") for row in rows]
    if len(rows) == 1 and blocks[0] is not None:
        text, source = _code_text(blocks[0]), blocks[0]
    else:
        text, source = "\n".join(_code_text(row[-1]).strip("\n") for row in rows), rows[0][-1]
    language = _read_language(source)
    for row in names:
        name = table.makeelement("p")
        name.text = _element_text(row[0])
        table.addprevious(name)
    table.tag = "pre"
    if language:
        table.set("class", f"language-{language}")
    _set_code(table, text)


def _is_number_head(row: list[HtmlElement]) -> bool:
    """Return whether a row only names the columns of line numbers and code."""
    return (
        len(row) > 1 and all(cell.tag == "th" for cell in row) and _has_number_name(row[0]) and not _is_number(row[0])
    )


def _is_lone_code(rows: list[list[HtmlElement]]) -> bool:
    """Return whether a table has nothing but a code block."""
    cells = [cell for row in rows for cell in row]
    return (
        len(cells) == 1
        and cells[0].find(".//pre") is not None
        and CODE_CLASS.search(cells[0].get("class", "")) is not None
    )


def _is_next_to_code(numbers: HtmlElement) -> bool:
    """Return whether line numbers are outside the code block they belong to, in the element next to it."""
    return any(
        sibling.tag == "pre" or sibling.find(".//pre") is not None
        for sibling in (numbers.getprevious(), numbers.getnext())
        if sibling is not None and isinstance(sibling.tag, str)
    )


def _is_numbered(cells: list[HtmlElement]) -> bool:
    """Return whether a row consists of one or more line numbers next to code."""
    numbers, code = cells[:-1], cells[-1]
    if not numbers or not all(LINE_NUMBERS.fullmatch("".join(cell.itertext())) for cell in numbers):
        return False
    marked = _read_line_number(code.getparent()) is not None or any(
        _has_number_name(part) for cell in numbers for part in cell.iter() if isinstance(part.tag, str)
    )
    has_code = code.find(".//pre") is not None or code.find(".//code") is not None
    has_code = has_code or any(True for _ in code.iterancestors("pre", "code"))
    table = next(code.iterancestors("table"), code)
    return (marked and (has_code or bool(CODE_CLASS.search(code.get("class", ""))) or _is_in_code(table))) or (
        has_code and numbers[0].find(".//pre") is not None
    )


class _CodeText:
    """Builder of a code block's text. It writes a line break if the page has none."""

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self._is_pending = False  # a line has ended but its break is not yet written

    def add(self, text: str | None) -> None:
        if not text:
            return
        if self._is_pending and not text.startswith(("\n", "\r\n")):
            if not text.strip() and "\n" not in text:
                return  # white space between the elements of two lines
            self.pieces.append("\n")
        self._is_pending = False
        self.pieces.append(text.translate(INVISIBLE_CHARACTERS))

    def start(self) -> int:
        if self._is_pending:
            self.pieces.append("\n")
            self._is_pending = False
        return len(self.pieces)

    def end(self, start: int) -> None:
        self._is_pending |= len(self.pieces) == start or not self.pieces[-1].endswith("\n")


def _code_text(block: HtmlElement) -> str:
    """Return the text of a code block with a break after each element that is a line."""
    lines = _CodeText()
    stack: list[tuple[HtmlElement, int | None]] = [(block, None)]  # with the start of its line once it is complete
    while stack:
        element, start = stack.pop()
        is_line = element is not block and _is_line(element)
        is_label = element.tag in CODE_LABELS or (element.tag == "a" and "download" in element.attrib)
        if start is None and isinstance(element.tag, str) and not (_is_number(element) or is_label):
            stack.append((element, lines.start() if is_line else 0))
            lines.add("\n" if element.tag == "br" else element.text)
            stack.extend((child, None) for child in reversed(element))
            continue
        if start is not None and is_line:
            lines.end(start)
        if element is not block:
            lines.add(element.tail)
    return "".join(lines.pieces).replace("\r\n", "\n")


def _strip_line_numbers(block: HtmlElement) -> str:
    """Return the text of a code block. Elements without a class that count its lines are left out."""
    if _is_number(block):
        return ""
    for part in block.iter("a", "span", "small", "td"):
        is_plain = not part.get("class") or (part.tag == "a" and part.get("href", "").startswith("#"))
        if not len(part) and is_plain and (part.text or "").strip().isdecimal():
            part.text = f"{MARK}{part.text}{MARK}"
    text = _code_text(block)
    lines = text.strip("\n").split("\n")
    if any(_is_number(part) for part in block.iter() if isinstance(part.tag, str)) and all(
        line.startswith(" ") or not line for line in lines
    ):
        text = "\n".join(line[1:] for line in lines)  # the blank after each number
    numbers = [int(match.group(1)) for line in lines if (match := MARKED_LINE.match(line))]
    rest = [MARKED_LINE.sub("", line, count=1) for line in lines]
    if len(numbers) == len(lines) > 1 and numbers == list(range(numbers[0], numbers[0] + len(lines))) and any(rest):
        text = "\n".join(rest)
    return text.replace(MARK, "")


def _is_line(element: HtmlElement) -> bool:
    return element.tag in LINE_TAGS or (
        element.tag == "span"
        and (
            "data-line" in element.attrib
            or CODE_LINE_CLASS.search(element.get("class", "")) is not None
            or BLOCK_STYLE.search(element.get("style", "")) is not None
        )
    )


def _is_number(element: HtmlElement) -> bool:
    """Return whether an element contains only line numbers."""
    return _has_number_name(element) and LINE_NUMBERS.fullmatch("".join(element.itertext())) is not None


def _has_number_name(element: HtmlElement) -> bool:
    return "data-line-number" in element.attrib or NUMBER_CLASS.search(_element_names(element)) is not None


def _read_language(block: HtmlElement) -> str:
    """Return the language declared by a block, the code in it or a wrapper around it."""
    code = block.find(".//code")
    frames = list(block.iterancestors("div", "figure", "pre", "code"))[:4]
    for element in (block, code, *frames):
        if element is None:
            continue
        named = element.get("data-language") or element.get("data-lang") or element.get("language")
        pattern = HEXO_LANGUAGE_CLASS if element.tag == "figure" else LANGUAGE_CLASS
        match = pattern.search(element.get("class", ""))
        if named or match:
            return (named or (match.group(1) if match else "")).lower()
    return ""


def _set_code(block: HtmlElement, text: str) -> None:
    language, tail = _read_language(block), block.tail
    block.clear()
    block.tail = tail
    if language:
        block.set("class", f"language-{language}")
    code = block.makeelement("code")
    code.text = text.strip("\n")
    block.append(code)


@cache
def _make_code_converter() -> type[Any]:
    """Return the Markdown converter, whose fences are longer than any run of backticks inside them."""
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

        def convert_tr(self, el: Any, text: str, parent_tags: set[str]) -> str:  # noqa: ANN401 - markdownify's types
            """Return a row of a table; markdownify counts all rows of the head for each of them."""
            if el.parent.name == "thead" and el.find_previous_sibling() is not None:
                return f"|{text}\n"
            row: str = super().convert_tr(el, text, parent_tags)  # pyright: ignore[reportAttributeAccessIssue]
            return row

        def convert_li(self, el: Any, text: str, parent_tags: set[str]) -> str:  # noqa: ANN401 - markdownify's types
            """Return a list item with the number or letter that a page shows."""
            item: str = super().convert_li(el, text, parent_tags)  # pyright: ignore[reportAttributeAccessIssue]
            return f"{el[ITEM_LABEL]}.{item.partition('.')[2]}" if el.get(ITEM_LABEL) and "." in item else item

    return CodeConverter


ITEM_LABEL = "item-label"  # an attribute of our own
LIST_STYLE = re.compile(r"list-style[\w-]*\s*:[^;]*?(lower|upper)-(alpha|latin|roman)")
ROMAN_NUMERALS = {
    "M": 1000, "CM": 900, "D": 500, "CD": 400, "C": 100, "XC": 90, "L": 50, "XL": 40, "X": 10, "IX": 9, "V": 5, "IV": 4,
    "I": 1,
}  # fmt: skip


def _label_items(numbered: HtmlElement) -> None:
    """Give the items of an ordered list the labels that a page shows, by HTML's start, value, reversed and type."""
    items, step = numbered.findall("li"), -1 if "reversed" in numbered.attrib else 1
    start, form = numbered.get("start", ""), numbered.get("type", "")
    if style := LIST_STYLE.search(numbered.get("style", "")):
        form = ("iI" if style[2] == "roman" else "aA")[style[1] == "upper"]
    number = (int(start[:9]) if start.isdecimal() else len(items) if step < 0 else 1) - step
    for item in items:
        value = item.get("value", "")
        number = int(value[:9]) if value.isdecimal() else number + step
        item.set(ITEM_LABEL, _format_ordinal(number, item.get("type", form)))


def _format_ordinal(number: int, form: str) -> str:
    letters = format_roman(number) if form in ("i", "I") and 0 < number < 4_000 else ""
    if form in ("a", "A") and 0 < number <= 26 * 27:
        letters = chr(96 + (number - 1) // 26).strip("`") + chr(97 + (number - 1) % 26)
    return (letters.upper() if form.isupper() else letters.lower()) or str(number)


def format_roman(value: int) -> str:
    """Return a positive number in Roman numerals."""
    text = ""
    for letters, size in ROMAN_NUMERALS.items():
        text += letters * (value // size)
        value %= size
    return text


COMMENT = re.compile(rb"<!--.*?(?:-->|\Z)", re.DOTALL)
MAX_HEAD_BYTES = 64_000  # in which a page's charset is looked for
META_TAG = re.compile(rb"<meta[\s/](?:[^>\"']|\"[^\"]*\"|'[^']*')*+", re.IGNORECASE)
ATTRIBUTE = re.compile(rb"""([^\s"'>/=]+)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""")
CONTENT_CHARSET = re.compile(rb"""charset\s*=\s*["']?\s*([^\s;"']+)""", re.IGNORECASE)
XML_ENCODING = re.compile(rb"""\A\s*<\?xml[^>]{0,100}?encoding\s*=\s*["']([\w.:-]+)""")
XHTML_MARK = re.compile(r"<\?xml|xmlns\s*=", re.IGNORECASE)
SELF_CLOSED_TAG = re.compile(  # in HTML, these would contain the rest of the page
    r"<(title|script|style|iframe|textarea|a|div|span|p|td|th|i|b|em|strong|li|ul|section)\b((?:\s[^<>]*?)?)\s*/>",
    re.IGNORECASE,
)
INTERNAL_SUBSET = re.compile(r"(<!DOCTYPE[^\[>]*)\[(.*?)\]\s*>", re.IGNORECASE | re.DOTALL)
ENTITY = re.compile(r"""<!ENTITY\s+([\w.-]+)\s+(["'])([^"'&]{0,100})\2\s*>""")
REFERENCE = re.compile(r"&([\w.-]+);")
HTML_PREFIX = re.compile(r"xmlns:([\w-]+)\s*=\s*.http://www\.w3\.org/(?:1999/xhtml|1998/Math/MathML|2000/svg)\b")
CDATA = re.compile(r"<(?:script|style)\b.*?</(?:script|style)>|<!\[CDATA\[(.*?)\]\]>", re.IGNORECASE | re.DOTALL)
WRAPPER_TAG = re.compile(r"</?(?:div|span|font|center|section|b|i|u|em|strong|blockquote)\b[^>]*>", re.IGNORECASE)
XML_DECLARATION = re.compile(r"\A\s*<\?xml[^>]*\?>")
HIDDEN_STYLE = re.compile(
    r"display\s*:\s*none|visibility\s*:\s*hidden|(?<![-\w])opacity\s*:\s*0*\.?0+(?![.\d])"
    r"|text-indent\s*:\s*-\d{3,}|clip\s*:\s*rect\(0|clip-path\s*:\s*inset\((?:50|100)%"
    r"|(?<![-\w])(?:left|top)\s*:\s*-\d{4,}",
    re.IGNORECASE,
)
ZERO_SIZE = re.compile(r"(?<![-\w])(?:max-)?(?:height|width)\s*:\s*0(?![.\d])", re.IGNORECASE)
CLIPPED_STYLE = re.compile(r"overflow(?:-[xy])?\s*:\s*(?:hidden|clip)", re.IGNORECASE)  # without it, text overflows
ZERO_FONT_SIZE = re.compile(r"font-size\s*:\s*0(?![.\d])", re.IGNORECASE)
FONT_SIZE = re.compile(r"font(?:-size)?\s*:(?!\s*0(?![.\d]))", re.IGNORECASE)
VISIBLE_STYLE = re.compile(
    r"display\s*:\s*(?!none)[a-z]|visibility\s*:\s*visible|(?<![-\w])opacity\s*:\s*(?!0(?![.\d]))[.\d]"
    r"|(?:max-)?height\s*:\s*(?!0(?![.\d]))[a-z\d]",
    re.IGNORECASE,
)
OPACITY = re.compile(r"(?<![-\w])opacity\s*:[^;]*", re.IGNORECASE)  # of a rule: parts that fade in
# Keeps the room that the text takes, so a script will show it. Nothing else may hide it.
FADED_STYLE = re.compile(r"(?<![-\w])opacity\s*:\s*0*\.?0+(?![.\d])|visibility\s*:\s*hidden", re.IGNORECASE)
REMOVED_STYLE = re.compile(r"display\s*:\s*none|text-indent\s*:\s*-\d{3,}|clip\s*:\s*rect\(0", re.IGNORECASE)
ANIMATION_STYLE = re.compile(r"transform|transition|animation|will-change", re.IGNORECASE)
# Names of parts that a click reveals: tabs, accordions, FAQs, steps.
PANEL_NAME = re.compile(
    r"(?<![a-z])(?:tabs?|panes?|panels?|tab(?:pane|panel|content|item)s?|accordion\w*|collaps\w*|faqs?|answers?|expand\w*"
    r"|toggl\w*|details?|spoilers?|reveal\w*|steps?|slides?|carousel\w*|disclosure|more)(?![a-z])"
)
# Names of parts that are not content even if a click reveals them.
ASIDE_NAME = re.compile(
    r"(?<![a-z])(?:sidebar\w*|toc|nav\w*|menus?|related|recommend\w*|shar(?:e|ing)|social|promo\w*|ads?|advert\w*|sponsor\w*"
    r"|cookies?|newsletter|breadcrumbs?|subscribe|popup|tooltip|toast|search|spinner|sr-only|visually-hidden)(?![a-z])"
)
PERMALINK = re.compile("[¶#§^↑↩⏎⚓🔗\u200b\ufe0e\ufe0f ]+")  # its text
MARK_NAME = re.compile(r"(?:^|\s)(?:headerlink|mw-editsection|mw-cite-backlink|viewcode-link)(?:$|\s)")
SCREEN_READER_NAME = re.compile(r"(?<![a-z])(?:sr-only|visually-hidden|screen-reader-text)(?![a-z])")
CAMEL_CASE_BOUNDARY = re.compile(r"(?<=[a-z])(?=[A-Z])")
IDENTIFIER = re.compile(r"[A-Za-z_][\w-]*")
SCRIPT_SELECTOR = re.compile(  # selectors in scripts
    r"""(?:getElementById|getElementsByClassName|querySelector(?:All)?|\$|classList\.\w+)\(\s*['"`]([^'"`]{1,100})"""
)
REFERRING_ATTRIBUTES = (
    "aria-controls", "data-target", "data-bs-target", "data-tab", "data-controls", "data-toggle-target",
    "popovertarget", "commandfor", "onclick",
)  # fmt: skip
# Attributes by which scripts show and hide a part: Alpine, Vue, Angular, Radix
BINDING = re.compile(r"(?:x|v|ng)-(?:show|if|else|cloak|hide|collapse|transition)|data-state|slot")
QUESTION_NAME = re.compile(r"(?<![a-z])(?:accordion|collaps|faq|question|expand|disclosure)")  # of buttons
CLICKED_XPATH = "self::button | self::summary | .//button | " + " | ".join(
    f"descendant-or-self::*[{test}]" for test in ("@onclick", "@aria-expanded", "@role='button'")
)
TABS_XPATH = ".//input[@type='radio'] | .//*[@role='tab']"
MAX_SCRIPT_CHARS = 200_000  # characters of a page's scripts searched for names
MAX_SELECT_OPTIONS = 20  # options of a select kept as text; longer lists (countries) are dropped
MIN_ALT_WORDS = 4  # of an alt text that is kept; shorter ones name logos and icons
MAX_LINK_SHARE = 0.5  # share of characters in links above which a part is navigation
STYLED_ATTRIBUTE = "data-workbench-styled"  # set on <html> if a browser has marked invisible elements as "hidden"
# Possessive and anchored to the start of a rule, so unclosed style sheets of any size take linear time.
SCREEN_MEDIA = re.compile(r"\A\Z|all|screen", re.IGNORECASE)
STYLE_RULE = re.compile(r"(?<![^{}@;])([^{}@;]++)\{([^{}]*+)\}")
STYLE_BLOCK = re.compile(
    r"@[^@{};]*+(?:;|\{(?:[^{}]*+\{[^{}]*+\})*+[^{}]*+\})|/\*(?:[^*]++|\*(?!/))*+(?:\*/|\Z)", re.DOTALL
)
MAX_STYLE_CHARS = 4_000  # characters examined of a style attribute
COPY_BUTTON = re.compile(r"copy|clipboard", re.IGNORECASE)
SELECTOR_PART = re.compile(r"([.#])([\w-]+)")
SIMPLE_SELECTOR = re.compile(r"[a-zA-Z][\w-]*|[a-zA-Z]?[\w-]*([.#])([\w-]+)")
RENAMED_TAGS = {"strike": "s", "amp-img": "img", "ac:plain-text-body": "pre"}  # elements that are like another one
UNREAD_TAGS = frozenset((
    "script", "style", "noscript", "template", "svg", "canvas", "iframe", "frame", "object", "embed", "video", "audio",
    "nav", "button", "select", "input", "textarea", "img", "head", "wbr",
))  # fmt: skip
# Elements without an end tag that the parser does not know; it puts the rest of the paragraph inside them.
UNKNOWN_VOID_TAGS = ("wbr", "embed", "source", "track", "keygen", "command", "bgsound")
MEDIA_TAGS = frozenset(("svg", "canvas", "iframe", "frame", "object", "embed", "video", "audio"))
TASK_XPATH = (
    "//ul[contains(@class, 'task-list')]/li[not(.//input)] | //div[contains(@class, 'checkbox-o') and not(node())]"
)
DONE_NAME = re.compile(r"(?:^|\s)(?:checked|checkbox-on)(?:$|\s)")
MIN_PAGE_WORDS = 10  # of a page with scripts below which they are taken to write its text
MIN_PART_CHARS = 40  # of a header, aside or footer next to <main> that is content
PART_TAGS = frozenset(("header", "footer", "aside"))
FILE_UNREAD_ROLES = frozenset(("navigation", "search"))
UNREAD_ROLES = frozenset(("navigation", "banner", "contentinfo", "search"))
QUESTION_TAGS = frozenset(("summary", "dt"))
PAGE_TAGS = frozenset(("html", "body", "main"))  # hidden only until a script runs
HEAD_TAGS = frozenset(("title", "meta", "link", "script", "style", "base", "noscript", "template"))
# Blocks whose lines the converter would join, and parts that are apart from their neighbours on the screen
UNKNOWN_BLOCK_TAGS = frozenset((
    "address", "aside", "center", "details", "dialog", "fieldset", "figure", "footer", "form", "header", "hgroup",
    "legend", "main", "marquee", "menu", "nav", "optgroup", "option", "search",
))  # fmt: skip
APART_TAG = "apart-text"  # for the words of an image or a list of options
APART_NAMES = frozenset((  # tags, roles and classes
    "badge", "button", "cell", "chip", "columnheader", "img", "label", "meter", "output", "pill", "progress", "select",
    "selected-value", "tab",
))  # fmt: skip
APART_STYLE = re.compile(r"(?<![\w-])display\s*:\s*(?!inline|none|contents)[a-z]", re.IGNORECASE)
MAIN_SELECTORS = (".//main", ".//*[@role='main']", ".//article")
MIN_MAIN_SHARE = 0.3  # a <main> with a smaller share of the page's text is not the main content
META_ATTRIBUTES = ("name", "property", "itemprop", "http-equiv")
LINKED_DATA_PATH = ".//script[@type='application/ld+json']"
LINKED_TEXT = re.compile(
    r'"(?:articleBody|text|recipeInstructions|name(?="\s*:\s*"[^"\\]*(?:\\.[^"\\]*)*\?"))"\s*:\s*'
    r'("[^"\\]*+(?:\\.[^"\\]*+)*+")|"recipeIngredient"\s*:\s*(\[[^\[\]{}]*+\])'
)  # articles, questions, answers, steps and ingredients
MAX_LINKED_SHARE = 0.8  # of the words of such a text that are on the page, above which the page has it
LINKED_DATE = re.compile(
    r'"(date(?:Modified|Published|Created)|datePosted)"\s*:\s*"((?:[^"\\]|\\/){4,40})"'
)  # in JSON-LD
MAX_LINKED_DATES = 50  # examined in a block; a page's comments may have thousands
META_NAMES = {"description": "description", "author": "author", "keywords": "keywords", "citation_author": "author"}
DATE_NAMES = {  # names of tags with a date, and classes of <time>, by key in the metadata
    "modified": re.compile("modified|lastmod|updated|last[_-]?update|revised"),
    "published": re.compile("(?<!un)publish(?:ed|[_-]?date)|pub(?:lication)?[_-]?date|release[_-]?date|posted|issued"),
    "created": re.compile("created"),
    "date": re.compile(r"^(?:(?:dc|dcterms|citation|article|sailthru)[.:_-](?:online_)?)?date$"),
}
YEAR = re.compile(r"\d{4}")
LAST_CHANGE = re.compile(  # as wikis and manuals write it in a line of its own
    r"^.{0,40}?\b(?:last|zuletzt|dernière|última) (?:updated?|modified|edited|changed|revised|geändert|aktualisiert"
    r"|mise à jour|modification|actualización|atualização)"
    r"(?:(?: on| am| le| el| ?:)\s+|\s+(?=\d))([^:]{0,25}\d{4}[-\d]{0,6})(?!\d|\s(?!at|by|um|von|à|par)[^\W\d])",
    re.IGNORECASE | re.MULTILINE,
)
COMMENT_NAME = re.compile(r"(?:^|\s)(?:comment(?:$|[\s_-])|review$)")  # a class, or the itemprop after it
MAX_DATE_CHARS = 40  # of the text of a tag that is read if it has no attribute with the date


def read_html(data: bytes, name: str, charset: str | None = None) -> Draft:
    """Return the content of a file. The title is <title>, or else the first <h1>.

    Headers, asides and footers are content, unlike on a website, unless they consist of links.
    """
    root = parse_page(decode_text(data, name, charset or find_charset(data)))
    return Draft() if root is None else make_draft_from_tree(root, is_file=True)


def make_draft_from_tree(root: HtmlElement, base_url: str | None = None, *, is_file: bool = False) -> Draft:
    """Convert a parsed page to title, metadata and Markdown; unread elements are removed from the tree.

    ``base_url`` makes links absolute.
    """
    title = _element_text(root.find(".//head/title"))
    metadata = _read_metadata(root)
    linked = list(_list_linked_texts(root))
    has_scripts = root.xpath("boolean(//script[not(contains(@type, 'json') or contains(@type, 'math'))])")
    content = _extract_main_content(root, is_file=is_file)
    if base_url is not None:
        content.make_links_absolute(base_url, resolve_base_href=False, handle_failures="ignore")
    text = convert_element(content)
    if len(text.split()) < MIN_PAGE_WORDS:
        leave_out("parts that scripts draw", has_scripts and not linked)
    words = set(LINKED_WORD.findall(text.casefold()))
    for before, added in pairwise(["", *linked]):
        own = set(LINKED_WORD.findall(added.casefold()))
        is_question = added.endswith("?") and "\n" not in added  # added with its answer
        if len(own & words) < MAX_LINKED_SHARE * len(own) and not is_question:
            asked = before if before.endswith("?") and not text.endswith(before) else ""
            text = "\n\n".join(filter(None, (text.strip(), asked, added)))
            words |= own
    return Draft(text, title or _element_text(content.find(".//h1")), metadata)


LINKED_WORD = re.compile(r"[^\W\u3040-\u9fff]+|[\u3040-\u9fff]")  # scripts without blanks by character


def _list_linked_texts(root: HtmlElement) -> Iterator[str]:
    """Yield the texts of a page's JSON-LD, which may be invalid JSON as a whole."""
    for block in root.iterfind(LINKED_DATA_PATH):
        for one, several in LINKED_TEXT.findall(block.text or ""):
            with suppress(ValueError):
                values = json.loads(one or several, strict=False)
                yield convert_fragment(values if one else "<br>".join(map(str, values))).strip()


def convert_fragment(source: str) -> str:
    """Convert HTML contained in another format (a Word file, a book's chapter)."""
    root = parse_page(source)
    return "" if root is None else convert_element(_extract_main_content(root, is_file=True, is_part=True))


def parse_page(source: str) -> HtmlElement | None:
    """Parse a page, or return None if it is empty. lxml is ten times faster than BeautifulSoup here."""
    if XHTML_MARK.search(source[:2_000]):
        source = _normalise_xhtml(source)
    source = XML_DECLARATION.sub("", source).replace("\0", "")
    if not source.strip():
        return None
    parser = html.HTMLParser(huge_tree=True)
    try:
        root = html.document_fromstring(source, parser=parser)
        if any(error.type_name == "ERR_RESOURCE_LIMIT" for error in parser.error_log):
            root = html.document_fromstring(WRAPPER_TAG.sub("\n", source), parser=parser)
    except etree.ParserError:  # nothing but comments, for example
        return None
    count_cut_parts(parser.error_log)
    for element in list(root.iter(*UNKNOWN_VOID_TAGS)):
        element.addprevious(element.makeelement(element.tag, dict(element.attrib)))
        element.drop_tag()  # what the parser put inside it comes after it
    _move_out_of_head(root)
    return root


def _normalise_xhtml(source: str) -> str:
    """Return XHTML as HTML: without prefixes, internal DTD and CDATA marks, and with end tags for empty elements."""
    if subset := INTERNAL_SUBSET.search(source):
        entities = {name: value for name, _, value in ENTITY.findall(subset[2])}
        source = f"{subset[1]}>{source[subset.end() :]}"
        source = REFERENCE.sub(lambda match: entities.get(match[1], match[0]), source)
    for prefix in set(HTML_PREFIX.findall(source)):
        source = re.sub(rf"<(/?){prefix}:", r"<\1", source)
    source = SELF_CLOSED_TAG.sub(r"<\1\2></\1>", source)
    if "<![CDATA[" in source:
        source = CDATA.sub(lambda match: match[0] if match[1] is None else escape(match[1]), source)
    return source


def _move_out_of_head(root: HtmlElement) -> None:
    """Move body elements out of the head; the parser puts <main> there if the page has no <body> tag."""
    head = root.find("head")
    strays = (
        [] if head is None else [child for child in head if child.tag not in HEAD_TAGS and isinstance(child.tag, str)]
    )
    if strays:
        body = root.find("body")
        body = etree.SubElement(root, "body") if body is None else body
        for place, stray in enumerate(strays):
            body.insert(place, stray)


def convert_element(element: HtmlElement) -> str:
    """Convert a parsed element to Markdown."""
    from bs4 import BeautifulSoup

    _separate_blocks(element)
    normalise_tables(element)
    for numbered in element.iter("ol"):
        _label_items(numbered)
    converter = _make_code_converter()(
        heading_style="ATX",
        bullets="-",
        escape_asterisks=False,
        escape_underscores=False,
        escape_misc=False,
        table_infer_header=True,
        code_language_callback=lambda pre: next(
            (pre_class.removeprefix("language-") for pre_class in pre.get("class", ())), ""
        ),
    )
    try:
        texts = [converter.convert_soup(BeautifulSoup(part, "lxml")) for part in split_element(element)]
    except RecursionError:  # it is nested too deeply for the converter
        return "\n".join(text.strip() for text in element.itertext() if text.strip())
    return texts[0] if len(texts) == 1 else "\n\n".join(text.strip("\n") for text in texts if text.strip())


def _extract_main_content(root: HtmlElement, *, is_file: bool = False, is_part: bool = False) -> HtmlElement:
    """Remove unread elements, then return the element with the main content.

    Args:
        root: The page.
        is_file: The whole body is content, except for hidden parts and lists of links.
        is_part: It is part of a book or an office file, in which lists of links are content, too.
    """
    _expose_hidden_content(root, is_file=is_file)
    if is_file:
        _write_generated_text(root)
    normalise_code(root)
    _write_scripts(root)
    styles = _read_page_styles(root)
    body = root.find(".//body")
    body = root if body is None else body
    unread = [element for element in root.iter() if _is_unread(element, styles, is_file=is_file, is_part=is_part)]
    navs = {element for element in unread if element.tag == "nav"}
    others = [element for element in unread if element not in navs]

    def drop(elements: Iterable[HtmlElement]) -> None:
        for element in elements:
            if element.getparent() is not None and (not is_file or _is_dropped_from_file(element, styles)):
                element.drop_tree()

    drop(others)
    outer = [nav for nav in navs if root in nav.iterancestors() and navs.isdisjoint(nav.iterancestors())]
    if _text_length(body) > sum(map(_text_length, outer)):  # else it is a page that consists of links
        drop(navs)
    for link in list(root.iter("a")):
        if (link.get("href") or "#").startswith(("#", "javascript:")):
            link.drop_tag()  # keeps the text; the target is only valid inside the page
    if is_file:
        return body
    length = _text_length(body)
    for path in MAIN_SELECTORS:
        elements = body.findall(path)
        if len(elements) == 1 and _text_length(elements[0]) > MIN_MAIN_SHARE * length:
            return elements[0]
    return body


def _separate_blocks(root: HtmlElement) -> None:
    """Turn blocks unknown to the converter into <div>, and put spaces around other parts that a page shows apart."""
    for element in list(root.iterdescendants(etree.Element)):
        names = {element.tag, element.get("role"), *element.get("class", "").split()}
        style, tail = element.get("style", ""), element.tail or ""
        if element.tag in UNKNOWN_BLOCK_TAGS or (element.tag in ("td", "th") and element.getparent().tag != "tr"):
            element.tag = "div"
        elif not (names & APART_NAMES or "-" in element.tag or APART_STYLE.search(style)):
            continue
        elif len(_element_text(element)) > 1:  # not the initial of a word
            before, around = element.getprevious(), element.getparent()
            if before is not None and (not before.tail or before.tail[-1].isalnum()):
                before.tail = f"{before.tail or ''} "
            elif before is None and (around.text or "")[-1:].isalnum():
                around.text += " "
            element.tail = f" {tail}" if not tail or tail[0].isalnum() else tail


@dataclass(slots=True)
class PageStyles:
    """Visibility of a page's parts according to its style elements and scripts."""

    named: frozenset[str]  # ids and classes that buttons, links and scripts refer to
    is_styled: bool  # True if a browser has marked the invisible elements
    has_scripts: bool  # True if a script can change the page
    hidden: set[tuple[str, str]] = field(default_factory=set)  # hidden selectors, as (".", class) or ("#", id)
    shown: set[tuple[str, str]] = field(default_factory=set)  # selectors that another rule shows
    # The shown selectors that apply in a certain state only, such as ".open .answer" and ".pane:target".
    opened: set[tuple[str, str]] = field(default_factory=set)
    without_font: set[tuple[str, str]] = field(default_factory=set)  # selectors with font size 0
    with_font: set[tuple[str, str]] = field(default_factory=set)  # selectors with another font size


def _read_page_styles(root: HtmlElement) -> PageStyles:
    has_scripts = any("json" not in script.get("type", "") for script in root.iter("script"))
    styles = PageStyles(_find_referenced_names(root), root.get(STYLED_ATTRIBUTE) is not None, has_scripts)
    for selectors, body in _list_style_rules(root):
        for selector in selectors.split(","):
            parts = SELECTOR_PART.findall((selector.split() or [""])[-1])
            match = SIMPLE_SELECTOR.fullmatch(selector.strip())
            own = {(match[1], match[2])} if match and match[1] else set[tuple[str, str]]()
            if own and _hides(OPACITY.sub("", body)):
                styles.hidden |= own
            elif VISIBLE_STYLE.search(body):
                styles.shown.update(parts)
                styles.opened.update(parts if match is None else ())
            if own and ZERO_FONT_SIZE.search(body):
                styles.without_font |= own
            elif FONT_SIZE.search(body):
                styles.with_font.update(parts)
    styles.hidden = set() if styles.is_styled else styles.hidden - styles.shown
    return styles


def _hides(style: str) -> bool:
    """Return whether a style hides its element's text."""
    return HIDDEN_STYLE.search(style) is not None or (
        ZERO_SIZE.search(style) is not None and CLIPPED_STYLE.search(style) is not None
    )


def _find_referenced_names(root: HtmlElement) -> frozenset[str]:
    """Return the ids and classes that a page's buttons, links and scripts refer to."""
    names: set[str] = set()
    for element in root.iter():
        if not isinstance(element.tag, str):
            continue
        for attribute in REFERRING_ATTRIBUTES:
            value = element.get(attribute, "")
            names.update(IDENTIFIER.findall(value), value.split())
        if element.tag == "a" and element.get("href", "").startswith("#"):
            names.add(element.get("href")[1:])
        elif element.tag == "script":
            for selector in SCRIPT_SELECTOR.findall((element.text or "")[:MAX_SCRIPT_CHARS]):
                names.update(IDENTIFIER.findall(selector))
    return frozenset(names)


def _expose_hidden_content(root: HtmlElement, *, is_file: bool) -> None:
    """Convert visible content in frames, shadow roots, fields, formulas and images to plain elements."""
    for picture in list(root.iter("picture")):
        picture.drop_tag()  # around an image
    for element in root.iter(*RENAMED_TAGS):
        element.tag = RENAMED_TAGS[element.tag]
    for image in list(root.iter("img", "area")):
        _open_picture(image, is_file=is_file)
    if is_file:
        first = {short.get("title", ""): short for short in reversed(list(root.iter("abbr", "acronym")))}
        for meaning, short in first.items():
            short.tail = f" ({meaning}){short.tail or ''}" if meaning.strip() else short.tail
        for part in root.xpath("//svg[not(@aria-hidden='true' or .//symbol)]//*[self::title or self::desc]"):
            part.tag = "text"
        for picture in root.xpath("//*[@role='img'][@aria-label]"):
            etree.SubElement(
                picture, "text" if picture.tag == "svg" else APART_TAG
            ).text = f" {picture.get('aria-label')}"
    for task in root.xpath(TASK_XPATH):  # of Confluence and Notion
        task.tag = "li" if task.tag == "li" else "span"
        task.text = f"[{'x' if DONE_NAME.search(task.get('class', '')) else ' '}] {task.text or ''}"
    for address in root.xpath("//*[@data-cfemail]"):  # Cloudflare combines its bytes with the first by XOR
        with suppress(ValueError):
            key, *code = bytes.fromhex(address.get("data-cfemail"))
            _replace_element(address, "span", bytes(byte ^ key for byte in code).decode())
    for element in list(
        root.iter("template", "iframe", "textarea", "input", "select", "button", "math", "svg", "noframes")
    ):
        if element.getparent() is not None:
            CONTENT_OPENERS[element.tag](element)


def _open_template(element: HtmlElement) -> None:
    if element.get("shadowrootmode"):
        element.tag = "div"


def _open_frame(element: HtmlElement) -> None:
    inside = parse_page(element.get("srcdoc") or element.text or "")
    if inside is not None:
        body = inside if (found := inside.find("body")) is None else found
        _replace_element(element, "div", body.text or "")
        for child in list(body):
            element.append(child)


def _open_field(element: HtmlElement) -> None:
    text = element.text_content() if element.tag == "textarea" else element.get("value", "")
    is_read = element.tag == "textarea" or ("readonly" in element.attrib and element.get("type", "text") == "text")
    if is_read and text.strip():
        _replace_element(element, "pre" if element.tag == "textarea" else "code", text)
    elif element.get("type", "").lower() == "checkbox" and any(True for _ in element.iterancestors("li")):
        _replace_element(element, APART_TAG, "[x]" if "checked" in element.attrib else "[ ]")  # of a list of tasks


def _open_select(element: HtmlElement) -> None:
    options = [option.get("label") or _element_text(option) for option in element.iter("option", "optgroup")]
    if options and len(options) <= MAX_SELECT_OPTIONS:
        _replace_element(element, APART_TAG, ", ".join(filter(None, options)))


def _open_button(element: HtmlElement) -> None:
    """Keep a button that is the heading of the part it opens."""
    is_heading = any(True for _ in element.iterancestors("h1", "h2", "h3", "h4", "h5", "h6", "summary", "dt"))
    opens = is_heading or "aria-controls" in element.attrib or "aria-expanded" in element.attrib
    names = _element_names(element)
    if not opens and element.getnext() is not None:
        opens = QUESTION_NAME.search(names) is not None or _element_text(element).endswith("?")
    is_copy = COPY_BUTTON.search(
        f"{element.get('class', '')} {element.get('title', '')} {element.get('aria-label', '')}"
    )
    if (opens or element.get("role") == "tab") and not is_copy and not ASIDE_NAME.search(names):
        element.tag = "span"
        element.set("role", element.get("role", "button"))  # what follows it may be what it opens


def _open_formula(element: HtmlElement) -> None:
    for note in element.iter("annotation"):
        if "tex" in note.get("encoding", "") and _element_text(note):
            _replace_element(element, "span", f"${_element_text(note)}$")
            return
    written = (element.get("alttext") or "").strip()
    _replace_element(element, "span", f"${written}$" if written else formula_text(element))


MATH_BRACES = {"msup": "^", "msub": "_", "mover": "^", "munder": "_"}


def formula_text(element: HtmlElement) -> str:
    """Return a MathML element as text: fractions as a/b, powers as x^2, subscripts as x_1, roots as √(x)."""
    local = str(element.tag).rpartition("}")[2].rpartition(":")[2]
    parts = [formula_text(child) for child in element if isinstance(child.tag, str)]
    if local in ("annotation", "annotation-xml"):
        return ""
    if not parts:
        return " ".join((element.text or "").split())
    if local == "mfrac" and len(parts) == 2:
        return "/".join(map(_bracket, parts))
    if local in MATH_BRACES and len(parts) == 2:
        return f"{_bracket(parts[0])}{MATH_BRACES[local]}{_bracket(parts[1])}"
    if local in ("msubsup", "munderover") and len(parts) == 3:
        return f"{_bracket(parts[0])}_{_bracket(parts[1])}^{_bracket(parts[2])}"
    if local in ("msqrt", "mroot"):
        return f"√({' '.join(parts[:1] if local == 'mroot' else parts)})"
    if local in ("mtr", "mlabeledtr", "mtable"):
        return ("; " if local == "mtable" else ", ").join(parts)
    return " ".join(filter(None, parts))


def _bracket(text: str) -> str:
    return text if len(text) == 1 or text.isalnum() else f"({text})"


def _open_drawing(element: HtmlElement) -> None:
    """Keep the words of a drawing, such as the boxes of a diagram."""
    words = [_element_text(part) for part in element.iter("text", "foreignobject")]
    if any(any(map(str.isalpha, text)) for text in words):
        _replace_element(element, APART_TAG, ", ".join(filter(None, words)))


TINY = ("0", "1", "0px", "1px")  # of images that count visits


def _open_picture(element: HtmlElement, *, is_file: bool) -> None:
    """Replace an image with its alternative text, on a website only if it has several words; count one without."""
    words = (element.get("alt") or element.get("title") or "").split()
    if len(words) >= (1 if is_file else MIN_ALT_WORDS):
        _replace_element(element, APART_TAG, " ".join(words))
    elif element.get("alt") is None and element.tag == "img":
        around = element.iterancestors("noscript", *(() if is_file else ("nav", "header", "footer")))
        is_seen = element.get("width") not in TINY and "display:none" not in (element.get("style") or "")
        leave_out("images without alternative text", is_seen and next(iter(around), None) is None)


def _write_scripts(root: HtmlElement) -> None:
    """Keep superscripts and subscripts of numbers, and drop the readings above words."""
    for formula in [each for each in root.iter("script") if each.get("type", "").startswith("math/tex")]:
        formula_source = (formula.text or "").strip()
        _replace_element(formula, "span", f"${formula_source}$")
    for summary in root.iter("summary"):
        summary.tag = "p" if all(child.tag in INLINE_TAGS for child in summary) else "div"
    readings = list(root.iter("rt", "rp", "rtc"))
    leave_out("ruby readings", sum(each.tag == "rt" for each in readings))
    for reading in readings:
        if reading.getparent() is not None:
            reading.drop_tree()
    rules = [selectors for selectors, body in _list_style_rules(root) if RAISED_STYLE.search(body)]
    raised = {"sup", "superscript"} | {name for sign, name in SELECTOR_PART.findall(" ".join(rules)) if sign == "."}
    for element in list(root.iter("sup", "sub", "span", "a")):
        is_mark = NOTE_ROLE.search(f"{element.get('epub:type', '')} {element.get('role', '')}") is not None
        if is_mark and element.tag == "a" and element.find(".//sup") is None:
            _replace_element(element, "span", f"[{_element_text(element).strip('[]() ')}]")
        has_style = RAISED_STYLE.search(element.get("style", "")) or raised & set(element.get("class", "").split())
        is_raised = element.tag == "sup" or bool(has_style and element.tag != "sub")
        if (element.tag in ("span", "a") and not is_raised) or any(True for _ in element.iterancestors("pre", "code")):
            continue
        before, text = _text_ahead(element), _element_text(element)
        has_link = element.find(".//a") is not None or any(True for _ in element.iterancestors("a"))
        if is_raised and has_link and text[:1].isalnum():
            _replace_element(element, "span", f"[{text}]")
        elif is_raised:
            _replace_element(element, "span", text if has_link and text else format_superscript(text, before))
        elif before[-1:].isdigit() and text[:1].isdigit():
            _replace_element(element, "span", f"_{text}")


def _list_style_rules(root: HtmlElement) -> list[tuple[str, str]]:
    """Return the (selectors, declarations) of the page's style elements that apply to a screen."""
    styles = (style for style in root.iter("style") if style.getparent().tag != "noscript")
    texts = (STYLE_BLOCK.sub("", style.text or "") for style in styles if SCREEN_MEDIA.search(style.get("media", "")))
    return [rule for text in texts for rule in STYLE_RULE.findall(text)]


def _write_generated_text(root: HtmlElement) -> None:
    """Insert the words that style sheets show before and after elements."""
    for selectors, body in _list_style_rules(root):
        leave_out("texts that style sheets insert", COMPUTED_TEXT.search(body) is not None)
        words = GENERATED_TEXT.search(body)
        text = CSS_ESCAPE.sub(lambda code: chr(min(int(code[1], 16), 0x10FFFF)), words[2]) if words else ""
        if not any(map(str.isalnum, text)) or _hides(body):  # icons and separators
            continue
        for selector, place in GENERATED_PART.findall(selectors):
            match = SIMPLE_SELECTOR.fullmatch(selector.strip())
            if match is None:
                leave_out("texts that style sheets insert")
                continue
            tag = match[0].partition(match[1] or "\0")[0].lower()
            for element in root.iterfind(f".//body//{tag or '*'}"):
                if match[1] and not _has_name(element, {(match[1], match[2])}):
                    continue
                if place == "before":
                    element.text = text + (element.text or "")
                elif len(element):
                    element[-1].tail = (element[-1].tail or "") + text
                else:
                    element.text = (element.text or "") + text


def _text_ahead(element: HtmlElement) -> str:
    """Return the text directly before an element, even if it is the first child of another inline element."""
    while element is not None:
        previous = element.getprevious()
        if previous is not None and (previous.tail or isinstance(previous.tag, str)):
            return previous.tail or _element_text(previous)
        if previous is not None:  # a comment
            element = previous
            continue
        parent = element.getparent()
        if parent is None or (parent.text or "").strip() or parent.tag not in INLINE_TAGS:
            return "" if parent is None else parent.text or ""
        element = parent
    return ""


CONTENT_OPENERS = {
    "template": _open_template, "iframe": _open_frame, "textarea": _open_field, "input": _open_field,
    "select": _open_select, "button": _open_button, "math": _open_formula, "svg": _open_drawing,
    "noframes": _open_frame,
}  # fmt: skip


NOTE_ROLE = re.compile(r"(?:^|\s)(?:doc-)?noteref(?:\s|$)")
RAISED_STYLE = re.compile(
    r"vertical-align\s*:\s*(?:super|0?\.[2-9]\d*em|[2-9]\d?%|[2-9]px|(?:text-)?top.*font-size)"
    r"|font-size.*vertical-align\s*:\s*(?:text-)?top|(?<![-\w])top\s*:\s*-0?\.[2-9]\d*em",
    re.IGNORECASE | re.DOTALL,
)
GENERATED_TEXT = re.compile(r"""(?<![-\w])content\s*:\s*(["'])((?:(?!\1)[^\\]|\\.)*)\1""", re.IGNORECASE | re.DOTALL)
COMPUTED_TEXT = re.compile(r"(?<![-\w])content\s*:[^;]*(?:counters?|attr)\(", re.IGNORECASE)  # of numbers or attributes
GENERATED_PART = re.compile(r"([^,]+?)::?(before|after)\s*(?:,|$)", re.IGNORECASE)
CSS_ESCAPE = re.compile(r"\\([0-9a-fA-F]{1,6})\s?")
INLINE_TAGS = frozenset(("a", "b", "i", "em", "strong", "span", "small", "sup", "sub", "u", "font"))


def _replace_element(element: HtmlElement, tag: str, text: str) -> None:
    tail, kept = element.tail, {name: element.get(name) for name in ("hidden", "style", "class") if element.get(name)}
    element.clear()
    element.tag, element.text, element.tail = tag, text, tail
    element.attrib.update(kept)


def _is_dropped_from_file(element: HtmlElement, styles: PageStyles) -> bool:
    """Return whether an unread part of a file is removed and counted; a hidden one is marked instead if it is taken."""
    tag = element.tag
    is_hidden = isinstance(tag, str) and tag not in UNREAD_TAGS and element.get("aria-hidden") != "true"
    if not is_hidden or not _is_hidden(element, styles) or _is_file_boilerplate(element) or not _element_text(element):
        _count_unread(element)
        return True
    if any(_is_hidden(outer, styles) for outer in element.iterancestors() if isinstance(outer.tag, str)):
        return False  # a part of a marked one
    if not take_hidden("parts of the page"):
        return True
    texts = (one for one in element.iter() if isinstance(one.tag, str) and (one.text or "").strip())
    first = next(texts, element)
    first.text = f"{HIDDEN_MARK.strip()} {(first.text or '').lstrip()}"
    return False


def _count_unread(element: HtmlElement) -> None:
    """Count a part of a file that is not read, if a reader of the file sees it."""
    tag = element.tag
    if tag in MEDIA_TAGS:
        leave_out("embedded media and drawings")
    elif tag == "template":
        leave_out("words of templates", len(_element_text(element).split()))
    elif tag == "noscript":
        leave_out("parts for browsers without scripts", bool(_element_text(element)))
    elif tag in ("input", "select", "textarea"):
        leave_out("form fields", element.get("type", "text").lower() not in ("hidden", "submit", "button", "reset"))
    elif isinstance(tag, str) and tag not in UNREAD_TAGS and _element_text(element) and not _is_mark(element):
        leave_out("lists of links" if _link_share(element) > MAX_LINK_SHARE else "hidden or repeated parts")
    elif tag == "nav" and _element_text(element):
        leave_out("lists of links")


def _is_unread(element: HtmlElement, styles: PageStyles, *, is_file: bool, is_part: bool) -> bool:
    """Return whether an element is a comment, boilerplate, a permalink mark, or permanently hidden."""
    tag = element.tag
    if is_part and tag == "nav":
        return False
    if not isinstance(tag, str) or tag in UNREAD_TAGS:
        return True
    if tag in PAGE_TAGS:
        return False
    if is_part:
        return element.get("aria-hidden") != "true" and _is_hidden(element, styles)
    is_boilerplate = _is_file_boilerplate(element) if is_file else _is_boilerplate(element)
    return is_boilerplate or (_is_hidden(element, styles) and not _can_be_revealed(element, styles))


def _is_file_boilerplate(element: HtmlElement) -> bool:
    """Return whether a part of a file is a list of links, or a few words around the main content."""
    if element.tag in PART_TAGS and element.find(".//h1") is None:
        is_around = element.getroottree().find(".//main") is not None and not any(
            True for _ in element.iterancestors("main", "article", "section", "blockquote")
        )
        return _link_share(element) > MAX_LINK_SHARE or (is_around and _text_length(element) < MIN_PART_CHARS)
    return _is_mark(element) or element.get("role") in FILE_UNREAD_ROLES


def _is_mark(element: HtmlElement) -> bool:
    """Return whether a part only links to a heading, its source or its editor, or from a note back to the text."""
    is_sign = element.tag == "a" and "#" in element.get("href", "#") and PERMALINK.fullmatch(_element_text(element))
    return bool(is_sign or MARK_NAME.search(element.get("class", "")))


def _is_boilerplate(element: HtmlElement) -> bool:
    tag, attributes = element.tag, element.attrib
    role = attributes.get("role")
    if tag == "header" and element.getparent().tag == "body":
        return element.find(".//h1") is None or len(element.getroottree().findall(".//h1")) > 1
    if tag == "footer":
        within = any(True for _ in element.iterancestors("main", "article", "blockquote", "figure", "section"))
        return not within or _link_share(element) > MAX_LINK_SHARE
    if tag == "aside" or role == "complementary":
        return ASIDE_NAME.search(_element_names(element)) is not None or _link_share(element) > MAX_LINK_SHARE
    if role == "button" and COPY_BUTTON.search(f"{attributes.get('class', '')} {_element_text(element)}"):
        return True
    return role in UNREAD_ROLES or _is_mark(element)


def _link_share(element: HtmlElement) -> float:
    return sum(_text_length(link) for link in element.iter("a")) / max(1, _text_length(element))


def _element_names(element: HtmlElement) -> str:
    return CAMEL_CASE_BOUNDARY.sub("-", f"{element.get('class', '')} {element.get('id', '')}").lower().replace("_", "-")


def _is_hidden(element: HtmlElement, styles: PageStyles) -> bool:
    attributes = element.attrib
    is_closed = element.tag == "dialog" and "open" not in attributes
    if not attributes:
        return is_closed
    style = attributes.get("style", "")[:MAX_STYLE_CHARS]
    if "hidden" in attributes or is_closed:
        return True
    if attributes.get("aria-hidden") == "true" and not (styles.is_styled and element.tag in BLOCK_TAGS):
        return True  # a part that a browser shows is only kept from screen readers, such as a page behind a dialog
    if styles.is_styled:
        return False
    is_shown = VISIBLE_STYLE.search(style) is not None or _has_name(element, styles.shown)
    return (
        _hides(style)
        or (_has_name(element, styles.hidden) and not is_shown)
        or (
            (ZERO_FONT_SIZE.search(style) is not None or _has_name(element, styles.without_font))
            and not _has_font(element, styles)
        )
    )


def _has_font(element: HtmlElement, styles: PageStyles) -> bool:
    """Return whether a descendant of an element with font size 0 sets its own font size."""
    return any(
        FONT_SIZE.search(child.get("style", "")) or _has_name(child, styles.with_font)
        for child in element.iterdescendants()
        if isinstance(child.tag, str)
    )


def _can_be_revealed(element: HtmlElement, styles: PageStyles) -> bool:
    """Return whether a click, a script or the page's styles can reveal a hidden element."""
    attributes = element.attrib
    names = _element_names(element)
    if ASIDE_NAME.search(names):
        return False
    style = attributes.get("style", "")[:MAX_STYLE_CHARS]
    fades = not attributes.get("hidden") and FADED_STYLE.search(style) and not REMOVED_STYLE.search(style)
    own_tag = element.tag if "-" in element.tag else ""
    return (
        attributes.get("role") in ("tabpanel", "region")
        or attributes.get("hidden") == "until-found"
        or PANEL_NAME.search(f"{names} {own_tag}") is not None
        or bool(fades and (styles.has_scripts or names.strip() or ANIMATION_STYLE.search(style)))
        or bool(fades and any(name.startswith("data-") for name in attributes))
        or any(BINDING.match(name) for name in attributes)
        or attributes.get("id", "") in styles.named
        or any(name in styles.named for name in attributes.get("class", "").split())
        or _has_name(element, styles.opened)
        or _follows_switch(element)
        or _is_answer(element)
    )


def _follows_switch(element: HtmlElement) -> bool:
    """Return whether the part before a hidden one, or a button after it, is clickable."""
    before, after = element.getprevious(), element.getnext()
    if before is not None and isinstance(before.tag, str) and before.tag not in ("nav", "form", "header"):
        clicked = before.xpath(CLICKED_XPATH)
        if clicked and _text_length(before) and not COPY_BUTTON.search(_element_names(clicked[0])):
            return True
    around = element.getparent()
    tabs = None if around is None else around.getprevious()
    if tabs is not None and isinstance(tabs.tag, str) and tabs.xpath(TABS_XPATH):
        return True
    return after is not None and after.tag == "button" and not COPY_BUTTON.search(_element_names(after))


def _is_answer(element: HtmlElement) -> bool:
    """Return whether a hidden part follows its question, or is in a part that a click reveals."""
    before = next((each for each in element.itersiblings(preceding=True) if isinstance(each.tag, str)), None)
    is_asked = before is not None and (before.tag in QUESTION_TAGS or _element_text(before).endswith(("?", "？")))
    around = [
        each for _, each in zip(range(3), element.iterancestors("div", "section", "li", "dl", "ul"), strict=False)
    ]
    return is_asked or any(PANEL_NAME.search(_element_names(each)) for each in around)


def _has_name(element: HtmlElement, names: Collection[tuple[str, str]]) -> bool:
    return ("#", element.get("id", "")) in names or any(
        (".", name) in names for name in element.get("class", "").split()
    )


def _text_length(element: HtmlElement) -> int:
    return sum(len(text.strip()) for text in element.itertext())


def _element_text(element: HtmlElement | None) -> str:
    return "" if element is None else " ".join("".join(element.itertext()).split())


def _read_metadata(root: HtmlElement) -> dict[str, Any]:
    metadata: dict[str, Any] = {}
    for tag in root.xpath("//meta | //time | //*[@itemprop]"):
        attributes = (*META_ATTRIBUTES, "class") if tag.tag == "time" else META_ATTRIBUTES
        name = "pubdate" if "pubdate" in tag.attrib else next(filter(None, map(tag.get, attributes)), "").lower()
        date = _date_key(name)
        key = date or (META_NAMES.get(name) if tag.tag == "meta" else None)
        if key and key not in metadata and (content := _read_content(tag)):
            is_own = date is None or (any(map(str.isdigit, content)) and not _is_in_comment(tag))
            metadata |= {key: content} if is_own else {}
    for block in root.iterfind(LINKED_DATA_PATH):
        text = block.text or ""
        found = {  # by depth, because dates of the page are outside those of its comments and reviews
            match: text.count("{", 0, match.start()) - text.count("}", 0, match.start())
            for match in islice(LINKED_DATE.finditer(text), MAX_LINKED_DATES)
        }
        for match in sorted(found, key=found.__getitem__):
            metadata.setdefault(str(_date_key(match[1].lower())), match[2].replace("\\/", "/"))
    texts = root.xpath("//text()[not(parent::script or parent::style)]")
    for words in filter(None, map(LAST_CHANGE.search, filter(YEAR.search, texts))):
        metadata.setdefault("modified", words[1])
    times = {written for tag in root.iter("time") if YEAR.search(written := _read_content(tag))}
    if len(times) == 1:  # several are about events, comments or other articles
        metadata.setdefault("time", times.pop())
    for link in root.iterfind(".//link"):
        if link.get("rel") == "canonical" and link.get("href"):
            metadata["canonical_url"] = link.get("href")
    return metadata


def _date_key(name: str) -> str | None:
    """Return the key in the metadata for a tag's date, by the tag's name in lower case; None if it has none."""
    return next((key for key, words in DATE_NAMES.items() if words.search(name)), None)


def _is_in_comment(tag: HtmlElement) -> bool:
    around = (tag, *tag.iterancestors())
    return any(COMMENT_NAME.search(f"{one.get('class', '')} {one.get('itemprop', '')}") for one in around)


def _read_content(tag: HtmlElement) -> str:
    """Return the value of a tag, or its text if it is as short as a date."""
    written = tag.get("content") or tag.get("datetime") or ("" if tag.tag == "meta" else _element_text(tag))
    return "" if tag.tag != "meta" and len(written) > MAX_DATE_CHARS else written.strip()


def find_charset(data: bytes) -> str | None:
    """Return the charset that a page declares, or None.

    As in browsers, it is in an XML declaration at the start, in ``<meta charset>`` or in ``<meta http-equiv>`` with a
    content type; comments and the contents of other tags do not count.
    """
    head = COMMENT.sub(b"", data[:MAX_HEAD_BYTES]).partition(b"<body")[0]
    if match := XML_ENCODING.search(data[:4096]):
        return match.group(1).decode("ascii", "ignore")
    for tag in META_TAG.findall(head):
        values = {name.lower(): b"".join(value) for name, *value in ATTRIBUTE.findall(tag)}
        charset = values.get(b"charset")
        if charset is None and values.get(b"http-equiv", b"").strip().lower() == b"content-type":
            match = CONTENT_CHARSET.search(values.get(b"content", b""))
            charset = match.group(1) if match else None
        if charset:
            return charset.strip().decode("ascii", "ignore")
    return None


# --- Large pages, converted in parts to bound memory ---

PART_CHARS = 200_000  # characters of HTML converted at once
CONTAINER_TAGS = frozenset(("body", "main", "article", "section", "div", "center", "form", "html", "span", "p"))
# Elements before which a text can be cut without joining two paragraphs or splitting a sentence.
BLOCK_TAGS = CONTAINER_TAGS - {"span"} | {
    "h1", "h2", "h3", "h4", "h5", "h6", "pre", "ul", "ol", "dl", "table", "blockquote", "hr", "br", "figure", "details",
}  # fmt: skip


def split_element(element: html.HtmlElement) -> Iterator[str]:
    """Yield an element's HTML in order, in parts of about ``PART_CHARS`` characters. Lists stay whole."""
    source = _serialize(element, with_tail=False)
    if len(source) <= PART_CHARS or not _is_divisible(element):
        yield source
        return
    del source
    if element.tag == "table":
        yield from _split_table(element)
        return
    pending = [escape(element.text or "")]
    size = len(pending[0])
    for child in element:
        source = _serialize(child, with_tail=True)
        is_divisible = len(source) > PART_CHARS and _is_divisible(child)
        if child.tag in BLOCK_TAGS and (is_divisible or size + len(source) > PART_CHARS):
            yield "".join(pending)
            pending, size = [], 0
        if is_divisible and child.tag in BLOCK_TAGS:
            yield from split_element(child)
            source = escape(child.tail or "")
        pending.append(source)
        size += len(source)
    yield "".join(pending)


def _is_divisible(element: HtmlElement) -> bool:
    return element.tag in CONTAINER_TAGS or bool(element.xpath("self::table/*[last()][self::thead]/tr[2]"))


def _split_table(table: HtmlElement) -> Iterator[str]:
    """Yield a table that ``_set_table_head`` has prepared in parts, each with the first row."""
    *captions, head = table
    opening, first = "".join(_serialize(one, with_tail=False) for one in captions), _serialize(head[0], with_tail=False)
    pending, size = list[str](), 0
    for row in head[1:]:
        pending.append(_serialize(row, with_tail=False))
        size += len(pending[-1])
        if size > PART_CHARS or row is head[-1]:
            yield f"<table>{opening}<thead>{first}{''.join(pending)}</thead></table>"
            pending, size, opening = [], 0, ""


def _serialize(element: html.HtmlElement, *, with_tail: bool) -> str:
    return cast("str", html.tostring(element, encoding="unicode", with_tail=with_tail))


# --- Tables, prepared for Markdown ---

ROW_XPATH = "./tr | ./thead/tr | ./tbody/tr | ./tfoot/tr"
PROSE_XPATH = ".//h1 | .//h2 | .//h3 | .//h4 | .//pre | .//table"  # marks of a layout table
MAX_CELL_SPAN = 60  # cells; a larger span is an error in the page
MAX_NESTED_TABLE_CHARS = 600  # of a nested table that becomes its cell's text


def normalise_tables(root: HtmlElement) -> None:
    """Rewrite tables so that Markdown can represent them. Layout tables stay unchanged."""
    for table in reversed(list(root.iter("table"))):
        if any("\n" in "".join(block.itertext()) for block in table.iter("pre")):
            for part in [table, *table.iter("thead", "tbody", "tfoot", "tr", "td", "th", "caption")]:
                part.tag = "div"  # Markdown's cells have one line, so code in them would lose its lines
        elif any(True for _ in table.iterancestors("td", "th")):
            _flatten_nested_table(table)
        elif not table.xpath(PROSE_XPATH):
            _normalise_table(table)
            _set_table_head(table)


def _flatten_nested_table(table: HtmlElement) -> None:
    """Replace a nested table with its text: cells separated by commas, rows by semicolons."""
    if table.xpath(PROSE_XPATH) or len(table.text_content()) > MAX_NESTED_TABLE_CHARS:
        return
    rows = (
        ", ".join(filter(None, (format_cell(cell.text_content()) for cell in row))) for row in table.xpath(ROW_XPATH)
    )
    words, tail = "; ".join(filter(None, rows)), table.tail
    table.clear()
    table.tag, table.text, table.tail = "span", f" {words} ", tail


def _normalise_table(table: HtmlElement) -> None:
    """Give every row one cell per column, and the table a single header row."""
    rows = table.xpath(ROW_XPATH)
    cells = [list(row.iterchildren("td", "th")) for row in rows]
    spans = any(_cell_span(cell, name) > 1 for row in cells for cell in row for name in ("rowspan", "colspan"))
    empty = [row for row, own in zip(rows, cells, strict=True) if not "".join(row.itertext()).strip() or not own]
    if not spans:
        for row in empty[: len(rows) - 1]:
            row.drop_tree()
        return
    named = [
        row.getparent().tag == "thead" or (bool(own) and all(cell.tag == "th" for cell in own))
        for row, own in zip(rows, cells, strict=True)
    ]
    grid = _expand_spans(cells)
    texts = [["" if cell is None else format_cell(cell.text_content()) for cell in row] for row in grid]
    names = merge_header_rows(texts, len(list(takewhile(bool, named))) or None)
    dropped = len(grid) - len(names)
    for place, (row, own) in enumerate(zip(rows, grid, strict=True)):
        for cell in row.xpath("./td | ./th"):
            row.remove(cell)
        if place < dropped or row in empty:
            row.drop_tree()
            continue
        for cell, name in zip(own, names[0], strict=True):
            if dropped and place == dropped:
                head = row.makeelement("th")
                head.text = name
                row.append(head)
            else:
                row.append(_copy_cell(row, cell))


def _set_table_head(table: HtmlElement) -> None:
    """Put all rows into one <thead>, for which the converter writes one rule, and escape the bars in their cells."""
    rows = table.xpath("./tr | ./thead/tr | ./tbody/tr") + table.xpath("./tfoot/tr")
    head = table.makeelement("thead")
    for row in rows:
        head.append(row)
        for part in row.iter():
            part.text, part.tail = (text and text.replace("|", "\\|") for text in (part.text, part.tail))
    for section in table.xpath("./thead | ./tbody | ./tfoot"):
        section.drop_tag()
    table.append(head)


def _expand_spans(cells: list[list[HtmlElement]]) -> list[list[HtmlElement | None]]:
    """Return rows of equal length. A cell that spans rows is in each of them; one that spans columns, in the first."""
    grid: list[dict[int, HtmlElement | None]] = [{} for _ in cells]
    for place, row in enumerate(cells):
        column = 0
        for cell in row:
            while column in grid[place]:
                column += 1
            for below in range(place, min(len(grid), place + _cell_span(cell, "rowspan"))):
                for offset in range(_cell_span(cell, "colspan")):
                    grid[below][column + offset] = None if offset else cell
    width = max((column + 1 for row in grid for column in row), default=0)
    return [[row.get(column) for column in range(width)] for row in grid]


def _cell_span(cell: HtmlElement, name: str) -> int:
    value = cell.get(name, "1").strip()
    return min(int(value) or (MAX_CELL_SPAN if name == "rowspan" else 1), MAX_CELL_SPAN) if value.isdecimal() else 1


def _copy_cell(row: HtmlElement, cell: HtmlElement | None) -> HtmlElement:
    if cell is None:
        return row.makeelement("td")
    copied = deepcopy(cell)
    copied.tail = None
    for name in ("rowspan", "colspan"):
        copied.attrib.pop(name, None)
    return copied
