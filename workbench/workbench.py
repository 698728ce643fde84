"""The composition root: builds everything from the settings and owns the shutdown."""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from workbench.errors import InvalidInput
from workbench.retrieval.options import Ask
from workbench.retrieval.strategies import COMPARED
from workbench.sample import articles_dir
from workbench.services.answers import Answer, AnswerService, AnswerStream
from workbench.services.archives import ArchiveService
from workbench.services.articles import ArticleService
from workbench.services.backups import BackupService
from workbench.services.citations import CitationService
from workbench.services.corpus import Corpus
from workbench.services.crawls import CrawlService
from workbench.services.documents import Destination, DocumentService, IngestOptions
from workbench.services.explain import ExplainService
from workbench.services.folders import FolderWork
from workbench.services.health import HealthService, Status
from workbench.services.indexes import IndexService
from workbench.services.jobs import JobService
from workbench.services.page_images import PagePictures
from workbench.services.promotions import PromotionService, RankerService
from workbench.services.search import DocumentSearch, Requests, SearchService
from workbench.services.sources import ProjectService, SourceService
from workbench.services.workspaces import WorkspaceService
from workbench.settings import Settings, load_settings
from workbench.storage.tool_calls import ToolCalls
from workbench.telemetry import export
from workbench.types import Comparison, IngestReport, OnProgress, Scope, SearchResult, ShouldStop

if TYPE_CHECKING:
    from typing import Unpack

    from llama_index.core.query_engine import RetrieverQueryEngine

    from workbench.jobs.runners import Runner, Runners
    from workbench.jobs.worker import WorkerHandle, WorkerOptions, WorkerProcess
    from workbench.models.cross_encoder import CrossEncoder
    from workbench.models.encoder import Encoder
    from workbench.models.llm import Llm
    from workbench.retrieval.explain.explanation import Explanation

# --- The corpus that the settings describe: its database, the replica that is read, and the models, loaded when ---

BUILT_IN_RERANKER = "late-interaction"


def open_corpus(settings: Settings) -> Corpus:
    """Start or join the database and bring it up to date; begin telemetry where it is asked for.

    Raises:
        StorageError: the database cannot be reached. ConfigurationError: an extra is missing.
    """
    if settings.telemetry:
        export()
    from workbench.storage.database import Database
    from workbench.storage.migrate import migrate
    from workbench.storage.postgres import embedded_url, forget_variables
    from workbench.storage.replica import Replica

    configured_url = settings.database_url.get_secret_value() if settings.database_url else None
    forget_variables()
    url = configured_url or embedded_url(settings.postgres_dir)
    migrate(url)
    revive = None if configured_url else functools.partial(embedded_url, settings.postgres_dir)
    database = Database(url, pool_size=settings.pool_size, revive=revive)
    replica = settings.read_database_url
    reader = Replica(replica.get_secret_value(), database, settings.pool_size) if replica else database
    return Corpus(
        database,
        reader,
        functools.partial(_encoder, settings),
        settings.embedding_model,
        functools.partial(_llm, settings),
        functools.partial(_cross_encoder, settings),
    )


def _encoder(settings: Settings, name: str) -> Encoder:
    from workbench.models.registry import load_encoder

    return load_encoder(name, settings.models_dir, settings.embedding_threads)


def _llm(settings: Settings) -> Llm | None:
    from workbench.models.llm import Llm
    from workbench.models.local_llm import LocalLlm

    if not settings.has_llm:
        return None
    if not settings.llm_base_url:
        return LocalLlm(settings.llm_model, settings.llm_timeout)
    key = settings.llm_api_key.get_secret_value() if settings.llm_api_key else ""
    return Llm(settings.llm_base_url, settings.llm_model, key, settings.llm_timeout)


def _cross_encoder(settings: Settings) -> CrossEncoder | None:
    from workbench.models.cross_encoder import load_cross_encoder

    name = settings.reranker
    return None if name == BUILT_IN_RERANKER else load_cross_encoder(name, settings.embedding_threads)


