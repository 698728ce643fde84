"""Sources: collections of documents, the projects and folders that have them, and the sources of a scope."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime

from psycopg.types.json import Jsonb

from workbench.errors import Ambiguous, NotFound, list_choices
from workbench.storage.database import Row, Table, new_id, statement
from workbench.storage.passages import choose_scope_predicate, scope_parameters
from workbench.text import AUTO
from workbench.types import APART_TYPES, DATASET, FAMILY_TYPES, Folder, JsonObject, Project, ResolvedScope, Source

_APART = {"apart": list(APART_TYPES), "families": list(FAMILY_TYPES)}


class Projects(Table):
    def list(self) -> list[Project]:
        return [Project(**row) for row in self._rows("project_list", _APART | {"key": None})]

    def get(self, key: str) -> Project:
        """Return a project by id or exact title.

        Raises:
            NotFound: There is no such project; the message lists the existing ones.
        """
        rows = self._rows("project_list", _APART | {"key": key})
        if not rows:
            ids = {project.title: project.id for project in self.list()}
            raise NotFound("project", key, f"Valid projects: {list_choices(ids, ids=ids)}.")
        return Project(**next((row for row in rows if row["id"] == key), rows[0]))

    def create(self, title: str, description: str = "", *, id: str | None = None) -> Project:
        """Create a project. Raises Conflict if the title or id is taken."""
        project_id = id or new_id("project")
        self._rows("project_insert", {"id": project_id, "title": title, "description": description})
        return self.get(project_id)

    def update(self, key: str, *, title: str | None = None, description: str | None = None) -> Project:
        """Change the given fields; None leaves a field unchanged.

        Raises:
            NotFound: There is no such project.
            Conflict: The title is taken.
        """
        project = self.get(key)
        self._rows("project_update", {"id": project.id, "title": title, "description": description})
        return self.get(project.id)

    def delete(self, key: str) -> Project:
        project = self.get(key)
        self._rows("project_delete", {"id": project.id})
        return project

    def folders(self, project: str) -> list[Folder]:
        """Return a project's folders by name. Raises NotFound."""
        return [Folder(**row) for row in self._rows("folder_list", _APART | {"project_id": self.get(project).id})]

    def folder(self, project: str, key: str) -> Folder:
        """Return a folder of a project by name or id.

        Raises:
            NotFound: There is no such folder; the message lists the existing ones.
        """
        folders = self.folders(project)
        for folder in sorted(folders, key=lambda folder: folder.id != key):  # ids take precedence over names
            if key in (folder.name, folder.id):
                return folder
        raise NotFound("folder", key, f"Folders of this project: {list_choices(folder.name for folder in folders)}.")

    def create_folder(self, project: str, name: str, **fields: str | None) -> Folder:
        """Create a folder; ``fields`` are description, color and icon_name. Raises Conflict if the name is taken."""
        values = {"description": "", "color": "#6366f1", "icon_name": "folder"} | {
            key: value for key, value in fields.items() if value is not None
        }
        owner = self.get(project)
        self._rows("folder_insert", {"id": new_id("folder"), "project_id": owner.id, "name": name, **values})
        return self.folder(owner.id, name)

    def update_folder(self, project: str, key: str, **fields: str | None) -> Folder:
        """Change name, description, color or icon_name of a folder; None leaves a field unchanged."""
        folder = self.folder(project, key)
        unchanged: dict[str, str | None] = dict.fromkeys(("name", "description", "color", "icon_name"))
        values = unchanged | fields
        self._rows("folder_update", {"id": folder.id, **values})
        return self.folder(folder.project_id, folder.id)

    def delete_folder(self, project: str, key: str) -> Folder:
        """Delete a folder; its sources stay in the project."""
        folder = self.folder(project, key)
        self._rows("folder_delete", {"id": folder.id})
        return folder


VALID_IDS_HINT = "List the sources to see the valid ids."
_UNFILLED_MARK: JsonObject = {"unfilled": True}
_FIELDS = tuple(Source.__dataclass_fields__)


@dataclass(frozen=True, slots=True)
class ScopedSource:
    """A source in a scope, with the fields that decide ties between passages."""

    id: str
    scope: str
    project_id: str | None
    folder_id: str | None
    tags: Sequence[str]


@dataclass(frozen=True, slots=True)
class NamedSource:
    """A source that a key may mean, with the fields that distinguish it from others with that title or URL."""

    id: str
    title: str
    source_type: str
    project_id: str | None  # None for a global source
    project_title: str | None

    def __str__(self) -> str:
        place = f"project {self.project_title!r}" if self.project_id else "global"
        return f"{self.source_type}, {place}"


def require_single(key: str, matching: Sequence[NamedSource]) -> NamedSource:
    """Return the only source that a key matches. Raises Ambiguous if there are several."""
    if len(matching) > 1:
        raise Ambiguous("source", key, {source.id: str(source) for source in matching})
    return matching[0]


