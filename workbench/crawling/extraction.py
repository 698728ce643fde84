"""The contents of a response: main text as Markdown, language, dates and links."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from itertools import islice
from pathlib import PurePosixPath
from typing import TYPE_CHECKING
from urllib.parse import unquote, urljoin, urlsplit

from workbench.crawling.http import AGENT_TOKEN, Reply
from workbench.crawling.urls import canonical
from workbench.errors import UnreadableDocument
from workbench.ingestion.readers.formats import BY_MEDIA_TYPE, HTML, READERS, is_prose, reader_for
from workbench.ingestion.readers.html import declared_charset, draft_from_tree, parsed
from workbench.ingestion.readers.plain_text import split_front_matter
from workbench.ingestion.text import codec_of, decode
from workbench.types import JsonValue

if TYPE_CHECKING:
    from lxml.html import HtmlElement

# --- Large texts in pieces, to keep regular expressions short ---

PIECE = 64_000  # characters or bytes; a regular expression takes milliseconds on a piece


def pieces(text: str, size: int = PIECE) -> Iterator[str]:
    """Yield a text in pieces of about ``size`` characters, cut at line ends if possible."""
    start = 0
    while start < len(text):
        end = start + size
        if end < len(text):
            line = text.rfind("\n", start, end) + 1
            end = line if line > start else end
        yield text[start:end]
        start = end


def words_of(data: bytes, size: int = PIECE) -> Iterator[bytes]:
    """Yield ``b" ".join(data.split())`` in pieces of about ``size`` bytes with whole words."""
    start, is_first = 0, True
    while start < len(data):
        end = start + size
        while end < len(data) and not data[end : end + 1].isspace():
            end += 1
        words = data[start:end].split()
        if words:
            yield (b"" if is_first else b" ") + b" ".join(words)
            is_first = False
        start = end


# --- Hashes for comparing pages ---

LONGEST_LINE = 4_000  # characters of a line that can be boilerplate
MOST_PIECES = 32  # of 65,536 characters; only this beginning of a page is compared
FENCE = re.compile(r"^ {0,3}(?:```|~~~)")
INLINE_LINK = re.compile(r"!?\[([^\[\]]*+)\]\([^()]*+\)")
WORD = re.compile(r"\w+")
MARKS = re.compile(r"[^\w]+", re.UNICODE)


def block_hashes(text: str) -> tuple[int, ...]:
    """Return distinct hashes of a text's paragraphs in order, ignoring addresses and white space.

    Only the first two million characters are compared.
    """
    hashes: dict[int, None] = {}
    for block in _paragraphs(text):
        plain = " ".join(" ".join(INLINE_LINK.sub(r"\1", line).split()) for line in block)
        hashes.setdefault(hash64(plain))
    return tuple(hashes)


def hash_of_shape(body: bytes, url: str) -> int:
    """Return a hash of a text's words without numbers and words of the page's address."""
    address = set(WORD.findall(unquote(url).lower()))
    words = WORD.findall(body.decode("utf-8", "replace").lower())
    return hash64(" ".join(word for word in words if word not in address and not any(map(str.isdigit, word))))


def _paragraphs(text: str) -> Iterator[list[str]]:
    """Yield the lines of each paragraph; paragraphs are separated by blank lines."""
    lines: list[str] = []
    for piece in islice(pieces(text), MOST_PIECES):
        for line in piece.removesuffix("\n").split("\n"):
            if line.strip():
                lines.append(line)
            elif lines:
                yield lines
                lines = []
    if lines:
        yield lines


def plain_words(text: str) -> str:
    """Return the words of a Markdown line in lower case, without addresses and markup."""
    return MARKS.sub(" ", INLINE_LINK.sub(r"\1", text[:LONGEST_LINE])).strip().lower()


def hash64(text: str) -> int:
    """Return a signed 64-bit hash that is the same in every process."""
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8).digest(), "big", signed=True)


# --- Boilerplate: lines repeated on most pages of a site ---

SAMPLE = 20  # pages sampled before the first is stored
FEWEST = 4  # minimum pages for detecting repetition
SHARE = 0.6  # of the sample


def furniture_of(texts: Sequence[str]) -> frozenset[int]:
    """Return the hashes of the lines that most of these pages have."""
    if len(texts) < FEWEST:
        return frozenset()
    pages_with: Counter[int] = Counter()
    for text in texts:
        pages_with.update({hash64(words) for line in text.split("\n") if line and (words := plain_words(line))})
    return frozenset(line for line, count in pages_with.items() if count >= SHARE * len(texts))


def without_furniture(text: str, furniture: frozenset[int]) -> str:
    """Return a page's text without boilerplate at its start and end, or unchanged if nothing else is left."""
    if not furniture:
        return text
    lines = text.split("\n")
    first, last = 0, len(lines)
    while first < last and _is_furniture(lines[first], furniture):
        first += 1
    while last > first and _is_furniture(lines[last - 1], furniture):
        last -= 1
    return "\n".join(lines[first:last]).strip("\n") or text


