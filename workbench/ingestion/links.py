"""Extraction of links from a text: Markdown links, references, HTML links, wiki links, bare URLs and bare paths.

It works on the stored text with bounded patterns, so invalid or huge input takes linear time and never raises.
"""

from __future__ import annotations

import hashlib
import posixpath
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from urllib.parse import unquote, urljoin, urlsplit

from workbench.errors import NotFound
from workbench.storage.citations import Citations, NewCitation
from workbench.storage.database import Connection, Database
from workbench.storage.documents import DocumentRecord, Documents, NewDocument

# --- Keys of addresses: equal keys mean the same document ---

MAX_KEY_CHARS = 200  # characters; a longer one is stored as a hash, because database indexes limit their keys
PAGE_SUFFIXES = (  # suffixes that a link may omit
    ".md", ".markdown", ".mdx", ".rst", ".txt", ".html", ".htm", ".ipynb", ".pdf", ".docx",
)  # fmt: skip
_INDEX_NAMES = frozenset(("index", "_index", "readme", "default"))
_URL_FIELDS = ("url", "source_url", "original_url", "canonical_url", "canonical", "permalink", "link", "source")
_ALIAS_FIELDS = ("aliases", "alias", "redirect_from")
_SEPARATORS = re.compile(r"[\s_-]+")
_SCHEME = re.compile(r"\A[a-z][a-z0-9+.-]*:", re.IGNORECASE)


def document_keys(
    title: str, path: str | None, url: str | None, metadata: Mapping[str, object]
) -> list[tuple[str, int]]:
    """Return (key, depth) of every address of a document without duplicates; depth counts its parent folders."""
    keys: list[str | None] = [title_key(title)]
    depth = 0
    if path:
        clean = _clean_path(path)
        depth = min(clean.count("/"), 100)
        keys += [_make_key("file", clean), page_key(clean), name_key(clean.rpartition("/")[2])]
    declared = [url, *(metadata.get(name) for name in _URL_FIELDS), *_list_values(metadata, _ALIAS_FIELDS)]
    for value in (item.strip() for item in declared if isinstance(item, str) and item.strip()):
        if value.lower().startswith(("http://", "https://")):
            keys.append(url_key(value))
        elif value.startswith("/"):
            keys.append(_make_key("site", _page_path(_clean_path(value))))
    keys += [title_key(value) for value in _list_values(metadata, _ALIAS_FIELDS) if "/" not in value]
    return [(key, depth) for key in dict.fromkeys(key for key in keys if key)]


def target_keys(kind: str, target: str, path: str | None, url: str | None) -> tuple[list[str], str | None]:
    """Return the keys that a link may refer to, most likely first, and its absolute URL or None.

    A path from the site root is tried with every folder above the citing document as root, outermost first. A relative
    path is resolved from the document's folder, then from the page as a folder, as on sites with pretty URLs. A bare
    path in the text (kind "path") must be a file's exact path.

    Args:
        kind: Kind of the link.
        target: Target as written.
        path: Path of the citing document.
        url: URL of the citing document.
    """
    own = _clean_path(path) if path else ""
    if kind == "wiki":
        return _wiki_keys(target, own), None
    if target.startswith("//"):
        target = "https:" + target
    if _SCHEME.match(target):
        key = url_key(target)
        return ([key] if key else []), target
    absolute = urljoin(url, target) if url and url.lower().startswith("http") else None
    keys = [url_key(absolute)] if absolute else []
    bare = unquote(target).partition("?")[0]
    if path and kind == "path":
        folders = [*_site_roots(own)] if bare.startswith("/") else [posixpath.dirname(own), *_site_roots(own)]
        keys += [_make_key("file", _clean_path(f"{folder}/{bare}")) for folder in dict.fromkeys(folders)]
    elif path and bare.startswith("/"):
        keys += [
            *(page_key(f"{root}/{bare}") for root in _site_roots(own)),
            _make_key("site", _page_path(_clean_path(bare))),
        ]
        keys = [key for key in keys if key != page_key(own)]  # a guessed root must not make a page link to itself
    elif path:
        folder = posixpath.dirname(own)
        keys += [_make_key("file", _clean_path(f"{folder}/{bare}")), page_key(f"{folder}/{bare}")]
        if (
            not bare.lower().endswith(PAGE_SUFFIXES)
            and _strip_suffix(posixpath.basename(own)).casefold() not in _INDEX_NAMES
        ):
            keys.append(page_key(f"{_page_path(own)}/{bare}"))
    return list(dict.fromkeys(key for key in keys if key)), absolute