class Sources(Table):
    def list(
        self,
        *,
        scope: str | None = None,
        project_id: str | None = None,
        source_type: str | None = None,
        limit: int | None = None,
        offset: int = 0,
    ) -> list[Source]:
        """Return sources in order of creation; those of ``APART_TYPES`` only if ``source_type`` requests them."""
        parameters = _conditions(scope, project_id, source_type) | {"limit": limit, "offset": offset}
        return [_source(row) for row in self._rows("source_list", parameters)]

    def count(self, *, scope: str | None = None, project_id: str | None = None, source_type: str | None = None) -> int:
        """Return the number of sources that ``list`` would return without a limit."""
        conditions = _conditions(scope, project_id, source_type)
        return int(self._value("source_count", conditions))

    def ids(self) -> list[str]:
        """Return the ids of all sources except ``APART_TYPES``; cheap, because nothing is counted."""
        return self._column("source_ids", {"apart": list(APART_TYPES)})

    def titles(self) -> dict[str, str]:
        """Return {id: title} of all sources except evaluation corpora, in order of creation; as cheap as ``ids``."""
        return {row["id"]: row["title"] for row in self._rows("source_titles")}

    def get(self, source_id: str) -> Source:
        """Return a source by its id. Raises NotFound."""
        parameters = _conditions() | {"id": source_id, "limit": 1, "offset": 0}
        missing = NotFound("source", source_id, VALID_IDS_HINT)
        return _source(self._get("source_list", parameters, missing))

    def find(self, key: str) -> Source:
        """Return a source by id, exact title or URL. Raises NotFound, or Ambiguous if there are several."""
        return self.get(require_single(key, self.list_matches(key)).id)

    def list_matches(self, key: str) -> list[NamedSource]:
        """Return the source with that id, or all with that exact title or URL. Raises NotFound."""
        rows = self._rows("source_find", {"key": key})
        if not rows:
            raise NotFound("source", key, VALID_IDS_HINT)
        sources = [NamedSource(**row) for row in rows]
        return sources[:1] if sources[0].id == key else sources

    def find_id_by_url(self, url: str, source_type: str) -> str | None:
        """Return the id of the source of a type that represents a URL, or None; cheap, as it has no counts."""
        return self._value("source_standing_for", {"url": url, "source_type": source_type})

    def create(
        self,
        title: str,
        *,
        source_type: str = "upload",
        url: str | None = None,
        project_id: str | None = None,
        folder_id: str | None = None,
        tags: Sequence[str] = (),
        language: str = AUTO,
        metadata: JsonObject | None = None,
        for_ingest: bool = False,
    ) -> Source:
        """Create a source, in a project or, without one, global.

        With ``for_ingest``, ``settle`` removes it again if the ingest stores nothing.

        Raises:
            Conflict: There is already a source of that type and title in the same project.
        """
        source_id = new_id("source")
        values = {
            "id": source_id,
            "title": title,
            "source_type": source_type,
            "url": url,
            "scope": "project" if project_id else "global",
            "project_id": project_id,
            "folder_id": folder_id,
            "tags": list(tags),
            "language": language,
            "metadata": Jsonb((metadata or {}) | (_UNFILLED_MARK if for_ingest else {})),
        }
        self._rows("source_insert", values)
        return self.get(source_id)

    def update(self, source_id: str, **fields: object) -> Source:
        """Change the given fields of a source (title, url, project_id, folder_id, tags, language, status).

        Setting a project moves the source to it; None makes the source global.
        """
        source = replace(self.get(source_id), **fields)  # pyright: ignore[reportArgumentType]
        scope = "project" if source.project_id else "global"
        values = {
            name: getattr(source, name)
            for name in ("id", "title", "url", "project_id", "language", "encoding", "hidden", "status")
        }
        values |= {
            "scope": scope,
            "folder_id": source.folder_id if source.project_id else None,
            "tags": list(source.tags),
            "metadata": Jsonb(self.metadata(source_id)),
        }
        self._rows("source_update", values)
        return self.get(source_id)

    def metadata(self, source_id: str) -> JsonObject:
        """Return what a service stores with a source (a dataset's hash, a crawl's settings)."""
        missing = NotFound("source", source_id, VALID_IDS_HINT)
        return dict(self._get("source_metadata", {"id": source_id}, missing)["metadata"])

    def delete(self, source_id: str, indexes: Sequence[str]) -> Source:
        """Delete a source with its documents; deleting passages first, one statement per index, is much faster."""
        source = self.get(source_id)
        with self._database.transaction() as connection:
            connection.execute(statement("index_turn"), {"name": None})
            for name in indexes:
                connection.execute(statement("delete_passages_of_source", name), {"source_id": source_id})
            connection.execute(statement("source_delete"), {"id": source_id})
        return source

    def claim(self, source_id: str) -> None:
        """Keep a source that an ingest created, regardless of the outcome."""
        self._rows("source_claim", {"id": source_id})

    def settle(self, source_id: str) -> bool:
        """Remove a source that an ingest created and left empty; return whether the source still exists.

        Records of jobs that were to fill it are kept. A source with documents is an ordinary one from then on.
        """
        key = {"id": source_id}
        with self._database.transaction() as connection:
            if connection.execute(statement("source_unfilled"), key).fetchone() is None:
                return True
            # checked after the row is locked, since documents are added under a lock on it
            row = connection.execute(statement("source_has_documents"), key).fetchone()
            filled = row is not None and bool(row["filled"])
            if not filled:
                connection.execute(statement("source_leaves_jobs"), key)
                connection.execute(statement("source_leaves_crawls"), key)
            connection.execute(statement("source_claim" if filled else "source_delete"), key)
        return filled

    def tags(self, source_ids: Sequence[str] | None = None) -> dict[str, int]:
        values = {"source_ids": None if source_ids is None else list(source_ids)}
        return {row["tag"]: int(row["sources"]) for row in self._rows("tags_in_use", values)}

    def metadata_values(self, source_ids: Sequence[str] | None = None) -> dict[str, int]:
        """Return the short values of the documents' metadata, as NAME=VALUE, with the number of their documents."""
        values = {"source_ids": None if source_ids is None else list(source_ids)}
        return {row["item"]: int(row["documents"]) for row in self._rows("metadata_in_use", values)}

    def any_apart(self) -> bool:
        """Return whether there are sources that only their own tools search: conversations, articles, archives."""
        return bool(self._value("source_of_types", {"types": list(FAMILY_TYPES)}))

    def in_scope(
        self,
        *,
        kind: str,
        project_id: str | None,
        folder_id: str | None,
        tags: Sequence[str],
        source_ids: Sequence[str] | None,
        datasets: bool = False,
    ) -> list[ScopedSource]:
        """Return the sources that satisfy all given conditions, ordered by id.

        Tags match regardless of case. Conversations, articles and archives are included only if ``source_ids`` has
        them. ``datasets`` includes those of benchmarks and attached tables, which have indexes of their own.
        """
        parameters = {
            "datasets": datasets,
            "kind": kind,
            "project_id": project_id,
            "folder_id": folder_id,
            "tags": [tag.lower() for tag in tags] or None,
            "apart": list(FAMILY_TYPES),
            "source_ids": None if source_ids is None else list(source_ids),
        }
        return [ScopedSource(**row) for row in self._rows("source_ids_in_scope", parameters)]

    def count_undated(self, index: str, scope: ResolvedScope) -> int:
        """Return how many documents of an index are in a scope, except that they have no date."""
        undated = replace(scope, since=None, until=None)
        values = {"index": index, **scope_parameters(undated)}
        return int(self._value("documents_undated", values, scope=choose_scope_predicate(undated)))