def _is_furniture(line: str, furniture: frozenset[int]) -> bool:
    if FENCE.match(line):
        return False  # never cut inside a code block
    words = plain_words(line)
    return hash64(words) in furniture if words else not line.lstrip().startswith("#")


# --- Links of a Markdown text ---

# Inline links, also around images; definitions; addresses in angle brackets. Possessive quantifiers and classes
# without "[" keep matching linear, even on a text of brackets.
MARKDOWN_LINK = re.compile(
    r"(?<!!)\[(?:[^\[\]!]++|!(?!\[)|!\[[^\[\]]*+\]\([^()\s]*+\))*+\]\(\s{0,9}<?([^\s)>]{1,2000}+)"
    r"|^[ ]{0,3}\[[^\[\]\n]{1,999}+\]:[ \t]*+\n?[ \t]*+<?([^\s>]{1,2000}+)"
    r"|<(https?://[^<>\s]{1,2000}+)>",
    re.MULTILINE,
)


def markdown_links(text: str) -> Iterator[str]:
    """Yield the link targets of a text as written, in order, without images."""
    for piece in pieces(text):
        for match in MARKDOWN_LINK.finditer(piece):
            yield match.group(1) or match.group(2) or match.group(3)


UNTOLD = frozenset(
    ("", "text/plain", "application/octet-stream", "binary/octet-stream")
)  # the suffix is more informative
DATES = (
    (".//meta[@property='article:modified_time']", "content", "modified"),
    (".//meta[@property='article:published_time']", "content", "published"),
    (".//meta[@name='date']", "content", "date"),
    (".//meta[@name='last-modified']", "content", "modified"),
    (".//meta[@itemprop='dateModified']", "content", "modified"),
    (".//time[@itemprop='dateModified']", "datetime", "modified"),
)
EMPTY = 40  # characters; a page with scripts and less text may need a browser
THIN = 400  # the same if the page says that it waits for its scripts
ROOTS = frozenset(("root", "app", "__next", "__nuxt", "svelte", "main-app", "application", "gatsby-focus-wrapper"))
AT_ONCE, SOON = 1.0, 30.0  # delay of a page's refresh that counts as redirect: always, or if it has almost no text
REFRESH = re.compile(
    r"""\s*(\d*)[\d.]*\s*(?:[;,]|\s)\s*(?:url\s*=\s*)?(?:"([^"]*)|'([^']*)|(.*))""", re.IGNORECASE | re.DOTALL
)
VALUED = frozenset(("max-snippet", "max-image-preview", "max-video-preview", "unavailable_after"))
AGENT = re.compile(r"[a-z][\w.*-]*|\*")
ISO_DATE = re.compile(
    r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?: ?(?:Z|[+-]\d\d:?\d\d))?)?", re.IGNORECASE
)
WRITTEN_DATE = re.compile(
    r"(?:[a-z]+,? )?\d{1,2}[ -][a-z]{3,9}[ -]\d{2,4}(?:,? \d\d:\d\d(?::\d\d)?)?(?: (?:[a-z]{1,4}|[+-]\d{4}))?",
    re.IGNORECASE,
)
MOST_LINKS = 50_000  # per page, the limit of a sitemap


