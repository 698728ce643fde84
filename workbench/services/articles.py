"""Articles with the corpus behind them: what the files alone give, and a search by meaning."""

from __future__ import annotations

from collections.abc import Container
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.retrieval.options import Ask
from workbench.services.article_files import Article, ArticleFolder
from workbench.services.corpus import Corpus
from workbench.services.document_search import DocumentSearch
from workbench.services.documents import DocumentService
from workbench.services.mirror import FolderMirror, MirroredFolder
from workbench.services.sources import SourceService
from workbench.types import Findings, Scope, ShouldStop

if TYPE_CHECKING:
    from workbench.ingestion.incoming import Incoming

SEMANTIC_RESULTS = 20


class ArticleService(ArticleFolder):
    """The verbs over one folder of articles."""

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
        limit: int = SEMANTIC_RESULTS,
        should_stop: ShouldStop | None = None,
        bring_in: bool = True,
    ) -> Findings[Article]:
        """Return the articles that answer a question best, by the default strategy, and whether any is close.

        Without ``bring_in`` what is new or changed on disk is left to a job. Raises what a search raises.
        """
        folder, articles = self.mirrored(), self.by_path()
        source_id = folder.refresh(should_stop=should_stop) if bring_in else folder.source()
        result = self._document_search.search(query, Ask(limit=limit, scope=Scope(sources=(source_id,))))
        ranked = [articles[path] for hit in result.documents if (path := hit.best.path or "") in articles]
        shown = ranked if content else [article.without_content() for article in ranked]
        return Findings(tuple(shown), result.searched.evidence, result.searched.degraded)

    def mirrored(self, folder: Path | None = None) -> MirroredFolder:
        """Return the folder beside its source, or another one. Raises ConfigurationError where there is none."""
        articles = self if folder is None else ArticleFolder(folder)
        place = articles.place()
        return self._mirror.of(place, lambda: _items(place, articles.by_path()))


def _items(folder: Path, articles: Container[str]) -> list[Incoming]:
    from workbench.ingestion.incoming import files_under

    return [item for item in files_under([folder]).items if item.key in articles]
