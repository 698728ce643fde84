"""Workspaces: folders of conversations, embedded on request and searched apart from each other."""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from workbench.errors import InvalidInput, NotFound, choices
from workbench.services.corpus import Corpus
from workbench.services.knowledge import KnowledgeService
from workbench.services.mirror import FolderMirror
from workbench.services.pages import PageService
from workbench.services.question import check_query
from workbench.storage.workspaces import Workspaces
from workbench.types import Document, IngestFailure, Progress, Scope, Value

OnProgress = Callable[[Progress], None]
RECENT = 10
MOST_RESULTS = 50
_MONTH, _DAY = re.compile(r"(\d{4})-(\d{2})\Z"), re.compile(r"\d{4}-\d{2}-\d{2}\Z")


@dataclass(frozen=True, slots=True)
class Embedded(Value):
    """What an embedding changed, counted in conversations; ``removed`` ones have vanished from disk."""

    embedded: int
    skipped: int
    total: int
    removed: int = 0
    files: int = 0
    failures: tuple[IngestFailure, ...] = ()


@dataclass(frozen=True, slots=True)
class ConversationHit(Value):
    """A conversation that was found; ``source_path`` is its path in the workspace, ``text`` its best passage."""

    conversation: str
    score: float
    text: str
    source_path: str
    title: str
    type: str
    date: str | None


@dataclass(frozen=True, slots=True)
class WorkspaceStatus(Value):
    """What a workspace holds; ``recent`` are (path, ISO time) of what was embedded last."""

    total_chunks: int
    num_documents: int
    db_path: str
    recent: tuple[tuple[str, str], ...]


