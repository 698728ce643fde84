"""Extraction and storage of a document's links, in the transaction that writes the document."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from workbench.errors import NotFound
from workbench.ingestion.links import CONFIDENCE, document_keys, extract_links, link_context, target_keys, title_key
from workbench.storage.citations import Citations, NewCitation
from workbench.storage.database import Connection, Database
from workbench.storage.documents import DocumentRecord, Documents, NewDocument

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


def make_citation_writer(citations: Citations) -> Callable[[Connection, str, NewDocument], None]:
    """Return the function that the pipeline calls after writing a document."""
    return partial(write_citations, citations)


def write_citations(
    citations: Citations, connection: Connection, document_id: str, document: NewDocument | DocumentRecord
) -> None:
    """Extract a document's links and replace the stored ones, in the caller's transaction."""
    addresses = document_keys(document.title, document.path, document.url, document.metadata)
    links = make_citations(document.text, document.path, document.url)
    mentions = _exclude_own(find_mention_keys(document.text), addresses)
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


def _exclude_own(mentions: list[str], addresses: list[tuple[str, int]]) -> list[str]:
    own = {key for key, _ in addresses}
    return [key for key in mentions if key not in own]
