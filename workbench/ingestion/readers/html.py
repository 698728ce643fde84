"""Reader of HTML: the main content as Markdown, without boilerplate."""

from __future__ import annotations

import re
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from html import escape
from itertools import takewhile
from typing import TYPE_CHECKING, Any, cast

from lxml import html

from workbench.ingestion.raw import Draft
from workbench.ingestion.readers.grid import one_line
from workbench.ingestion.readers.header_rows import with_one_header
from workbench.ingestion.text import decode

if TYPE_CHECKING:
    from lxml.html import HtmlElement

# --- Code blocks without line numbers and copy buttons ---

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
    """Give every code block the form <pre><code>text</code></pre>, and reduce inline code to its text."""
    for block in [each for each in root.iter("div", "span") if _is_preformatted(each)]:
        block.tag = "pre"
    for table in list(root.iter("table")):
        _unfold_table(table)
    for block in [block for block in root.iter("pre") if block.find(".//pre") is not None]:
        block.drop_tag()  # a wrapper around a code block, which would give nested fences
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
    """Replace a table of line numbers and code by the code."""
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
    """Return whether a row is one or more line numbers next to code."""
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
        self.pieces.append(text.translate(INVISIBLE))

    def start(self) -> int:
        if self._is_pending:
            self.pieces.append("\n")
            self._is_pending = False
        return len(self.pieces)

    def end(self, start: int) -> None:
        self._is_pending = len(self.pieces) == start or not self.pieces[-1].endswith("\n")


def _lines_of(block: HtmlElement) -> str:
    """Return the text of a code block with a break after each element that is a line."""
    lines = _Lines()
    stack: list[tuple[HtmlElement, int | None]] = [(block, None)]  # with the start of its line once it is complete
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
    """Return whether an element contains only line numbers."""
    is_marked = NUMBER_CLASS.search(element.get("class", "")) or "data-line-number" in element.attrib
    return bool(is_marked) and NUMBERS.fullmatch("".join(element.itertext())) is not None


def _language(block: HtmlElement) -> str:
    """Return the language declared by a block, the code in it or a wrapper around it."""
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

    return CodeConverter


