"""The builder of an index from stored documents: no upload, and no embedding of a text that is known."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import partial

from workbench.errors import Cancelled, NotFound
from workbench.ingestion.embedding import EmbeddedPassages
from workbench.ingestion.write_behind import WriteBehind
from workbench.ingestion.writing import BATCH, CutDocument, IndexWriter, StoredDocument
from workbench.storage.database import Connection, Database
from workbench.storage.documents import Documents
from workbench.storage.job_parts import Part, PartsInHand
from workbench.types import Index, OnProgress, Progress, ShouldStop, as_texts


@dataclass(frozen=True, slots=True)
class CutBatch:
    """Documents that are embedded and written together; ``part`` is what they are of a job that workers share."""

    documents: Sequence[CutDocument]
    part: Part | None = None

    @property
    def is_pause(self) -> bool:
        """True where there is nothing to do but to wait for others."""
        return not self.documents and self.part is None


class IndexBuilder:
    """A builder that brings one index up to date with the stored documents."""

    def __init__(
        self,
        database: Database,
        documents: Documents,
        writer: IndexWriter,
    ) -> None:
        self._database, self._documents, self._writer = database, documents, writer

    @property
    def index(self) -> Index:
        """The index that is built."""
        return self._writer.index

    def build(
        self,
        *,
        on_progress: OnProgress | None = None,
        should_stop: ShouldStop | None = None,
        parts: PartsInHand | None = None,
    ) -> int:
        """Add or renew what is missing; returns the number of documents done here.

        With ``parts``, of a job that several workers share, each part is a transaction of its own.

        Raises:
            Cancelled: ``should_stop`` said so; the finished documents stay, and a next build goes on from there.
            PartLost: a part went into other hands.
        """
        done = embedded = before = batch_size = under_way = total = 0

        def on_batch(count: int = 0) -> None:
            nonlocal embedded
            embedded += count
            if on_progress is not None:
                part = (embedded - before) / batch_size if batch_size else 0.0
                message = f"{embedded:,} of {before + batch_size:,} passages embedded"
                on_progress(Progress(done, total, message, part, under_way=under_way))
            stop_if_asked()

        def stop_if_asked(_: int = 0) -> None:  # also as the model's on_batch
            if should_stop is not None and should_stop():
                raise Cancelled("Stopped; the documents done so far are in the index.")

        def wrote(count: int) -> None:
            nonlocal done
            done += count
            if on_progress is not None:
                on_progress(Progress(done, total, f"{done:,} of {total:,} documents"))

        if parts is None:
            missing = self._documents.missing_from(self.index.name, self.index.dataset)
            total, batches = len(missing), self._batches(missing, stop_if_asked)
        else:
            total, batches = parts.tally().items, self._batches_of(parts, stop_if_asked)
        with WriteBehind(self._database) as writing:
            for batch in batches:
                if batch.is_pause:
                    writing.wait(stop_if_asked)
                    self._writer.help(stop_if_asked)
                    on_batch()
                    continue
                before, batch_size = embedded, sum(len(document.passages) for document in batch.documents)
                under_way = len(batch.documents)
                on_batch()
                embedding = self._writer.embed(batch.documents, on_batch, on_batch)
                writing.wait(stop_if_asked)
                writing.submit(partial(self._write, batch, embedding, parts), wrote)
            writing.wait(stop_if_asked)
        return done

    def _batches(self, document_ids: Iterable[str], stop_if_asked: Callable[[int], None]) -> Iterator[CutBatch]:
        batch: list[CutDocument] = []
        size = 0
        for document in self._cut(document_ids, stop_if_asked):
            batch.append(document)
            size += len(document.passages)
            if size >= BATCH:
                yield CutBatch(batch)
                batch, size = [], 0
        if batch:
            yield CutBatch(batch)

    def _batches_of(self, parts: PartsInHand, stop_if_asked: Callable[[int], None]) -> Iterator[CutBatch]:
        """Yield each part as a batch; one without documents where others still have parts in hand."""
        for part in parts.all_taken():
            stop_if_asked(0)
            if part is None:
                yield CutBatch([])
            else:
                yield CutBatch(list(self._cut(as_texts(part.content), stop_if_asked)), part)

    def _cut(self, document_ids: Iterable[str], stop_if_asked: Callable[[int], None]) -> Iterator[CutDocument]:
        for document_id in document_ids:
            stop_if_asked(0)
            try:
                document = self._stored(document_id)
            except NotFound:  # deleted since the list was made
                continue
            yield self._writer.cut(document, stop_if_asked)

    def _stored(self, document_id: str) -> StoredDocument:
        record = self._documents.record(document_id)
        return StoredDocument(**{field.name: getattr(record, field.name) for field in fields(StoredDocument)})

    def _write(
        self, batch: CutBatch, embedded: EmbeddedPassages, parts: PartsInHand | None, connection: Connection
    ) -> int:
        if parts is None or batch.part is None:
            return len(self._writer.write(connection, batch.documents, embedded))
        self._writer.write(connection, batch.documents, embedded)
        parts.done(connection, batch.part)
        return batch.part.items