def url_key(url: str) -> str | None:
    """Return the key of a URL. Scheme, www., default port, fragment, index name and trailing slash are ignored."""
    try:
        parts = urlsplit(url.strip())
        host = (parts.hostname or "").removeprefix("www.")
        port = f":{parts.port}" if parts.port not in (None, 80, 443) else ""
    except ValueError:
        return None
    if parts.scheme.lower() not in ("http", "https") or not host:
        return None
    folders, _, name = unquote(parts.path).rpartition("/")
    stem, ending = posixpath.splitext(name)
    page = folders if stem.casefold() in ("index", "default") and ending in (".html", ".htm") else f"{folders}/{name}"
    query = f"?{parts.query}" if parts.query else ""
    return _make_key("url", f"{host}{port}{_fold_title(page).rstrip('/')}{query}")


def page_key(path: str) -> str | None:
    """Return the key of a path, as a website would serve it."""
    return _make_key("page", _page_path(_clean_path(path)))


def name_key(name: str) -> str | None:
    """Return the key of a file name without suffix. Spaces, hyphens and underscores are equivalent."""
    stem = _strip_suffix(name)
    return _make_key("name", _SEPARATORS.sub("-", _fold_title(stem)).strip("-"))


def title_key(title: str) -> str | None:
    """Return the key of a title. Case and the width of white space are ignored."""
    return _make_key("title", _fold_title(" ".join(title.split())))


def _wiki_keys(target: str, own: str) -> list[str]:
    folder = posixpath.dirname(own)
    keys = [page_key(f"{folder}/{target}"), page_key(target)] if own else []
    if "/" not in target:
        keys += [name_key(target), title_key(target)]
    return list(dict.fromkeys(key for key in keys if key))


def _site_roots(own: str) -> Iterable[str]:
    folders = posixpath.dirname(own).split("/") if posixpath.dirname(own) else []
    return ("/".join(folders[:count]) for count in range(len(folders) + 1))


def _clean_path(path: str) -> str:
    """Return a path with forward slashes and without dot segments. ".." at the root stays there."""
    parts: list[str] = []
    for part in path.replace("\\", "/").split("/"):
        if part == "..":
            parts = parts[:-1]
        elif part not in ("", "."):
            parts.append(part)
    return unicodedata.normalize("NFC", "/".join(parts))


def _page_path(clean: str) -> str:
    folders, _, name = _fold_title(_strip_suffix(clean)).rpartition("/")
    return folders if name in _INDEX_NAMES else f"{folders}/{name}".lstrip("/")


def _strip_suffix(path: str) -> str:
    stem, ending = posixpath.splitext(path)
    return stem if ending.lower() in PAGE_SUFFIXES else path


def _fold_title(text: str) -> str:
    return unicodedata.normalize("NFC", text).casefold()


def _list_values(metadata: Mapping[str, object], names: Iterable[str]) -> list[str]:
    values: list[str] = []
    for name in names:
        value = metadata.get(name)
        listed = value if isinstance(value, list | tuple) else [value]
        values += [item for item in listed if isinstance(item, str)]
    return values


