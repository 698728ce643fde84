"""The composition root: builds everything from the settings and owns the shutdown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from workbench.errors import InvalidInput
from workbench.sample import articles_dir
from workbench.services.answers import Answer, AnswerService, AnswerStream
from workbench.services.archives import ArchiveService
from workbench.services.articles import ArticleService
from workbench.services.backups import BackupService
from workbench.services.citations import CitationService
from workbench.services.corpus import Corpus
from workbench.services.crawls import CrawlService
from workbench.services.documents import DocumentService
from workbench.services.explain import ExplainService
from workbench.services.health import HealthService
from workbench.services.index_builds import IndexService
from workbench.services.jobs import JobService
from workbench.services.knowledge import KnowledgeService
from workbench.services.pages import PageService
from workbench.services.projects import ProjectService
from workbench.services.promotions import PromotionService
from workbench.services.search import SearchService
from workbench.services.tool_calls import ToolCallService
from workbench.services.workspaces import WorkspaceService
from workbench.settings import Settings, load_settings
from workbench.types import Comparison, IngestReport, Progress, Scope, SearchResult

if TYPE_CHECKING:
    from workbench.jobs import WorkerHandle
    from workbench.models.cross_encoder import CrossEncoder
    from workbench.models.encoder import Encoder
    from workbench.models.llm import Llm
    from workbench.retrieval.explain import Explanation

OnProgress = Callable[[Progress], None]
BUILT_IN_RERANKER = "late-interaction"


class Workbench:
    """One corpus and everything that can be done with it; open it with ``Workbench.open()``.

    May be used from any thread, from a running event loop, and by several processes at once on one database.
    """

    def __init__(self, settings: Settings, corpus: Corpus, *, embedded: bool) -> None:
        """Use ``Workbench.open``."""
        self.settings = settings
        self._worker: WorkerHandle | None = None
        self.corpus = corpus
        self.search_service = SearchService(corpus)
        self.indexes = IndexService(corpus)
        self.knowledge = KnowledgeService(corpus, self.indexes)
        self.documents = DocumentService(corpus, self.knowledge)
        self.pages = PageService(corpus, self.search_service)
        self.tool_calls = ToolCallService(corpus)
        self.projects = ProjectService(corpus)
        self.citations = CitationService(corpus)
        self.articles = ArticleService(corpus, self.knowledge, self.pages, settings.articles_dir or articles_dir())
        self.archives = ArchiveService(
            corpus, self.knowledge, self.search_service, self.citations, settings.archives_dir
        )
        place = str(settings.postgres_dir) if embedded else corpus.database.place
        self.workspaces = WorkspaceService(corpus, self.knowledge, self.pages, place)
        self.promotions = PromotionService(corpus, self.search_service)
        self.answers = AnswerService(corpus, self.search_service)
        self.explaining = ExplainService(corpus, self.search_service)
        self.jobs = JobService(corpus)
        self.crawls = CrawlService(
            corpus,
            self.knowledge,
            self.jobs,
            allow_hosts=settings.crawl_allow_hosts.split(","),
            browser_url=settings.crawl_browser_url,
        )
        self.backups = BackupService(corpus)
        self.health = HealthService(corpus, settings.home, embedded)

    @classmethod
    def open(
        cls,
        home: Path | str | None = None,
        database_url: str | None = None,
        *,
        settings: Settings | None = None,
    ) -> Self:
        """Open the workbench: start or join the database, bring it up to date.

        Arguments win over the environment. Models load when they are first used.

        Raises:
            ConfigurationError: a setting is wrong.
            StorageError: the database cannot be reached.
        """
        from workbench.storage.database import Database
        from workbench.storage.migrate import migrate
        from workbench.storage.server import embedded_url

        chosen = settings or load_settings(home=home, database_url=database_url)
        given = chosen.database_url.get_secret_value() if chosen.database_url else None
        url = given or embedded_url(chosen.postgres_dir)
        migrate(url)
        database = Database(url, pool_size=chosen.pool_size)
        replica = chosen.read_database_url
        reader = Database(replica.get_secret_value(), pool_size=chosen.pool_size) if replica else database

        def load(name: str) -> Encoder:
            from workbench.models.registry import load_encoder

            return load_encoder(name, chosen.models_dir, chosen.embedding_threads)

        def load_llm() -> Llm | None:
            from workbench.models.llm import Llm

            key = chosen.llm_api_key.get_secret_value() if chosen.llm_api_key else ""
            address = chosen.llm_base_url
            return Llm(address, chosen.llm_model, key, chosen.llm_timeout) if address else None

        def load_cross_encoder() -> CrossEncoder | None:
            from workbench.models.cross_encoder import load_cross_encoder as load_model

            name = chosen.reranker
            return None if name == BUILT_IN_RERANKER else load_model(name, chosen.embedding_threads)

        corpus = Corpus(database, reader, load, chosen.embedding_model, load_llm, load_cross_encoder)
        return cls(chosen, corpus, embedded=given is None)

    def work(self) -> WorkerHandle:
        """Run jobs in this process until the workbench is closed; a second call returns the same worker.

        Raises:
            StorageError: the queue cannot be reached.
        """
        from workbench.jobs import start_worker

        if self._worker is None or not self._worker.is_alive:
            self._worker = start_worker(self)
        return self._worker

    def close(self) -> None:
        """Give running jobs back to the queue, and every connection."""
        if self._worker is not None:
            self._worker.stop()
            self._worker = None
        self.corpus.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # --- the verbs of a notebook ------------------------------------------------------------------------------------

    def ingest(
        self,
        paths: str | Path | Sequence[str | Path],
        source: str | None = None,
        *,
        project: str | None = None,
        folder: str | None = None,
        tags: Sequence[str] = (),
        index: str | None = None,
        on_progress: OnProgress | None = None,
        should_stop: Callable[[], bool] | None = None,
    ) -> IngestReport:
        """Read files and folders into a source, with a progress bar unless ``on_progress`` takes its place.

        Raises:
            InvalidInput: none of the paths exists. NotFound: no such project, folder or index.
        """
        from workbench.progress import progress_bar

        if not isinstance(paths, str | Path | Iterable):
            raise InvalidInput(f"A path cannot be {paths!r}; give a text or a Path.")
        given = [paths] if isinstance(paths, str | Path) else list(paths)
        with progress_bar("Ingest", on_progress) as show:
            return self.knowledge.ingest(
                given,
                source=source,
                project=project,
                folder=folder,
                tags=tags,
                index=index,
                on_progress=show,
                should_stop=should_stop,
            )

    def search(
        self,
        query: str,
        strategy: str | None = None,
        limit: int = 10,
        scope: Scope | None = None,
        *,
        index: str | None = None,
        parameters: Mapping[str, Any] | None = None,
    ) -> SearchResult:
        """Return the best passages for a query, best first.

        Raises:
            InvalidInput: an empty query, unknown strategy or parameter. ScopeError: an unknown name in the scope.
        """
        return self.search_service.search(
            query, strategy=strategy, limit=limit, scope=scope, index=index, parameters=parameters
        )

    def compare(
        self,
        query: str,
        strategies: Sequence[str] = ("vector", "keyword", "hybrid", "rerank"),
        limit: int = 10,
        scope: Scope | None = None,
        *,
        index: str | None = None,
        parameters: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> Comparison:
        """Answer one query by several strategies, side by side. Raises what ``search`` raises."""
        return self.search_service.compare(
            query, strategies=strategies, limit=limit, scope=scope, index=index, parameters=parameters
        )

    def ask(
        self,
        query: str,
        strategy: str | None = None,
        limit: int = 6,
        scope: Scope | None = None,
        *,
        stream: bool = False,
        index: str | None = None,
        parameters: Mapping[str, Any] | None = None,
    ) -> Answer | AnswerStream:
        """Answer a question with numbered citations: by the configured LLM, without one by cited extracts.

        With ``stream`` an iterator over the pieces comes back, whose ``answer()`` is the whole. Raises what
        ``search`` raises, and ModelError where the LLM fails in the middle of an answer.
        """
        answering = self.answers.ask(
            query, strategy=strategy, limit=limit, scope=scope, index=index, parameters=parameters
        )
        return answering if stream else answering.answer()

    def explain(
        self, query: str, passage_id: str | None = None, document_id: str | None = None, **search: Any
    ) -> Explanation:
        """Say why a passage or document stands where it stands in a search, or where it fell out.

        ``search`` are a search's own arguments: strategy, limit, scope, index, parameters.
        """
        return self.explaining.explain(query, passage_id=passage_id, document_id=document_id, **search)

    def query_engine(
        self, strategy: str | None = None, limit: int = 10, scope: Scope | None = None, **more: Any
    ) -> Any:
        """Return a LlamaIndex query engine of a strategy, for whoever wants to build on it."""
        return self.search_service.query_engine(strategy, limit=limit, scope=scope, **more)

    def status(self) -> dict[str, Any]:
        """Return counts, indexes, sizes and versions."""
        return self.health.status()

    def warm(self) -> None:
        """Load the default model and open the database, so that the first search is as fast as the others."""
        index = self.corpus.index()
        self.corpus.encoder_of(index).encode_query("warm")
        self.corpus.store(index)

    def __repr__(self) -> str:
        return f"Workbench(home={str(self.settings.home)!r})"
