"""Chunking, embedding and writing of documents into an index, for new and stored documents."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from functools import partial
from threading import Lock
from types import TracebackType
from typing import Any, Self, TypeVar

from workbench.errors import Cancelled, NotFound, UnreadableDocument
from workbench.ingestion.chunking import ChunkInput, CutPassage, Spans, Tokenize, cut_spans
from workbench.ingestion.chunking.spans import LazySequence
from workbench.ingestion.components import BuildCost, IndexComponents, is_component
from workbench.ingestion.embedding import (
    MIN_SHARED_PASSAGES,
    PART_PASSAGES,
    EmbeddedPassages,
    SharedEmbedding,
    embed_passages,
    help_to_embed,
    split_windows,
)
from workbench.ingestion.metadata import about_document
from workbench.models.encoder import Encoder, OnBatch
from workbench.storage.database import Connection, Database, statement
from workbench.storage.documents import Documents, NewDocument
from workbench.storage.indexes import Indexes
from workbench.storage.jobs import EmbeddingLease, Part, PartsLease, drop_embedding_parts
from workbench.storage.passages import NewPassage, insert_passages
from workbench.storage.store import PassageStore
from workbench.types import EMBEDDING_SHARE, Index, OnProgress, Progress, ShouldStop, Span, as_texts

# --- Passages of a document ---


@dataclass(frozen=True, slots=True)
class Passages(LazySequence[NewPassage]):
    """The passages of one document, in order."""

    document_id: str  # id of the document
    source_id: str  # id of its source
    text: str  # its text
    language: str  # its language
    spans: Sequence[CutPassage]  # spans of its passages
    labels: Mapping[str, object] = field(default_factory=dict)  # fields to store with each passage

    def __len__(self) -> int:
        return len(self.spans)

    def _make_item(self, place: int) -> NewPassage:
        span = self.spans[place]
        noted: dict[str, Any] = dict(span.metadata) | {"kind": span.kind} | dict(span.added)
        if span.heading_path:
            noted["heading_path"] = list(span.heading_path)
        if span.page is not None:
            noted["page"] = span.page
            label = self.labels.get(str(span.page))
            if isinstance(label, str) and label != str(span.page):
                noted["page_label"] = label
        if span.parent is not None:
            noted["parent"] = list(span.parent)
        return NewPassage(
            document_id=self.document_id,
            source_id=self.source_id,
            text=span.text or self.text[span.start : span.end],
            context=span.header,
            start=span.start,
            end=span.end,
            ordinal=place,
            language=self.language,
            metadata=noted,
        )


def _make_input(document: NewDocument | StoredDocument) -> ChunkInput:
    return ChunkInput(
        title=document.title,
        text=document.text,
        document_type=document.document_type,
        pages=tuple((n, start, end) for n, start, end in document.pages),
        about=about_document(document.title, document.path, document.metadata),
    )


def preview_passages(
    document: StoredDocument, chunker: str, options: Mapping[str, object], encoder: Encoder
) -> list[CutPassage]:
    """Cut a document as an index with this chunker and model would; nothing is stored.

    Raises:
        InvalidInput: There is no such chunker or option, or a value is out of range.
    """
    given = {**options, "limit": encoder.max_tokens, "embed": lambda texts: encoder.encode(texts).vectors}
    return list(cut_spans(chunker, _make_input(document), encoder.token_spans, given))


COPY_WINDOW_PASSAGES = 2048  # passages per COPY, whose postings are created together
BATCH_PASSAGES = 128  # passages embedded and written together: seconds of the model, one short transaction
SHARED_BATCH_PASSAGES = 4 * PART_PASSAGES


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """A stored document with the fields that chunking needs."""

    id: str
    source_id: str
    title: str
    text: str
    content_hash: str
    document_type: str
    language: str
    pages: Sequence[Sequence[int]] = ()
    path: str | None = None
    metadata: Mapping[str, object] = field(default_factory=dict[str, object])


@dataclass(frozen=True, slots=True)
class CutDocument:
    """A document with its passages. The passages of a new document get its id when it is written."""

    document: NewDocument | StoredDocument
    passages: Passages


@dataclass(frozen=True, slots=True)
class WrittenDocument:
    """A document that the index contains now."""

    id: str  # its id
    added: bool  # True if this write stored it for the first time
    same: bool = False  # True if this version was already stored


class IndexWriter:
    """Writes documents into one index."""

    def __init__(
        self,
        documents: Documents,
        indexes: Indexes,
        store: PassageStore,
        encoder: Encoder,
        reuse: Sequence[PassageStore] = (),
        hands: EmbeddingLease | None = None,
        components: IndexComponents | None = None,
    ) -> None:
        """Args:
        documents: Table of documents.
        indexes: Table of indexes.
        store: Passages of the index.
        encoder: Model of the index.
        reuse: Other indexes of the same model whose vectors are reused.
        hands: Table of embedding parts if other workers may help.
        components: Parser and transformations that the index names.
        """
        self._components = components
        self._documents, self._indexes, self._store, self.encoder = documents, indexes, store, encoder
        self._reuse, self._hands = [store, *reuse], hands

    @property
    def embeds_here(self) -> bool:
        """True if the model runs in this process, so that a trial costs nothing."""
        return self.encoder.has_token_vectors

    @property
    def batch(self) -> int:
        """Number of passages embedded and written together; larger if other workers may help."""
        return BATCH_PASSAGES if self._hands is None else SHARED_BATCH_PASSAGES

    @property
    def index(self) -> Index:
        """The index."""
        return self._store.index

    def cut(self, document: NewDocument | StoredDocument, on_batch: OnBatch | None = None) -> CutDocument:
        """Cut a document as the index specifies; ``on_batch`` is called repeatedly and may raise to stop.

        A language chosen for the source overrides the detected language of a new document.

        Raises:
            UnreadableDocument: A component of the index failed on the document.
        """
        if isinstance(document, NewDocument) and (chosen := self._documents.language_of_source(document.source_id)):
            document = replace(document, language=chosen)
        content, tokens = _make_input(document), self._tokens(on_batch)
        spans = self._cut_spans(content, tokens, on_batch)
        if self._components is not None:
            cut = self._components.cut(content, tokens, self.encoder.max_tokens, spans, on_batch)
        else:
            cut = spans or []
        labels = document.metadata.get("page_labels")
        passages = Passages(
            document.id if isinstance(document, StoredDocument) else "",
            document.source_id,
            document.text,
            document.language,
            cut,
            labels if isinstance(labels, Mapping) else {},
        )
        return CutDocument(document, passages)

    def estimate(self, document: StoredDocument, on_batch: OnBatch | None = None) -> BuildCost:
        """Estimate the cost of the index's components for a document.

        Raises:
            UnreadableDocument: The parser failed on the document.
        """
        if self._components is None:
            return BuildCost(documents=1)
        content, tokens = _make_input(document), self._tokens(on_batch)
        spans = self._cut_spans(content, tokens, on_batch)
        return self._components.estimate(content, tokens, self.encoder.max_tokens, spans)

    def _tokens(self, on_batch: OnBatch | None) -> Tokenize:
        def token_spans(part: str) -> list[Span]:
            if on_batch is not None:
                on_batch(0)
            return self.encoder.token_spans(part)

        return token_spans

    def _cut_spans(self, document: ChunkInput, tokens: Tokenize, on_batch: OnBatch | None) -> Spans | None:
        """Cut a document with the chunker of the index, so that passages with their context fit the model.

        None if the index has a LlamaIndex parser.
        """
        if is_component(self.index.chunker):
            return None
        options: dict[str, Any] = {**self.index.chunker_options, "limit": self.encoder.max_tokens}
        if self.index.chunker == "semantic":
            options["embed"] = lambda sentences: self.encoder.encode(sentences, on_batch=on_batch).vectors
        return cut_spans(self.index.chunker, document, tokens, options)

    def embed(
        self,
        documents: Sequence[CutDocument],
        on_batch: OnBatch | None = None,
        on_known: Callable[[int], None] | None = None,
    ) -> EmbeddedPassages:
        """Embed the passages of documents in order, reusing stored vectors of the same texts."""
        passages = (passage for document in documents for passage in document.passages)
        if self._hands is not None and sum(len(document.passages) for document in documents) >= MIN_SHARED_PASSAGES:
            return SharedEmbedding(self.encoder, self._reuse, self._hands, on_batch, on_known).embed(passages)
        return embed_passages(passages, self.encoder, self._reuse, on_batch, on_known)

    def write(
        self,
        connection: Connection,
        documents: Sequence[CutDocument],
        embedded: EmbeddedPassages,
        on_stored: Callable[[int], None] | None = None,
    ) -> list[WrittenDocument]:
        """Write documents in the caller's transaction, replacing their previous passages.

        Args:
            connection: The transaction.
            documents: The documents; new ones are stored, and the index records the version of each.
            embedded: The result of ``embed`` for these documents.
            on_stored: Called with the number of passages just written.
        """
        self._indexes.take_turn(connection, self.index.name)
        written = [self._store_document(connection, document.document) for document in documents]
        replaced = [document.id for document in written if not document.added]
        if replaced:
            removing = statement("delete_passages_of_documents", self.index.name)
            connection.execute(removing, {"document_ids": replaced})
        passages = (
            replace(passage, document_id=stored.id)
            for document, stored in zip(documents, written, strict=True)
            for passage in document.passages
        )
        for window in split_windows(zip(passages, embedded, strict=True), COPY_WINDOW_PASSAGES):
            vectors, token_bits = zip(*(row for _, row in window), strict=True)
            stored_passages = [passage for passage, _ in window]
            insert_passages(connection, self.index.name, stored_passages, vectors, token_bits)
            if on_stored is not None:
                on_stored(len(window))
        for cut_document, stored in zip(documents, written, strict=True):
            version, count = cut_document.document.content_hash, len(cut_document.passages)
            self._indexes.record_document(connection, self.index.name, stored.id, version, count)
        if embedded.parts:
            drop_embedding_parts(connection, embedded.parts)
        return written

    def help(self, ask: OnBatch) -> None:
        """Embed a waiting part for another worker on the same job; ``ask`` is as ``on_batch`` of ``cut_passages``."""
        if self._hands is not None:
            help_to_embed(self._hands, self.encoder, ask)

    def _store_document(self, connection: Connection, document: NewDocument | StoredDocument) -> WrittenDocument:
        if isinstance(document, StoredDocument):
            return WrittenDocument(document.id, added=False)
        return WrittenDocument(*self._documents.write(connection, document))


# --- Writing in a thread, rolled back on cancellation ---

T = TypeVar("T")
CLOSE_TIMEOUT_S = 0.5  # seconds
CANCEL_CHECK_INTERVAL_S = 0.1  # seconds between checks for cancellation


class WriteBehind:
    """Runs one transaction at a time, in order. Leaving the context with an error rolls back the current one."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="write")
        self._last: Future[None] | None = None
        self._connection: Connection | None = None
        self._lock = Lock()

    def submit(self, write: Callable[[Connection], T], then: Callable[[T], None]) -> None:
        """Call ``write(connection)`` in a transaction, and ``then`` with its result after the commit."""
        self._last = self._pool.submit(self._run, write, then)

    def wait(self, ask: Callable[[], None]) -> None:
        """Wait for the submitted writes; ``ask`` is called repeatedly and may raise to stop.

        Raises:
            StorageError: A write failed.
        """
        if self._last is not None:
            while not wait([self._last], timeout=CANCEL_CHECK_INTERVAL_S).done:
                ask()
            self._last.result()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None and self._last is not None and not wait([self._last], timeout=CLOSE_TIMEOUT_S).done:
            self._give_up(self._last)
        self._pool.shutdown()

    def _run(self, write: Callable[[Connection], T], then: Callable[[T], None]) -> None:
        with self._database.transaction() as connection:
            with self._lock:
                self._connection = connection
            try:
                result = write(connection)
            finally:
                with self._lock:
                    self._connection = None
        then(result)

    def _give_up(self, writing: Future[None]) -> None:
        """Cancel the statements of a write until it ends; between statements there is nothing to cancel."""
        while not wait([writing], timeout=CANCEL_CHECK_INTERVAL_S).done:
            with self._lock:  # so that the connection is not reused at the same time
                if self._connection is not None:
                    self._connection.cancel_safe()


# --- Building an index from stored documents, reusing stored vectors ---


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
                document = load_document(self._documents, document_id)
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
                document = load_document(self._documents, document_id)
                cost = cost.plus(self._writer.estimate(document, stop_if_asked))
        return cost

    def _write(
        self, batch: CutBatch, embedded: EmbeddedPassages, parts: PartsLease | None, connection: Connection
    ) -> int:
        if parts is None or batch.part is None:
            return len(self._writer.write(connection, batch.documents, embedded))
        self._writer.write(connection, batch.documents, embedded)
        parts.done(connection, batch.part)
        return batch.part.items