CHARSET = re.compile(rb"""<meta[^>]{0,200}?charset\s*=\s*["']?\s*([\w.:-]+)""", re.IGNORECASE)
XML_ENCODING = re.compile(rb"""<\?xml[^>]{0,100}?encoding\s*=\s*["']([\w.:-]+)""")
XML_DECLARATION = re.compile(r"\A\s*<\?xml[^>]*\?>")
HIDDEN_STYLE = re.compile(
    r"display\s*:\s*none|visibility\s*:\s*hidden|(?:max-height|max-width)\s*:\s*0(?![.\d])"
    r"|(?<![-\w])(?:opacity|height|width)\s*:\s*0(?![.\d])|text-indent\s*:\s*-\d{3,}|clip\s*:\s*rect\(0",
    re.IGNORECASE,
)
NO_FONT = re.compile(r"font-size\s*:\s*0(?![.\d])", re.IGNORECASE)
FONT = re.compile(r"font(?:-size)?\s*:(?!\s*0(?![.\d]))", re.IGNORECASE)
SHOWN_STYLE = re.compile(
    r"display\s*:\s*(?!none)[a-z]|visibility\s*:\s*visible|(?<![-\w])opacity\s*:\s*(?!0(?![.\d]))[.\d]"
    r"|(?:max-)?height\s*:\s*(?!0(?![.\d]))[a-z\d]",
    re.IGNORECASE,
)
ONLY_OPACITY = re.compile(r"(?<![-\w])opacity\s*:\s*0(?![.\d])", re.IGNORECASE)
MOTION = re.compile(r"transform|transition|animation|will-change", re.IGNORECASE)
# Names of parts that a click reveals: tabs, accordions, FAQs, steps.
PANEL = re.compile(
    r"(?<![a-z])(?:tabs?|panes?|panels?|tab(?:pane|panel|content|item)s?|accordion\w*|collaps\w*|faqs?|answers?|expand\w*"
    r"|toggl\w*|details?|spoilers?|reveal\w*|steps?|slides?|carousel\w*|disclosure)(?![a-z])"
)
# Names of parts that are not content even if a click reveals them.
BESIDE = re.compile(
    r"(?<![a-z])(?:sidebar\w*|toc|nav\w*|menus?|related|recommend\w*|shar(?:e|ing)|social|promo\w*|ads?|advert\w*|sponsor\w*"
    r"|cookies?|newsletter|breadcrumbs?|subscribe|popup|tooltip|toast|search|spinner|sr-only|visually-hidden)(?![a-z])"
)
CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
NAME = re.compile(r"[A-Za-z_][\w-]*")
SELECTED = re.compile(  # selectors in scripts
    r"""(?:getElementById|getElementsByClassName|querySelector(?:All)?|\$|classList\.\w+)\(\s*['"`]([^'"`]{1,100})"""
)
REFERRING = (
    "aria-controls", "data-target", "data-bs-target", "data-tab", "data-controls", "data-toggle-target",
    "popovertarget", "commandfor", "onclick",
)  # fmt: skip
MOST_SCRIPT = 200_000  # characters of a page's scripts searched for names
MOST_CHOICES = 20  # options of a select kept as text; longer lists (countries) are dropped
FEWEST_ALT_WORDS = 4  # of an alt text that is kept; shorter ones name logos and icons
MOSTLY_LINKS = 0.5  # share of characters in links above which a part is navigation
STYLED_BY_BROWSER = "data-workbench-styled"  # set on <html> if a browser has marked invisible elements as "hidden"
# Possessive and anchored to the start of a rule, so unclosed style sheets of any size take linear time.
STYLE_RULE = re.compile(r"(?<![^{}@;])([^{}@;]++)\{([^{}]*+)\}")
STYLE_BLOCK = re.compile(
    r"@[^@{};]*+(?:;|\{(?:[^{}]*+\{[^{}]*+\})*+[^{}]*+\})|/\*(?:[^*]++|\*(?!/))*+(?:\*/|\Z)", re.DOTALL
)
LONGEST_STYLE = 4_000  # characters examined of a style attribute
COPY = re.compile(r"copy|clipboard", re.IGNORECASE)
PART_OF_SELECTOR = re.compile(r"([.#])([\w-]+)")
SIMPLE_SELECTOR = re.compile(r"[a-zA-Z][\w-]*|[a-zA-Z]?[\w-]*([.#])([\w-]+)")
UNREAD_TAGS = frozenset(
    (
        "script", "style", "noscript", "template", "svg", "canvas", "iframe", "object", "embed", "video", "audio",
        "nav", "button", "select", "input", "textarea", "img", "picture", "head", "wbr",
    )
)  # fmt: skip
UNREAD_ROLES = frozenset(("navigation", "banner", "contentinfo", "search"))
WHOLE = frozenset(("html", "body", "main"))  # hidden only until a script runs
HEAD_TAGS = frozenset(("title", "meta", "link", "script", "style", "base", "noscript", "template"))
MAIN = (".//main", ".//*[@role='main']", ".//article")
MAIN_SHARE = 0.3  # a <main> with a smaller share of the page's text is not the main content
MAX_DEPTH = 200  # deeper nesting would overflow the converter's recursion
META_NAMES = {"description": "description", "author": "author", "keywords": "keywords", "date": "date"}


def read_html(data: bytes, name: str) -> Draft:
    """Return the main content. The title is <title>, or else the first <h1>."""
    source = decode(data, name, declared_charset(data))
    return draft_from_html(source)


def draft_from_html(source: str, base_url: str | None = None) -> Draft:
    """Convert a page's source to title, metadata and Markdown. ``base_url`` makes links absolute."""
    root = parsed(source)
    return Draft() if root is None else draft_from_tree(root, base_url)


