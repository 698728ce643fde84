"""Workspaces: folders of conversations, embedded on request and searched separately."""

from __future__ import annotations

import calendar
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from workbench.errors import InvalidInput, NotFound, UnreadableDocument, list_choices
from workbench.retrieval.options import Ask
from workbench.services.checks import MAX_CONVERSATIONS, check_limit, check_query
from workbench.services.corpus import Corpus
from workbench.services.documents import DocumentService
from workbench.services.folders import FolderMirror, Pending
from workbench.services.search import DocumentSearch
from workbench.services.sources import SourceService
from workbench.storage.sources import Workspaces
from workbench.types import (
    Document,
    IngestFailure,
    JsonValue,
    OnProgress,
    Results,
    Scope,
    ShouldStop,
    Value,
    as_text_or_none,
)

MAX_RECENT_FILES = 10  # files in a status
_MONTH_PATTERN, _DAY_PATTERN = re.compile(r"(\d{4})-(\d{2})\Z"), re.compile(r"\d{4}-\d{2}-\d{2}\Z")


@dataclass(frozen=True, slots=True)
class EmbeddingReport(Value):
    """The changes of an embedding, in conversations."""

    embedded: int
    skipped: int
    total: int
    removed: int = 0  # no longer on disk
    files: int = 0  # that the conversations consist of
    failures: tuple[IngestFailure, ...] = ()
    notes: tuple[str, ...] = ()  # sentences on what could not be read

    @property
    def all_failed(self) -> str:
        """A sentence if all conversations failed, else ""."""
        if not self.failures or self.embedded or self.skipped:
            return ""
        first = self.failures[0]
        count = f"{len(self.failures):,} conversations" if len(self.failures) > 1 else "1 conversation"
        return f"Nothing was embedded: {count} failed. The first: {first.path}: {first.error}"


@dataclass(frozen=True, slots=True)
class ConversationHit(Value):
    """A conversation found by a search."""

    conversation: str
    score: float  # 0..1
    text: str  # its best passage
    source_path: str  # in the workspace
    title: str
    type: str
    date: str | None


@dataclass(frozen=True, slots=True)
class WorkspaceStatus(Value):
    """The contents of a workspace."""

    total_chunks: int
    num_documents: int
    db_path: str
    recent: tuple[tuple[str, str], ...]  # (path, ISO time) of the files embedded last


