"""Documents: ingest, list, read, change and delete."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from workbench.errors import InvalidInput, ModelError, UnreadableDocument
from workbench.formatting import count_text
from workbench.services.checks import check_key, check_title, check_url
from workbench.services.corpus import Corpus, import_framework
from workbench.services.indexes import IndexService, report_graph_progress
from workbench.services.sources import UPLOADS_TITLE, Deletion, SourceService
from workbench.storage.database import Connection, clean_parameters
from workbench.storage.documents import NewDocument
from workbench.storage.jobs import measure_ingest_pace
from workbench.telemetry import INGEST, measure
from workbench.types import (
    READING_KEYS,
    Document,
    Index,
    IngestFailure,
    IngestReport,
    OnProgress,
    Progress,
    ResolvedScope,
    ShouldStop,
    Value,
)

if TYPE_CHECKING:
    from workbench.ingestion.incoming import IngestItem
    from workbench.ingestion.pipeline import AfterWrite, SharedItems
    from workbench.ingestion.progress import OnItems
    from workbench.storage.jobs import EmbeddingLease
    from workbench.storage.passages import StoredPassage

MAX_FOUND_CHARS = 500  # of a text that is looked for exactly


@dataclass(frozen=True, slots=True)
class FoundLine(Value):
    """A line that contains a text, with the lines around it; ``start`` is the line's position in the document."""

    document: Document
    number: int  # from 1
    start: int
    first: int  # number of the first line of ``lines``
    lines: tuple[str, ...]


# Options of an ingest


@dataclass(frozen=True, slots=True, kw_only=True)
class Destination:
    """The source that files are read into; it is created if no source has that title."""

    source: str | None = None  # id or title; None for a title taken from the paths
    project: str | None = None  # of a source that is created
    folder: str | None = None  # of the project
    tags: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestOptions:
    """Options for ingesting items into a source."""

    index: str | None = None  # None for the default index; promoted indexes are then updated too
    paths: Sequence[Path | str] = ()  # files and folders of the items; documents that the folders lack are reported
    failures: Iterable[IngestFailure] = ()  # of items that could not be read; included in the report
    on_progress: OnProgress | None = None
    should_stop: ShouldStop | None = None
    after_write: AfterWrite | None = None  # (connection, document id, document), in the transaction of the write
    on_items: OnItems | None = None  # (events, connection), in the transaction of the write if there is one
    shared: SharedItems | None = None  # the parts of a job that several workers share; only the leader reports
    hands: EmbeddingLease | None = None  # shares embedding with other workers, for a job without parts


# One file or text as an item to ingest


def make_item(
    path: Path | None, text: str | None, *, title: str | None, url: str | None, metadata: Mapping[str, object]
) -> IngestItem:
    """Return a file or a text as an item; nothing is read or written yet.

    Raises:
        InvalidInput: Neither or both of path and text are given, the text is empty, or the path is a folder.
        UnreadableDocument: There is no such file, or its type is not supported.
    """
    from workbench.ingestion.incoming import content_hash, list_files, text_item

    if (path is None) == (text is None):
        raise InvalidInput("Give either a file or a text.")
    if text is not None:
        text = str(clean_parameters(text))  # removes NUL; a file that contains NUL is rejected as binary
        if not text.strip():
            raise InvalidInput("The text is empty.")
        key = f"text:{content_hash(text.encode())}"
        return text_item(key, text, title=title or "", url=url, metadata=metadata)
    assert path is not None
    files = list_files([path])
    if not files.items:
        reason = files.failures[0].error if files.failures else "There is no such file."
        raise UnreadableDocument(f"{path.name}: {reason}")
    if path.is_dir():
        raise InvalidInput(f"{path.name} is a folder; give a file.")
    return replace(files.items[0], key=f"file:{path.resolve()}", title=title, url=url, metadata=metadata)


# The result of writing one document


@dataclass(frozen=True, slots=True)
class WriteResult(Value):
    """The outcome of creating or updating a document."""

    document: Document
    outcome: Literal["created", "updated", "unchanged"]  # unchanged: the source already has this content
    offer: str = ""  # as in ``IngestReport``
    notes: tuple[str, ...] = ()  # sentences on what could not be read


DEFAULT_DESTINATION, DEFAULT_OPTIONS = Destination(), IngestOptions()
MAX_NAMES_SHOWN = 3  # file names in a sentence
LOCK_COUNT = 64  # so that equal texts created at the same time become one document


