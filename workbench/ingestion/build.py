"""Fill an index from the documents that are already stored: no upload, and no embedding of a text that is known."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from workbench.errors import Cancelled, NotFound
from workbench.ingestion.cutting import cut
from workbench.ingestion.embedding import EmbeddedPassages, embed
from workbench.ingestion.writing import WriteBehind
from workbench.models.encoder import Encoder
from workbench.storage.database import Database
from workbench.storage.documents import Documents
from workbench.storage.indexes import Indexes
from workbench.storage.rows import NewPassage
from workbench.storage.statements import statement
from workbench.storage.vector_store import PassageStore
from workbench.types import Index, Progress

BATCH = 128  # passages a transaction
Batch = list[tuple[dict[str, Any], list[NewPassage]]]  # documents as they are stored, each with its passages


class IndexBuilder:
    """Brings one index up to date with the stored documents."""

    def __init__(
        self,
        database: Database,
        documents: Documents,
        indexes: Indexes,
        store: PassageStore,
        encoder: Encoder,
        reuse: Sequence[PassageStore] = (),
    ) -> None:
        self._database, self._documents, self._indexes = database, documents, indexes
        self._store, self._encoder, self._reuse = store, encoder, [store, *reuse]

    @property
    def index(self) -> Index:
        """The index that is built."""
        return self._store.index

    def build(
        self,
        *,
        on_progress: Callable[[Progress], None] | None = None,
        should_stop: Callable[[], bool] | None = None,
    ) -> int:
        """Add or renew what is missing; returns the number of documents done.

        Raises:
            Cancelled: ``should_stop`` said so; what is done stays, and a next build goes on from there.
        """
        missing = self._documents.missing_from(self.index.name, self.index.dataset)
        done = embedded = 0

        def on_batch(count: int = 0) -> None:
            nonlocal embedded
            embedded += count
            if on_progress is not None:
                on_progress(Progress(done, len(missing), f"{embedded:,} passages embedded"))
            stop_if_asked()

        def stop_if_asked(_: int = 0) -> None:  # also as the model's on_batch
            if should_stop is not None and should_stop():
                raise Cancelled("Stopped; the documents done so far are in the index.")

        def wrote(count: int) -> None:
            nonlocal done
            done += count
            if on_progress is not None:
                on_progress(Progress(done, len(missing), f"{done:,} of {len(missing):,} documents"))

        with WriteBehind(self._database) as writing:
            for batch in self._batches(missing, stop_if_asked):
                on_batch()
                passages = [passage for _, cut_from in batch for passage in cut_from]
                found = embed(passages, self._encoder, self._reuse, on_batch)
                writing.wait(stop_if_asked)
                writing.submit(partial(self._write, batch, passages, found), wrote)
            writing.wait(stop_if_asked)
        return done

    def _batches(self, document_ids: Sequence[str], stop_if_asked: Callable[[int], None]) -> Iterator[Batch]:
        batch: Batch = []
        size = 0
        for document_id in document_ids:
            stop_if_asked(0)
            try:
                row = self._documents.record(document_id)
            except NotFound:  # deleted since the list was made
                continue
            passages = cut(
                self.index,
                self._encoder,
                document_id=document_id,
                source_id=row["source_id"],
                title=row["title"],
                text=row["text"],
                document_type=row["document_type"],
                language=row["language"],
                pages=row["pages"],
                on_batch=stop_if_asked,
            )
            batch.append((row, passages))
            size += len(passages)
            if size >= BATCH:
                yield batch
                batch, size = [], 0
        if batch:
            yield batch

    def _write(self, batch: Batch, passages: Sequence[NewPassage], embedded: EmbeddedPassages, connection: Any) -> int:
        self._indexes.take_turn(connection, self.index.name)
        removing = statement("delete_passages_of_documents", self.index.name)
        connection.execute(removing, {"document_ids": [row["id"] for row, _ in batch]})
        self._store.insert(connection, passages, embedded.vectors, embedded.token_bits)
        for row, found in batch:
            self._indexes.holding(connection, self.index.name, row["id"], row["content_hash"], len(found))
        return len(batch)
