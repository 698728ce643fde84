"""The reader of HTML: the main content as Markdown, without the parts that nobody reads."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from workbench.ingestion.decoding import decode
from workbench.ingestion.raw import Draft
from workbench.ingestion.readers.html_code import code_converter, straighten_code

if TYPE_CHECKING:
    from lxml.html import HtmlElement

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
# Names of parts that a click shows: tabs, accordions, questions and answers, steps.
PANEL = re.compile(
    r"(?<![a-z])(?:tabs?|panes?|panels?|tab(?:pane|panel|content|item)s?|accordion\w*|collaps\w*|faqs?|answers?|expand\w*"
    r"|toggl\w*|details?|spoilers?|reveal\w*|steps?|slides?|carousel\w*|disclosure)(?![a-z])"
)
# Names of parts that are beside the text even if a click shows them.
BESIDE = re.compile(
    r"(?<![a-z])(?:sidebar\w*|toc|nav\w*|menus?|related|recommend\w*|shar(?:e|ing)|social|promo\w*|ads?|advert\w*|sponsor\w*"
    r"|cookies?|newsletter|breadcrumbs?|subscribe|popup|tooltip|toast|search|spinner|sr-only|visually-hidden)(?![a-z])"
)
CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
NAME = re.compile(r"[A-Za-z_][\w-]*")
SELECTED = re.compile(  # what a script looks for
    r"""(?:getElementById|getElementsByClassName|querySelector(?:All)?|\$|classList\.\w+)\(\s*['"`]([^'"`]{1,100})"""
)
REFERRING = (
    "aria-controls", "data-target", "data-bs-target", "data-tab", "data-controls", "data-toggle-target",
    "popovertarget", "commandfor", "onclick",
)  # fmt: skip
MOST_SCRIPT = 200_000  # characters of a page's own scripts in which names are looked for
MOST_CHOICES = 20  # options of a select that are text; longer lists (countries) are not
FEWEST_ALT_WORDS = 4  # of a picture's description that is text; shorter ones name logos and icons
MOSTLY_LINKS = 0.5  # share of a part's characters in links above which it leads elsewhere
STYLED_BY_BROWSER = "data-workbench-styled"  # on <html>, if a browser has marked what it does not show with "hidden"
# Possessive, and begun only where a rule can begin: linear on style sheets that were never closed, however large.
STYLE_RULE = re.compile(r"(?<![^{}@;])([^{}@;]++)\{([^{}]*+)\}")
STYLE_BLOCK = re.compile(
    r"@[^@{};]*+(?:;|\{(?:[^{}]*+\{[^{}]*+\})*+[^{}]*+\})|/\*(?:[^*]++|\*(?!/))*+(?:\*/|\Z)", re.DOTALL
)
LONGEST_STYLE = 4_000  # characters of a style attribute that are looked at
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
WHOLE = frozenset(("html", "body", "main"))  # hidden only until a script has run
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

    from workbench.ingestion.readers.html_parts import parts_of
    from workbench.ingestion.readers.html_tables import set_tables_right

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
    """Drop what is not read, then choose the element that holds the text."""
    _bring_out(root)
    straighten_code(root)
    styles = _page_styles(root)
    unread = [element for element in root.iter() if _unread(element, styles)]
    if not _reads_without(root, unread):
        unread = [element for element in unread if element.tag != "nav"]  # a page that is nothing but a list of links
    for element in unread:
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


@dataclass(frozen=True, slots=True)
class PageStyles:
    """What a page's own style elements and scripts say of its parts.

    ``hidden``, ``without_font`` and ``with_font`` hold (".", class) and ("#", id); ``named`` the names that buttons,
    links and scripts refer to. ``is_styled`` if a browser has marked what it does not show.
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
    """Return the names (ids, classes) that a page's buttons, links and own scripts refer to."""
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
    """Turn what is visible and not in plain elements into text: frames, shadow roots, fields, formulas, pictures."""
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
    """Keep a button that is the heading of a part which it opens."""
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
    """Return whether a page has any text besides these elements; only asked of a page with a list of links."""
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
    """Return whether an element is a comment, boilerplate, a permalink mark, or hidden for good."""
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
    """Return whether something inside an element without a font size has one of its own."""
    return any(
        FONT.search(child.get("style", "")) or _has_name(child, styles.with_font)
        for child in element.iterdescendants()
        if isinstance(child.tag, str)
    )


def _is_shown_again(element: HtmlElement, styles: PageStyles) -> bool:
    """Return whether a click, a script or the page's own styles can show a hidden element."""
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