def draft_from_tree(root: HtmlElement, base_url: str | None = None) -> Draft:
    """Convert a parsed page like ``draft_from_html``. Unread elements are removed from the tree."""
    title = _words(root.find(".//head/title"))
    metadata = _metadata(root)
    content = _main_content(root)
    if base_url is not None:
        content.make_links_absolute(base_url, resolve_base_href=False, handle_failures="ignore")
    return Draft(markdown_of(content), title or _words(content.find(".//h1")), metadata)


def fragment_to_markdown(source: str) -> str:
    """Convert HTML contained in another format (a Word file, a book's chapter)."""
    root = parsed(source)
    return "" if root is None else markdown_of(_main_content(root))


def parsed(source: str) -> HtmlElement | None:
    """Parse a page, or return None if it is empty. lxml is ten times faster than BeautifulSoup here."""
    from lxml import html

    source = XML_DECLARATION.sub("", source).replace("\0", "")
    if not source.strip():
        return None
    root = html.document_fromstring(source, parser=html.HTMLParser(huge_tree=True))
    _take_out_of_head(root)
    return root


def _take_out_of_head(root: HtmlElement) -> None:
    """Move body elements out of the head; the parser puts <main> there if the page has no <body> tag."""
    from lxml import etree  # pyright: ignore[reportAttributeAccessIssue]

    head = root.find("head")
    strays = (
        [] if head is None else [child for child in head if child.tag not in HEAD_TAGS and isinstance(child.tag, str)]
    )
    if strays:
        body = root.find("body")
        body = etree.SubElement(root, "body") if body is None else body
        for place, stray in enumerate(strays):
            body.insert(place, stray)


def markdown_of(element: HtmlElement) -> str:
    """Convert a parsed element to Markdown."""
    if _depth(element) > MAX_DEPTH:
        return "\n".join(text.strip() for text in element.itertext() if text.strip())
    from bs4 import BeautifulSoup

    set_tables_right(element)

    converter = code_converter()(
        heading_style="ATX",
        bullets="-",
        escape_asterisks=False,
        escape_underscores=False,
        escape_misc=False,
        table_infer_header=True,
        code_language_callback=_code_language,
    )
    texts = [converter.convert_soup(BeautifulSoup(part, "lxml")) for part in parts_of(element)]
    return texts[0] if len(texts) == 1 else "\n\n".join(text.strip("\n") for text in texts if text.strip())


def _main_content(root: HtmlElement) -> HtmlElement:
    """Remove unread elements, then return the element with the main content."""
    _bring_out(root)
    straighten_code(root)
    styles = _page_styles(root)
    unread = [element for element in root.iter() if _unread(element, styles)]
    if not _reads_without(root, unread):
        unread = [element for element in unread if element.tag != "nav"]  # a page that consists of links
    for element in unread:
        if element.getparent() is not None:
            element.drop_tree()
    for link in list(root.iter("a")):
        if (link.get("href") or "#").startswith(("#", "javascript:")):
            link.drop_tag()  # keeps the text; the target is only valid inside the page
    for block in [block for block in root.iter("pre") if block.find(".//pre") is not None]:
        block.drop_tag()  # a wrapper around a code block, which would give nested fences
    body = root.find(".//body")
    body = root if body is None else body
    length = _length(body)
    for path in MAIN:
        elements = body.findall(path)
        if len(elements) == 1 and _length(elements[0]) > MAIN_SHARE * length:
            return elements[0]
    return body


@dataclass(frozen=True, slots=True)
class PageStyles:
    """Visibility of a page's parts according to its style elements and scripts.

    Attributes:
        hidden: Hidden selectors, as (".", class) or ("#", id).
        without_font: Selectors with font size 0.
        with_font: Selectors with another font size.
        named: Ids and classes that buttons, links and scripts refer to.
        is_styled: True if a browser has marked the invisible elements.
    """

    hidden: frozenset[tuple[str, str]]
    without_font: frozenset[tuple[str, str]]
    with_font: frozenset[tuple[str, str]]
    named: frozenset[str]
    is_styled: bool


