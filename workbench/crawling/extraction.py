"""The page in an answer: its main text as Markdown, its language and dates, and its links."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import TYPE_CHECKING
from urllib.parse import unquote, urljoin, urlsplit

from workbench.crawling.markdown_links import markdown_links
from workbench.crawling.pieces import words_of
from workbench.crawling.replies import Reply
from workbench.crawling.urls import canonical, looks_like_page
from workbench.errors import UnreadableDocument
from workbench.ingestion.decoding import decode
from workbench.ingestion.readers.formats import BY_MEDIA_TYPE, HTML, READERS, is_prose, reader_for
from workbench.ingestion.readers.html import draft_from_tree, parsed
from workbench.ingestion.readers.markdown import split_front_matter
from workbench.types import JsonValue

if TYPE_CHECKING:
    from lxml.html import HtmlElement

UNTOLD = frozenset(("", "text/plain", "application/octet-stream", "binary/octet-stream"))  # the address says more
CHARSET = re.compile(rb"""<meta[^>]{0,200}?charset\s*=\s*["']?\s*([\w.:-]+)""", re.IGNORECASE)
DATES = (
    (".//meta[@property='article:modified_time']", "content", "modified"),
    (".//meta[@property='article:published_time']", "content", "published"),
    (".//meta[@name='date']", "content", "date"),
    (".//meta[@name='last-modified']", "content", "modified"),
    (".//meta[@itemprop='dateModified']", "content", "modified"),
    (".//time[@itemprop='dateModified']", "datetime", "modified"),
)
EMPTY = 40  # characters: a page with scripts and less text than this may need a browser
THIN = 400  # the same, where the page itself says that it waits for its scripts
ROOTS = frozenset(("root", "app", "__next", "__nuxt", "svelte", "main-app", "application", "gatsby-focus-wrapper"))
MOST_LINKS = 5_000  # of one page


@dataclass(frozen=True, slots=True)
class Page:
    """The contents of a page; ``name`` decides which reader reads ``body`` (".md" for text made from HTML).

    ``links`` are canonical addresses in the order of the page, each once. ``needs_script`` when there is next to
    no text but there are scripts. ``index`` and ``follow`` are the page's own wishes (meta robots, X-Robots-Tag).
    """

    name: str
    body: bytes
    title: str = ""
    links: tuple[str, ...] = ()
    metadata: Mapping[str, object] = field(default_factory=dict[str, object])
    canonical_url: str | None = None
    is_html: bool = True
    needs_script: bool = False
    index: bool = True
    follow: bool = True

    @property
    def content_hash(self) -> str:
        """The hash of the text, by which the same page is recognised at another address."""
        digest = hashlib.sha256()
        for piece in words_of(self.body) if self.name.endswith(".md") else (self.body,):
            digest.update(piece)
        return digest.hexdigest()


def extract(fetched: Reply) -> Page:
    """Turn an answer into a page. Raises UnreadableDocument for a kind that no reader reads."""
    media_type, head = fetched.media_type, fetched.body[:1024].lstrip()[:15].lower()
    if media_type in HTML.media_types or (media_type in UNTOLD and head.startswith((b"<!doctype html", b"<html"))):
        return _guarded(fetched)
    name = _name_of(fetched)
    if reader_for(name) is None:
        raise UnreadableDocument(f"It is of a kind that is not read ({media_type or 'no content type'}).")
    if not is_prose(name):
        index, follow = _wishes(fetched.headers.get("x-robots-tag", ""))
        return Page(name, fetched.body, is_html=False, index=index, follow=follow)
    text = decode(fetched.body, name, fetched.charset)
    metadata, body = split_front_matter(text)
    links = _unique(fetched.url, markdown_links(body))
    index, follow = _wishes(fetched.headers.get("x-robots-tag", ""))
    return Page(name, text.encode(), str(metadata.get("title") or ""), links, is_html=False, index=index, follow=follow)


def _guarded(fetched: Reply) -> Page:
    """Read HTML; an error of the parser at a broken page is this page's failure, not the crawl's."""
    try:
        return _from_html(fetched)
    except UnreadableDocument:
        raise
    except Exception as error:
        raise UnreadableDocument(f"It cannot be read as HTML ({type(error).__name__}).") from error


