"""The reader of HTML: the main content as Markdown, without the parts that nobody reads."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from workbench.ingestion.decoding import decode
from workbench.ingestion.raw import Draft

if TYPE_CHECKING:
    from lxml.html import HtmlElement

CHARSET = re.compile(rb"""<meta[^>]{0,200}?charset\s*=\s*["']?\s*([\w.:-]+)""", re.IGNORECASE)
XML_ENCODING = re.compile(rb"""<\?xml[^>]{0,100}?encoding\s*=\s*["']([\w.:-]+)""")
XML_DECLARATION = re.compile(r"\A\s*<\?xml[^>]*\?>")
HIDDEN_STYLE = re.compile(
    r"display\s*:\s*none|visibility\s*:\s*hidden|(?:font-size|max-height|max-width)\s*:\s*0(?![.\d])"
    r"|(?<![-\w])(?:opacity|height|width)\s*:\s*0(?![.\d])|text-indent\s*:\s*-\d{3,}|clip\s*:\s*rect\(0",
    re.IGNORECASE,
)
# Possessive, and begun only where a rule can begin: linear on style sheets that were never closed, however large.
STYLE_RULE = re.compile(r"(?<![^{}@;])([^{}@;]++)\{([^{}]*+)\}")
STYLE_BLOCK = re.compile(
    r"@[^@{};]*+(?:;|\{(?:[^{}]*+\{[^{}]*+\})*+[^{}]*+\})|/\*(?:[^*]++|\*(?!/))*+(?:\*/|\Z)", re.DOTALL
)
LONGEST_STYLE = 4_000  # characters of a style attribute that are looked at
SIMPLE_SELECTOR = re.compile(r"[a-zA-Z][\w-]*|[a-zA-Z]?[\w-]*([.#])([\w-]+)")
UNREAD_TAGS = frozenset(
    (
        "script", "style", "noscript", "template", "svg", "canvas", "iframe", "object", "embed", "video", "audio",
        "dialog", "nav", "aside", "footer", "button", "select", "input", "textarea", "img", "picture", "head",
    )
)  # fmt: skip
UNREAD_ROLES = frozenset(("navigation", "banner", "contentinfo", "search", "complementary"))
HEAD_TAGS = frozenset(("title", "meta", "link", "script", "style", "base", "noscript", "template"))
MAIN = (".//main", ".//*[@role='main']", ".//article")
MAIN_SHARE = 0.3  # a <main> with less of the page's text than this is not where the text is
MAX_DEPTH = 200  # elements nested deeper than this would overflow the converter's recursion
META_NAMES = {"description": "description", "author": "author", "keywords": "keywords", "date": "date"}


def read_html(data: bytes, name: str) -> Draft:
    """Return the main content; the title is <title>, else the first <h1>."""
    source = decode(data, name, declared_charset(data))
    return draft_from_html(source)


def draft_from_html(source: str, base_url: str | None = None) -> Draft:
    """Turn a page's source into title, metadata and Markdown; ``base_url`` makes its links absolute."""
    root = parsed(source)
    return Draft() if root is None else draft_from_tree(root, base_url)


def draft_from_tree(root: HtmlElement, base_url: str | None = None) -> Draft:
    """Do the same with a parsed page; elements that are not read are taken out of the tree."""
    title = _words(root.find(".//head/title"))
    metadata = _metadata(root)
    content = _main_content(root)
    if base_url is not None:
        content.make_links_absolute(base_url, resolve_base_href=False, handle_failures="ignore")
    return Draft(markdown_of(content), title or _words(content.find(".//h1")), metadata)


def fragment_to_markdown(source: str) -> str:
    """Convert HTML that another format holds (a Word file, a book's chapter)."""
    root = parsed(source)
    return "" if root is None else markdown_of(_main_content(root))


def parsed(source: str) -> HtmlElement | None:
    """Parse a page, None where it is empty; lxml is ten times faster than soup at finding the part that is read."""
    from lxml import html

    source = XML_DECLARATION.sub("", source).replace("\0", "")
    if not source.strip():
        return None
    root = html.document_fromstring(source, parser=html.HTMLParser(huge_tree=True))
    _take_out_of_head(root)
    return root


def _take_out_of_head(root: HtmlElement) -> None:
    """Move what is no head's business into the body: the parser leaves <main> there where nobody wrote <body>."""
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
    from markdownify import MarkdownConverter

    from workbench.ingestion.readers.html_parts import parts_of
    from workbench.ingestion.readers.html_tables import set_tables_right

    set_tables_right(element)

    converter = MarkdownConverter(
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
    """Drop what is not read, then choose the element that holds the text."""
    hidden = _hidden_by_style(root)
    for element in [element for element in root.iter() if _unread(element, hidden)]:
        if element.getparent() is not None:
            element.drop_tree()
    for link in list(root.iter("a")):
        if (link.get("href") or "#").startswith(("#", "javascript:")):
            link.drop_tag()  # keeps the words; the address leads nowhere outside the page
    for block in [block for block in root.iter("pre") if block.find(".//pre") is not None]:
        block.drop_tag()  # a frame around a code block, which would become a fence around a fence
    body = root.find(".//body")
    body = root if body is None else body
    length = _length(body)
    for path in MAIN:
        elements = body.findall(path)
        if len(elements) == 1 and _length(elements[0]) > MAIN_SHARE * length:
            return elements[0]
    return body


def _hidden_by_style(root: HtmlElement) -> frozenset[tuple[str, str]]:
    """Return the (".class") and ("#id") selectors that the page's own style elements hide, media rules left aside."""
    hidden: set[tuple[str, str]] = set()
    for style in root.iter("style"):
        for selectors, body in STYLE_RULE.findall(STYLE_BLOCK.sub("", style.text or "")):
            if HIDDEN_STYLE.search(body):
                for selector in selectors.split(","):
                    match = SIMPLE_SELECTOR.fullmatch(selector.strip())
                    if match and match.group(1):
                        hidden.add((match.group(1), match.group(2)))
    return frozenset(hidden)


def _unread(element: HtmlElement, hidden: frozenset[tuple[str, str]]) -> bool:
    """Tell whether an element is a comment, hidden, page furniture, or a permalink mark."""
    tag = element.tag
    if not isinstance(tag, str) or tag in UNREAD_TAGS:
        return True
    attributes = element.attrib
    if not attributes:
        return tag == "header" and element.getparent().tag == "body"
    return (
        "hidden" in attributes
        or attributes.get("aria-hidden") == "true"
        or attributes.get("role") in UNREAD_ROLES
        or HIDDEN_STYLE.search(attributes.get("style", "")[:LONGEST_STYLE]) is not None
        or (bool(hidden) and _is_hidden(attributes, hidden))
        or (tag == "header" and element.getparent().tag == "body")
        or (tag == "a" and "headerlink" in attributes.get("class", ""))
    )


def _is_hidden(attributes: Mapping[str, str], hidden: frozenset[tuple[str, str]]) -> bool:
    return ("#", attributes.get("id", "")) in hidden or any(
        (".", name) in hidden for name in attributes.get("class", "").split()
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
    """Return the charset label that a page's own bytes declare, or None."""
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
    """Return how deep elements nest, walking without recursion."""
    deepest, stack = 0, [(element, 0)]
    while stack:
        node, depth = stack.pop()
        deepest = max(deepest, depth)
        stack.extend((child, depth + 1) for child in node)
    return deepest
