"""Documents: brought in, listed, read, changed and deleted. The one door to all of these verbs."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from workbench.errors import InvalidInput, ModelError, UnreadableDocument
from workbench.retrieval.first_import import import_framework
from workbench.services.checks import check_key, check_title, check_url
from workbench.services.corpus import Corpus
from workbench.services.indexes import IndexService, saying
from workbench.services.sources import UPLOADS, Deletion, SourceService
from workbench.storage.database import Connection, clean
from workbench.storage.documents import NewDocument
from workbench.storage.jobs import pace_of_ingests
from workbench.telemetry import INGEST, measured
from workbench.types import Document, IngestFailure, IngestReport, OnProgress, Progress, ShouldStop, Value

if TYPE_CHECKING:
    from workbench.ingestion.incoming import Incoming
    from workbench.ingestion.pipeline import AfterWrite
    from workbench.ingestion.progress import OnItems
    from workbench.ingestion.sharing import SharedItems
    from workbench.storage.job_parts import EmbeddingHands
    from workbench.storage.passages import StoredPassage

# --- The intake: documents on their way into a source, its citations and the indexes that serve ---


class Intake:
    """The composer of the ingestion pipeline, for one source and one index at a time."""

    def __init__(self, corpus: Corpus, indexes: IndexService) -> None:
        self._corpus, self._indexes = corpus, indexes

    def take(
        self,
        source_id: str,
        items: Sequence[Incoming],
        *,
        failures: Iterable[IngestFailure] = (),
        index: str | None = None,
        on_progress: OnProgress | None = None,
        should_stop: ShouldStop | None = None,
        after_write: AfterWrite | None = None,
        on_items: OnItems | None = None,
        shared: SharedItems | None = None,
        hands: EmbeddingHands | None = None,
    ) -> IngestReport:
        """Bring items into a source; see ``DocumentService.ingest_items``."""
        pace: float | None = None
        if on_progress is not None and items:  # the framework takes seconds to be imported
            from workbench.ingestion.progress import FIRST_PACE, Forecast

            pace = pace_of_ingests(self._corpus.database) or FIRST_PACE
            forecast = Forecast([item.size for item in items], pace)
            message = f"0 of about {forecast.total:,} passages embedded" if forecast.total else "reading"
            on_progress(Progress(0, len(items), message, seconds_left=forecast.seconds_left))
        import_framework()
        from workbench.ingestion.citations import citation_writer
        from workbench.ingestion.pipeline import Pipeline

        corpus = self._corpus
        write_citations = citation_writer(corpus.citations)

        def written(connection: Connection, document_id: str, document: NewDocument) -> None:
            write_citations(connection, document_id, document)
            if after_write is not None:
                after_write(connection, document_id, document)

        chosen = corpus.index(index)
        pipeline = Pipeline(
            corpus.database,
            corpus.documents,
            corpus.writer_of(chosen, shared.parts.embedding if shared is not None else hands),
            after_write=written,
            on_items=on_items,
            pace=pace,
        )
        report = pipeline.ingest(
            source_id,
            items,
            failures=failures,
            on_progress=on_progress,
            should_stop=should_stop,
            shared=shared,
        )
        if shared is not None and not shared.parts.leads:
            return report
        if report.added + report.updated:
            corpus.store(chosen).maintain_graph(saying(on_progress, len(items)))
        if index is None:
            self._bring_up_to_date(chosen.name, on_progress, should_stop)
        changed = chosen.is_default and report.added + report.updated
        offer = self._indexes.language_offer(report.document_ids) if changed else None
        return replace(report, offer=f"{offer.sentence} {offer.way}") if offer else report

    def _bring_up_to_date(self, filled: str, on_progress: OnProgress | None, should_stop: ShouldStop | None) -> None:
        """Let the new documents be found by the searches that a promotion sends to another index."""
        for name in self._corpus.promotions.indexes():
            if name == filled:
                continue

            def tell(progress: Progress, name: str = name) -> None:
                if on_progress is not None:
                    on_progress(replace(progress, message=f"index {name}: {progress.message}"))

            with suppress(ModelError):  # its model is gone: searches say so, and what the index lacks
                self._indexes.build(name, on_progress=tell, should_stop=should_stop)


# --- One file or one text, as the item that ingestion takes ---


def single_item(
    path: Path | None, text: str | None, *, title: str | None, url: str | None, metadata: Mapping[str, object]
) -> Incoming:
    """Return what is to be ingested. Raises InvalidInput or UnreadableDocument; nothing was read or written."""
    from workbench.ingestion.incoming import content_hash, files_under, text_item

    if (path is None) == (text is None):
        raise InvalidInput("Give a file or a text, one of the two.")
    if text is not None:
        text = str(clean(text))  # unlike in a file, where a NUL tells that the whole is no text
        if not text.strip():
            raise InvalidInput("The text is empty; give the words of the document.")
        key = f"text:{content_hash(text.encode())}"
        return text_item(key, text, title=title or "", url=url, metadata=metadata)
    assert path is not None
    files = files_under([path])
    if not files.items:
        reason = files.failures[0].error if files.failures else "There is no such file."
        raise UnreadableDocument(f"{path.name}: {reason}")
    if path.is_dir():
        raise InvalidInput(f"{path.name} is a folder; give one file.")
    return replace(files.items[0], key=f"file:{path.resolve()}", title=title, url=url, metadata=metadata)


# --- The result of writing one document ---


@dataclass(frozen=True, slots=True)
class WriteResult(Value):
    """A document and what became of it; "unchanged" means that its source held this content already.

    ``offer`` is that of ``IngestReport``.
    """

    document: Document
    outcome: Literal["created", "updated", "unchanged"]
    offer: str = ""


TURNS = 64  # contents that are written side by side


class DocumentService:
    """The verbs over documents."""

    def __init__(self, corpus: Corpus, sources: SourceService, intake: Intake) -> None:
        self._corpus, self._sources, self._intake = corpus, sources, intake
        self._turns = tuple(threading.Lock() for _ in range(TURNS))

    # --- bringing many in -------------------------------------------------------------------------------------------

    def ingest(
        self,
        paths: Iterable[Path | str],
        *,
        source: str | None = None,
        project: str | None = None,
        folder: str | None = None,
        tags: Sequence[str] = (),
        index: str | None = None,
        on_progress: OnProgress | None = None,
        should_stop: ShouldStop | None = None,
    ) -> IngestReport:
        """Read files and folders into a source (its id or title; made when no source has that title).

        A source that was made and in which nothing could be stored goes away again; the report then names none.

        Raises:
            InvalidInput: none of the paths exists, or an argument is of the wrong type. NotFound: no such index.
            Cancelled: ``should_stop`` said so; the stored documents stay.
        """
        from workbench.ingestion.incoming import files_under, own_title
        from workbench.ingestion.readers import absence, expanded

        named = {"source": source, "project": project, "folder": folder, "index": index}
        for noun, key in named.items():
            if key is not None:
                check_key(noun, key)
        places = [expanded(path) for path in paths]
        if (sentence := absence(places)) is not None:
            raise InvalidInput(sentence)
        self._corpus.index(index)  # before a source is made for nothing
        title = source or own_title(places) or UPLOADS
        target = self._sources.ensure(title, project=project, folder=folder, tags=tags, for_ingest=True)
        with self._sources.settling(target.id):
            files = files_under(places)
            report = self.ingest_items(
                target.id,
                files.items,
                failures=files.failures,
                index=index,
                on_progress=on_progress,
                should_stop=should_stop,
            )
        stands = bool(report.document_ids) or self._sources.stands(target.id)
        return replace(report, left_out=files.left_out, source_id=target.id if stands else "")

    def ingest_items(
        self,
        source_id: str,
        items: Sequence[Incoming],
        *,
        failures: Iterable[IngestFailure] = (),
        index: str | None = None,
        on_progress: OnProgress | None = None,
        should_stop: ShouldStop | None = None,
        after_write: AfterWrite | None = None,
        on_items: OnItems | None = None,
        shared: SharedItems | None = None,
        hands: EmbeddingHands | None = None,
    ) -> IngestReport:
        """Bring uploads, pages or texts into an existing source, and into one index.

        Where none is named it is the default one, and those that serve by promotion are brought up to date, too.
        ``after_write(connection, document id, document)`` runs in the transaction that writes a document;
        ``on_items(news, connection)`` is told what becomes of each item, in that transaction where there is one.
        ``shared`` are the parts of a job in which several workers do this together; only the leading one reports.
        By ``hands`` (of a job without parts) others help to embed many passages.
        """
        with measured(INGEST, self._corpus.index(index).name, items=len(items)) as told:
            report = self._intake.take(
                source_id,
                items,
                failures=failures,
                index=index,
                on_progress=on_progress,
                should_stop=should_stop,
                after_write=after_write,
                on_items=on_items,
                shared=shared,
                hands=hands,
            )
            told.tell(**report.counts)
        return report

    # --- one document -----------------------------------------------------------------------------------------------

    def create(
        self,
        *,
        path: Path | None = None,
        text: str | None = None,
        source: str | None = None,
        title: str | None = None,
        url: str | None = None,
        metadata: Mapping[str, object] | None = None,
        on_progress: OnProgress | None = None,
        should_stop: ShouldStop | None = None,
    ) -> WriteResult:
        """Bring one file or one text into a source (by default the source "Uploads").

        Raises:
            InvalidInput: neither or both of path and text. NotFound: no such source.
            UnreadableDocument: the file cannot be turned into text.
        """
        item = single_item(path, text, title=title and check_title(title), url=check_url(url), metadata=metadata or {})
        target = self._sources.get(source) if source else self._sources.ensure(UPLOADS, for_ingest=True)
        self._sources.check_editable(target.id)
        digest, settling = _hash(item), self._sources.settling(target.id)
        # of equal contents at once the first makes the document
        with self._turns[hash((target.id, digest)) % TURNS], settling:
            same = self._corpus.documents.with_content(target.id, digest)
            if same is not None:
                return WriteResult(self.get(same), "unchanged")
            written = self._write(target.id, item, on_progress, should_stop)
        if text is not None and written.outcome == "updated":  # its key is its content: another caller was first
            return replace(written, outcome="unchanged")
        return written

    def update(
        self,
        document_id: str,
        *,
        path: Path | None = None,
        text: str | None = None,
        title: str | None = None,
        url: str | None = None,
        metadata: Mapping[str, object] | None = None,
        on_progress: OnProgress | None = None,
        should_stop: ShouldStop | None = None,
    ) -> WriteResult:
        """Change title, URL and metadata (merged), and the content where one is given that differs.

        Raises:
            NotFound: no such document. InvalidInput: an empty or overlong title.
            UnreadableDocument: the file cannot be turned into text.
        """
        check_key("document", document_id)
        title, url = None if title is None else check_title(title), check_url(url)
        before = self._corpus.documents.record(document_id)
        self._sources.check_editable(before.source_id)
        if path is None and text is None:
            return WriteResult(self._describe(document_id, title, url, metadata), "updated")
        item = single_item(path, text, title=title or before.title, url=url or before.url, metadata={})
        if _hash(item) == before.content_hash:
            changed = title is not None or url is not None or metadata is not None
            document = self._describe(document_id, title, url, metadata)
            return WriteResult(document, "updated" if changed else "unchanged")
        merged = {**before.metadata, **(metadata or {})}
        item = replace(item, key=before.key, path=before.path, metadata=merged)
        return self._write(before.source_id, item, on_progress, should_stop)

    def delete(self, document_id: str) -> Deletion:
        """Delete a document with its passages; reports what went. Raises NotFound."""
        document = self.get(document_id)
        self._sources.check_editable(document.source_id)
        citations = self._corpus.citations.link_count([document_id])
        self._corpus.documents.delete([document_id])
        return Deletion("document", document_id, document.title, 0, 1, document.passages_count, citations)

    # --- reading ----------------------------------------------------------------------------------------------------

    def list(
        self,
        *,
        source_id: str | None = None,
        document_type: str | None = None,
        contains: str | None = None,
        named: str | None = None,
        limit: int | None = None,
        offset: int = 0,
    ) -> list[Document]:
        """Return documents without their text, oldest first.

        ``contains`` looks into titles, and takes the beginning of an id.
        Every word of ``named`` stands in the title, the path or the URL, in any order.
        """
        return self._corpus.documents.list(
            source_id=source_id, document_type=document_type, contains=contains, named=named, limit=limit, offset=offset
        )

    def count(
        self,
        *,
        source_id: str | None = None,
        document_type: str | None = None,
        contains: str | None = None,
        named: str | None = None,
    ) -> int:
        """Return how many documents ``list`` would give without a limit."""
        return self._corpus.documents.count(
            source_id=source_id, document_type=document_type, contains=contains, named=named
        )

    def get(self, document_id: str) -> Document:
        """Return a document with its whole text. Raises NotFound."""
        check_key("document", document_id)
        return self._corpus.documents.get(document_id)

    def file(self, document_id: str) -> tuple[str, str, bytes] | None:
        """Return (name, media type, bytes) of the original, where it was kept (PDF)."""
        return self._corpus.documents.file(document_id)

    def passages(self, document_id: str, *, index: str | None = None) -> Sequence[StoredPassage]:
        """Return a document's passages in reading order, as an index holds them. Raises StorageError."""
        from workbench.storage.passages import passages_of_document

        store = self._corpus.store(self._corpus.index(index))
        with store.reading() as connection:
            return passages_of_document(connection, store.index.name, document_id)

    def at(self, url: str) -> Document:
        """Return the document that came from an address. Raises NotFound, or Ambiguous if several did."""
        check_key("document", url)
        return self._corpus.documents.get(self._corpus.documents.at(url))

    def changed_since(self, moment: datetime | None, limit: int) -> tuple[Mapping[str, str], datetime]:
        """Return documents added or changed after a moment (none where it is None) with their sources, and now."""
        return self._corpus.documents.changed_since(moment, limit)

    def around(
        self, passage_id: str, before: int = 1, after: int = 1, *, index: str | None = None
    ) -> Sequence[StoredPassage]:
        """Return a passage with so many before and after it in its document, in reading order. Raises NotFound."""
        from workbench.storage.passages import passage_named, passages_of_document

        store = self._corpus.store(self._corpus.index(index))
        with store.reading() as connection:
            passage = passage_named(connection, store.index.name, passage_id)
            passages = passages_of_document(connection, store.index.name, passage.document_id)
        place = next(number for number, passage in enumerate(passages) if passage.node_id == passage_id)
        return passages[max(0, place - before) : place + after + 1]

    def _describe(
        self, document_id: str, title: str | None, url: str | None, metadata: Mapping[str, object] | None
    ) -> Document:
        """Change a document's title, URL and metadata, and with them the addresses it can be cited by."""
        from workbench.ingestion.citations import reread

        changed = self._corpus.documents.update(document_id, title=title, url=url, metadata=metadata)
        reread(self._corpus.database, self._corpus.documents, self._corpus.citations, [document_id])
        return changed

    def _write(
        self, source_id: str, item: Incoming, on_progress: OnProgress | None, should_stop: ShouldStop | None
    ) -> WriteResult:
        report = self.ingest_items(source_id, [item], on_progress=on_progress, should_stop=should_stop)
        if report.failures:
            raise UnreadableDocument(report.failures[0].error)
        outcome = "created" if report.added else "updated" if report.updated else "unchanged"
        return WriteResult(self.get(report.document_ids[0]), outcome, report.offer)


def _hash(item: Incoming) -> str:
    from workbench.ingestion.incoming import content_hash

    return content_hash(item.load())