def _page_styles(root: HtmlElement) -> PageStyles:
    hidden: set[tuple[str, str]] = set()
    shown: set[tuple[str, str]] = set()
    without_font: set[tuple[str, str]] = set()
    with_font: set[tuple[str, str]] = set()
    is_styled = root.get(STYLED_BY_BROWSER) is not None
    for style in [] if is_styled else root.iter("style"):
        media = style.get("media", "").lower()
        if (media and not re.search(r"all|screen", media)) or style.getparent().tag == "noscript":
            continue
        for selectors, body in STYLE_RULE.findall(STYLE_BLOCK.sub("", style.text or "")):
            for selector in selectors.split(","):
                last = (selector.split() or [""])[-1]
                match = SIMPLE_SELECTOR.fullmatch(selector.strip())
                if match and match.group(1) and HIDDEN_STYLE.search(body):
                    hidden.add((match.group(1), match.group(2)))
                elif SHOWN_STYLE.search(body):
                    shown.update(PART_OF_SELECTOR.findall(last))
                if match and match.group(1) and NO_FONT.search(body):
                    without_font.add((match.group(1), match.group(2)))
                elif FONT.search(body):
                    with_font.update(PART_OF_SELECTOR.findall(last))
    named = _named(root)
    return PageStyles(frozenset(hidden - shown), frozenset(without_font), frozenset(with_font), named, is_styled)


def _named(root: HtmlElement) -> frozenset[str]:
    """Return the ids and classes that a page's buttons, links and scripts refer to."""
    names: set[str] = set()
    for element in root.iter():
        if not isinstance(element.tag, str):
            continue
        for attribute in REFERRING:
            names.update(NAME.findall(element.get(attribute, "")))
        if element.tag == "a" and element.get("href", "").startswith("#"):
            names.add(element.get("href")[1:])
        elif element.tag == "script":
            for selector in SELECTED.findall((element.text or "")[:MOST_SCRIPT]):
                names.update(NAME.findall(selector))
    return frozenset(names)


def _bring_out(root: HtmlElement) -> None:
    """Convert visible content in frames, shadow roots, fields, formulas and images to plain elements."""
    for element in list(root.iter("template", "iframe", "textarea", "input", "select", "button", "math", "img")):
        if element.getparent() is not None:
            BROUGHT_OUT[element.tag](element)


def _open_template(element: HtmlElement) -> None:
    if element.get("shadowrootmode"):
        element.tag = "div"


def _open_frame(element: HtmlElement) -> None:
    inside = parsed(element.get("srcdoc", ""))
    if inside is not None:
        body = inside.find("body")
        _replace(element, "div", "")
        for child in list(inside if body is None else body):
            element.append(child)


def _open_field(element: HtmlElement) -> None:
    text = element.text_content() if element.tag == "textarea" else element.get("value", "")
    is_read = element.tag == "textarea" or ("readonly" in element.attrib and element.get("type", "text") == "text")
    if is_read and text.strip():
        _replace(element, "pre" if element.tag == "textarea" else "code", text)


def _open_select(element: HtmlElement) -> None:
    options = [_words(option) for option in element.iter("option")]
    if options and len(options) <= MOST_CHOICES:
        _replace(element, "span", ", ".join(filter(None, options)))


def _open_button(element: HtmlElement) -> None:
    """Keep a button that is the heading of the part it opens."""
    is_heading = any(True for _ in element.iterancestors("h1", "h2", "h3", "h4", "h5", "h6", "summary", "dt"))
    opens = is_heading or "aria-controls" in element.attrib or "aria-expanded" in element.attrib
    is_copy = COPY.search(f"{element.get('class', '')} {element.get('title', '')} {element.get('aria-label', '')}")
    if (opens or element.get("role") == "tab") and not is_copy and not BESIDE.search(_names_of(element)):
        element.tag = "span"


def _open_formula(element: HtmlElement) -> None:
    for note in element.iter("annotation"):
        if "tex" in note.get("encoding", "") and _words(note):
            _replace(element, "span", f"${_words(note)}$")
            return


def _open_picture(element: HtmlElement) -> None:
    alt = " ".join(element.get("alt", "").split())
    if len(alt.split()) >= FEWEST_ALT_WORDS:
        _replace(element, "span", alt)


