"""One document at a time: made from a file or a text, given new content, never twice in a source."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from workbench.errors import InvalidInput, UnreadableDocument
from workbench.services.corpus import Corpus
from workbench.services.knowledge import UPLOADS, KnowledgeService
from workbench.services.naming import check_title, check_url
from workbench.storage.database import clean
from workbench.types import Document, Progress, Value

if TYPE_CHECKING:
    from workbench.ingestion.incoming import Incoming

OnProgress = Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class Written(Value):
    """A document and what became of it; "unchanged" means that its source held this content already."""

    document: Document
    outcome: Literal["created", "updated", "unchanged"]


class DocumentService:
    """The verbs that write one document."""

    def __init__(self, corpus: Corpus, knowledge: KnowledgeService) -> None:
        self._corpus, self._knowledge = corpus, knowledge

    def create(
        self,
        *,
        path: Path | None = None,
        text: str | None = None,
        source: str | None = None,
        title: str | None = None,
        url: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        on_progress: OnProgress | None = None,
        should_stop: Callable[[], bool] | None = None,
    ) -> Written:
        """Bring one file or one text into a source (by default the source "Uploads").

        Raises:
            InvalidInput: neither or both of path and text. NotFound: no such source.
            UnreadableDocument: the file cannot be turned into text.
        """
        item = _item(path, text, title=title and check_title(title), url=check_url(url), metadata=metadata or {})
        target = self._knowledge.source(source) if source else self._knowledge.source_for(UPLOADS)
        self._knowledge.check_editable(target.id)
        known = self._corpus.documents.with_content(target.id, _hash(item))
        if known is not None:
            return Written(self._knowledge.document(known), "unchanged")
        return self._ingest(target.id, item, on_progress, should_stop)

    def update(
        self,
        document_id: str,
        *,
        path: Path | None = None,
        text: str | None = None,
        title: str | None = None,
        url: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        on_progress: OnProgress | None = None,
        should_stop: Callable[[], bool] | None = None,
    ) -> Written:
        """Change title, URL and metadata (merged), and the content where one is given that differs.

        Raises:
            NotFound: no such document. UnreadableDocument: the file cannot be turned into text.
        """
        title, url = title and check_title(title), check_url(url)
        before = self._corpus.documents.record(document_id)
        self._knowledge.check_editable(before["source_id"])
        if path is None and text is None:
            return self._described(document_id, title, url, metadata, "updated")
        item = _item(path, text, title=title or before["title"], url=url or before["url"], metadata={})
        if _hash(item) == before["content_hash"]:
            changed = title is not None or url is not None or metadata is not None
            return self._described(document_id, title, url, metadata, "updated" if changed else "unchanged")
        kept = {**before["metadata"], **(metadata or {})}
        item = replace(item, key=before["key"], path=before["path"], metadata=kept)
        return self._ingest(before["source_id"], item, on_progress, should_stop)

    def _described(
        self,
        document_id: str,
        title: str | None,
        url: str | None,
        metadata: Mapping[str, Any] | None,
        outcome: Literal["updated", "unchanged"],
    ) -> Written:
        return Written(self._knowledge.update_document(document_id, title=title, url=url, metadata=metadata), outcome)

    def _ingest(
        self,
        source_id: str,
        item: Incoming,
        on_progress: OnProgress | None,
        should_stop: Callable[[], bool] | None,
    ) -> Written:
        report = self._knowledge.ingest_items(source_id, [item], on_progress=on_progress, should_stop=should_stop)
        if report.failures:
            raise UnreadableDocument(report.failures[0].error)
        outcome = "created" if report.added else "updated" if report.updated else "unchanged"
        return Written(self._knowledge.document(report.document_ids[0]), outcome)


def _item(
    path: Path | None, text: str | None, *, title: str | None, url: str | None, metadata: Mapping[str, Any]
) -> Incoming:
    from workbench.ingestion.incoming import content_hash, files_under, text_item

    if (path is None) == (text is None):
        raise InvalidInput("Give either a file or a text, not both and not neither.")
    if text is not None:
        text = str(clean(text))  # unlike in a file, where a NUL tells that the whole is no text
        key = f"text:{content_hash(text.encode())}"
        return text_item(key, text, title=title or "", url=url, metadata=metadata)
    assert path is not None
    found = files_under([path])
    if not found.items:
        reason = found.failures[0].error if found.failures else "There is no such file."
        raise UnreadableDocument(f"{path.name}: {reason}")
    if path.is_dir():
        raise InvalidInput(f"{path.name} is a folder; give one file.")
    return replace(found.items[0], key=f"file:{path.resolve()}", title=title, url=url, metadata=metadata)


def _hash(item: Incoming) -> str:
    from workbench.ingestion.incoming import content_hash

    return content_hash(item.load())
