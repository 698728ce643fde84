"""The way in: read, cut, embed, store; whole documents only, in one transaction each time.

Reading and cutting run ahead in one thread and writing behind in another, so that the embedding model, which takes
nearly all the time, never waits. What is unchanged (by content hash) costs a hash and nothing else.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import date
from functools import partial
from typing import Any

from workbench.errors import Cancelled, UnreadableDocument
from workbench.ingestion.ahead import run_ahead
from workbench.ingestion.cutting import cut
from workbench.ingestion.embedding import EmbeddedPassages, embed
from workbench.ingestion.incoming import Incoming, content_hash, read
from workbench.ingestion.tally import ItemNews, OnItems, Tally
from workbench.ingestion.writing import WriteBehind
from workbench.models.encoder import Encoder
from workbench.storage.database import Database
from workbench.storage.documents import Documents, KnownDocument, NewDocument
from workbench.storage.indexes import Indexes
from workbench.storage.rows import NewPassage
from workbench.storage.statements import statement
from workbench.storage.vector_store import PassageStore
from workbench.types import IngestFailure, IngestReport, Progress

BATCH = 128  # passages embedded and written together: several seconds of the model, one short transaction
OnProgress = Callable[[Progress], None]
AfterWrite = Callable[[Any, str, NewDocument], None]  # (connection, document id, document), in the same transaction


@dataclass(frozen=True, slots=True)
class Prepared:
    """One item after reading: a document with its passages, or unchanged, or a failure."""

    place: int  # among the items
    item: Incoming
    document: NewDocument | None = None
    passages: tuple[NewPassage, ...] = ()
    known_id: str | None = None
    error: str | None = None


class Pipeline:
    """Brings documents into one index."""

    def __init__(
        self,
        database: Database,
        documents: Documents,
        indexes: Indexes,
        store: PassageStore,
        encoder: Encoder,
        reuse: Sequence[PassageStore] = (),
        after_write: AfterWrite | None = None,
        on_items: OnItems | None = None,
    ) -> None:
        """``reuse`` are further indexes of the same model whose vectors may be used again."""
        self._database, self._documents, self._indexes = database, documents, indexes
        self._store, self._encoder = store, encoder
        self._after_write, self._on_items = after_write, on_items
        self._reuse = [store, *reuse]

    def ingest(
        self,
        source_id: str,
        items: Sequence[Incoming],
        *,
        failures: Iterable[IngestFailure] = (),
        on_progress: OnProgress | None = None,
        should_stop: Callable[[], bool] | None = None,
    ) -> IngestReport:
        """Bring items into a source; what is unchanged is left alone, what cannot be read is listed.

        Raises:
            Cancelled: ``should_stop`` said so; every document written before stays, whole.
        """
        began = time.perf_counter()
        tally = Tally(len(items), on_progress, list(failures), self._on_items)
        known = self._documents.known(source_id, self._store.index.name)
        prepared = run_ahead(
            self._prepare(source_id, place, item, known, should_stop) for place, item in enumerate(items)
        )
        with WriteBehind(self._database) as writing, closing(prepared):
            for batch in _batches(prepared, tally):
                _stop_if_asked(should_stop)
                embedded = self._embed(batch, tally, should_stop)
                writing.wait(lambda: _stop_if_asked(should_stop))
                count = sum(len(one.passages) for one in batch)
                writing.submit(partial(self._write, batch, embedded), partial(tally.wrote, passages=count))
            writing.wait(lambda: _stop_if_asked(should_stop))
        return tally.report(source_id, time.perf_counter() - began)

    def _prepare(
        self,
        source_id: str,
        place: int,
        item: Incoming,
        known: dict[str, KnownDocument],
        should_stop: Callable[[], bool] | None,
    ) -> Prepared:
        try:
            data = item.load()
            digest, before = content_hash(data), known.get(item.key)
            if before is not None and before.content_hash == before.indexed_hash == digest:
                return Prepared(place, item, known_id=before.id)
            raw = read(item, data)
        except UnreadableDocument as error:
            return Prepared(place, item, error=str(error))
        document = NewDocument(
            source_id=source_id,
            key=item.key,
            title=raw.title,
            text=raw.text,
            content_hash=digest,
            document_type=raw.document_type,
            path=item.path,
            url=item.url,
            language=raw.language,
            metadata=raw.metadata,
            pages=raw.pages,
            document_date=_date_of(raw.metadata),
            file=(item.name, "application/pdf", data) if item.keep_file else None,
        )
        passages = cut(
            self._store.index,
            self._encoder,
            document_id="",  # known once the document is written
            source_id=source_id,
            title=document.title,
            text=document.text,
            document_type=document.document_type,
            language=document.language,
            pages=document.pages,
            on_batch=lambda _: _stop_if_asked(should_stop),
        )
        return Prepared(place, item, document, tuple(passages))

    def _embed(
        self, batch: Sequence[Prepared], tally: Tally, should_stop: Callable[[], bool] | None
    ) -> EmbeddedPassages:
        def on_batch(count: int) -> None:
            tally.embedding(count)
            _stop_if_asked(should_stop)

        passages = [passage for prepared in batch for passage in prepared.passages]
        tally.begins([prepared.place for prepared in batch], len(passages))
        return embed(passages, self._encoder, self._reuse, on_batch)

    def _write(self, batch: Sequence[Prepared], embedded: EmbeddedPassages, connection: Any) -> list[tuple[str, bool]]:
        """Write whole documents: their rows, their passages and the note of what the index now holds.

        Returns (id, whether it is new) of each.
        """
        written: list[tuple[str, bool]] = []
        passages: list[NewPassage] = []
        self._indexes.take_turn(connection, self._store.index.name)
        for prepared in batch:
            assert prepared.document is not None
            document_id, added = self._documents.write(connection, prepared.document)
            written.append((document_id, added))
            passages += [replace(passage, document_id=document_id) for passage in prepared.passages]
        replaced = [document_id for document_id, added in written if not added]
        if replaced:
            removing = statement("delete_passages_of_documents", self._store.index.name)
            connection.execute(removing, {"document_ids": replaced})
        self._store.insert(connection, passages, embedded.vectors, embedded.token_bits)
        for prepared, (document_id, _) in zip(batch, written, strict=True):
            assert prepared.document is not None
            self._indexes.holding(
                connection,
                self._store.index.name,
                document_id,
                prepared.document.content_hash,
                len(prepared.passages),
            )
            if self._after_write is not None:
                self._after_write(connection, document_id, prepared.document)
        if self._on_items is not None:
            outcomes = zip(batch, written, strict=True)
            self._on_items([_brought_in(prepared, added) for prepared, (_, added) in outcomes], connection)
        return written


def _brought_in(prepared: Prepared, added: bool) -> ItemNews:
    return ItemNews(prepared.place, "added" if added else "changed", len(prepared.passages))


def _batches(prepared: Iterable[Prepared], tally: Tally) -> Iterator[list[Prepared]]:
    """Group documents until a batch is full; what needs no embedding is settled on the way.

    One key stands once in a batch: of two files of one name the later takes the place of the earlier, whole.
    """
    batch: dict[str, Prepared] = {}
    size = 0
    for item in prepared:
        if item.document is None:
            tally.settled(item.place, item.item.path or item.item.key, item.known_id, item.error)
            continue
        if item.item.key in batch:
            yield list(batch.values())
            batch, size = {}, 0
        batch[item.item.key] = item
        size += len(item.passages)
        if size >= BATCH:
            yield list(batch.values())
            batch, size = {}, 0
    if batch:
        yield list(batch.values())


def _stop_if_asked(should_stop: Callable[[], bool] | None) -> None:
    if should_stop is not None and should_stop():
        raise Cancelled("Stopped; every document stored before this moment stays, whole.")


def _date_of(metadata: Any) -> date | None:
    """Return the date a document says of itself, where it says one that can be read."""
    names = ("date", "lastUpdated", "lastmod", "modified", "published", "created")
    for value in itertools.chain.from_iterable((metadata.get(name),) for name in names):
        if isinstance(value, str):
            try:
                return date.fromisoformat(value[:10])
            except ValueError:
                continue
    return None