class DocumentService:
    """Operations on documents."""

    def __init__(self, corpus: Corpus, sources: SourceService, indexes: IndexService) -> None:
        self._corpus, self._sources, self._indexes = corpus, sources, indexes
        stored = corpus.documents
        self.list, self.count, self.file = stored.list, stored.count, stored.file
        self.list_changed = stored.list_changed
        self._turns = tuple(threading.Lock() for _ in range(LOCK_COUNT))

    # Ingest many documents

    def ingest(
        self,
        paths: Iterable[Path | str],
        destination: Destination = DEFAULT_DESTINATION,
        options: IngestOptions = DEFAULT_OPTIONS,
    ) -> IngestReport:
        """Read files and folders into a source; see ``Workbench.ingest``.

        A source created for them is removed if nothing could be stored; the report then has no source.
        """
        from workbench.ingestion.incoming import list_files, source_title
        from workbench.ingestion.readers.formats import describe_missing, expand_home

        for noun, key in (*asdict(destination).items(), ("index", options.index)):
            if noun != "tags" and key is not None:
                check_key(noun, key)
        places = [expand_home(path) for path in paths]
        if (sentence := describe_missing(places)) is not None:
            raise InvalidInput(sentence)
        self._corpus.index(options.index)  # fails before a source is created
        target = self._sources.ensure(
            destination.source or source_title(places) or UPLOADS_TITLE,
            project=destination.project,
            folder=destination.folder,
            tags=destination.tags,
            for_ingest=True,
        )
        with self._sources.fill(target.id), self._corpus.sources.hold(target.id, shared=True):  # for searches
            files = list_files(places)
            report = self.ingest_items(target.id, files.items, replace(options, paths=places, failures=files.failures))
        is_kept = bool(report.document_ids) or self._sources.is_kept(target.id)
        return replace(report, left_out=files.left_out, source_id=target.id if is_kept else "")

    def ingest_items(
        self, source_id: str, items: Sequence[IngestItem], options: IngestOptions = DEFAULT_OPTIONS
    ) -> IngestReport:
        """Ingest files, uploads, pages or texts into an existing source and one index."""
        index = self._corpus.index(options.index)
        with measure(INGEST, index.name, items=len(items)) as span:
            pace = self._show_forecast(items, options.on_progress)
            report = self._run_pipeline(source_id, items, index, pace, options)
            if options.shared is None or options.shared.parts.leads:
                report = self._complete(report, len(items), index, options)
                others = self._describe_others(source_id, options.paths, {item.path for item in items})
                report = replace(report, notes=(*report.notes, *others, *self._describe_copies(report.document_ids)))
            span.add_attributes(**report.counts)
        return report

    def _describe_others(
        self, source_id: str, paths: Sequence[Path | str], found: Collection[str | None]
    ) -> tuple[str, ...]:
        """Return a sentence on the source's documents that the ingested folders lack, such as deleted files."""
        from workbench.ingestion.readers.formats import check_path

        folders = [Path(path) for path in paths]
        if not folders or not all(check_path(folder.is_dir) for folder in folders):
            return ()
        names = [document.path or document.title for document in self._corpus.documents.list(source_id=source_id)]
        others = [
            name
            for name in names
            if name not in found and not any(check_path((folder / name).exists) for folder in folders)
        ]
        if not others:
            return ()
        shown = ", ".join(others[:MAX_NAMES_SHOWN]) + (", …" if others[MAX_NAMES_SHOWN:] else "")
        are = "is" if len(others) == 1 else "are"
        return (f"{count_text(len(others), 'other document')} of this source {are} not in the folder: {shown}.",)

    def _describe_copies(self, document_ids: Sequence[str]) -> tuple[str, ...]:
        """Return a sentence on the documents whose content is in another document too."""
        copies = self._corpus.documents.list_elsewhere(document_ids)
        if not copies:
            return ()
        shown = ", ".join(f"{name} ({place})" for name, place in copies[:MAX_NAMES_SHOWN])
        are = "is" if len(copies) == 1 else "are"
        more = ", …" if copies[MAX_NAMES_SHOWN:] else ""
        return (f"{count_text(len(copies), 'file')} {are} also stored elsewhere: {shown}{more}.",)

    def _show_forecast(self, items: Sequence[IngestItem], on_progress: OnProgress | None) -> float | None:
        """Report the size and expected duration of the work; return the assumed pace."""
        if on_progress is None or not items:
            return None
        from workbench.ingestion.progress import INITIAL_SECONDS_PER_PASSAGE, Forecast

        pace = measure_ingest_pace(self._corpus.database) or INITIAL_SECONDS_PER_PASSAGE
        forecast = Forecast([item.size for item in items], pace)
        message = f"loading libraries; 0 of about {forecast.total:,} passages embedded" if forecast.total else "reading"
        on_progress(Progress(0, len(items), message, seconds_left=forecast.seconds_left))
        return pace

    def _run_pipeline(
        self, source_id: str, items: Sequence[IngestItem], index: Index, pace: float | None, options: IngestOptions
    ) -> IngestReport:
        import_framework()  # takes seconds, so the first progress is reported before
        from workbench.ingestion.links import write_citations
        from workbench.ingestion.pipeline import Pipeline

        corpus, shared = self._corpus, options.shared

        def after_write(connection: Connection, document_id: str, document: NewDocument) -> None:
            write_citations(corpus.citations, connection, document_id, document)
            if options.after_write is not None:
                options.after_write(connection, document_id, document)

        pipeline = Pipeline(
            corpus.database,
            corpus.documents,
            corpus.open_writer(index, shared.parts.embedding if shared is not None else options.hands),
            after_write=after_write,
            on_items=options.on_items,
            pace=pace,
        )
        return pipeline.ingest(
            source_id,
            items,
            failures=options.failures,
            on_progress=options.on_progress,
            should_stop=options.should_stop,
            shared=shared,
        )

    def _complete(self, report: IngestReport, items: int, index: Index, options: IngestOptions) -> IngestReport:
        """Maintain the graph, update promoted indexes, and suggest an index if there is a new language."""
        changed = bool(report.added + report.updated)
        self._corpus.finish_index(index, report_graph_progress(options.on_progress, items, options.should_stop))
        if options.index is None:
            self._update_promoted(index.name, options)
        offer = self._indexes.language_offer(report.document_ids) if changed and index.is_default else None
        return replace(report, offer=f"{offer.sentence} {offer.way}") if offer else report

    def _update_promoted(self, filled: str, options: IngestOptions) -> None:
        """Add the new documents to the other promoted indexes."""
        for name in self._corpus.promotions.indexes():
            if name == filled:
                continue

            def show(progress: Progress, name: str = name) -> None:
                if options.on_progress is not None:
                    options.on_progress(replace(progress, message=f"index {name}: {progress.message}"))

            with suppress(ModelError):  # its model is missing: searches report that, and the missing documents
                self._indexes.build(name, on_progress=show, should_stop=options.should_stop)

    # Create, change or delete one document

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
        """Ingest one file or one text into a source (by default the source "Uploads").

        Raises:
            InvalidInput: Neither or both of path and text are given.
            NotFound: No such source.
            UnreadableDocument: No text can be extracted from the file.
        """
        item = make_item(path, text, title=title and check_title(title), url=check_url(url), metadata=metadata or {})
        target = self._sources.get(source) if source else self._sources.ensure(UPLOADS_TITLE, for_ingest=True)
        self._sources.check_editable(target.id)
        digest, filling = _hash_content(item), self._sources.fill(target.id)
        # if equal contents arrive at the same time, the first one creates the document
        with self._turns[hash((target.id, digest)) % LOCK_COUNT], filling:
            same = self._corpus.documents.with_content(target.id, digest)
            if same is not None:
                return WriteResult(self.get(same), "unchanged")
            written = self._write(target.id, item, on_progress, should_stop)
        if text is not None and written.outcome == "updated":  # its key is its content, so another caller was first
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
        unchanged_since: datetime | None = None,
        on_progress: OnProgress | None = None,
        should_stop: ShouldStop | None = None,
    ) -> WriteResult:
        """Change the title, URL, metadata (merged; None removes a name), and the content if a different one is given.

        Raises:
            NotFound: No such document.
            Conflict: It was changed after ``unchanged_since``, its ``updated_at`` when it was read. A change of the
                content is not compared.
            InvalidInput: The title is empty or too long.
            UnreadableDocument: No text can be extracted from the file.
        """
        check_key("document", document_id)
        title, url = None if title is None else check_title(title), check_url(url)
        before = self._corpus.documents.record(document_id)
        self._sources.check_editable(before.source_id)
        if path is None and text is None:
            return WriteResult(self._describe(document_id, title, url, metadata, unchanged_since), "updated")
        item = make_item(path, text, title=title or before.title, url=url or before.url, metadata={})
        if _hash_content(item) == before.content_hash:
            changed = title is not None or url is not None or metadata is not None
            document = self._describe(document_id, title, url, metadata, unchanged_since)
            return WriteResult(document, "updated" if changed else "unchanged")
        kept = {name: value for name, value in before.metadata.items() if name not in READING_KEYS}
        merged = {name: value for name, value in {**kept, **(metadata or {})}.items() if value is not None}
        item = replace(item, key=before.key, path=before.path, metadata=merged)
        return self._write(before.source_id, item, on_progress, should_stop)

    def delete(self, document_id: str) -> Deletion:
        """Delete a document with its passages, and return what was deleted. Raises NotFound."""
        document = self.get(document_id)
        self._sources.check_editable(document.source_id)
        citations = self._corpus.citations.link_count([document_id])
        self._corpus.documents.delete([document_id])
        return Deletion(
            "document", document_id, document.title, documents=1, passages=document.passages_count, citations=citations
        )

    # Read documents

    def get(self, document_id: str) -> Document:
        """Return a document with its full text. Raises NotFound."""
        check_key("document", document_id)
        return self._corpus.documents.get(document_id)

    def find_lines(
        self,
        text: str,
        scope: ResolvedScope,
        *,
        index: str | None = None,
        match_case: bool = False,
        context: int = 2,
        limit: int = 20,
        offset: int = 0,
    ) -> tuple[list[FoundLine], int]:
        """Return the lines that contain a text exactly, by title of their documents, and the number of all such lines.

        Args:
            text: Text without line breaks.
            scope: Documents to look in, as resolved by ``wb.requests``.
            index: Index that has these documents, such as that of a test set's own corpus; the default one if None.
            match_case: Distinguish capitals.
            context: Lines before and after each.
            limit: Maximum number of lines.
            offset: Number of lines to skip.

        Raises:
            InvalidInput: The text is empty, longer than 500 characters, or has a line break.
        """
        from workbench.storage.passages import fetch_documents_in_scope

        if not text.strip() or len(text) > MAX_FOUND_CHARS or "\n" in text:
            raise InvalidInput(f"Give a text of 1 to {MAX_FOUND_CHARS} characters on one line.")
        store = self._corpus.store(self._corpus.index(index))
        with store.reading() as connection:
            ids = fetch_documents_in_scope(connection, store.index.name, scope)
        table = self._corpus.documents
        rows = table.find_lines(ids, text, match_case=match_case, limit=limit, offset=offset)
        documents = {key: self.get(key) for key in dict.fromkeys(key for key, _, _ in rows)}
        found: list[FoundLine] = []
        for key, number, _ in rows:
            lines = (documents[key].text or "").split("\n")
            start = sum(len(line) + 1 for line in lines[: number - 1])
            first = max(0, number - 1 - context)
            found.append(FoundLine(documents[key], number, start, first + 1, tuple(lines[first : number + context])))
        return found, rows[0][2] if rows else 0

    def passages(self, document_id: str, *, index: str | None = None) -> Sequence[StoredPassage]:
        """Return a document's passages in an index, in reading order.

        Raises:
            NotFound: No such index.
            StorageError: The database is unreachable.
        """
        from workbench.storage.passages import fetch_document_passages

        store = self._corpus.store(self._corpus.index(index))
        with store.reading() as connection:
            return fetch_document_passages(connection, store.index.name, document_id)

    def at(self, url: str) -> Document:
        """Return the document with this URL.

        Raises:
            NotFound: No document has this URL.
            Ambiguous: Several documents have this URL.
        """
        check_key("document", url)
        return self._corpus.documents.get(self._corpus.documents.at(url))

    def around(
        self, passage_id: str, before: int = 1, after: int = 1, *, index: str | None = None
    ) -> Sequence[StoredPassage]:
        """Return a passage with its neighbours in the document, in reading order.

        Args:
            passage_id: Passage in the middle.
            before: Number of passages before it.
            after: Number of passages after it.
            index: Index that holds the passage; the default index if None.

        Raises:
            NotFound: No such passage or index.
        """
        from workbench.storage.passages import fetch_document_passages, fetch_passage

        store = self._corpus.store(self._corpus.index(index))
        with store.reading() as connection:
            passage = fetch_passage(connection, store.index.name, passage_id)
            passages = fetch_document_passages(connection, store.index.name, passage.document_id)
        place = next(number for number, passage in enumerate(passages) if passage.node_id == passage_id)
        return passages[max(0, place - before) : place + after + 1]

    def _describe(
        self, document_id: str, title: str | None, url: str | None, metadata: Mapping[str, object] | None,
        unchanged_since: datetime | None,
    ) -> Document:  # fmt: skip
        """Change a document's title, URL and metadata, and update the citations that refer to it."""
        from workbench.ingestion.links import reread_citations

        changed = self._corpus.documents.update(
            document_id, title=title, url=url, metadata=metadata, unchanged_since=unchanged_since
        )
        reread_citations(self._corpus.database, self._corpus.documents, self._corpus.citations, [document_id])
        return changed

    def _write(
        self, source_id: str, item: IngestItem, on_progress: OnProgress | None, should_stop: ShouldStop | None
    ) -> WriteResult:
        options = IngestOptions(on_progress=on_progress, should_stop=should_stop)
        report = self.ingest_items(source_id, [item], options)
        if report.failures:
            raise UnreadableDocument(report.failures[0].error)
        outcome = "created" if report.added else "updated" if report.updated else "unchanged"
        return WriteResult(self.get(report.document_ids[0]), outcome, report.offer, report.notes)


def _hash_content(item: IngestItem) -> str:
    from workbench.ingestion.incoming import content_hash

    return content_hash(item.load())
