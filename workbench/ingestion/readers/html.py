"""Read HTML: the main content as Markdown, without what a person does not read."""

from __future__ import annotations

import re
from typing import Any

from workbench.ingestion.decoding import decode
from workbench.ingestion.raw import Draft

CHARSET = re.compile(rb"""<meta[^>]{0,200}?charset\s*=\s*["']?\s*([\w.:-]+)""", re.IGNORECASE)
XML_ENCODING = re.compile(rb"""<\?xml[^>]{0,100}?encoding\s*=\s*["']([\w.:-]+)""")
XML_DECLARATION = re.compile(r"\A\s*<\?xml[^>]*\?>")
HIDDEN_STYLE = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
UNREAD = (
    "script", "style", "noscript", "template", "svg", "canvas", "iframe", "object", "embed", "video", "audio", "dialog",
    "nav", "aside", "footer", "form button", "select", "input", "textarea", "img", "head",
    "[hidden]", "[aria-hidden=true]", "[role=navigation]", "[role=banner]", "[role=contentinfo]", "[role=search]",
    "[role=complementary]", "body > header",
)  # fmt: skip
MAIN = ("main", "[role=main]", "article")
MAIN_SHARE = 0.3  # a <main> with less of the page's text than this is not where the text is
MAX_DEPTH = 400  # elements nested deeper than this would overflow the converter's recursion
META_NAMES = {"description": "description", "author": "author", "keywords": "keywords", "date": "date"}


def read_html(data: bytes, name: str) -> Draft:
    """Return the main content; the title is <title>, else the first <h1>."""
    source = decode(data, name, _declared(data))
    return draft_from_html(source)


def draft_from_html(source: str) -> Draft:
    """Turn a page's source into title, metadata and Markdown."""
    from bs4 import BeautifulSoup

    soup = BeautifulSoup(XML_DECLARATION.sub("", source), "lxml")
    title = soup.title.get_text(" ", strip=True) if soup.title else ""
    metadata = _metadata(soup)
    content = _main_content(soup)
    heading = content.find("h1")
    return Draft(markdown_of(content), title or (heading.get_text(" ", strip=True) if heading else ""), metadata)


def fragment_to_markdown(source: str) -> str:
    """Convert HTML that another format holds (a Word file, a book's chapter)."""
    from bs4 import BeautifulSoup

    return markdown_of(_main_content(BeautifulSoup(XML_DECLARATION.sub("", source), "lxml")))


def markdown_of(element: Any) -> str:
    """Convert a parsed element to Markdown."""
    from markdownify import MarkdownConverter

    if _depth(element) > MAX_DEPTH:
        return element.get_text("\n", strip=True)
    converter = MarkdownConverter(
        heading_style="ATX",
        bullets="-",
        escape_asterisks=False,
        escape_underscores=False,
        escape_misc=False,
        table_infer_header=True,
        code_language_callback=_code_language,
    )
    return converter.convert_soup(element)


def _main_content(soup: Any) -> Any:
    """Drop what is not read, then choose the element that holds the text."""
    from bs4 import Comment

    for comment in soup.find_all(string=lambda string: isinstance(string, Comment)):
        comment.extract()
    for element in soup.select(", ".join(UNREAD)):
        element.decompose()
    for element in soup.find_all(style=HIDDEN_STYLE):
        element.decompose()
    for link in soup.find_all("a"):
        if str(link.get("href") or "#").startswith(("#", "javascript:")):
            link.unwrap()  # leads nowhere outside the page
    body = soup.body or soup
    length = len(body.get_text(strip=True))
    for selector in MAIN:
        found = body.select(selector)
        if len(found) == 1 and len(found[0].get_text(strip=True)) > MAIN_SHARE * length:
            return found[0]
    return body


def _metadata(soup: Any) -> dict[str, Any]:
    metadata: dict[str, Any] = {}
    for tag in soup.find_all("meta", attrs={"name": True, "content": True}):
        key = META_NAMES.get(str(tag["name"]).lower())
        if key and str(tag["content"]).strip():
            metadata[key] = str(tag["content"]).strip()
    canonical = soup.find("link", rel="canonical", href=True)
    if canonical:
        metadata["canonical_url"] = str(canonical["href"])
    return metadata


def _declared(data: bytes) -> str | None:
    head = data[:4096]
    match = CHARSET.search(head) or XML_ENCODING.search(head)
    return match.group(1).decode("ascii", "ignore") if match else None


def _code_language(element: Any) -> str:
    for tag in (element, element.find("code")):
        for name in (tag.get("class") or []) if tag is not None else []:
            for prefix in ("language-", "lang-", "highlight-source-"):
                if name.startswith(prefix):
                    return name.removeprefix(prefix)
    return ""


def _depth(element: Any) -> int:
    """Return how deep elements nest, walking without recursion."""
    deepest, stack = 0, [(element, 0)]
    while stack:
        node, depth = stack.pop()
        deepest = max(deepest, depth)
        stack.extend((child, depth + 1) for child in getattr(node, "children", ()))
    return deepest
