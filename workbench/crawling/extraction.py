"""The contents of a response: main text as Markdown, language, dates and links."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from itertools import islice
from pathlib import PurePosixPath
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from workbench.crawling.http import AGENT_TOKEN, Response
from workbench.crawling.urls import MAX_URL_CHARS, canonicalize, names_sessions
from workbench.errors import UnreadableDocument
from workbench.ingestion.links import extract_links
from workbench.ingestion.metadata import parse_written_date
from workbench.ingestion.readers.formats import (
    HTML_READER,
    READERS_BY_MEDIA_TYPE,
    READERS_BY_SUFFIX,
    find_reader,
    is_prose,
)
from workbench.ingestion.readers.html import find_charset, make_draft_from_tree, parse_page
from workbench.ingestion.text import decode_text, find_codec, open_reading

if TYPE_CHECKING:
    from lxml.html import HtmlElement

# --- Large texts in pieces, to keep regular expressions short ---

PIECE_SIZE = 64_000  # characters or bytes; a regular expression takes milliseconds on a piece


def split_text(text: str, size: int = PIECE_SIZE) -> Iterator[str]:
    """Yield a text in pieces of about ``size`` characters, split at line breaks if possible."""
    start = 0
    while start < len(text):
        end = start + size
        if end < len(text):
            line = text.rfind("\n", start, end) + 1
            end = line if line > start else end
        yield text[start:end]
        start = end


# --- Hashes for comparing pages ---

MAX_LINE_CHARS = 4_000  # characters of a line that can be boilerplate
MAX_COMPARED_PIECES = 32  # of 65,536 characters; only this beginning of a page is compared
FENCE = re.compile(r"^ {0,3}(?:```|~~~)")
INLINE_LINK = re.compile(r"!?\[([^\[\]]*+)\]\([^()]*+\)")
WORD = re.compile(r"\w+")
WHITE_SPACE = re.compile(rb"\s+")
PUNCTUATION = re.compile(r"[^\w]+", re.UNICODE)


def hash_blocks(text: str) -> tuple[int, ...]:
    """Return the hashes of a text's paragraphs, ignoring addresses and white space.

    Only the first two million characters are compared.
    """
    return tuple(
        hash64(" ".join(" ".join(INLINE_LINK.sub(r"\1", line).split()) for line in block))
        for block in _split_paragraphs(text)
    )


def hash_shape(body: bytes, url: str) -> int:
    """Return a hash of a text's words without numbers and words of the page's address."""
    return hash64(" ".join(shape_words(body, url)))


def shape_words(body: bytes, url: str) -> list[str]:
    """Return a text's words without numbers and words of the page's address."""
    address = set(WORD.findall(unquote(url).lower()))
    words = WORD.findall(body.decode("utf-8", "replace").lower())
    return [word for word in words if word not in address and not any(map(str.isdigit, word))]


def _split_paragraphs(text: str) -> Iterator[list[str]]:
    """Yield the lines of each paragraph; paragraphs are separated by blank lines."""
    lines: list[str] = []
    for piece in islice(split_text(text), MAX_COMPARED_PIECES):
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
    return PUNCTUATION.sub(" ", INLINE_LINK.sub(r"\1", text[:MAX_LINE_CHARS])).strip().lower()


def hash64(text: str) -> int:
    """Return a signed 64-bit hash that is the same in every process."""
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8).digest(), "big", signed=True)


# --- Boilerplate: lines repeated on most pages of a site ---

SAMPLE_PAGES = 20  # pages sampled before the first is stored
MIN_SAMPLE_PAGES = 4  # minimum pages for detecting repetition
MIN_BOILERPLATE_SHARE = 0.6  # of the sample


def find_boilerplate(texts: Sequence[str]) -> frozenset[int]:
    """Return the hashes of the lines that most of these pages share."""
    if len(texts) < MIN_SAMPLE_PAGES:
        return frozenset()
    pages_with: Counter[int] = Counter()
    for text in texts:
        pages_with.update({hash64(words) for line in text.split("\n") if line and (words := plain_words(line))})
    return frozenset(line for line, count in pages_with.items() if count >= MIN_BOILERPLATE_SHARE * len(texts))


def strip_boilerplate(text: str, boilerplate: frozenset[int]) -> str:
    """Return a page's text without boilerplate at its start and end, or unchanged if nothing else is left."""
    if not boilerplate:
        return text
    lines = text.split("\n")
    first, last = 0, len(lines)
    while first < last and _is_boilerplate(lines[first], boilerplate):
        first += 1
    while last > first and _is_boilerplate(lines[last - 1], boilerplate):
        last -= 1
    return "\n".join(lines[first:last]).strip("\n") or text


