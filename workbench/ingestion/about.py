"""The facts that a document tells of itself apart from its text: file name in words, description, keywords."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

OWN_TITLE = "own_title"  # the title that a PDF has among its properties, where its first heading is its title
SAYING = ("description", "summary", OWN_TITLE, "subject", "keywords")  # of front matter, HTML meta and properties
CONTENTS = frozenset(("table of contents", "contents", "index", "inhaltsverzeichnis", "inhalt"))  # headings, no titles
NOTHING_SAYING = frozenset(("index", "readme", "document", "untitled", "main", "text", "download", "upload", "file"))
APART = re.compile(r"[\s_+.]+|(?<!\d)-+|-+(?!\d)|(?<=[a-z])(?=[A-Z][a-z])")  # 2023-05-30 stays in one
RANDOM = re.compile(r"[0-9a-f]{12,}|[0-9a-f-]{36}|\d+", re.IGNORECASE)  # a hash, a UUID, a bare number
WORD = re.compile(r"[^\W_]+")
SUFFIX = re.compile(r"\.[A-Za-z][A-Za-z0-9]{0,8}")


@dataclass(frozen=True, slots=True)
class About:
    """A document's file name in words, its title, and its author's description of it; "" where there is none."""

    name: str = ""
    title: str = ""
    says: str = ""


def about_document(title: str, path: str | None, metadata: Mapping[str, object]) -> About:
    """Return what names and describes a document, each thing said once."""
    name = file_words(path or "")
    if name and title == PurePosixPath(path or "").stem:
        return About(name, "", _sayings(name, metadata))
    return About("" if _within(name, title) else name, title, _sayings(title, metadata))


def file_words(path: str) -> str:
    """Return a file's name as words: ``reports/3M_2018_10K.pdf`` is "3M 2018 10K".

    Returns "" for an address, a key without a suffix, a hash, a number, and names such as "index" and "readme".
    """
    file = PurePosixPath(path)
    if "://" in path or not SUFFIX.fullmatch(file.suffix) or RANDOM.fullmatch(file.stem):
        return ""
    words = " ".join(word for word in APART.split(file.stem) if word)
    return "" if words.casefold() in NOTHING_SAYING else words


def _sayings(title: str, metadata: Mapping[str, object]) -> str:
    """Join the sayings, one that is in the title or in another one left out."""
    sayings: list[str] = []
    for saying in (_words(metadata.get(key)) for key in SAYING):
        if saying and not _within(saying, " ".join([title, *sayings])):
            sayings.append(saying)
    return " · ".join(sayings)


def _words(value: object) -> str:
    if isinstance(value, str):
        return " ".join(value.split())
    if isinstance(value, Sequence):
        parts: Iterable[object] = value
        return ", ".join(" ".join(part.split()) for part in parts if isinstance(part, str))
    return ""


def _within(words: str, text: str) -> bool:
    return set(WORD.findall(words.casefold())) <= set(WORD.findall(text.casefold()))
