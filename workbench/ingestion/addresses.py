"""The addresses a document can be cited by, and the addresses a link may mean: equal keys are the same place.

Kinds of keys: ``file:`` the exact path in the source; ``page:`` the path as a site would serve it, without ending,
index name and case; ``site:`` a path the document declares for itself (front matter url, aliases); ``url:`` host and
path of a URL; ``name:`` the file's name; ``title:`` the title.
"""

from __future__ import annotations

import hashlib
import posixpath
import re
import unicodedata
from collections.abc import Iterable, Mapping
from urllib.parse import unquote, urljoin, urlsplit

LONGEST_KEY = 200  # characters; a longer one is kept as a hash, because a database index bounds its keys
ENDINGS = (  # of pages, which a link may leave out; every one is a suffix that a reader reads
    ".md", ".markdown", ".mdx", ".rst", ".txt", ".html", ".htm", ".ipynb", ".pdf", ".docx",
)  # fmt: skip
_INDEX_NAMES = frozenset(("index", "_index", "readme", "default"))
_URL_FIELDS = ("url", "source_url", "original_url", "canonical_url", "canonical", "permalink", "link", "source")
_ALIAS_FIELDS = ("aliases", "alias", "redirect_from")
_SEPARATORS = re.compile(r"[\s_-]+")
_SCHEME = re.compile(r"\A[a-z][a-z0-9+.-]*:", re.IGNORECASE)


def addresses_of(
    title: str, path: str | None, url: str | None, metadata: Mapping[str, object]
) -> list[tuple[str, int]]:
    """Return (key, depth) of every address of a document, each key once; depth counts the folders above it."""
    keys: list[str | None] = [title_key(title)]
    depth = 0
    if path:
        clean = _clean(path)
        depth = min(clean.count("/"), 100)
        keys += [_key("file", clean), page_key(clean), name_key(clean.rpartition("/")[2])]
    declared = [url, *(metadata.get(name) for name in _URL_FIELDS), *_listed(metadata, _ALIAS_FIELDS)]
    for value in (item.strip() for item in declared if isinstance(item, str) and item.strip()):
        if value.lower().startswith(("http://", "https://")):
            keys.append(url_key(value))
        elif value.startswith("/"):
            keys.append(_key("site", _page(_clean(value))))
    keys += [title_key(value) for value in _listed(metadata, _ALIAS_FIELDS) if "/" not in value]
    return [(key, depth) for key in dict.fromkeys(key for key in keys if key)]


def keys_of_target(kind: str, target: str, path: str | None, url: str | None) -> tuple[list[str], str | None]:
    """Return the addresses a link may mean, the likeliest first, and its absolute URL where it has one.

    ``path`` and ``url`` are the citing document's. A path from the site's root is tried with every folder above the
    citing document as that root, the outermost first; a relative one from the document's folder, then from the page
    as a folder, as sites with pretty URLs mean it. A bare path in a text (kind "path") must be a file's exact path.
    """
    own = _clean(path) if path else ""
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
        folders = [*_roots(own)] if bare.startswith("/") else [posixpath.dirname(own), *_roots(own)]
        keys += [_key("file", _clean(f"{folder}/{bare}")) for folder in dict.fromkeys(folders)]
    elif path and bare.startswith("/"):
        keys += [*(page_key(f"{root}/{bare}") for root in _roots(own)), _key("site", _page(_clean(bare)))]
        keys = [key for key in keys if key != page_key(own)]  # a guessed root never makes a page its own target
    elif path:
        folder = posixpath.dirname(own)
        keys += [_key("file", _clean(f"{folder}/{bare}")), page_key(f"{folder}/{bare}")]
        if not bare.lower().endswith(ENDINGS) and not _is_index(own):
            keys.append(page_key(f"{_page(own)}/{bare}"))
    return list(dict.fromkeys(key for key in keys if key)), absolute


def url_key(url: str) -> str | None:
    """Return the key of a URL: scheme, www., default port, fragment, index name and final slash do not count."""
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
    return _key("url", f"{host}{port}{_fold(page).rstrip('/')}{query}")


def page_key(path: str) -> str | None:
    """Return the key of a path as a site would serve it."""
    return _key("page", _page(_clean(path)))


def name_key(name: str) -> str | None:
    """Return the key of a file's name without its ending; blanks, hyphens and underscores are alike."""
    stem = _without_ending(name)
    return _key("name", _SEPARATORS.sub("-", _fold(stem)).strip("-"))


def title_key(title: str) -> str | None:
    """Return the key of a title: case and width of blanks do not count."""
    return _key("title", _fold(" ".join(title.split())))


def _wiki_keys(target: str, own: str) -> list[str]:
    folder = posixpath.dirname(own)
    keys = [page_key(f"{folder}/{target}"), page_key(target)] if own else []
    if "/" not in target:
        keys += [name_key(target), title_key(target)]
    return list(dict.fromkeys(key for key in keys if key))


def _roots(own: str) -> Iterable[str]:
    folders = posixpath.dirname(own).split("/") if posixpath.dirname(own) else []
    return ("/".join(folders[:count]) for count in range(len(folders) + 1))


def _clean(path: str) -> str:
    """Return a path with plain slashes and without dots; one that climbs above the root stays at the root."""
    parts: list[str] = []
    for part in path.replace("\\", "/").split("/"):
        if part == "..":
            parts = parts[:-1]
        elif part not in ("", "."):
            parts.append(part)
    return unicodedata.normalize("NFC", "/".join(parts))


def _page(clean: str) -> str:
    folders, _, name = _fold(_without_ending(clean)).rpartition("/")
    return folders if name in _INDEX_NAMES else f"{folders}/{name}".lstrip("/")


def _is_index(clean: str) -> bool:
    return _without_ending(clean.rpartition("/")[2]).casefold() in _INDEX_NAMES


def _without_ending(path: str) -> str:
    stem, ending = posixpath.splitext(path)
    return stem if ending.lower() in ENDINGS else path


def _fold(text: str) -> str:
    return unicodedata.normalize("NFC", text).casefold()


def _listed(metadata: Mapping[str, object], names: Iterable[str]) -> list[str]:
    values: list[str] = []
    for name in names:
        value = metadata.get(name)
        values += (
            [value]
            if isinstance(value, str)
            else [item for item in value or () if isinstance(item, str)]
            if (isinstance(value, list | tuple))
            else []
        )
    return values


def _key(kind: str, value: str) -> str | None:
    if not value and kind != "page":
        return None
    if len(value) > LONGEST_KEY:
        value = "#" + hashlib.blake2b(value.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
    return f"{kind}:{value}"