class WorkspaceService:
    """Operations on workspaces. The caller resolves paths and decides what may be read."""

    def __init__(
        self,
        corpus: Corpus,
        sources: SourceService,
        documents: DocumentService,
        document_search: DocumentSearch,
        db_path: str,
    ) -> None:
        self._corpus, self._document_search, self._db_path = corpus, document_search, db_path
        self._sources = sources
        self._mirror = FolderMirror(corpus, sources, documents, "workspace")
        self._workspaces = Workspaces(corpus.database)

    def embed(
        self,
        workspace: Path,
        path: Path | None = None,
        on_progress: OnProgress | None = None,
        should_stop: ShouldStop | None = None,
    ) -> EmbeddingReport:
        """Embed new and changed conversations of a workspace, or only those of a path in it.

        Without a path, conversations that are no longer on disk are removed.

        Raises:
            NotFound: The path does not exist.
            InvalidInput: The path contains no conversation and no readable file.
            UnreadableDocument: No conversation of the path could be embedded.
        """
        from workbench.ingestion.incoming import (
            find_conversations,
            list_conversation_files,
            list_conversations,
            make_conversation_item,
        )

        if path is not None and not path.exists():
            raise NotFound("path", str(path))
        conversations = list_conversations(workspace) if path is None else find_conversations(path, workspace)
        if path is not None and not conversations:
            raise InvalidInput(f"{path} contains no conversation (TYPE/YYYY-MM-DD/NNN-slug) and no readable file.")
        items = [make_conversation_item(conversation, workspace) for conversation in conversations]
        source_id = self._mirror.source(workspace, for_ingest=True)
        one_only = path is not None
        with self._sources.fill(source_id):
            synced = self._mirror.sync(
                source_id,
                items,
                still_there=lambda key: one_only or (workspace / key).exists(),
                on_progress=on_progress,
                should_stop=should_stop,
            )
        report = synced.report
        if one_only and len(report.failures) == len(items):
            raise UnreadableDocument(f"{report.failures[0].path}: {report.failures[0].error}")
        return EmbeddingReport(
            embedded=report.added + report.updated,
            skipped=report.unchanged,
            total=len(items),
            removed=synced.removed,
            files=sum(len(list_conversation_files(conversation, workspace)) for conversation in conversations),
            failures=report.failures,
            notes=report.notes,
        )

    def search(
        self,
        workspace: Path,
        query: str,
        *,
        limit: int = 10,
        conversation_type: str = "",
        date_range: str = "",
        strategy: str | None = None,
    ) -> Results[ConversationHit]:
        """Return the best conversations, and whether any is a close match; none if nothing was embedded.

        Args:
            workspace: Absolute path of the workspace.
            query: Question or keywords.
            limit: Maximum number of conversations, 1 to 100.
            conversation_type: Only this type; "" for all.
            date_range: YYYY-MM or YYYY-MM-DD; "" for all.
            strategy: Name of a strategy; by default the one promoted for the scope.

        Raises:
            InvalidInput: The query is empty, or the limit or the date range is invalid.
        """
        check_query(query)
        check_limit(limit, MAX_CONVERSATIONS, "n_results")
        since, until = parse_date_range(date_range)
        source_id = self._mirror.find_source(workspace)
        if source_id is None:
            return Results()
        documents = None
        if conversation_type:
            documents = tuple(self._workspaces.conversations(source_id, conversation_type).values())
        scope = Scope(sources=(source_id,), documents=documents, since=since, until=until)
        result = self._document_search.search(query, Ask(strategy, limit, scope, fold_copies=False))
        described = [(hit, self._document(hit.document_id)) for hit in result.documents]
        hits = (
            _make_hit(hit.score, hit.best.text, document.path or "", hit.title, document.metadata)
            for hit, document in described
            if document is not None
        )
        searched = result.searched
        return Results(tuple(hits), searched.evidence, (*searched.scope.notes, *searched.degraded))

    def types(self, workspace: Path) -> list[str]:
        """Return the types of conversation in a workspace."""
        source_id = self._mirror.find_source(workspace)
        return self._workspaces.types(source_id) if source_id else []

    def similar(self, workspace: Path, source_path: str, limit: int = 10) -> list[ConversationHit]:
        """Return the conversations most similar to one as a whole.

        Raises:
            NotFound: No such conversation is embedded.
            InvalidInput: The limit is outside 1..100.
        """
        check_limit(limit, MAX_CONVERSATIONS, "n_results")
        source_id = self._mirror.find_source(workspace)
        document_id = self._find_document(workspace, source_id, source_path) if source_id else None
        if source_id is None or document_id is None:
            raise NotFound("document", source_path, "Embed it first.")
        likes = self._workspaces.similar(self._corpus.index().name, source_id, document_id, limit)
        return [
            _make_hit(min(1.0, max(0.0, like.score)), like.text or "", like.key, like.title, like.metadata)
            for like in likes
        ]

    def status(self, workspace: Path) -> WorkspaceStatus:
        """Return the contents of a workspace and the files embedded last."""
        source_id = self._mirror.find_source(workspace)
        if source_id is None:
            return WorkspaceStatus(0, 0, self._db_path, ())
        documents, passages = self._workspaces.counts(source_id, self._corpus.index().name)
        recent = self._workspaces.recent(source_id, MAX_RECENT_FILES)
        return WorkspaceStatus(passages, documents, self._db_path, tuple((key, at.isoformat()) for key, at in recent))

    def find_changes(self, workspace: Path, path: Path | None = None) -> Pending:
        """Compare conversations on disk with the embedded ones by content: all of them, or those under a path."""
        from workbench.ingestion.incoming import find_conversations, list_conversations, make_conversation_item

        conversations = list_conversations(workspace) if path is None else find_conversations(path, workspace)
        items = [make_conversation_item(conversation, workspace) for conversation in conversations]
        return self._mirror.find_changes(
            self._mirror.find_source(workspace),
            items,
            still_there=lambda key: path is not None or (workspace / key).exists(),
        )

    def _document(self, document_id: str) -> Document | None:
        """Return a document found by a search; None if it was deleted since."""
        try:
            return self._corpus.documents.get(document_id)
        except NotFound:
            return None

    def _find_document(self, workspace: Path, source_id: str, source_path: str) -> str | None:
        """Return the id of the conversation at a path, which may also be a file in it, with or without suffix."""
        from workbench.ingestion.incoming import CONVERSATION_SUFFIXES

        conversations = self._workspaces.conversations(source_id)
        path = Path(source_path)
        relative = path.relative_to(workspace) if path.is_absolute() and path.is_relative_to(workspace) else path
        names = [relative.as_posix(), *(parent.as_posix() for parent in relative.parents)]
        names += [names[0] + suffix for suffix in CONVERSATION_SUFFIXES]
        return next((conversations[name] for name in names if name in conversations), None)


def parse_date_range(text: str) -> tuple[date | None, date | None]:
    """Return the first and last day of "YYYY-MM" or "YYYY-MM-DD"; (None, None) for "".

    Raises:
        InvalidInput: The text has neither form.
    """
    if not text:
        return None, None
    try:
        month = _MONTH_PATTERN.match(text)
        if month:
            year, number = int(month.group(1)), int(month.group(2))
            first = date(year, number, 1)
            return first, first.replace(day=calendar.monthrange(year, number)[1])
        if _DAY_PATTERN.match(text):  # fromisoformat also reads weeks
            day = date.fromisoformat(text)
            return day, day
    except ValueError:
        pass
    raise InvalidInput(
        f"Invalid date_range {text!r}: use {list_choices(('YYYY-MM', 'YYYY-MM-DD'))}, such as '2025-11'."
    )


def _make_hit(score: float, text: str, path: str, title: str, metadata: Mapping[str, JsonValue]) -> ConversationHit:
    return ConversationHit(
        conversation=str(metadata.get("conversation") or path),
        score=round(score, 4),
        text=text,
        source_path=path,
        title=title,
        type=str(metadata.get("conversation_type") or ""),
        date=as_text_or_none(metadata.get("date")),
    )