def _is_boilerplate(line: str, boilerplate: frozenset[int]) -> bool:
    if FENCE.match(line):
        return False  # never cut inside a code block
    words = plain_words(line)
    return hash64(words) in boilerplate if words else not line.lstrip().startswith("#")


MAX_LISTED_LINKS = 100_000  # of a text that lists the pages of a site


def find_markdown_links(text: str) -> Iterator[str]:
    """Yield the link targets of a text as written, in order, without images and bare addresses."""
    for link in extract_links(text, MAX_LISTED_LINKS):
        if link.kind in ("link", "reference") or text[link.start - 1 : link.start] == "<":
            yield link.target


# the suffix is more informative
UNINFORMATIVE_MEDIA_TYPES = frozenset(("", "text/plain", "application/octet-stream", "binary/octet-stream"))
HTML_START = re.compile(
    rb"(?:\xef\xbb\xbf)?\s*(?:<\?xml[^>]*>\s*)?(?:<!--.*?-->\s*)*<(?:!doctype\s+html|html|head|body)[\s>]",
    re.IGNORECASE | re.DOTALL,
)
EMPTY_PAGE_CHARS = 40  # characters; a page with scripts and less text may need a browser
THIN_PAGE_CHARS = 400  # the same if the page waits for its scripts
APP_ROOT_IDS = frozenset(
    ("root", "app", "__next", "__nuxt", "svelte", "main-app", "application", "gatsby-focus-wrapper")
)
# Delay of a page's refresh that counts as redirect: always, or if it has almost no text
IMMEDIATE_REFRESH_S, SHORT_REFRESH_S = 1.0, 30.0
REFRESH_CONTENT = re.compile(
    r"""\s*(\d*)[\d.]*\s*(?:[;,]|\s)\s*(?:url\s*=\s*)?(?:"([^"]*)|'([^']*)|(.*))""", re.IGNORECASE | re.DOTALL
)
VALUED_DIRECTIVES = frozenset(("max-snippet", "max-image-preview", "max-video-preview", "unavailable_after"))
DIRECTIVE_GAP = re.compile(r"[\s;]+")  # some sites write "noindex nofollow" without a comma
ROBOT_NAME = re.compile(r"([a-z][\w.*-]*|\*)(?:/[\w.]*)?")  # and its version
SCHEME = re.compile(r"\s*([a-zA-Z][\w+.-]*):")
NOFOLLOW_REASON = "the site asks not to follow the link (nofollow)"
FILE_SCHEMES = ("ftp", "ftps", "sftp")
BAD_LINK_REASON = f"a link with a user name, an invalid port or over {MAX_URL_CHARS:,} characters"


@dataclass(frozen=True, slots=True)
class Page:
    """The contents of a page."""

    name: str  # file name; its suffix selects the reader of ``body`` (".md" for text extracted from HTML)
    body: bytes  # text of the page, or the file
    title: str = ""  # its title
    links: tuple[str, ...] = ()  # distinct canonical addresses in page order
    metadata: Mapping[str, object] = field(default_factory=dict[str, object])  # facts about the page
    canonical_url: str | None = None  # canonical address that the page names
    is_html: bool = True  # True if it was HTML
    needs_script: bool = False  # True if it has scripts but almost no text
    asks_login: bool = False  # True if it has a field for a password and little text
    index: bool = True  # False if the page asks not to be indexed (robots meta or X-Robots-Tag)
    follow: bool = True  # False if the page asks not to follow its links
    redirect: str | None = None  # address that the page only redirects to
    # Addresses of links that are not followed, with the reason.
    skipped: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def content_hash(self) -> str:
        """Hash of the text, which identifies the same page at another address."""
        text = WHITE_SPACE.sub(b" ", self.body).strip() if self.name.endswith(".md") else self.body
        return hashlib.sha256(text).hexdigest()


