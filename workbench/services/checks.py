"""Names that people give to sources, projects and documents: titles, URLs, tags, checked before they are kept."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral
from pathlib import PurePath

from workbench.errors import InvalidInput
from workbench.types.results import MOST_RANKED

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


# --- The limits of a question: a text of some length, for a number of passages ---

LONGEST_QUERY = 10_000  # characters
MOST_CONVERSATIONS = 100  # that one question to a workspace ranks
MOST_RESULTS = MOST_RANKED


def check_limit(limit: int) -> None:
    """Refuse a number of passages that cannot be found. Raises InvalidInput."""
    if not isinstance(limit, Integral) or not 1 <= limit <= MOST_RESULTS:
        raise InvalidInput(f"limit cannot be {limit!r}; use a whole number from 1 to {MOST_RESULTS}.")


def check_query(query: object) -> None:
    """Refuse a query that cannot be answered. Raises InvalidInput."""
    if not isinstance(query, str):
        raise InvalidInput(f"The query is of the type {type(query).__name__}; ask with a text.")
    if not query.isascii() and any("\ud800" <= char <= "\udfff" for char in query):
        raise InvalidInput("The query holds half of a character (a lone surrogate); write it anew.")
    if not query.replace("\x00", "").strip():
        raise InvalidInput("The query is empty; ask something.")
    if len(query) > LONGEST_QUERY:
        raise InvalidInput(f"The query has {len(query):,} characters; shorten it to at most {LONGEST_QUERY:,}.")


def check_similarity(similarity: float) -> None:
    """Refuse a least cosine that no passage can be held against. Raises InvalidInput."""
    if not 0 <= similarity <= 1:
        raise InvalidInput(f"min_similarity cannot be {similarity}; use a number from 0 to 1.")


# --- From which size on work is left to a job: nobody who asks for something else waits for it, nor does a tool ---

LARGE = 150_000  # bytes: about two seconds of embedding on two cores; larger work becomes a job
PACKED, PACKED_TIMES = (".pdf", ".docx", ".pptx", ".xlsx", ".epub"), 5
PICTURES = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".webp")  # of pages, which are read by OCR: seconds each


def work_bytes(name: str, size: int) -> int:
    """Return how many bytes of text a file of ``size`` bytes is as much work as, by its name's ending.

    Packed files hold several times their size in text; a picture is always too much to wait for.
    """
    suffix = PurePath(name).suffix.lower()
    if suffix in PICTURES:
        return LARGE + max(1, size)
    return size * (PACKED_TIMES if suffix in PACKED else 1)
