"""Articles: listed, read and searched as files on disk, and searched by meaning in the corpus."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from workbench.retrieval.options import Ask
from workbench.services.article_files import Article, ArticleFolder
from workbench.services.corpus import Corpus
from workbench.services.documents import DocumentService
from workbench.services.folders import FolderMirror, MirroredFolder
from workbench.services.search import DocumentSearch
from workbench.services.sources import SourceService
from workbench.types import Results, Scope, ShouldStop

if TYPE_CHECKING:
    from workbench.ingestion.incoming import IngestItem

DEFAULT_SEMANTIC_RESULTS = 20


class ArticleService(ArticleFolder):
    """Operations on a folder of articles, including search by meaning."""

    def __init__(
        self,
        corpus: Corpus,
        sources: SourceService,
        documents: DocumentService,
        document_search: DocumentSearch,
        folder: Path,
    ) -> None:
        super().__init__(folder)
        self._document_search = document_search
        self._mirror = FolderMirror(corpus, sources, documents, "articles")

    def search_by_meaning(
        self,
        query: str,
        *,
        content: bool = False,
        limit: int = DEFAULT_SEMANTIC_RESULTS,
        should_stop: ShouldStop | None = None,
        bring_in: bool = True,
    ) -> Results[Article]:
        """Return the best articles for a question, by the default strategy, and whether any is a close match.

        Args:
            query: Question or keywords.
            content: Return the articles with their content.
            limit: Maximum number of articles.
            should_stop: Polled while changes are ingested.
            bring_in: Ingest new and changed files first; if False, that is left to a job.

        Raises:
            InvalidInput: The query is empty, or the limit is out of range.
            ConfigurationError: The folder does not exist.
        """
        folder, articles = self.open_mirror(), self.by_path()
        source_id = folder.refresh(should_stop=should_stop) if bring_in else folder.source()
        result = self._document_search.search(
            query, Ask(limit=limit, scope=Scope(sources=(source_id,)), fold_copies=False)
        )
        ranked = [articles[path] for hit in result.documents if (path := hit.best.path or "") in articles]
        shown = ranked if content else [article.without_content() for article in ranked]
        return Results(tuple(shown), result.searched.evidence, result.searched.degraded)

    def open_mirror(self, folder: Path | None = None) -> MirroredFolder:
        """Return the folder, or the given one, paired with its source.

        Raises:
            ConfigurationError: The folder does not exist.
        """
        articles = self if folder is None else ArticleFolder(folder)
        place = articles.place()

        def list_items() -> list[IngestItem]:
            from workbench.ingestion.incoming import list_files

            published = articles.by_path()
            return [item for item in list_files([place]).items if item.key in published]

        return MirroredFolder(self._mirror, place, list_items)