BROUGHT_OUT = {
    "template": _open_template, "iframe": _open_frame, "textarea": _open_field, "input": _open_field,
    "select": _open_select, "button": _open_button, "math": _open_formula, "img": _open_picture,
}  # fmt: skip


def _replace(element: HtmlElement, tag: str, text: str) -> None:
    tail, kept = element.tail, {name: element.get(name) for name in ("hidden", "style", "class") if element.get(name)}
    element.clear()
    element.tag, element.text, element.tail = tag, text, tail
    element.attrib.update(kept)


def _reads_without(root: HtmlElement, unread: list[HtmlElement]) -> bool:
    """Return whether a page has text outside these elements. Only used for pages with a list of links."""
    if not any(element.tag == "nav" for element in unread):
        return True
    body = root.find(".//body")
    left_out = set(unread)
    stack = [root if body is None else body]
    while stack:
        element = stack.pop()
        if (element.text or "").strip():
            return True
        for child in element:
            if (child.tail or "").strip():
                return True
            if child not in left_out:
                stack.append(child)
    return False


def _unread(element: HtmlElement, styles: PageStyles) -> bool:
    """Return whether an element is a comment, boilerplate, a permalink mark, or permanently hidden."""
    tag = element.tag
    if not isinstance(tag, str) or tag in UNREAD_TAGS:
        return True
    if tag in WHOLE:
        return False
    return _is_boilerplate(element) or (_is_hidden(element, styles) and not _is_shown_again(element, styles))


def _is_boilerplate(element: HtmlElement) -> bool:
    tag, attributes = element.tag, element.attrib
    role = attributes.get("role")
    if tag == "header" and element.getparent().tag == "body":
        return element.find(".//h1") is None or len(element.getroottree().findall(".//h1")) > 1
    if tag == "footer":
        within = any(True for _ in element.iterancestors("main", "article", "blockquote", "figure", "section"))
        return not within or _link_share(element) > MOSTLY_LINKS
    if tag == "aside" or role == "complementary":
        return BESIDE.search(_names_of(element)) is not None or _link_share(element) > MOSTLY_LINKS
    if role == "button" and COPY.search(f"{attributes.get('class', '')} {_words(element)}"):
        return True
    return role in UNREAD_ROLES or (tag == "a" and "headerlink" in attributes.get("class", ""))


def _link_share(element: HtmlElement) -> float:
    return sum(_length(link) for link in element.iter("a")) / max(1, _length(element))


def _names_of(element: HtmlElement) -> str:
    return CAMEL.sub("-", f"{element.get('class', '')} {element.get('id', '')}").lower().replace("_", "-")


def _is_hidden(element: HtmlElement, styles: PageStyles) -> bool:
    attributes = element.attrib
    is_closed = element.tag == "dialog" and "open" not in attributes
    if not attributes:
        return is_closed
    style = attributes.get("style", "")[:LONGEST_STYLE]
    if "hidden" in attributes or attributes.get("aria-hidden") == "true" or is_closed:
        return True
    if styles.is_styled:
        return False
    return (
        HIDDEN_STYLE.search(style) is not None
        or _has_name(element, styles.hidden)
        or (
            (NO_FONT.search(style) is not None or _has_name(element, styles.without_font))
            and not _has_font(element, styles)
        )
    )


def _has_font(element: HtmlElement, styles: PageStyles) -> bool:
    """Return whether a descendant of an element with font size 0 sets its own font size."""
    return any(
        FONT.search(child.get("style", "")) or _has_name(child, styles.with_font)
        for child in element.iterdescendants()
        if isinstance(child.tag, str)
    )


