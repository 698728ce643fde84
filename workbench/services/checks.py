"""Checks on titles, URLs, tags, queries and the size of work, made before anything is stored or run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from numbers import Integral
from pathlib import PurePath

from workbench.errors import InvalidInput
from workbench.types import MAX_RANKED_PASSAGES

UPLOADS_TITLE = "Uploads"  # title of the source for documents without one
MAX_URL_CHARS = 4_000  # characters; browsers and servers accept fewer


def check_key(what: str, key: object) -> None:
    """Raise InvalidInput if a name or id is not a str; the message has ``what`` it names, such as "source"."""
    if not isinstance(key, str):
        raise InvalidInput(f"Invalid {what} {key!r}: expected its name or id as str, not {type(key).__name__}.")


def check_title(title: str) -> str:
    """Return a title without control characters.

    Raises:
        InvalidInput: The title is empty or longer than 300 characters.
    """
    clean = " ".join("".join(char if char.isprintable() else " " for char in title).split())
    if not clean:
        raise InvalidInput("The title is empty.")
    if len(clean) > 300:
        raise InvalidInput(f"The title has {len(clean)} characters; shorten it to at most 300.")
    return clean


def check_url(url: str | None) -> str | None:
    """Return the URL unchanged. Raises InvalidInput if the URL is too long."""
    if url is not None and len(url) > MAX_URL_CHARS:
        raise InvalidInput(f"The URL has {len(url):,} characters; use one of at most {MAX_URL_CHARS:,}.")
    return url


def clean_tags(tags: str | Iterable[str]) -> tuple[str, ...]:
    """Return stripped tags without duplicates or empty ones; a single str is one tag.

    Raises:
        InvalidInput: The tags are not strings.
    """
    if not isinstance(tags, Iterable):
        raise InvalidInput(f"Invalid tags {tags!r}: expected a list of str.")
    texts = [tags] if isinstance(tags, str) else list(tags)
    for tag in texts:
        if not isinstance(tag, str):
            raise InvalidInput(f"Invalid tag {tag!r}: expected str, not {type(tag).__name__}.")
    return tuple(dict.fromkeys(tag.strip().replace("\x00", "") for tag in texts if tag.strip()))


# Limits of a query

MAX_QUERY_CHARS = 10_000  # characters
MAX_CONVERSATIONS = 100  # ranked for one query in a workspace
MAX_RESULTS = MAX_RANKED_PASSAGES


def check_limit(limit: int, most: int = MAX_RESULTS, name: str = "limit") -> None:
    """Check a number of results against the number that a search ranks.

    Raises:
        InvalidInput: The limit is not a whole number from 1 to ``most``.
    """
    if isinstance(limit, Integral) and 1 <= limit <= most:
        return
    message = f"Invalid {name} {limit!r}: use a whole number from 1 to {most}."
    if isinstance(limit, Integral) and limit > most:
        message += " To see others, narrow the scope or ask a more specific question."
    raise InvalidInput(message)


def check_query(query: object) -> None:
    """Check the text of a query.

    Raises:
        InvalidInput: The query is not a str, is empty or too long, or contains an unpaired surrogate.
    """
    if not isinstance(query, str):
        raise InvalidInput(f"Invalid query: expected str, not {type(query).__name__}.")
    if not query.isascii() and any("\ud800" <= char <= "\udfff" for char in query):
        raise InvalidInput("The query contains an unpaired surrogate; remove it and try again.")
    if not query.replace("\x00", "").strip():
        raise InvalidInput("The query is empty.")
    if len(query) > MAX_QUERY_CHARS:
        raise InvalidInput(f"The query has {len(query):,} characters; shorten it to at most {MAX_QUERY_CHARS:,}.")


def check_history(history: Sequence[str]) -> tuple[str, ...]:
    """Return the earlier turns of a conversation, each on one line.

    Raises:
        InvalidInput: They are not a list of str, or one contains an unpaired surrogate.
    """
    if isinstance(history, str) or not all(isinstance(turn, str) for turn in history):
        raise InvalidInput("Invalid history: expected a list of str, the earlier turns from the oldest to the newest.")
    turns = tuple(" ".join(turn.replace("\x00", "").split()) for turn in history)
    if any("\ud800" <= char <= "\udfff" for turn in turns for char in turn):
        raise InvalidInput("The history contains an unpaired surrogate; remove it and try again.")
    return turns


def check_similarity(similarity: float) -> None:
    """Check a minimum cosine similarity. Raises InvalidInput if it is outside 0..1."""
    if not 0 <= similarity <= 1:
        raise InvalidInput(f"Invalid min_similarity {similarity}: use a number from 0 to 1.")


# The size from which work becomes a job

JOB_THRESHOLD_BYTES = 150_000  # bytes of text: about two seconds of embedding on two cores
COMPRESSED_SUFFIXES, COMPRESSION_FACTOR = (".pdf", ".docx", ".pptx", ".xlsx", ".epub"), 5
PICTURE_SUFFIXES = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".webp")  # read by OCR, which takes seconds


def estimate_text_bytes(name: str, size: int) -> int:
    """Return the estimated bytes of text in a file of ``size`` bytes, by its suffix.

    Compressed formats contain several times their size; a picture always exceeds ``JOB_THRESHOLD_BYTES``.
    """
    suffix = PurePath(name).suffix.lower()
    if suffix in PICTURE_SUFFIXES:
        return JOB_THRESHOLD_BYTES + max(1, size)
    return size * (COMPRESSION_FACTOR if suffix in COMPRESSED_SUFFIXES else 1)
