"""Extraction and storage of a document's links, in the transaction that writes the document."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from workbench.errors import NotFound
from workbench.ingestion.links import CONFIDENCE, addresses_of, context_of, extract_links, keys_of_target, title_key
from workbench.storage.citations import Citations, NewCitation
from workbench.storage.database import Connection, Database
from workbench.storage.documents import DocumentRecord, Documents, NewDocument

# --- Phrases that may be titles of other documents ---

MOST_MENTIONS = 400  # keys per document
FEWEST_WORDS, MOST_WORDS = 2, 10  # a single word is rarely a title

_SMALL = "a|an|and|as|at|by|for|from|in|into|of|on|or|the|to|vs|with"
_CAPITAL = r"[A-Z\u00c0-\u00de][\w'’-]{0,40}"
_RUN = re.compile(rf"{_CAPITAL}(?:[ \n](?:(?:{_SMALL})[ \n]){{0,2}}(?:{_CAPITAL}|\d{{1,4}}\b)){{1,{MOST_WORDS - 1}}}")
_MARKED = re.compile(
    r"[\"“«]([^\"“”«»\n]{5,150})[\"”»]|(?<![\w*])\*{1,2}([^*\n]{5,150})\*{1,2}|(?<![\w_])_([^_\n]{5,150})_(?!\w)"
)


def mention_keys(text: str) -> list[str]:
    """Return title keys of phrases that may be titles (2 to 10 words), without duplicates, at most 400."""
    keys: dict[str, None] = {}
    for phrase in _phrases(text):
        if FEWEST_WORDS <= len(phrase.split()) <= MOST_WORDS:
            key = title_key(phrase.strip(" .,;:!?"))
            if key:
                keys.setdefault(key)
        if len(keys) >= MOST_MENTIONS:
            break
    return list(keys)


def _phrases(text: str) -> Iterator[str]:
    for match in _MARKED.finditer(text):
        yield next(group for group in match.groups() if group)
    for match in _RUN.finditer(text):
        words = match.group().split()
        capitals = [place for place, word in enumerate(words) if not word[0].islower()]
        for place, first in enumerate(capitals):
            for last in reversed(capitals[place + 1 :]):
                yield " ".join(words[first : last + 1])


LONGEST_TARGET = 2_000  # characters


def citation_writer(citations: Citations) -> Callable[[Connection, str, NewDocument], None]:
    """Return the function that the pipeline calls after writing a document."""
    return partial(write_citations, citations)


def write_citations(
    citations: Citations, connection: Connection, document_id: str, document: NewDocument | DocumentRecord
) -> None:
    """Extract a document's links and replace the stored ones, in the caller's transaction."""
    addresses = addresses_of(document.title, document.path, document.url, document.metadata)
    links = links_of(document.text, document.path, document.url)
    mentions = _others(mention_keys(document.text), addresses)
    citations.write(connection, document_id, document.source_id, addresses, links, mentions)


def reread(database: Database, documents: Documents, citations: Citations, document_ids: Sequence[str]) -> None:
    """Extract the links of stored documents again. Documents deleted in the meantime are skipped."""
    for document_id in document_ids:
        try:
            record = documents.record(document_id)
        except NotFound:
            continue
        with database.transaction() as connection:
            write_citations(citations, connection, document_id, record)


def links_of(text: str, path: str | None, url: str | None) -> list[NewCitation]:
    """Return a text's links with the addresses they may refer to, relative to ``path`` or ``url``."""
    citations = []
    for link in extract_links(text):
        keys, absolute = keys_of_target(link.kind, link.target, path, url)
        citations.append(
            NewCitation(
                position=link.start,
                kind=link.kind,
                target=link.target[:LONGEST_TARGET],
                url=absolute[:LONGEST_TARGET] if absolute else None,
                label=link.label,
                context=context_of(text, link),
                confidence=CONFIDENCE[link.kind],
                keys=tuple(keys),
            )
        )
    return citations


def _others(mentions: list[str], addresses: list[tuple[str, int]]) -> list[str]:
    own = {key for key, _ in addresses}
    return [key for key in mentions if key not in own]