def extract_page(fetched: Response) -> Page:
    """Convert a response to a page. Raises UnreadableDocument if its format is not supported, or parsing failed.

    Its metadata has the encoding, and the counts of what was left out or is hidden.
    """
    with open_reading() as reading:
        page = _extract(fetched)
    return replace(page, metadata={**page.metadata, **reading.metadata})


def _extract(fetched: Response) -> Page:
    media_type = fetched.media_type
    if media_type in HTML_READER.media_types or (
        media_type in UNINFORMATIVE_MEDIA_TYPES and HTML_START.match(fetched.body[:1024])
    ):
        try:
            return _extract_html(fetched)
        except UnreadableDocument:
            raise
        except Exception as error:
            raise UnreadableDocument(f"It is not readable as HTML ({type(error).__name__}).") from error
    name = _file_name(fetched)
    index, follow = parse_robots_directives(fetched.headers.get("x-robots-tag", "").split("\n"))
    if find_reader(name) is None:
        raise UnreadableDocument(f"Its format is not supported ({media_type or 'no content type'}).")
    if not is_prose(name):
        return Page(name, fetched.body, is_html=False, index=index, follow=follow)
    text = decode_text(fetched.body, name, fetched.charset)
    links, skipped = _unique_links(fetched.url, find_markdown_links(text))
    return Page(name, text.encode(), "", links, is_html=False, index=index, follow=follow, skipped=skipped)


def _extract_html(fetched: Response) -> Page:
    declared = fetched.charset if find_codec(fetched.charset) else find_charset(fetched.body)
    root = parse_page(decode_text(fetched.body, fetched.url, declared))
    if root is None:
        return Page("page.md", b"")
    given = next((base.get("href") for base in root.iterfind(".//base") if base.get("href")), "")
    base = canonicalize(given, fetched.url, keeps_sessions=True) or fetched.url
    metas = [tag for tag in root.iterfind(".//meta") if not any(True for _ in tag.iterancestors("template"))]
    robots = ("robots", AGENT_TOKEN.lower())
    own = [tag.get("content", "") for tag in metas if tag.get("name", "").strip().lower() in robots]
    index, follow = parse_robots_directives([*fetched.headers.get("x-robots-tag", "").split("\n"), *own])
    anchors = [a for a in root.iter("a", "area") if a.get("href")]
    hrefs = [a.get("href") for a in anchors if "nofollow" not in a.get("rel", "").lower()]
    hrefs += [frame.get("src") for frame in root.iter("frame", "iframe") if frame.get("src")]
    refreshes = _destinations(
        [fetched.headers.get("refresh", "")]
        + [
            tag.get("content", "")
            for tag in metas
            if tag.get("http-equiv", "").strip().lower() == "refresh"
            and not any(True for _ in tag.iterancestors("noscript"))
        ]
    )
    hrefs += [target for _, target in refreshes]
    links, skipped = _unique_links(base, hrefs)
    unfollowed, _ = _unique_links(base, (a.get("href") for a in anchors if "nofollow" in a.get("rel", "").lower()))
    skipped |= {link: NOFOLLOW_REASON for link in unfollowed if link not in links}
    scripts, empty_root = any(True for _ in root.iter("script")), _waits_for_script(root)
    has_password = any(field.get("type", "").strip().lower() == "password" for field in root.iter("input"))
    language = root.get("lang") or root.get("{http://www.w3.org/XML/1998/namespace}lang")
    draft = make_draft_from_tree(root, base)
    metadata = dict(draft.metadata) | ({"language": language.strip()} if language else {})
    canonical_url = metadata.pop("canonical_url", None)
    text = draft.text.strip()
    # A page with almost no text that refreshes a little later also only redirects.
    longest = SHORT_REFRESH_S if len(text) < THIN_PAGE_CHARS else IMMEDIATE_REFRESH_S
    target = next((target for seconds, target in refreshes if seconds <= longest), None)
    return Page(
        name="page.md",
        body=text.encode("utf-8", "replace"),
        title=" ".join(draft.title.split()),
        links=links,
        metadata=metadata,
        canonical_url=canonicalize(str(canonical_url), base) if canonical_url else None,
        redirect=canonicalize(target, base, keeps_sessions=True) if target else None,
        needs_script=scripts and len(text) < (THIN_PAGE_CHARS if empty_root else EMPTY_PAGE_CHARS),
        asks_login=has_password and len(text) < THIN_PAGE_CHARS,
        index=index,
        follow=follow,
        skipped=skipped,
    )