class WorkspaceService:
    """The verbs over workspaces; every path is resolved by the caller, who decides what may be read."""

    def __init__(self, corpus: Corpus, knowledge: KnowledgeService, pages: PageService, db_path: str) -> None:
        self._corpus, self._pages, self._db_path = corpus, pages, db_path
        self._mirror = FolderMirror(corpus, knowledge, "workspace")
        self._workspaces = Workspaces(corpus.database)

    def embed(
        self,
        workspace: Path,
        path: Path | None = None,
        on_progress: OnProgress | None = None,
        should_stop: Callable[[], bool] | None = None,
    ) -> Embedded:
        """Embed what is new or changed: the whole workspace, or what a path in it means.

        For the whole workspace, conversations that have vanished from disk are removed.

        Raises:
            NotFound: the path does not exist, or means no conversation and no file.
        """
        from workbench.ingestion.conversations import conversations_at, conversations_in, files_of, incoming

        if path is not None and not path.exists():
            raise NotFound("path", str(path))
        found = conversations_in(workspace) if path is None else conversations_at(path, workspace)
        if path is not None and not found:
            raise InvalidInput(f"{path} holds no conversation (TYPE/YYYY-MM-DD/NNN-slug) and no file that can be read.")
        items = [incoming(one, workspace) for one in found]
        source_id = self._mirror.source(workspace)
        one_only = path is not None
        synced = self._mirror.sync(
            source_id,
            items,
            still_there=lambda key: one_only or (workspace / key).exists(),
            on_progress=on_progress,
            should_stop=should_stop,
        )
        report = synced.report
        return Embedded(
            embedded=report.added + report.updated,
            skipped=report.unchanged,
            total=len(items),
            removed=synced.removed,
            files=sum(len(files_of(one, workspace)) for one in found),
            failures=report.failures,
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
    ) -> list[ConversationHit]:
        """Return the best conversations, one entry each; nothing where nothing was embedded.

        Raises:
            InvalidInput: an empty query, a limit outside 1..50, a date range that is neither YYYY-MM nor YYYY-MM-DD.
        """
        check_query(query)
        if not 1 <= limit <= MOST_RESULTS:
            raise InvalidInput(f"n_results cannot be {limit}; use a whole number from 1 to {MOST_RESULTS}.")
        since, until = read_date_range(date_range)
        source_id = self._mirror.known_source(workspace)
        if source_id is None:
            return []
        documents = None
        if conversation_type:
            documents = tuple(self._workspaces.conversations(source_id, conversation_type).values())
        scope = Scope(sources=(source_id,), documents=documents, since=since, until=until)
        found = self._pages.search(query, limit=limit, scope=scope, strategy=strategy)
        described = [(page, self._document(page.document_id)) for page in found.pages]
        return [
            _hit(page.score, page.best.text, document.path or "", page.title, document.metadata)
            for page, document in described
            if document is not None
        ]

    def types(self, workspace: Path) -> list[str]:
        """Return the types of conversation that a workspace holds."""
        source_id = self._mirror.known_source(workspace)
        return self._workspaces.types(source_id) if source_id else []

    def similar(self, workspace: Path, source_path: str, limit: int = 10) -> list[ConversationHit]:
        """Return other conversations by similarity to one as a whole (scores 0..1).

        Raises:
            NotFound: the workspace holds no such conversation.
        """
        if not 1 <= limit <= MOST_RESULTS:
            raise InvalidInput(f"n_results cannot be {limit}; use a whole number from 1 to {MOST_RESULTS}.")
        source_id = self._mirror.known_source(workspace)
        document_id = self._document_at(workspace, source_id, source_path) if source_id else None
        if source_id is None or document_id is None:
            raise NotFound("document", source_path, "Embed it first.")
        rows = self._workspaces.similar(self._corpus.index().name, source_id, document_id, limit)
        return [
            _hit(min(1.0, max(0.0, float(row["score"]))), row["text"] or "", row["key"], row["title"], row["metadata"])
            for row in rows
        ]

    def status(self, workspace: Path) -> WorkspaceStatus:
        """Return what a workspace holds and what was embedded last."""
        source_id = self._mirror.known_source(workspace)
        if source_id is None:
            return WorkspaceStatus(0, 0, self._db_path, ())
        documents, passages = self._workspaces.counts(source_id, self._corpus.index().name)
        recent = self._workspaces.recent(source_id, RECENT)
        return WorkspaceStatus(passages, documents, self._db_path, tuple((key, at.isoformat()) for key, at in recent))

    def _document(self, document_id: str) -> Document | None:
        """Return a document that was found; None where another process has removed it since."""
        try:
            return self._corpus.documents.get(document_id)
        except NotFound:
            return None

    def _document_at(self, workspace: Path, source_id: str, source_path: str) -> str | None:
        """Return the id of the conversation that a path means: its own path, a file in it, with or without ending."""
        known = self._workspaces.conversations(source_id)
        given = Path(source_path)
        relative = given.relative_to(workspace) if given.is_absolute() and given.is_relative_to(workspace) else given
        names = [relative.as_posix(), *(parent.as_posix() for parent in relative.parents)]
        names += [f"{names[0]}.md", f"{names[0]}.markdown", f"{names[0]}.txt"]
        return next((known[name] for name in names if name in known), None)


def read_date_range(text: str) -> tuple[date | None, date | None]:
    """Return the first and the last day of "YYYY-MM" or "YYYY-MM-DD"; nothing for "". Raises InvalidInput."""
    if not text:
        return None, None
    try:
        month = _MONTH.match(text)
        if month:
            year, number = int(month.group(1)), int(month.group(2))
            first = date(year, number, 1)
            return first, first.replace(day=calendar.monthrange(year, number)[1])
        if _DAY.match(text):  # fromisoformat also reads weeks
            day = date.fromisoformat(text)
            return day, day
    except ValueError:
        pass
    raise InvalidInput(f"date_range cannot be {text!r}; use {choices(('YYYY-MM', 'YYYY-MM-DD'))}, such as '2025-11'.")


def _hit(score: float, text: str, path: str, title: str, metadata: Any) -> ConversationHit:
    return ConversationHit(
        conversation=str(metadata.get("conversation") or path),
        score=round(score, 4),
        text=text,
        source_path=path,
        title=title,
        type=str(metadata.get("conversation_type") or ""),
        date=metadata.get("date"),
    )