def _make_key(kind: str, value: str) -> str | None:
    if not value and kind != "page":
        return None
    if len(value) > MAX_KEY_CHARS:
        value = "#" + hashlib.blake2b(value.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
    return f"{kind}:{value}"


MAX_LINKS = 5_000  # links per document; the first are enough for a page with more
MAX_CONTEXT_CHARS = 300  # characters
PART_CHARS = 200_000  # characters processed at once, more if code or a comment continues

# Confidence that a citation is intended. A bare path may be an example, and a title phrase a coincidence.
CONFIDENCE = {"link": 1.0, "reference": 1.0, "html": 1.0, "url": 1.0, "wiki": 1.0, "path": 0.9, "mention": 0.6}

_FENCE = re.compile(r"^[ \t>]*(```++|~~~++)[^\n]*+\n.*?(?:^[ \t>]*\1|\Z)", re.DOTALL | re.MULTILINE)
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_UNSPLITTABLE_BLOCK = re.compile(f"{_FENCE.pattern}|{_COMMENT.pattern}", re.DOTALL | re.MULTILINE)  # never split
_CODE_SHORTCODE = re.compile(
    r"\{\{[<%]\s{0,3}(highlight|code-toggle)\b[^{}\n]{0,300}(?<!/)[>%]\}\}.{0,5000}?\{\{[<%]\s{0,3}/\s{0,3}\1\s{0,3}[%>]\}\}",
    re.DOTALL,
)
_TOML_TABLE = re.compile(r"^[ \t]*\[\[[\w.-]{1,100}\]\][ \t]*$(?=\n[ \t]*[\w.-]{1,100}[ \t]*=)", re.MULTILINE)
_CODE_SPAN = re.compile(r"(?<!`)(`{1,3})(?!`)((?:(?!\n\n).){1,300}?)(?<!`)\1(?!`)", re.DOTALL)
_DESTINATION = re.compile(
    r"\(\s{0,9}(?:<([^<>\n]{0,2000})>"
    r"|\{\{[<%]\s{0,9}(?:rel)?ref\s+\"([^\"\n]{1,500})\"\s{0,9}[>%]\}\}"
    r"|((?:[^\s()<>\\]|\\.|\((?:[^\s()\\]|\\.){0,500}\)){0,2000}))"
    r"(?:\s+(?:\"[^\"]{0,500}\"|'[^']{0,500}'|\([^()]{0,500}\)))?\s{0,9}\)"
)
_DEFINITION = re.compile(
    r"^ {0,3}\[([^\[\]\n]{1,300})\]:[ \t]{0,9}\n?[ \t]{0,9}(<[^<>\n]{1,2000}>|[^\s<>]{1,2000})", re.MULTILINE
)
_FULL_REFERENCE = re.compile(r"(?<!!)\[([^\[\]]{1,300})\]\[([^\[\]]{0,300})\]")
_SHORTCUT = re.compile(r"(?<![!\]])\[([^\[\]]{1,300})\](?![\[(:])")
_HTML = re.compile(r"<a\s[^<>]{0,500}?href\s{0,9}=\s{0,9}([\"'])([^\"'<>\n]{1,2000})\1[^<>]{0,500}>", re.IGNORECASE)
_WIKI = re.compile(r"\[\[([^\[\]|#\n]{1,200})(?:#[^\[\]|\n]{0,200})?(?:\|([^\[\]\n]{1,200}))?\]\]")
_URL = re.compile(r"https?://[^\s<>\"'`\[\]{}|\\^\x01]{1,2000}", re.IGNORECASE)
_PATH = re.compile(
    r"(?<![\w/.:@%-])(?<!\]\()(?:\.{1,2}/|/)?(?:[\w.-]{1,100}/){0,12}[\w-][\w.-]{0,100}"
    r"\.(?:md|markdown|mdx|rst|txt|html?|pdf|docx|ipynb)(?![\w/])"
)
_NOT_FOLLOWED = re.compile(r"\A(?:#|mailto:|tel:|javascript:|data:|ftp:|file:)", re.IGNORECASE)
_IMAGE = re.compile(r"\.(?:png|jpe?g|gif|svg|webp|ico|avif|bmp|mp4|webm)\Z", re.IGNORECASE)
_INDEX_FILES = frozenset(("index.md", "_index.md", "README.md", "readme.md", "index.html", "index.htm"))
_SENTENCE_END = re.compile(
    r"(?<=[.!?])[\"')\]]{0,2}\s+(?=[\"'(\[*_<]{0,2}[A-Z0-9])|\n\s*\n|\n(?=[ \t]*(?:[-*+#>|]|\d+[.)]))"
)


@dataclass(frozen=True, slots=True)
class Link:
    """A link of a text."""

    kind: str  # kind of the link
    target: str  # target as written, without its fragment
    label: str  # text of the link
    start: int  # start of the link, in characters
    end: int  # end of the link, in characters


@dataclass
class _References:
    """Reference definitions of a text."""

    # Target, start and end of each definition by label.
    definitions: dict[str, tuple[str, int, int]] = field(default_factory=dict[str, tuple[str, int, int]])
    used: set[str] = field(default_factory=set[str])  # labels that are used


class _Part:
    """A part of a text that starts at ``start``, with and without code."""

    def __init__(self, text: str, start: int, end: int) -> None:
        self.text, self.start = text[start:end], start
        self.without_fences = self.text
        for pattern in (_FENCE, _COMMENT, _CODE_SHORTCODE, _TOML_TABLE):
            self.without_fences = pattern.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), self.without_fences)
        self.masked = _CODE_SPAN.sub(lambda match: "\x01" * len(match.group()), self.without_fences)