def _waits_for_script(root: HtmlElement) -> bool:
    """Return whether a page has an empty element that a script fills, or asks for JavaScript."""
    for element in root.iter("div", "main", "app-root", "noscript"):
        text = "".join(element.itertext()).strip()
        if element.tag == "noscript":
            if "javascript" in text.lower():
                return True
        elif not text and (element.tag == "app-root" or element.get("id") in APP_ROOT_IDS):
            return True
    return False


def _destinations(values: Iterable[str]) -> list[tuple[float, str]]:
    """Return (seconds, address) for each refresh value, from a meta tag or a header, that names an address."""
    targets: list[tuple[float, str]] = []
    for value in values:
        match = REFRESH_CONTENT.match(value)
        target = (match.group(2) or match.group(3) or match.group(4) or "").strip() if match else ""
        if match and target:
            targets.append((float(match.group(1) or 0), target))
    return targets


def parse_robots_directives(lines: Iterable[str]) -> tuple[bool, bool]:
    """Return whether a page may be indexed and followed, from X-Robots-Tag headers and robots meta tags.

    A name before a colon is the robot to which the rest of the line applies, unless it is a directive with a value
    (https://developers.google.com/search/docs/crawling-indexing/robots-meta-tag).
    """
    index = follow = True
    for line in lines:
        agent = "*"
        for piece in line.split(","):
            name, colon, value = (part.strip().lower() for part in piece.partition(":"))
            robot = ROBOT_NAME.fullmatch(name) if colon and name not in VALUED_DIRECTIVES else None
            if robot:
                agent, name, value = robot.group(1), value, ""
                name, _, value = (part.strip() for part in name.partition(":"))
            if agent not in ("*", AGENT_TOKEN.lower()):
                continue
            if name == "unavailable_after":
                index = index and not _is_past(line[line.lower().index(name) + len(name) :].strip(" :"))
            names = set(DIRECTIVE_GAP.split(name))
            index = index and not names & {"noindex", "none"}
            follow = follow and not names & {"nofollow", "none"}
    return index, follow


def _is_past(text: str) -> bool:
    """Return whether a moment is in the past; without an hour, or with text after it, whether its day is."""
    for parse in (datetime.fromisoformat, parsedate_to_datetime) if ":" in text else ():
        with suppress(ValueError, OverflowError):
            moment = parse(text)
            return moment.replace(tzinfo=moment.tzinfo or UTC) < datetime.now(UTC)
    day = parse_written_date(text)
    return day is not None and day < datetime.now(UTC).date()


def _unique_links(base: str, hrefs: Iterable[str]) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return the canonical addresses of links, and the invalid links with the reason."""
    written = [href for href in hrefs if not href.startswith("#")]
    keeps_sessions = not names_sessions(written)
    links: dict[str, None] = {}
    bad: dict[str, str] = {}
    for href in written:
        link, scheme = canonicalize(href, base, keeps_sessions=keeps_sessions), SCHEME.match(href)
        if link is not None:
            links.setdefault(link)
        elif scheme is not None and scheme.group(1).lower() in FILE_SCHEMES:
            bad[href[:MAX_URL_CHARS]] = "a link to a server of files; only http and https are fetched"
        elif href.strip() and (scheme is None or scheme.group(1).lower() in ("http", "https")):  # no mail or script
            bad[href[:MAX_URL_CHARS]] = BAD_LINK_REASON
    return tuple(links), bad


def _file_name(fetched: Response) -> str:
    """Return a file name whose suffix selects the reader, based on the content type or else the address."""
    path = PurePosixPath(unquote(urlsplit(fetched.url).path))
    by_type, by_suffix = READERS_BY_MEDIA_TYPE.get(fetched.media_type), READERS_BY_SUFFIX.get(path.suffix.lower())
    if (
        fetched.media_type in UNINFORMATIVE_MEDIA_TYPES
        and by_suffix is not None
        and by_suffix.media_types
        and by_suffix is not HTML_READER
    ):
        return path.name
    return path.name or "page" if by_type is None else (path.stem or "page") + by_type.suffixes[0]