@dataclass(frozen=True, slots=True)
class Page:
    """The contents of a page.

    Attributes:
        name: File name; its suffix selects the reader of ``body`` (".md" for text extracted from HTML).
        body: Text of the page, or the file.
        title: Its title.
        links: Distinct canonical addresses in page order.
        metadata: Facts about the page.
        canonical_url: Canonical address that the page names.
        is_html: True if it was HTML.
        needs_script: True if it has scripts but almost no text.
        index: False if the page asks not to be indexed (robots meta or X-Robots-Tag).
        follow: False if the page asks not to follow its links.
        redirect: Address that the page only redirects to.
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
    redirect: str | None = None

    @property
    def content_hash(self) -> str:
        """Hash of the text, which identifies the same page at another address."""
        digest = hashlib.sha256()
        for piece in words_of(self.body) if self.name.endswith(".md") else (self.body,):
            digest.update(piece)
        return digest.hexdigest()


def extract(fetched: Reply) -> Page:
    """Convert a response to a page.

    Raises:
        UnreadableDocument: Its format is not supported, or it cannot be parsed.
    """
    media_type, head = fetched.media_type, fetched.body[:1024].lstrip()[:15].lower()
    if media_type in HTML.media_types or (media_type in UNTOLD and head.startswith((b"<!doctype html", b"<html"))):
        return _guarded(fetched)
    name = _name_of(fetched)
    if reader_for(name) is None:
        raise UnreadableDocument(f"Its format is not supported ({media_type or 'no content type'}).")
    if not is_prose(name):
        index, follow = robots_wishes(_robots_lines(fetched))
        return Page(name, fetched.body, is_html=False, index=index, follow=follow)
    text = decode(fetched.body, name, fetched.charset)
    metadata, body = split_front_matter(text)
    links = _unique(fetched.url, markdown_links(body))
    index, follow = robots_wishes(_robots_lines(fetched))
    return Page(name, text.encode(), str(metadata.get("title") or ""), links, is_html=False, index=index, follow=follow)


def _guarded(fetched: Reply) -> Page:
    """Parse HTML. A parser error is this page's failure and does not end the crawl."""
    try:
        return _from_html(fetched)
    except UnreadableDocument:
        raise
    except Exception as error:
        raise UnreadableDocument(f"It cannot be read as HTML ({type(error).__name__}).") from error


def _from_html(fetched: Reply) -> Page:
    declared = fetched.charset if codec_of(fetched.charset) else declared_charset(fetched.body)
    body = fetched.body
    if 0 < body.count(0) < len(body) / 10:
        body = body.replace(b"\0", b"")  # stray NULs, which browsers ignore; UTF-16 has many more
    root = parsed(decode(body, fetched.url, declared))
    if root is None:
        return Page("page.md", b"")
    base = urljoin(fetched.url, next((b.get("href") for b in root.iterfind(".//base") if b.get("href")), ""))
    own = [content for name in ("robots", AGENT_TOKEN.lower()) for content in _meta(root, name)]
    index, follow = robots_wishes([*_robots_lines(fetched), *own])
    hrefs = [a.get("href") for a in root.iter("a", "area") if a.get("href") and "nofollow" not in a.get("rel", "")]
    hrefs += [frame.get("src") for frame in root.iter("frame", "iframe") if frame.get("src")]
    refreshes = [*_destinations([fetched.headers.get("refresh", "")]), *_refresh(root)]
    hrefs += [target for _, target in refreshes]
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
        redirect=_redirect(base, refreshes, len(text)),
        needs_script=scripts and len(text) < (THIN if empty_root else EMPTY),
        index=index,
        follow=follow,
    )


def _about(root: HtmlElement) -> dict[str, JsonValue]:
    """Return language and dates if the page has them."""
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
    """Return whether a page has an empty element for a script to fill, or asks for JavaScript."""
    for element in root.iter("div", "main", "app-root", "noscript"):
        text = "".join(element.itertext()).strip()
        if element.tag == "noscript":
            if "javascript" in text.lower():
                return True
        elif not text and (element.tag == "app-root" or element.get("id") in ROOTS):
            return True
    return False


