"""Read a document's links and store them with it: the pipeline's last act on every document, in its transaction."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from workbench.errors import NotFound
from workbench.ingestion.addresses import addresses_of, keys_of_target
from workbench.ingestion.links import CONFIDENCE, context_of, extract_links
from workbench.ingestion.mentions import mention_keys
from workbench.storage.citations import Citations, NewCitation
from workbench.storage.database import Database
from workbench.storage.documents import Documents, NewDocument

LONGEST_TARGET = 2_000  # characters


def citation_writer(citations: Citations) -> Callable[[Any, str, NewDocument], None]:
    """Return what the pipeline calls after it has written a document."""

    def write(connection: Any, document_id: str, document: NewDocument) -> None:
        write_citations(
            citations,
            connection,
            document_id=document_id,
            source_id=document.source_id,
            title=document.title,
            text=document.text,
            path=document.path,
            url=document.url,
            metadata=document.metadata,
        )

    return write


def write_citations(
    citations: Citations,
    connection: Any,
    *,
    document_id: str,
    source_id: str,
    title: str,
    text: str,
    path: str | None,
    url: str | None,
    metadata: Mapping[str, Any],
) -> None:
    """Read a document's links and store them in place of what was stored, in the caller's transaction."""
    addresses = addresses_of(title, path, url, metadata)
    citations.write(
        connection, document_id, source_id, addresses, links_of(text, path, url), _others(mention_keys(text), addresses)
    )


def reread(database: Database, documents: Documents, citations: Citations, document_ids: Sequence[str]) -> None:
    """Read the links of stored documents again; one that was deleted meanwhile is passed over."""
    for document_id in document_ids:
        try:
            row = documents.record(document_id)
        except NotFound:
            continue
        given = {name: row[name] for name in ("source_id", "title", "text", "path", "url", "metadata")}
        with database.transaction() as connection:
            write_citations(citations, connection, document_id=document_id, **given)


def links_of(text: str, path: str | None, url: str | None) -> list[NewCitation]:
    """Return a text's links with the addresses they may mean from a document at ``path`` or ``url``."""
    found = []
    for link in extract_links(text):
        keys, absolute = keys_of_target(link.kind, link.target, path, url)
        found.append(
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
    return found


def _others(mentions: list[str], addresses: list[tuple[str, int]]) -> list[str]:
    own = {key for key, _ in addresses}
    return [key for key in mentions if key not in own]