def _from_html(fetched: Reply) -> Page:
    match = CHARSET.search(fetched.body[:4096])
    declared = fetched.charset or (match.group(1).decode("ascii", "ignore") if match else None)
    body = fetched.body
    if 0 < body.count(0) < len(body) / 10:
        body = body.replace(b"\0", b"")  # a stray NUL, which browsers pass over; UTF-16 has many more
    root = parsed(decode(body, fetched.url, declared))
    if root is None:
        return Page("page.md", b"")
    base = urljoin(fetched.url, next((b.get("href") for b in root.iterfind(".//base") if b.get("href")), ""))
    index, follow = _wishes(f"{fetched.headers.get('x-robots-tag', '')},{_meta(root, 'robots')}")
    hrefs = [a.get("href") for a in root.iter("a", "area") if a.get("href") and "nofollow" not in a.get("rel", "")]
    hrefs += [frame.get("src") for frame in root.iter("frame", "iframe") if frame.get("src")]
    hrefs += _refresh(root)
    links = _unique(base, hrefs)
    scripts, empty_root = any(True for _ in root.iter("script")), _waits_for_script(root)
    metadata = _about(root)
    draft = draft_from_tree(root, base)
    canonical_url = draft.metadata.get("canonical_url")
    text = draft.text.strip()
    return Page(
        name="page.md",
        body=text.encode("utf-8", "replace"),
        title=" ".join(draft.title.split()),
        links=links,
        metadata={key: value for key, value in draft.metadata.items() if key != "canonical_url"} | metadata,
        canonical_url=canonical(str(canonical_url), base) if canonical_url else None,
        needs_script=scripts and len(text) < (THIN if empty_root else EMPTY),
        index=index,
        follow=follow,
    )


def _about(root: HtmlElement) -> dict[str, JsonValue]:
    """Return language and dates, where the page names them."""
    properties: dict[str, JsonValue] = {}
    language = root.get("lang") or root.get("{http://www.w3.org/XML/1998/namespace}lang")
    if language:
        properties["language"] = language.strip()
    for path, attribute, name in DATES:
        element = root.find(path)
        if element is not None and element.get(attribute) and name not in properties:
            properties[name] = element.get(attribute).strip()
    return properties


def _waits_for_script(root: HtmlElement) -> bool:
    """Tell whether a page has an empty element that a script is to fill, or asks for JavaScript."""
    for element in root.iter("div", "main", "app-root", "noscript"):
        text = "".join(element.itertext()).strip()
        if element.tag == "noscript":
            if "javascript" in text.lower():
                return True
        elif not text and (element.tag == "app-root" or element.get("id") in ROOTS):
            return True
    return False


def _meta(root: HtmlElement, name: str) -> str:
    return ",".join(tag.get("content", "") for tag in root.iterfind(".//meta") if tag.get("name", "").lower() == name)


def _refresh(root: HtmlElement) -> list[str]:
    """Return the addresses that the page sends its reader on to."""
    targets: list[str] = []
    for tag in root.iterfind(".//meta"):
        if tag.get("http-equiv", "").lower() == "refresh":
            _, _, target = tag.get("content", "").partition("=")
            targets.append(target.strip(" '\""))
    return [target for target in targets if target]


def _wishes(text: str) -> tuple[bool, bool]:
    words = {word.strip().lower() for word in re.split(r"[,:]", text)}
    return not words & {"noindex", "none"}, not words & {"nofollow", "none"}


def _unique(base: str, hrefs: Iterable[str]) -> tuple[str, ...]:
    links: dict[str, None] = {}
    for href in hrefs:
        if href.startswith("#"):
            continue
        link = canonical(href, base)
        if link is not None and looks_like_page(link):
            links.setdefault(link)
            if len(links) >= MOST_LINKS:
                break
    return tuple(links)


def _name_of(fetched: Reply) -> str:
    """Return a file name whose suffix says how to read the answer: the content type's, else the address's."""
    path = PurePosixPath(unquote(urlsplit(fetched.url).path))
    by_type, by_suffix = BY_MEDIA_TYPE.get(fetched.media_type), READERS.get(path.suffix.lower())
    if fetched.media_type in UNTOLD and by_suffix is not None and by_suffix.media_types and by_suffix is not HTML:
        return path.name
    return path.name or "page" if by_type is None else (path.stem or "page") + by_type.suffixes[0]
