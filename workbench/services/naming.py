"""Names that people give to sources, projects and documents: titles, URLs, tags, checked before they are kept."""

from __future__ import annotations

from collections.abc import Iterable

from workbench.errors import InvalidInput

UPLOADS = "Uploads"  # the title of the source for documents that come in without one
LONGEST_URL = 4_000  # characters; browsers and servers take less


def check_key(what: str, key: object) -> None:
    """Raise InvalidInput where ``key``, by which a person names something, is no text; ``what`` is "source"."""
    if not isinstance(key, str):
        raise InvalidInput(f"The {what} is {key!r}, of the type {type(key).__name__}; give its name or id as a text.")


def check_title(title: str) -> str:
    """Return a title without control characters. Raises InvalidInput when it is empty or overlong."""
    clean = " ".join("".join(char if char.isprintable() else " " for char in title).split())
    if not clean:
        raise InvalidInput("The title is empty; give it a name.")
    if len(clean) > 300:
        raise InvalidInput(f"The title has {len(clean)} characters; shorten it to at most 300.")
    return clean


def check_url(url: str | None) -> str | None:
    """Return the URL. Raises InvalidInput when it is overlong."""
    if url is not None and len(url) > LONGEST_URL:
        raise InvalidInput(f"The URL has {len(url):,} characters; use one of at most {LONGEST_URL:,}.")
    return url


def clean_tags(tags: str | Iterable[str]) -> tuple[str, ...]:
    """Return tags trimmed, each once, empty ones left out; one text is one tag."""
    if not isinstance(tags, Iterable):
        raise InvalidInput(f"The tags are {tags!r}; give a list of texts.")
    texts = [tags] if isinstance(tags, str) else list(tags)
    for tag in texts:
        check_key("tag", tag)
    return tuple(dict.fromkeys(tag.strip().replace("\x00", "") for tag in texts if tag.strip()))
