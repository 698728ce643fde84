"""Sources, and the projects and folders that organise them."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import chain
from typing import TypedDict

from workbench.errors import Conflict, InvalidInput, NotFound, StorageError, list_choices
from workbench.ingestion.text import BEGINNING_CHARS, detect_document_language, find_codec
from workbench.services.checks import UPLOADS_TITLE, check_key, check_title, check_url, clean_tags
from workbench.services.corpus import Corpus
from workbench.services.indexes import IndexService
from workbench.storage.sources import VALID_IDS_HINT, require_single
from workbench.text import AUTO, LANGUAGES, find_language
from workbench.types import FAMILY_TYPES, SOURCE_TYPES, Folder, Project, Source, Value

# The report of a deletion


@dataclass(frozen=True, slots=True)
class Deletion(Value):
    """A report of a deletion: what was deleted, with the numbers of sources, documents, passages and citations."""

    kind: str  # "source", "document" or "project"
    id: str
    title: str
    sources: int = 0
    families: int = 0  # of a project: sources with conversations, articles or archives, counted on their own
    documents: int = 0  # including those of ``families``
    passages: int = 0
    citations: int = 0


# Projects and folders


class ProjectService:
    """Operations on projects and their folders."""

    def __init__(self, corpus: Corpus) -> None:
        self._corpus, stored = corpus, corpus.projects
        self.list, self.get = stored.list, stored.get
        self.folders, self.delete_folder = stored.folders, stored.delete_folder

    def create(self, title: str, description: str = "", *, id: str | None = None) -> Project:
        """Create a project.

        Raises:
            InvalidInput: The title is empty or too long.
            Conflict: There is a project with this title or id.
        """
        return self._corpus.projects.create(check_title(title), description, id=id)

    def update(self, key: str, *, title: str | None = None, description: str | None = None) -> Project:
        """Change the given fields; None keeps a field.

        Raises:
            NotFound: No such project.
            InvalidInput: The title is empty or too long.
            Conflict: Another project has this title.
        """
        return self._corpus.projects.update(key, title=title and check_title(title), description=description)

    def delete(self, key: str) -> Deletion:
        """Delete a project with its folders, sources and documents, and return what was deleted."""
        project = self.get(key)
        own = self._corpus.sources.list(project_id=project.id)
        kinds = [self._corpus.sources.list(project_id=project.id, source_type=kind) for kind in FAMILY_TYPES]
        sources = [*own, *chain.from_iterable(kinds)]
        names = [index.name for index in self._corpus.indexes.list()]
        citations = sum(self._corpus.citations.link_count(source_id=source.id) for source in sources)
        for source in sources:
            self._corpus.sources.delete(source.id, names)
        self._corpus.projects.delete(project.id)
        return Deletion(
            "project",
            project.id,
            project.title,
            sources=len(own),
            families=len(sources) - len(own),
            documents=sum(source.documents_count for source in sources),
            passages=sum(source.passages_count for source in sources),
            citations=citations,
        )

    def create_folder(
        self, project: str, name: str, description: str = "", color: str = "#6366f1", icon_name: str = "folder"
    ) -> Folder:
        """Create a folder in a project.

        Raises:
            NotFound: No such project.
            InvalidInput: The name is empty or too long.
            Conflict: The project has a folder with this name.
        """
        return self._corpus.projects.create_folder(
            project, check_title(name), description=description, color=color, icon_name=icon_name
        )

    def update_folder(
        self,
        project: str,
        folder: str,
        *,
        name: str | None = None,
        description: str | None = None,
        color: str | None = None,
        icon_name: str | None = None,
    ) -> Folder:
        """Change the given fields of a folder, identified by id or name; None keeps a field.

        Raises:
            NotFound: No such project or folder.
            InvalidInput: The name is empty or too long.
            Conflict: Another folder has this name.
        """
        return self._corpus.projects.update_folder(
            project, folder, name=name and check_title(name), description=description, color=color, icon_name=icon_name
        )


class LocationNames(TypedDict):
    """A project by its id or title, and a folder in it by its name; both are None for a global source."""

    project: str | None
    folder: str | None


class LocationIds(TypedDict):
    """The ids of a project and of a folder in it; both are None for a global source."""

    project_id: str | None
    folder_id: str | None


class SourceService:
    """Operations on sources."""

    def __init__(self, corpus: Corpus, indexes: IndexService) -> None:
        self._corpus, self._indexes, stored = corpus, indexes, corpus.sources
        self.list, self.count, self.ids = stored.list, stored.count, stored.ids
        self.titles, self.tags, self.metadata_values = stored.titles, stored.tags, stored.metadata_values

    def of_families(self) -> list[Source]:
        """Return the sources of conversations, articles and archives, which have their own tools."""
        return [source for kind in FAMILY_TYPES for source in self.list(source_type=kind)]

    def get(self, key: str) -> Source:
        """Return a source by id, exact title or URL.

        Raises:
            NotFound: No such source.
            Ambiguous: Several sources have this title or URL.
        """
        check_key("source", key)
        return self._corpus.sources.find(key)

    def create(
        self,
        title: str,
        *,
        source_type: str = "upload",
        url: str | None = None,
        project: str | None = None,
        folder: str | None = None,
        tags: Sequence[str] = (),
        for_ingest: bool = False,
    ) -> Source:
        """Create an empty source; ``for_ingest`` as in ``ensure``.

        Raises:
            InvalidInput: The title, URL, type or a tag is invalid.
            NotFound: No such project or folder.
            Conflict: There is a source with this title in the same place.
        """
        valid = [kind for kind in SOURCE_TYPES if kind != "dataset"]
        if source_type not in valid:
            raise InvalidInput(f"Invalid source type {source_type!r}: use one of {list_choices(valid)}.")
        place = self._place(project, folder)
        return self._corpus.sources.create(
            check_title(title),
            source_type=source_type,
            url=check_url(url),
            tags=clean_tags(tags),
            for_ingest=for_ingest,
            **place,
        )

    def ensure(
        self,
        key: str,
        *,
        project: str | None = None,
        folder: str | None = None,
        tags: Sequence[str] = (),
        source_type: str = "upload",
        for_ingest: bool = False,
    ) -> Source:
        """Return the source with an id or title in a project, creating it if necessary; tags are added to it.

        A source created with ``for_ingest`` is deleted if it is empty when ``fill`` ends.
        """
        place = self._place(project, folder)
        try:
            source = self._find(key, place["project_id"])
        except NotFound:
            if key.startswith("src_"):
                raise
            title, tags_of_new = check_title(key), clean_tags(tags)
            try:
                return self._corpus.sources.create(
                    title, tags=tags_of_new, source_type=source_type, for_ingest=for_ingest, **place
                )
            except Conflict:  # another process has just created it
                source = self._find(title, place["project_id"])
        self._corpus.sources.claim(source.id)
        wanted = tuple(dict.fromkeys((*source.tags, *clean_tags(tags))))
        changes: dict[str, object] = {} if wanted == source.tags else {"tags": wanted}
        if place["folder_id"] and place["folder_id"] != source.folder_id:
            changes |= place
        return self._corpus.sources.update(source.id, **changes) if changes else source

    @contextmanager
    def fill(self, source_id: str, *, unless: tuple[type[Exception], ...] = ()) -> Generator[None]:
        """Return a context in which to fill a source; if created ``for_ingest`` and empty at the end, it is deleted.

        Args:
            source_id: Source to fill.
            unless: Exceptions after which an empty source is kept, because the work will be resumed.
        """
        try:
            yield
        except BaseException as error:
            if not isinstance(error, unless):
                with suppress(StorageError):  # the first error is more informative
                    self._corpus.sources.settle(source_id)
            raise
        self._corpus.sources.settle(source_id)

    def is_kept(self, source_id: str) -> bool:
        """Return whether a source exists."""
        try:
            return bool(self._corpus.sources.get(source_id))
        except NotFound:
            return False

    def update(
        self,
        key: str,
        *,
        title: str | None = None,
        url: str | None = None,
        project: str | None = None,
        folder: str | None = None,
        tags: Sequence[str] | None = None,
        language: str | None = None,
        encoding: str | None = None,
        hidden: str | None = None,
        build: bool = True,
    ) -> Source:
        """Change the given fields; None keeps a field.

        Args:
            key: Id, title or URL of the source.
            title: New title.
            url: New URL.
            project: Id or title of its project; "" makes the source global.
            folder: Folder in the project; "" removes it from its folder.
            tags: Tags that replace the current ones.
            language: Language for stemming all its documents, or "auto" to detect it for each text.
            encoding: Encoding of its texts, such as "windows-1251", or "auto" to detect it for each file. It applies to
                files that are ingested or reingested after the change.
            hidden: "read" or "skip" comments and hidden sheets, rows, slides and text of its files, like ``encoding``.
            build: Update the indexes immediately after a change of language; if False, leave that to
                ``JobService.enqueue_stemming``.

        Raises:
            NotFound: No such source, project or folder.
            InvalidInput: No such language, or the title, URL or a tag is invalid.
        """
        source = self.get(key)
        language = None if language is None else _parse_language(language)
        values = {"title": title and check_title(title), "url": check_url(url), "language": language}
        changes: dict[str, object] = {name: value for name, value in values.items() if value is not None}
        if encoding is not None:
            changes["encoding"] = _parse_encoding(encoding)
        if hidden is not None and hidden not in ("read", "skip"):
            raise InvalidInput(f"Invalid value for hidden {hidden!r}: use read or skip.")
        changes |= {} if hidden is None else {"hidden": hidden}
        if tags is not None:
            changes["tags"] = clean_tags(tags)
        if project is not None:
            changes |= self._place(project or None, folder or None)
        elif folder is not None:
            changes |= self._place(source.project_id, folder or None)
        changed = self._corpus.sources.update(source.id, **changes)
        if language is not None and self._set_language(source.id, language):
            used = [index.name for index in self._indexes.list() if index.passages_count]
            for name in (self._corpus.indexes.of_dataset(source.id) or used) if build else ():
                self._indexes.build(name)
        return changed

    def _set_language(self, source_id: str, language: str) -> int:
        """Set the language of a source's documents, or detect it for each; return how many have changed."""
        documents = self._corpus.documents
        if language != AUTO:
            return documents.set_language(source_id, language)
        return sum(
            documents.set_languages({key: detect_document_language(beginning, kind) for key, kind, beginning in part})
            for part in documents.beginnings(source_id, BEGINNING_CHARS)
        )

    def delete(self, key: str) -> Deletion:
        """Delete a source with its documents and passages, and return what was deleted. Raises NotFound."""
        source = self.get(key)
        own = self._corpus.indexes.of_dataset(source.id)
        shared = [index.name for index in self._corpus.indexes.list() if index.name not in own]
        citations = self._corpus.citations.link_count(source_id=source.id)
        for name in own:
            self._corpus.indexes.drop(name)
        self._corpus.sources.delete(source.id, shared)
        return Deletion(
            "source", source.id, source.title, sources=1, documents=source.documents_count,
            passages=source.passages_count, citations=citations,
        )  # fmt: skip

    def check_editable(self, source_id: str) -> None:
        """Check that a source is not the corpus of a test set, whose runs must stay comparable.

        Raises:
            Conflict: The source is the corpus of a test set.
        """
        if self._corpus.indexes.of_dataset(source_id):
            raise Conflict("The documents of a test set are read-only; import changed ones as a new test set.")

    def _find(self, key: str, project_id: str | None) -> Source:
        """Return the source with an id, title or URL, in a project if one is given.

        "Uploads" without a project is the global source of that title.
        """
        matching = self._corpus.sources.list_matches(key)
        if project_id is not None:
            matching = [source for source in matching if source.project_id == project_id]
        elif key == UPLOADS_TITLE:
            matching = [source for source in matching if source.project_id is None and source.source_type == "upload"]
        if not matching:
            raise NotFound("source", key, VALID_IDS_HINT)
        return self._corpus.sources.get(require_single(key, matching).id)

    def _place(self, project: str | None, folder: str | None) -> LocationIds:
        if not project:
            if folder:
                raise InvalidInput("A folder needs a project; give the project too.")
            return {"project_id": None, "folder_id": None}
        owner = self._corpus.projects.get(project)
        inner = self._corpus.projects.folder(owner.id, folder) if folder else None
        return {"project_id": owner.id, "folder_id": inner.id if inner else None}


def _parse_encoding(written: str) -> str:
    """Return the given name of an encoding; "" for "auto"."""
    name = written.strip().lower()
    if name not in ("", AUTO) and find_codec(name) is None:
        raise InvalidInput(f"There is no encoding {written!r}; use a name such as windows-1251, shift_jis or auto.")
    return "" if name == AUTO else name


def _parse_language(written: str) -> str:
    """Return the keyword index's name for a language, or "auto"."""
    language = AUTO if written.strip().lower() == AUTO else find_language(written)
    if language is None:
        raise InvalidInput(f"There is no language {written!r}; use one of {list_choices((AUTO, *LANGUAGES), 99)}.")
    return language
