"""The one way into an index: cut a document, embed its passages, write both; for new documents and stored ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, overload

from workbench.ingestion.chunking import ChunkInput, CutPassage, Spans, spans_of
from workbench.ingestion.embedding import LEAST, PART, EmbeddedPassages, SharedEmbedding, embed, help_to_embed, windows
from workbench.ingestion.metadata import about_document
from workbench.models.encoder import Encoder, OnBatch
from workbench.storage.database import Connection
from workbench.storage.documents import Documents, NewDocument
from workbench.storage.indexes import Indexes
from workbench.storage.job_parts import EmbeddingHands, drop_embedding_parts
from workbench.storage.passages import NewPassage, insert_passages
from workbench.storage.statements import statement
from workbench.storage.store import PassageStore
from workbench.types import Index
from workbench.types.results import Span

# --- The cutting of a document into its passages in one index ---


@dataclass(frozen=True, slots=True)
class Passages(Sequence[NewPassage]):
    """The passages of one document, in order, each made when it is asked for: a book has tens of thousands."""

    document_id: str
    source_id: str
    text: str
    language: str
    spans: Spans
    labels: Mapping[str, object] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.spans)

    @overload
    def __getitem__(self, place: int) -> NewPassage: ...
    @overload
    def __getitem__(self, place: slice) -> list[NewPassage]: ...
    def __getitem__(self, place: int | slice) -> NewPassage | list[NewPassage]:
        if isinstance(place, slice):
            return [self[index] for index in range(*place.indices(len(self)))]
        if place < 0:
            place += len(self)
        return self._passage(place, self.spans[place])

    def _passage(self, ordinal: int, span: CutPassage) -> NewPassage:
        noted: dict[str, Any] = dict(span.metadata) | {"kind": span.kind}
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
            text=self.text[span.start : span.end],
            context=span.header,
            start=span.start,
            end=span.end,
            ordinal=ordinal,
            language=self.language,
            metadata=noted,
        )


def cut(
    index: Index,
    encoder: Encoder,
    *,
    document_id: str,
    source_id: str,
    title: str,
    text: str,
    document_type: str,
    language: str,
    pages: Sequence[Sequence[int]] = (),
    path: str | None = None,
    metadata: Mapping[str, object] | None = None,
    on_batch: OnBatch | None = None,
) -> Passages:
    """Cut a document as the index asks; passages with their heading context fit the model.

    ``path`` and ``metadata`` are the document's own: the words of its file name and its description go into the
    context of every passage. ``on_batch`` is called again and again, with the number of texts that went through the
    model or 0, and may raise to stop.
    """

    def token_spans(part: str) -> list[Span]:
        if on_batch is not None:
            on_batch(0)
        return encoder.token_spans(part)

    options: dict[str, Any] = {**index.chunker_options, "limit": encoder.max_tokens}
    if index.chunker == "semantic":
        options["embed"] = lambda sentences: encoder.encode(sentences, on_batch=on_batch).vectors
    document = ChunkInput(
        title=title,
        text=text,
        document_type=document_type,
        pages=tuple((n, start, end) for n, start, end in pages),
        about=about_document(title, path, metadata or {}),
    )
    spans = spans_of(index.chunker, document, token_spans, options)
    labels = (metadata or {}).get("page_labels")
    return Passages(document_id, source_id, text, language, spans, labels if isinstance(labels, Mapping) else {})


WINDOW = 2048  # passages of one COPY, whose postings the database makes together
BATCH = 128  # passages embedded and written together: several seconds of the model, one short transaction
SHARED_BATCH = 4 * PART


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """A document that the database already holds, with the fields that cutting needs."""

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
    """A document with its passages; those of a new document get its id when it is written."""

    document: NewDocument | StoredDocument
    passages: Passages


@dataclass(frozen=True, slots=True)
class WrittenDocument:
    """The id of a document that the index now holds; ``added`` when this write stored it for the first time.

    ``same`` when the version that was written stood there already.
    """

    id: str
    added: bool
    same: bool = False


class IndexWriter:
    """The writer of one index; ``reuse`` are further indexes of the same model with vectors to use again."""

    def __init__(
        self,
        documents: Documents,
        indexes: Indexes,
        store: PassageStore,
        encoder: Encoder,
        reuse: Sequence[PassageStore] = (),
        hands: EmbeddingHands | None = None,
    ) -> None:
        """Take ``hands`` where other workers may embed many passages, too."""
        self._documents, self._indexes, self._store, self._encoder = documents, indexes, store, encoder
        self._reuse, self._hands = [store, *reuse], hands

    @property
    def encoder(self) -> Encoder:
        """The model of the index."""
        return self._encoder

    @property
    def embeds_here(self) -> bool:
        """True where the model runs in this process: trying it costs nobody anything."""
        return self._encoder.has_token_vectors

    @property
    def batch(self) -> int:
        """The passages that are embedded and written together: enough for several workers, where these may help."""
        return BATCH if self._hands is None else SHARED_BATCH

    @property
    def index(self) -> Index:
        """The index that is written."""
        return self._store.index

    def cut(self, document: NewDocument | StoredDocument, on_batch: OnBatch | None = None) -> CutDocument:
        """Cut a document as the index asks; ``on_batch`` is called again and again meanwhile, and may raise.

        A new document of a source whose language a person chose is of that language.
        """
        if isinstance(document, NewDocument) and (chosen := self._documents.language_of_source(document.source_id)):
            document = replace(document, language=chosen)
        passages = cut(
            self.index,
            self._encoder,
            document_id=document.id if isinstance(document, StoredDocument) else "",
            source_id=document.source_id,
            title=document.title,
            text=document.text,
            document_type=document.document_type,
            language=document.language,
            pages=document.pages,
            path=document.path,
            metadata=document.metadata,
            on_batch=on_batch,
        )
        return CutDocument(document, passages)

    def embed(
        self,
        documents: Sequence[CutDocument],
        on_batch: OnBatch | None = None,
        on_known: Callable[[int], None] | None = None,
    ) -> EmbeddedPassages:
        """Embed the passages of documents, in order; a text that has a vector already keeps it."""
        passages = (passage for document in documents for passage in document.passages)
        if self._hands is not None and sum(len(document.passages) for document in documents) >= LEAST:
            return SharedEmbedding(self._encoder, self._reuse, self._hands, on_batch, on_known).embed(passages)
        return embed(passages, self._encoder, self._reuse, on_batch, on_known)

    def write(
        self,
        connection: Connection,
        documents: Sequence[CutDocument],
        embedded: EmbeddedPassages,
        on_stored: Callable[[int], None] | None = None,
    ) -> list[WrittenDocument]:
        """Write whole documents in the caller's transaction, in place of the passages they had.

        New documents are stored, and the index notes of each document the version that it now holds. ``embedded`` is
        the result of ``embed`` for the same documents. ``on_stored`` receives the number of passages just taken in.
        """
        self._indexes.take_turn(connection, self.index.name)
        written = [self._stored(connection, document.document) for document in documents]
        replaced = [document.id for document in written if not document.added]
        if replaced:
            removing = statement("delete_passages_of_documents", self.index.name)
            connection.execute(removing, {"document_ids": replaced})
        passages = (
            replace(passage, document_id=stored.id)
            for document, stored in zip(documents, written, strict=True)
            for passage in document.passages
        )
        for window in windows(zip(passages, embedded, strict=True), WINDOW):
            vectors, token_bits = zip(*(row for _, row in window), strict=True)
            stored_passages = [passage for passage, _ in window]
            insert_passages(connection, self.index.name, stored_passages, vectors, token_bits)
            if on_stored is not None:
                on_stored(len(window))
        for cut_document, stored in zip(documents, written, strict=True):
            version, count = cut_document.document.content_hash, len(cut_document.passages)
            self._indexes.holding(connection, self.index.name, stored.id, version, count)
        if embedded.parts:
            drop_embedding_parts(connection, embedded.parts)
        return written

    def help(self, ask: OnBatch) -> None:
        """Embed a part for another worker of the same job, where one waits; ``ask`` as ``on_batch`` of ``cut``."""
        if self._hands is not None:
            help_to_embed(self._hands, self._encoder, ask)

    def _stored(self, connection: Connection, document: NewDocument | StoredDocument) -> WrittenDocument:
        if isinstance(document, StoredDocument):
            return WrittenDocument(document.id, added=False)
        return WrittenDocument(*self._documents.write(connection, document))
