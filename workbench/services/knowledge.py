"""Sources and documents: bringing them in, showing them, changing and removing them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.errors import Conflict, InvalidInput, ModelError, NotFound, choices
from workbench.services.corpus import Corpus
from workbench.services.index_builds import IndexService
from workbench.services.naming import check_key, check_title, check_url, clean_tags
from workbench.types import SOURCE_TYPES, Document, IngestReport, Progress, Source, Value

if TYPE_CHECKING:
    from workbench.ingestion.incoming import Incoming
    from workbench.ingestion.tally import OnItems
    from workbench.storage.rows import StoredPassage

OnProgress = Callable[[Progress], None]
UPLOADS = "Uploads"  # the source of what comes in without one


@dataclass(frozen=True, slots=True)
class Deleted(Value):
    """What a deletion took along."""

    kind: str
    id: str
    title: str
    sources: int = 0
    documents: int = 0
    passages: int = 0
    citations: int = 0


class KnowledgeService:
    """The verbs over sources and documents."""

    def __init__(self, corpus: Corpus, indexes: IndexService) -> None:
        self._corpus, self._indexes = corpus, indexes

    # --- bringing documents in --------------------------------------------------------------------------------------

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
        should_stop: Callable[[], bool] | None = None,
    ) -> IngestReport:
        """Read files and folders into a source (its id or title; made when no source has that title).

        Raises:
            InvalidInput: none of the paths exists, or an argument is of the wrong type. NotFound: no such index.
            Cancelled: ``should_stop`` said so; what was stored stays.
        """
        from workbench.ingestion.incoming import files_under
        from workbench.ingestion.readers import absence, expanded

        named = {"source": source, "project": project, "folder": folder, "index": index}
        for what, key in named.items():
            if key is not None:
                check_key(what, key)
        given = [expanded(path) for path in paths]
        if (sentence := absence(given)) is not None:
            raise InvalidInput(sentence)
        self._corpus.index(index)  # before a source is made for nothing
        only = Path(given[0])
        title = source or (only.resolve().name if len(given) == 1 and only.is_dir() else UPLOADS)
        target = self.source_for(title, project=project, folder=folder, tags=tags)
        found = files_under(given)
        report = self.ingest_items(
            target.id,
            found.items,
            failures=found.failures,
            index=index,
            on_progress=on_progress,
            should_stop=should_stop,
        )
        return replace(report, left_out=found.left_out)

    def ingest_items(
        self,
        source_id: str,
        items: Sequence[Incoming],
        *,
        failures: Iterable[Any] = (),
        index: str | None = None,
        on_progress: OnProgress | None = None,
        should_stop: Callable[[], bool] | None = None,
        after_write: Callable[[Any, str, Any], None] | None = None,
        on_items: OnItems | None = None,
    ) -> IngestReport:
        """Bring uploads, pages or texts into an existing source, and into one index.

        Where none is named it is the default one, and those that serve by promotion are brought up to date, too.
        ``after_write(connection, document id, document)`` runs in the transaction that writes a document;
        ``on_items(news, connection)`` is told what becomes of each item, in that transaction where there is one.
        """
        from workbench.ingestion.citing import citation_writer
        from workbench.ingestion.pipeline import Pipeline

        write_citations = citation_writer(self._corpus.citations)

        def written(connection: Any, document_id: str, document: Any) -> None:
            write_citations(connection, document_id, document)
            if after_write is not None:
                after_write(connection, document_id, document)

        corpus = self._corpus
        chosen = corpus.index(index)
        pipeline = Pipeline(
            corpus.database,
            corpus.documents,
            corpus.indexes,
            corpus.store(chosen),
            corpus.encoder_of(chosen),
            reuse=corpus.stores_of_model(chosen.embedding_model, but=chosen.name),
            after_write=written,
            on_items=on_items,
        )
        report = pipeline.ingest(source_id, items, failures=failures, on_progress=on_progress, should_stop=should_stop)
        if index is None:
            self._bring_up_to_date(chosen.name, on_progress, should_stop)
        return report

    def _bring_up_to_date(
        self, filled: str, on_progress: OnProgress | None, should_stop: Callable[[], bool] | None
    ) -> None:
        """Let what was brought in be found by the searches that a promotion sends to another index."""
        for name in self._corpus.promotions.indexes():
            if name == filled:
                continue

            def told(progress: Progress, name: str = name) -> None:
                if on_progress is not None:
                    on_progress(replace(progress, message=f"index {name}: {progress.message}"))

            with suppress(ModelError):  # its model is gone: searches say so, and what the index lacks
                self._indexes.build(name, on_progress=told, should_stop=should_stop)

    def source_for(
        self,
        key: str,
        *,
        project: str | None = None,
        folder: str | None = None,
        tags: Sequence[str] = (),
        source_type: str = "upload",
    ) -> Source:
        """Return the source with that id or title in that place, made when there is none; new tags are added."""
        place = self._place(project, folder)
        try:
            found = self._known(key, place["project_id"])
        except NotFound:
            if key.startswith("src_"):
                raise
            title, kept = check_title(key), clean_tags(tags)
            try:
                return self._corpus.sources.create(title, tags=kept, source_type=source_type, **place)
            except Conflict:  # another process made it a moment ago
                found = self._known(title, place["project_id"])
        wanted = tuple(dict.fromkeys((*found.tags, *clean_tags(tags))))
        changes: dict[str, Any] = {} if wanted == found.tags else {"tags": wanted}
        if place["folder_id"] and place["folder_id"] != found.folder_id:
            changes |= place
        return self._corpus.sources.update(found.id, **changes) if changes else found

    def _known(self, key: str, project_id: str | None) -> Source:
        """Return the source of that id or title, with a project the one in it. Raises NotFound."""
        if project_id is None:
            return self._corpus.sources.find(key)
        for source in self._corpus.sources.list(project_id=project_id):
            if key in (source.id, source.title):
                return source
        raise NotFound("source", key, "List the sources to see the valid ids.")

    # --- sources ----------------------------------------------------------------------------------------------------

    def create_source(
        self,
        title: str,
        *,
        source_type: str = "upload",
        url: str | None = None,
        project: str | None = None,
        folder: str | None = None,
        tags: Sequence[str] = (),
    ) -> Source:
        """Create an empty source. Raises InvalidInput or Conflict."""
        valid = [kind for kind in SOURCE_TYPES if kind != "dataset"]
        if source_type not in valid:
            raise InvalidInput(f"A source cannot be of type {source_type!r}; use one of {choices(valid)}.")
        place = self._place(project, folder)
        return self._corpus.sources.create(
            check_title(title), source_type=source_type, url=check_url(url), tags=clean_tags(tags), **place
        )

    def sources(self, **conditions: Any) -> list[Source]:
        """Return sources; conditions: scope, project_id, source_type, limit, offset."""
        return self._corpus.sources.list(**conditions)

    def count_sources(self, **conditions: Any) -> int:
        """Return how many sources satisfy the conditions."""
        return self._corpus.sources.count(**conditions)

    def source(self, key: str) -> Source:
        """Return a source by id, exact title or URL. Raises NotFound."""
        check_key("source", key)
        return self._corpus.sources.find(key)

    def update_source(
        self,
        key: str,
        *,
        title: str | None = None,
        url: str | None = None,
        project: str | None = None,
        folder: str | None = None,
        tags: Sequence[str] | None = None,
        language: str | None = None,
    ) -> Source:
        """Change what is given; project "" makes the source global, folder "" takes it out of its folder."""
        source = self.source(key)
        changes: dict[str, Any] = {"title": title and check_title(title), "url": check_url(url), "language": language}
        changes = {name: value for name, value in changes.items() if value is not None}
        if tags is not None:
            changes["tags"] = clean_tags(tags)
        if project is not None:
            changes |= self._place(project or None, folder or None)
        elif folder is not None:
            changes |= self._place(source.project_id, folder or None)
        return self._corpus.sources.update(source.id, **changes)

    def delete_source(self, key: str) -> Deleted:
        """Delete a source with its documents and passages; reports what went. Raises NotFound."""
        source = self.source(key)
        names = [index.name for index in self._corpus.indexes.list()] + self._corpus.indexes.of_dataset(source.id)
        own = self._corpus.indexes.of_dataset(source.id)
        citations = self._corpus.citations.held(source_id=source.id)
        for name in own:
            self._corpus.indexes.drop(name)
        self._corpus.sources.delete(source.id, [name for name in names if name not in own])
        return Deleted("source", source.id, source.title, 1, source.documents_count, source.passages_count, citations)

    def tags(self) -> dict[str, int]:
        """Return every tag with the number of its sources."""
        return self._corpus.sources.tags()

    # --- documents --------------------------------------------------------------------------------------------------

    def documents(self, **conditions: Any) -> list[Document]:
        """Return documents without their text; conditions: source_id, document_type, contains, limit, offset."""
        return self._corpus.documents.list(**conditions)

    def count_documents(self, **conditions: Any) -> int:
        """Return how many documents satisfy the conditions."""
        return self._corpus.documents.count(**conditions)

    def document(self, document_id: str) -> Document:
        """Return a document with its whole text. Raises NotFound."""
        check_key("document", document_id)
        return self._corpus.documents.get(document_id)

    def document_file(self, document_id: str) -> tuple[str, str, bytes] | None:
        """Return (name, media type, bytes) of the original, where it was kept (PDF)."""
        return self._corpus.documents.file(document_id)

    def passages(self, document_id: str, *, index: str | None = None) -> list[StoredPassage]:
        """Return a document's passages in reading order, as an index holds them."""
        return self._corpus.store(self._corpus.index(index)).passages_of_document(document_id)

    def update_document(self, document_id: str, **fields: Any) -> Document:
        """Change title, url or metadata (merged), and with them what it can be cited by.

        Raises:
            NotFound: no such document. InvalidInput: an empty or overlong title.
        """
        from workbench.ingestion.citing import reread

        if fields.get("title") is not None:
            fields["title"] = check_title(fields["title"])
        self.check_editable(self.document(document_id).source_id)
        changed = self._corpus.documents.update(document_id, **fields)
        reread(self._corpus.database, self._corpus.documents, self._corpus.citations, [document_id])
        return changed

    def delete_document(self, document_id: str) -> Deleted:
        """Delete a document with its passages; reports what went. Raises NotFound."""
        document = self.document(document_id)
        self.check_editable(document.source_id)
        citations = self._corpus.citations.held([document_id])
        self._corpus.documents.delete([document_id])
        return Deleted("document", document_id, document.title, 0, 1, document.passages_count, citations)

    def check_editable(self, source_id: str) -> None:
        """Raise Conflict where a source is a test set's corpus: runs that were made on it would not be comparable."""
        if self._corpus.indexes.of_dataset(source_id):
            raise Conflict("The documents of a test set do not change; evaluate the changed ones as another test set.")

    def _place(self, project: str | None, folder: str | None) -> dict[str, Any]:
        if not project:
            if folder:
                raise InvalidInput("A folder belongs to a project; name the project too.")
            return {"project_id": None, "folder_id": None}
        owner = self._corpus.projects.get(project)
        found = self._corpus.projects.folder(owner.id, folder) if folder else None
        return {"project_id": owner.id, "folder_id": found.id if found else None}