def extract_links(text: str, limit: int = MAX_LINKS) -> list[Link]:
    """Return the first links of a text in reading order, without images, mail and in-page links."""
    bounds = list(_split_parts(text))
    whole = [_Part(text, *bounds[0])] if len(bounds) == 1 else None
    references = _References()
    for part in whole or (_Part(text, start, end) for start, end in bounds):
        _note_definitions(part, references.definitions)
    links: list[Link] = []
    for part in whole or (_Part(text, start, end) for start, end in bounds):
        links += _part_links(part, references, limit)
        if len(links) > limit:
            break
    for label in references.definitions.keys() - references.used:
        target, start, end = references.definitions[label]
        if (link := _make_link("reference", target, label, start, end)) is not None:
            links.append(link)
    return sorted(links, key=lambda link: (link.start, link.end))[:limit]


def _split_parts(text: str) -> Iterator[tuple[int, int]]:
    """Yield a text in parts that end at a blank line outside code and comments, to limit the size of copies."""
    start = closed = 0
    for opening, closing in chain(
        (match.span() for match in _UNSPLITTABLE_BLOCK.finditer(text)), [(len(text), len(text))]
    ):
        while (blank := text.find("\n\n", max(start + PART_CHARS, closed), opening)) >= 0:
            yield start, blank + 2
            start = blank + 2
        closed = closing
    yield start, len(text)


def _part_links(part: _Part, references: _References, limit: int) -> list[Link]:
    links: list[Link] = []
    spans: list[tuple[int, int]] = []
    finders = (_inline_links, partial(_reference_links, references), _html_links, _wiki_links)
    for finder in finders:
        for link, span in finder(part.text, part.masked):
            spans.append(span)
            if link is not None:
                links.append(link)
        if len(links) > limit:
            break
    links += _bare_links(_URL, "url", _blank_spans(part.masked, spans), part.text, limit)
    free_with_code = _blank_spans(_URL.sub(lambda match: " " * len(match.group()), part.without_fences), spans)
    links += _bare_links(_PATH, "path", free_with_code, part.text, limit)
    return [replace(link, start=part.start + link.start, end=part.start + link.end) for link in links]


def _note_definitions(part: _Part, definitions: dict[str, tuple[str, int, int]]) -> None:
    for match in _DEFINITION.finditer(part.masked):
        label = part.text[slice(*match.span(1))]
        if not label.startswith("^"):
            target = part.text[slice(*match.span(2))].strip("<>")
            span = (part.start + match.start(), part.start + match.end())
            definitions.setdefault(_label_key(label), (target, *span))