def _conditions(
    scope: str | None = None, project_id: str | None = None, source_type: str | None = None
) -> dict[str, object]:
    conditions = {"id": None, "scope": scope, "project_id": project_id, "source_type": source_type}
    return {**conditions, "datasets": source_type == DATASET, "apart": list(APART_TYPES)}


def _source(row: Row) -> Source:
    return Source(**{name: row[name] for name in _FIELDS if name != "tags"}, tags=tuple(row["tags"]))


# --- Workspaces: sources of type "workspace", whose documents are whole conversations ---


@dataclass(frozen=True, slots=True)
class SimilarConversation:
    """A similar conversation; ``score`` is a cosine (-1..1); ``text`` is at most its first 2,000 characters."""

    id: str
    key: str
    title: str
    metadata: JsonObject
    document_date: date | None
    score: float
    text: str | None


class Workspaces(Table):
    """The contents of a workspace, by its source's id."""

    def conversations(self, source_id: str, conversation_type: str | None = None) -> dict[str, str]:
        """Return the ids of a workspace's conversations by key (their path), optionally of one type."""
        values = {"source_id": source_id, "conversation_type": conversation_type}
        return {row["key"]: row["id"] for row in self._rows("conversation_ids", values)}

    def types(self, source_id: str) -> list[str]:
        return self._column("conversation_types", {"source_id": source_id})

    def similar(self, index: str, source_id: str, document_id: str, limit: int) -> list[SimilarConversation]:
        """Return other conversations, best first.

        The score is the cosine between the means of the conversations' passage vectors.
        """
        values = {"source_id": source_id, "document_id": document_id, "limit": limit}
        return [SimilarConversation(**row) for row in self._rows("conversations_like", values, index=index)]

    def counts(self, source_id: str, index: str) -> tuple[int, int]:
        row = self._row("workspace_counts", {"source_id": source_id, "index": index}) or {}
        return int(row.get("documents", 0)), int(row.get("passages", 0))

    def recent(self, source_id: str, limit: int) -> list[tuple[str, datetime]]:
        """Return (key, time) of the last embedded conversations, newest first."""
        values = {"source_id": source_id, "limit": limit}
        return [(row["key"], row["updated_at"]) for row in self._rows("workspace_recent", values)]
