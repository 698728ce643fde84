"""Builds an index from stored documents, reusing stored vectors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from functools import partial

from workbench.errors import Cancelled, NotFound, UnreadableDocument
from workbench.ingestion.embedding import EmbeddedPassages
from workbench.ingestion.prefetch import WriteBehind
from workbench.ingestion.writing import BATCH_PASSAGES, BuildCost, CutDocument, IndexWriter, StoredDocument
from workbench.storage.database import Connection, Database
from workbench.storage.documents import Documents
from workbench.storage.job_parts import Part, PartsLease
from workbench.types import EMBEDDING_SHARE, Index, OnProgress, Progress, ShouldStop, as_texts


@dataclass(frozen=True, slots=True)
class CutBatch:
    """Documents that are embedded and written together."""

    documents: Sequence[CutDocument]  # the documents
    part: Part | None = None  # the part of a shared job

    @property
    def is_pause(self) -> bool:
        """True if all that is left is to wait for other workers."""
        return not self.documents and self.part is None


class BuildProgress:
    """Progress of a build, including the batches that are being embedded and written."""

    def __init__(self, on_progress: OnProgress | None, documents: int, size: int) -> None:
        """Args:
        on_progress: Receives the progress.
        documents: Number of documents.
        size: Bytes of text in all documents; 0 if unknown.
        """
        self._on_progress, self._total, self._size = on_progress, documents, size
        self.done = 0
        self._embedded = self._before = self._passages = self._under_way = 0
        self._batch_bytes = self._begun_bytes = self._written_bytes = 0

    def begin(self, batch: CutBatch) -> None:
        """Record that a batch is being embedded. The previous batch is being written."""
        self._begun_bytes += self._batch_bytes
        self._before, self._passages = self._embedded, sum(len(document.passages) for document in batch.documents)
        self._batch_bytes, self._under_way = _batch_bytes(batch), len(batch.documents)
        self.count_embedded(0)

    def count_embedded(self, count: int) -> None:
        """Count embedded passages."""
        self._embedded += count
        self._tell(f"{self._embedded:,} of {self._before + self._passages:,} passages embedded")

    def wrote(self, batch: CutBatch, count: int) -> None:
        """Count the documents in a batch that has been written."""
        self.done += count
        self._written_bytes += _batch_bytes(batch)
        self._tell(f"{self.done:,} of {self._total:,} documents")

    def _tell(self, message: str) -> None:
        if self._on_progress is None:
            return
        far = (self._embedded - self._before) / self._passages if self._passages else 0.0
        embedded = self._begun_bytes + far * self._batch_bytes
        share = (EMBEDDING_SHARE * embedded + (1 - EMBEDDING_SHARE) * self._written_bytes) / (self._size or 1)
        part = EMBEDDING_SHARE * far
        news = Progress(self.done, self._total, message, part, under_way=self._under_way)
        self._on_progress(replace(news, share=share) if self._size else news)


def _batch_bytes(batch: CutBatch) -> int:
    return sum(len(document.document.text.encode()) for document in batch.documents)


def load_document(documents: Documents, document_id: str) -> StoredDocument:
    """Return a stored document with the fields that chunking needs.

    Raises:
        NotFound: There is no such document.
    """
    record = documents.record(document_id)
    return StoredDocument(**{field.name: getattr(record, field.name) for field in fields(StoredDocument)})


class IndexBuilder:
    """Brings an index up to date with the stored documents."""

    def __init__(self, database: Database, documents: Documents, writer: IndexWriter) -> None:
        self._database, self._documents, self._writer = database, documents, writer
        self.failures: list[str] = []  # documents that a component of the index failed on, in sentences

    @property
    def index(self) -> Index:
        """The index that is built."""
        return self._writer.index

    def build(
        self,
        *,
        on_progress: OnProgress | None = None,
        should_stop: ShouldStop | None = None,
        parts: PartsLease | None = None,
    ) -> int:
        """Add or update missing documents; return the number of documents done by this call.

        With ``parts`` of a shared job, each part is one transaction.

        Raises:
            Cancelled: ``should_stop`` returned true. Finished documents are kept, and the next build continues from
                there.
            PartLost: Another worker took over a part.
        """

        def stop_if_asked(_: int = 0) -> None:  # also used as on_batch
            if should_stop is not None and should_stop():
                raise Cancelled("Stopped. Documents finished so far are in the index.")

        def on_batch(count: int = 0) -> None:
            progress.count_embedded(count)
            stop_if_asked()

        if parts is None:
            missing = self._documents.list_missing(self.index.name, self.index.dataset)
            progress = BuildProgress(on_progress, len(missing), sum(self._documents.sizes(missing).values()))
            batches = self._batches(missing, stop_if_asked)
        else:
            progress = BuildProgress(on_progress, parts.tally().items, 0)  # the parts give the total progress
            batches = self._part_batches(parts, stop_if_asked)
        with WriteBehind(self._database) as writing:
            for batch in batches:
                if batch.is_pause:
                    writing.wait(stop_if_asked)
                    self._writer.help(stop_if_asked)
                    on_batch()
                    continue
                progress.begin(batch)
                stop_if_asked()
                embedding = self._writer.embed(batch.documents, on_batch, on_batch)
                writing.wait(stop_if_asked)
                writing.submit(partial(self._write, batch, embedding, parts), partial(progress.wrote, batch))
            writing.wait(stop_if_asked)
        return progress.done

    def _batches(self, document_ids: Iterable[str], stop_if_asked: Callable[[int], None]) -> Iterator[CutBatch]:
        batch: list[CutDocument] = []
        size = 0
        for document in self._cut(document_ids, stop_if_asked):
            batch.append(document)
            size += len(document.passages)
            if size >= BATCH_PASSAGES:
                yield CutBatch(batch)
                batch, size = [], 0
        if batch:
            yield CutBatch(batch)

    def _part_batches(self, parts: PartsLease, stop_if_asked: Callable[[int], None]) -> Iterator[CutBatch]:
        """Yield each part as a batch, and an empty batch while other workers still hold parts."""
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
                document = self._load(document_id)
            except NotFound:  # deleted after it was listed
                continue
            try:
                yield self._writer.cut(document, stop_if_asked)
            except UnreadableDocument as error:
                self.failures.append(f"{document.title} is not in the index: {error}")

    def estimate(self, should_stop: ShouldStop | None = None) -> BuildCost:
        """Estimate the cost of the index's components for the missing documents.

        Raises:
            Cancelled: ``should_stop`` returned true.
        """

        def stop_if_asked(_: int = 0) -> None:
            if should_stop is not None and should_stop():
                raise Cancelled("Stopped. Nothing was changed.")

        cost = BuildCost()
        for document_id in self._documents.list_missing(self.index.name, self.index.dataset):
            stop_if_asked()
            with suppress(NotFound, UnreadableDocument):  # the build reports these
                cost = cost.plus(self._writer.estimate(self._load(document_id), stop_if_asked))
        return cost

    def _load(self, document_id: str) -> StoredDocument:
        return load_document(self._documents, document_id)

    def _write(
        self, batch: CutBatch, embedded: EmbeddedPassages, parts: PartsLease | None, connection: Connection
    ) -> int:
        if parts is None or batch.part is None:
            return len(self._writer.write(connection, batch.documents, embedded))
        self._writer.write(connection, batch.documents, embedded)
        parts.done(connection, batch.part)
        return batch.part.items