def link_context(text: str, link: Link) -> str:
    """Return the sentence around a link, as written, in at most 300 characters."""
    half = MAX_CONTEXT_CHARS
    before, after = text[max(0, link.start - half) : link.start], text[link.end : link.end + half]
    starts = [match.end() for match in _SENTENCE_END.finditer(before)]
    end = _SENTENCE_END.search(after)
    first = before[starts[-1] :] if starts else before
    last = after[: end.start()] if end else after
    linked = text[link.start : link.end]
    room = max(0, MAX_CONTEXT_CHARS - len(linked))
    first = first[-max(room // 2, room - len(last)) :] if room else ""
    return " ".join(f"{first}{linked[:MAX_CONTEXT_CHARS]}{last[: room - len(first)]}".split())


def _inline_links(text: str, masked: str) -> Iterator[tuple[Link | None, tuple[int, int]]]:
    place = masked.find("](")
    while place >= 0:
        match = _DESTINATION.match(masked, place + 1)
        start = _label_start(masked, place) if match else -1
        if match and start >= 0:
            target = next((text[slice(*match.span(group))] for group in (1, 2, 3) if match.group(group)), "")
            is_image = start > 0 and masked[start - 1] == "!"
            link = None if is_image else _make_link("link", target, text[start + 1 : place], start, match.end())
            yield link, (place if is_image else start, match.end())
        place = masked.find("](", place + 2)


def _label_start(masked: str, close: int) -> int:
    """Return the position of the bracket that ``masked[close]`` closes, at most 1,000 characters before, or -1."""
    depth = 0
    for place in range(close, max(-1, close - 1000), -1):
        if masked[place] == "]":
            depth += 1
        elif masked[place] == "[":
            depth -= 1
            if depth == 0:
                return place
    return -1


def _reference_links(references: _References, text: str, masked: str) -> Iterator[tuple[Link | None, tuple[int, int]]]:
    if not references.definitions:
        return
    for match in _DEFINITION.finditer(masked):
        if not text[slice(*match.span(1))].startswith("^"):
            yield None, match.span()
    for pattern in (_FULL_REFERENCE, _SHORTCUT):
        for match in pattern.finditer(masked):
            label = text[slice(*match.span(1))]
            name = text[slice(*match.span(2))] if match.re.groups > 1 and match.group(2) else label
            if _label_key(name) in references.definitions:
                references.used.add(_label_key(name))
                target = references.definitions[_label_key(name)][0]
                yield _make_link("reference", target, label, *match.span()), match.span()


def _html_links(text: str, masked: str) -> Iterator[tuple[Link | None, tuple[int, int]]]:
    for match in _HTML.finditer(masked):
        yield _make_link("html", text[slice(*match.span(2))], "", *match.span()), match.span()


def _wiki_links(text: str, masked: str) -> Iterator[tuple[Link | None, tuple[int, int]]]:
    for match in _WIKI.finditer(masked):
        target = match.group(1).strip()
        yield _make_link("wiki", target, match.group(2) or target, *match.span()), match.span()


def _bare_links(pattern: re.Pattern[str], kind: str, free: str, text: str, limit: int) -> list[Link]:
    links = []
    for match in pattern.finditer(free):
        written = match.group().rstrip(".,;:!?*_~'")
        while written.endswith(")") and written.count(")") > written.count("("):
            written = written[:-1].rstrip(".,;:!?*_~'")
        if written in _INDEX_FILES:
            continue  # a file suffix, not a file name
        link = _make_link(kind, written, written, match.start(), match.start() + len(written))
        if link is not None:
            links.append(link)
        if len(links) >= limit:
            break
    return links


def _make_link(kind: str, target: str, label: str, start: int, end: int) -> Link | None:
    """Return a link, or None if it does not lead to a document."""
    bare = target.strip().partition("#")[0].strip()
    if not bare or "{{" in bare or _NOT_FOLLOWED.match(target.strip()) or _IMAGE.search(bare.partition("?")[0]):
        return None
    return Link(kind, bare, " ".join(label.split())[:MAX_CONTEXT_CHARS], start, end)


def _label_key(label: str) -> str:
    return " ".join(label.split()).casefold()


def _blank_spans(text: str, spans: list[tuple[int, int]]) -> str:
    """Blank out spans, so that nothing inside a link is matched again."""
    pieces, at = [], 0
    for start, end in sorted(spans):
        if end > at:
            begin = max(start, at)
            pieces += [text[at:begin], " " * (end - begin)]
            at = end
    return "".join([*pieces, text[at:]])


# A document's links, read and stored in the transaction that writes the document

# --- Phrases that may be titles of other documents ---

MAX_MENTIONS = 400  # keys per document
MIN_TITLE_WORDS, MAX_TITLE_WORDS = 2, 10  # a single word is rarely a title

_SMALL_WORDS = "a|an|and|as|at|by|for|from|in|into|of|on|or|the|to|vs|with"
_CAPITALISED_WORD = r"[A-Z\u00c0-\u00de][\w'’-]{0,40}"
_CAPITALISED_PHRASE = re.compile(
    rf"{_CAPITALISED_WORD}(?:[ \n](?:(?:{_SMALL_WORDS})[ "
    rf"\n]){{0,2}}(?:{_CAPITALISED_WORD}|\d{{1,4}}\b)){{1,{MAX_TITLE_WORDS - 1}}}"
)
_MARKED_PHRASE = re.compile(
    r"[\"“«]([^\"“”«»\n]{5,150})[\"”»]|(?<![\w*])\*{1,2}([^*\n]{5,150})\*{1,2}|(?<![\w_])_([^_\n]{5,150})_(?!\w)"
)


def find_mention_keys(text: str) -> list[str]:
    """Return title keys of phrases that may be titles (2 to 10 words), without duplicates, at most 400."""
    keys: dict[str, None] = {}
    for phrase in _find_phrases(text):
        if MIN_TITLE_WORDS <= len(phrase.split()) <= MAX_TITLE_WORDS:
            key = title_key(phrase.strip(" .,;:!?"))
            if key:
                keys.setdefault(key)
        if len(keys) >= MAX_MENTIONS:
            break
    return list(keys)


def _find_phrases(text: str) -> Iterator[str]:
    for match in _MARKED_PHRASE.finditer(text):
        yield next(group for group in match.groups() if group)
    for match in _CAPITALISED_PHRASE.finditer(text):
        words = match.group().split()
        capitals = [place for place, word in enumerate(words) if not word[0].islower()]
        for place, first in enumerate(capitals):
            for last in reversed(capitals[place + 1 :]):
                yield " ".join(words[first : last + 1])


MAX_TARGET_CHARS = 2_000  # characters


def write_citations(
    citations: Citations, connection: Connection, document_id: str, document: NewDocument | DocumentRecord
) -> None:
    """Extract a document's links and replace the stored ones, in the caller's transaction."""
    addresses = document_keys(document.title, document.path, document.url, document.metadata)
    links = make_citations(document.text, document.path, document.url)
    own = {key for key, _ in addresses}
    mentions = [key for key in find_mention_keys(document.text) if key not in own]
    citations.write(connection, document_id, document.source_id, addresses, links, mentions)


def reread_citations(
    database: Database, documents: Documents, citations: Citations, document_ids: Sequence[str]
) -> None:
    """Re-extract the links of stored documents. Documents deleted in the meantime are skipped."""
    for document_id in document_ids:
        try:
            record = documents.record(document_id)
        except NotFound:
            continue
        with database.transaction() as connection:
            write_citations(citations, connection, document_id, record)


def make_citations(text: str, path: str | None, url: str | None) -> list[NewCitation]:
    """Return a text's links with the addresses they may refer to, relative to ``path`` or ``url``."""
    citations = []
    for link in extract_links(text):
        keys, absolute = target_keys(link.kind, link.target, path, url)
        citations.append(
            NewCitation(
                position=link.start,
                kind=link.kind,
                target=link.target[:MAX_TARGET_CHARS],
                url=absolute[:MAX_TARGET_CHARS] if absolute else None,
                label=link.label,
                context=link_context(text, link),
                confidence=CONFIDENCE[link.kind],
                keys=tuple(keys),
            )
        )
    return citations