def _is_shown_again(element: HtmlElement, styles: PageStyles) -> bool:
    """Return whether a click, a script or the page's styles can reveal a hidden element."""
    attributes = element.attrib
    names = _names_of(element)
    if BESIDE.search(names):
        return False
    style = attributes.get("style", "")
    fades = ONLY_OPACITY.search(style) and (names.strip() or MOTION.search(style))
    return (
        attributes.get("role") == "tabpanel"
        or attributes.get("hidden") == "until-found"
        or PANEL.search(names) is not None
        or bool(fades)
        or attributes.get("id", "") in styles.named
        or any(name in styles.named for name in attributes.get("class", "").split())
    )


def _has_name(element: HtmlElement, names: frozenset[tuple[str, str]]) -> bool:
    if not names:
        return False
    return ("#", element.get("id", "")) in names or any(
        (".", name) in names for name in element.get("class", "").split()
    )


def _length(element: HtmlElement) -> int:
    return sum(len(text.strip()) for text in element.itertext())


def _words(element: HtmlElement | None) -> str:
    return "" if element is None else " ".join("".join(element.itertext()).split())


def _metadata(root: HtmlElement) -> dict[str, Any]:
    metadata: dict[str, Any] = {}
    for tag in root.iterfind(".//meta"):
        key = META_NAMES.get(tag.get("name", "").lower())
        if key and tag.get("content", "").strip():
            metadata[key] = tag.get("content").strip()
    for link in root.iterfind(".//link"):
        if link.get("rel") == "canonical" and link.get("href"):
            metadata["canonical_url"] = link.get("href")
    return metadata


def declared_charset(data: bytes) -> str | None:
    """Return the charset that a page declares, or None."""
    head = data[:4096]
    match = CHARSET.search(head) or XML_ENCODING.search(head)
    return match.group(1).decode("ascii", "ignore") if match else None


def _code_language(element: HtmlElement) -> str:
    for tag in (element, element.find("code")):
        for name in (tag.get("class") or []) if tag is not None else []:
            for prefix in ("language-", "lang-", "highlight-source-"):
                if name.startswith(prefix):
                    return name.removeprefix(prefix)
    return ""


def _depth(element: HtmlElement) -> int:
    """Return the nesting depth of elements without recursion."""
    deepest, stack = 0, [(element, 0)]
    while stack:
        node, depth = stack.pop()
        deepest = max(deepest, depth)
        stack.extend((child, depth + 1) for child in node)
    return deepest


# --- Large pages, converted in parts to bound memory ---

PART = 200_000  # characters of HTML converted at once
CONTAINERS = frozenset(("body", "main", "article", "section", "div", "center", "form", "html", "span", "p"))
# Elements before which a text can be cut without joining two paragraphs or splitting a sentence.
BLOCKS = CONTAINERS - {"span"} | {
    "h1", "h2", "h3", "h4", "h5", "h6", "pre", "ul", "ol", "dl", "table", "blockquote", "hr", "br", "figure", "details",
}  # fmt: skip


def parts_of(element: html.HtmlElement) -> Iterator[str]:
    """Yield an element's HTML in order, in parts of about ``PART`` characters. Lists and tables stay whole."""
    source = _written(element, with_tail=False)
    if len(source) <= PART or element.tag not in CONTAINERS:
        yield source
        return
    del source
    pending = [escape(element.text or "")]
    size = len(pending[0])
    for child in element:
        source = _written(child, with_tail=True)
        is_divisible = len(source) > PART and child.tag in CONTAINERS
        if child.tag in BLOCKS and (is_divisible or size + len(source) > PART):
            yield "".join(pending)
            pending, size = [], 0
        if is_divisible and child.tag in BLOCKS:
            yield from parts_of(child)
            source = escape(child.tail or "")
        pending.append(source)
        size += len(source)
    yield "".join(pending)


def _written(element: html.HtmlElement, *, with_tail: bool) -> str:
    return cast("str", html.tostring(element, encoding="unicode", with_tail=with_tail))


# --- Tables, prepared for Markdown ---

ROWS = "./tr | ./thead/tr | ./tbody/tr | ./tfoot/tr"
PROSE = ".//h1 | .//h2 | .//h3 | .//h4 | .//ul | .//ol | .//pre | .//table"  # marks of a layout table
MOST_SPAN = 60  # cells; a larger span is an error in the page
INNER_CHARACTERS = 600  # of a nested table that becomes its cell's text


