"""The links of a document, read and stored with it: the pipeline's last act on every one, in its transaction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from workbench.errors import NotFound
from workbench.ingestion.addresses import addresses_of, keys_of_target
from workbench.ingestion.links import CONFIDENCE, context_of, extract_links
from workbench.ingestion.mentions import mention_keys
from workbench.storage.citations import Citations, NewCitation
from workbench.storage.database import Connection, Database
from workbench.storage.documents import DocumentRecord, Documents, NewDocument

LONGEST_TARGET = 2_000  # characters


def citation_writer(citations: Citations) -> Callable[[Connection, str, NewDocument], None]:
    """Return the function that the pipeline calls after it has written a document."""
    return partial(write_citations, citations)


def write_citations(
    citations: Citations, connection: Connection, document_id: str, document: NewDocument | DocumentRecord
) -> None:
    """Read a document's links and store them in place of the stored ones, in the caller's transaction."""
    addresses = addresses_of(document.title, document.path, document.url, document.metadata)
    links = links_of(document.text, document.path, document.url)
    mentions = _others(mention_keys(document.text), addresses)
    citations.write(connection, document_id, document.source_id, addresses, links, mentions)


def reread(database: Database, documents: Documents, citations: Citations, document_ids: Sequence[str]) -> None:
    """Read the links of stored documents again; one that was deleted meanwhile is passed over."""
    for document_id in document_ids:
        try:
            record = documents.record(document_id)
        except NotFound:
            continue
        with database.transaction() as connection:
            write_citations(citations, connection, document_id, record)


def links_of(text: str, path: str | None, url: str | None) -> list[NewCitation]:
    """Return a text's links with the addresses they may mean from a document at ``path`` or ``url``."""
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