def _meta(root: HtmlElement, name: str) -> list[str]:
    return [tag.get("content", "") for tag in root.iterfind(".//meta") if tag.get("name", "").strip().lower() == name]


def _refresh(root: HtmlElement) -> list[tuple[float, str]]:
    """Return (seconds, address) of each redirect of the page by refresh."""
    return _destinations(
        tag.get("content", "")
        for tag in root.iterfind(".//meta")
        if tag.get("http-equiv", "").strip().lower() == "refresh"
        and not any(True for _ in tag.iterancestors("noscript"))
    )


def _destinations(values: Iterable[str]) -> list[tuple[float, str]]:
    """Return (seconds, address) for each value of a refresh, in a meta tag or a header, that names an address."""
    targets: list[tuple[float, str]] = []
    for value in values:
        match = REFRESH.match(value)
        target = (match.group(2) or match.group(3) or match.group(4) or "").strip() if match else ""
        if match and target:
            targets.append((float(match.group(1) or 0), target))
    return targets


def _redirect(base: str, refreshes: list[tuple[float, str]], length: int) -> str | None:
    """Return the address that a page redirects to, or None if it is a page to read with a later refresh."""
    for seconds, target in refreshes:
        if seconds <= AT_ONCE or (seconds <= SOON and length < THIN):
            return canonical(target, base)
    return None


def _robots_lines(fetched: Reply) -> list[str]:
    return fetched.headers.get("x-robots-tag", "").split("\n")


def robots_wishes(lines: Iterable[str]) -> tuple[bool, bool]:
    """Return whether a page may be indexed and followed, from X-Robots-Tag headers and robots meta tags.

    A name before a colon is the robot that the rest of the line applies to, unless it is a directive with a value
    (https://developers.google.com/search/docs/crawling-indexing/robots-meta-tag).
    """
    index = follow = True
    for line in lines:
        agent = "*"
        for piece in line.split(","):
            name, colon, value = (part.strip().lower() for part in piece.partition(":"))
            if colon and name not in VALUED and AGENT.fullmatch(name):
                agent, name, value = name, value, ""
                name, _, value = (part.strip() for part in name.partition(":"))
            if agent not in ("*", AGENT_TOKEN.lower()):
                continue
            if name == "unavailable_after":
                rest = line[line.lower().index(name) + len(name) :].lstrip(" :")
                index = index and not _is_past(rest)
            index = index and name not in ("noindex", "none")
            follow = follow and name not in ("nofollow", "none")
    return index, follow


def _is_past(text: str) -> bool:
    """Return whether a text starts with a date in the past. A text without a date does not."""
    for match in (ISO_DATE.match(text), WRITTEN_DATE.match(text)):
        if match:
            try:
                if match.re is ISO_DATE:
                    moment = datetime.fromisoformat(match.group().strip())
                else:
                    moment = parsedate_to_datetime(match.group().replace("-", " "))
            except (ValueError, TypeError):
                continue
            return moment.replace(tzinfo=moment.tzinfo or UTC) < datetime.now(UTC)
    return False


def _unique(base: str, hrefs: Iterable[str]) -> tuple[str, ...]:
    links: dict[str, None] = {}
    for href in hrefs:
        if href.startswith("#"):
            continue
        link = canonical(href, base)
        if link is not None:
            links.setdefault(link)
            if len(links) >= MOST_LINKS:
                break
    return tuple(links)


def _name_of(fetched: Reply) -> str:
    """Return a file name whose suffix selects the reader, from the content type or else the address."""
    path = PurePosixPath(unquote(urlsplit(fetched.url).path))
    by_type, by_suffix = BY_MEDIA_TYPE.get(fetched.media_type), READERS.get(path.suffix.lower())
    if fetched.media_type in UNTOLD and by_suffix is not None and by_suffix.media_types and by_suffix is not HTML:
        return path.name
    return path.name or "page" if by_type is None else (path.stem or "page") + by_type.suffixes[0]