def set_tables_right(root: HtmlElement) -> None:
    """Rewrite tables so that Markdown can represent them. Layout tables stay unchanged."""
    for table in reversed(list(root.iter("table"))):
        if any(True for _ in table.iterancestors("td", "th")):
            _flatten(table)
        elif not table.xpath(PROSE):
            _straighten(table)
            _set_head(table)


def _flatten(table: HtmlElement) -> None:
    """Replace a nested table by its text: cells separated by commas, rows by semicolons."""
    if table.xpath(PROSE) or len(table.text_content()) > INNER_CHARACTERS:
        return
    rows = (", ".join(filter(None, (one_line(cell.text_content()) for cell in row))) for row in table.xpath(ROWS))
    words, tail = "; ".join(filter(None, rows)), table.tail
    table.clear()
    table.tag, table.text, table.tail = "span", f" {words} ", tail


def _straighten(table: HtmlElement) -> None:
    """Give every row one cell per column, and the table a single header row."""
    rows = table.xpath(ROWS)
    cells = [list(row.iterchildren("td", "th")) for row in rows]
    spans = any(_span(cell, name) > 1 for row in cells for cell in row for name in ("rowspan", "colspan"))
    empty = [row for row, own in zip(rows, cells, strict=True) if not "".join(row.itertext()).strip() or not own]
    if not spans:
        for row in empty[: len(rows) - 1]:
            row.drop_tree()
        return
    named = [row.getparent().tag == "thead" or _is_named(own) for row, own in zip(rows, cells, strict=True)]
    grid = _grid(cells)
    texts = [["" if cell is None else one_line(cell.text_content()) for cell in row] for row in grid]
    names = with_one_header(texts, len(list(takewhile(bool, named))) or None)
    dropped = len(grid) - len(names)
    for place, (row, own) in enumerate(zip(rows, grid, strict=True)):
        for cell in row.xpath("./td | ./th"):
            row.remove(cell)
        if place < dropped or row in empty:
            row.drop_tree()
            continue
        for cell, name in zip(own, names[0], strict=True):
            row.append(_header_cell(row, name) if dropped and place == dropped else _copy(row, cell))


def _set_head(table: HtmlElement) -> None:
    """Put the first row into a <thead>; the converter omits the header rule without one."""
    rows = table.xpath(ROWS)
    if rows and table.find("caption") is not None and table.find("thead") is None:
        head = table.makeelement("thead")
        table.find("caption").addnext(head)
        head.append(rows[0])


def _is_named(cells: list[HtmlElement]) -> bool:
    return bool(cells) and all(cell.tag == "th" for cell in cells)


def _grid(cells: list[list[HtmlElement]]) -> list[list[HtmlElement | None]]:
    """Return rows of equal length. A cell that spans rows is in each of them; one that spans columns, in the first."""
    grid: list[dict[int, HtmlElement | None]] = [{} for _ in cells]
    for place, row in enumerate(cells):
        column = 0
        for cell in row:
            while column in grid[place]:
                column += 1
            for below in range(place, min(len(grid), place + _span(cell, "rowspan"))):
                for beside in range(_span(cell, "colspan")):
                    grid[below][column + beside] = None if beside else cell
    width = max((column + 1 for row in grid for column in row), default=0)
    return [[row.get(column) for column in range(width)] for row in grid]


def _span(cell: HtmlElement, name: str) -> int:
    value = cell.get(name, "1").strip()
    return min(max(1, int(value)), MOST_SPAN) if value.isascii() and value.isdigit() else 1


def _copy(row: HtmlElement, cell: HtmlElement | None) -> HtmlElement:
    if cell is None:
        return row.makeelement("td")
    copied = deepcopy(cell)
    copied.tail = None
    for name in ("rowspan", "colspan"):
        copied.attrib.pop(name, None)
    return copied


def _header_cell(row: HtmlElement, name: str) -> HtmlElement:
    cell = row.makeelement("th")
    cell.text = name
    return cell