class Workbench:
    """One corpus and everything that can be done with it; open it with ``Workbench.open()``.

    May be used from any thread, from a running event loop, and by several processes at once on one database.
    """

    def __init__(self, settings: Settings, corpus: Corpus, *, embedded: bool) -> None:
        """Use ``Workbench.open``."""
        self.settings = settings
        self._worker: WorkerHandle | None = None
        self.beside: WorkerProcess | None = None
        self.corpus, self.pages = corpus, PagePictures(corpus)
        self.requests = Requests(corpus, self.pages.of_passage)
        self.search_service = SearchService(corpus, self.requests)
        self.indexes = IndexService(corpus)
        self.sources = SourceService(corpus, self.indexes)
        self.documents = DocumentService(corpus, self.sources, self.indexes)
        self.document_search = DocumentSearch(corpus, self.requests, self.search_service)
        self.tool_calls = ToolCalls(corpus.database)
        self.projects, self.citations = ProjectService(corpus), CitationService(corpus)
        self.articles = ArticleService(
            corpus, self.sources, self.documents, self.document_search, settings.articles_dir or articles_dir()
        )
        self.archives = ArchiveService(
            corpus, self.sources, self.documents, self.requests, self.citations, settings.archives_dir
        )
        place = str(settings.postgres_dir) if embedded else corpus.database.place
        self.workspaces = WorkspaceService(corpus, self.sources, self.documents, self.document_search, place)
        self.promotions, self.rankers = PromotionService(corpus, self.requests), RankerService(corpus)
        self.answers = AnswerService(corpus, self.requests)
        self.explaining = ExplainService(corpus, self.requests, self.search_service)
        self.jobs = JobService(corpus)
        self.folder_work = FolderWork(self.jobs)
        self.crawls = CrawlService(
            corpus,
            self.sources,
            self.documents,
            self.jobs,
            allow_hosts=settings.crawl_allow_hosts.split(","),
            browser_url=settings.crawl_browser_url,
        )
        self.backups, self.health = BackupService(corpus), HealthService(corpus, settings.home, embedded)

    @classmethod
    def open(
        cls, home: Path | str | None = None, database_url: str | None = None, *, settings: Settings | None = None
    ) -> Self:
        """Open the workbench: start or join the database, bring it up to date.

        Arguments win over the environment. Models load when they are first used.

        Raises:
            ConfigurationError: a setting is wrong.
            StorageError: the database cannot be reached.
        """
        chosen = settings or load_settings(home=home, database_url=database_url)
        return cls(chosen, open_corpus(chosen), embedded=not chosen.database_url)

    def work(self, further: Runners | None = None) -> WorkerHandle:
        """Run jobs in this process until the workbench is closed; a second call returns the same worker.

        ``further`` are runners of kinds of jobs that others define (``evals.background.runners``).

        Raises:
            StorageError: the queue cannot be reached.
        """
        if self._worker is None or not self._worker.is_alive:
            self._worker = self.start_worker(further)
        return self._worker

    def work_beside(self) -> None:
        """Keep a process beside this one that runs jobs as soon as there are some, until the workbench is closed."""
        from workbench.jobs.worker import WorkerProcess
        from workbench.settings import environment_of

        if self.beside is None:
            command = [sys.executable, "-m", "workbench.cli", "worker", "--until-input-ends"]
            self.beside = WorkerProcess(command, environment_of(self.settings), self.jobs.table.any_waiting)
            self.beside.start()

    def start_worker(self, further: Runners | None = None, **options: Unpack[WorkerOptions]) -> WorkerHandle:
        """Start a worker of the caller's own, who stops it; ``options`` are those of ``workbench.jobs.worker``.

        Raises:
            StorageError: the queue cannot be reached.
        """
        from workbench.jobs.worker import start_worker

        return start_worker(self.jobs.table, self.jobs.queue, {**self.runners(), **(further or {})}, **options)

    def runners(self) -> dict[str, Runner]:
        """Return the runners of the workbench's own kinds of jobs: ingest, index_build, crawl."""
        from workbench.jobs.runners import own_runners

        folders = {"archive": self.archives.mirrored, "articles": self.articles.mirrored}
        return own_runners(
            self.sources, self.documents, self.workspaces, self.jobs.table, self.indexes, self.crawls, folders
        )

    def close(self, *, waits: bool = True) -> None:
        """Give running jobs back to the queue, and every connection.

        Without ``waits`` the worker's process gives its jobs back and ends by itself, a moment after this one.
        """
        if self.beside is not None:
            self.beside.stop(waits=waits)
            self.beside = None
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
        should_stop: ShouldStop | None = None,
    ) -> IngestReport:
        """Read files and folders into a source, with a progress bar unless ``on_progress`` takes its place.

        Raises:
            InvalidInput: none of the paths exists. NotFound: no such project, folder or index.
        """
        from workbench.formatting import progress_bar

        if not isinstance(paths, str | Path | Iterable):
            raise InvalidInput(f"A path cannot be {paths!r}; give a text or a Path.")
        places = [paths] if isinstance(paths, str | Path) else list(paths)
        with progress_bar("Ingest", on_progress) as show:
            destination = Destination(source=source, project=project, folder=folder, tags=tags)
            options = IngestOptions(index=index, on_progress=show, should_stop=should_stop)
            return self.documents.ingest(places, destination, options)

    def search(
        self,
        query: str,
        strategy: str | None = None,
        limit: int = 10,
        scope: Scope | None = None,
        *,
        index: str | None = None,
        parameters: Mapping[str, object] | None = None,
    ) -> SearchResult:
        """Return the best passages for a query, best first.

        Raises:
            InvalidInput: an empty query, unknown strategy or parameter. ScopeError: an unknown name in the scope.
        """
        return self.search_service.search(query, Ask(strategy, limit, scope or Scope(), index, parameters or {}))

    def compare(
        self,
        query: str,
        strategies: Sequence[str] = COMPARED,
        limit: int = 10,
        scope: Scope | None = None,
        *,
        index: str | None = None,
        parameters: Mapping[str, Mapping[str, object]] | None = None,
    ) -> Comparison:
        """Answer one query by several strategies, side by side. Raises what ``search`` raises."""
        ask = Ask(None, limit, scope or Scope(), index)
        return self.search_service.compare(query, strategies, ask, parameters=parameters)

    def ask(
        self,
        query: str,
        strategy: str | None = None,
        limit: int = 6,
        scope: Scope | None = None,
        *,
        stream: bool = False,
        index: str | None = None,
        parameters: Mapping[str, object] | None = None,
    ) -> Answer | AnswerStream:
        """Answer a question with numbered citations: by the configured LLM, without one by cited extracts.

        With ``stream`` an iterator over the pieces comes back, whose ``answer()`` is the whole. Raises what
        ``search`` raises, and ModelError where the LLM fails in the middle of an answer.
        """
        answering = self.answers.ask(query, Ask(strategy, limit, scope or Scope(), index, parameters or {}))
        return answering if stream else answering.answer()

    def explain(
        self,
        query: str,
        passage_id: str | None = None,
        document_id: str | None = None,
        *,
        strategy: str | None = None,
        limit: int = 10,
        scope: Scope | None = None,
        index: str | None = None,
        parameters: Mapping[str, object] | None = None,
        elsewhere: bool = True,
    ) -> Explanation:
        """Say why a passage or document stands where it stands in a search, or where it fell out.

        ``elsewhere`` also ranks it by every other strategy that needs no further model. Raises what ``search`` raises,
        and NotFound where there is no such passage or document.
        """
        ask = Ask(strategy, limit, scope or Scope(), index, parameters or {})
        return self.explaining.explain(query, ask, passage_id=passage_id, document_id=document_id, elsewhere=elsewhere)

    def query_engine(
        self,
        strategy: str | None = None,
        limit: int = 10,
        scope: Scope | None = None,
        *,
        index: str | None = None,
        parameters: Mapping[str, object] | None = None,
    ) -> RetrieverQueryEngine:
        """Return a LlamaIndex query engine of a strategy, to build on. Raises what ``search`` raises."""
        return self.search_service.query_engine(Ask(strategy, limit, scope or Scope(), index, parameters or {}))

    def status(self) -> Status:
        """Return counts, indexes, sizes and versions."""
        return self.health.status()

    def warm(self) -> None:
        """Load the default model and what a search imports, so that the first one is as fast as the others."""
        self.search_service.warm()

    def __repr__(self) -> str:
        return f"Workbench(home={str(self.settings.home)!r})"
