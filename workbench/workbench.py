"""The composition root: builds everything from the settings and owns the shutdown."""

from __future__ import annotations

import functools
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypedDict, Unpack

from workbench.errors import InvalidInput, ModelError
from workbench.retrieval.options import Ask
from workbench.retrieval.strategies import COMPARED_STRATEGIES
from workbench.sample import articles_dir
from workbench.services.answers import Answer, AnswerService, AnswerStream
from workbench.services.archives import ArchiveService
from workbench.services.articles import ArticleService
from workbench.services.backups import BackupService
from workbench.services.citations import CitationService
from workbench.services.corpus import Corpus, import_framework
from workbench.services.crawls import CrawlService
from workbench.services.documents import Destination, DocumentService, IngestOptions
from workbench.services.explain import ExplainService
from workbench.services.folders import FolderWork
from workbench.services.health import HealthService, Status
from workbench.services.indexes import IndexService
from workbench.services.jobs import JobService
from workbench.services.page_images import PageImages
from workbench.services.promotions import PromotionService, RankerService
from workbench.services.search import DocumentSearch, Requests, SearchService
from workbench.services.sources import ProjectService, SourceService
from workbench.services.strategies import OwnStrategies
from workbench.services.workspaces import WorkspaceService
from workbench.settings import Settings, load_settings, make_environment, provider_variables
from workbench.storage.tool_calls import History, ToolCalls
from workbench.telemetry import export, record_content
from workbench.types import Comparison, IngestReport, OnProgress, Scope, SearchResult, ShouldStop

if TYPE_CHECKING:
    from langchain_core.retrievers import BaseRetriever as LangChainRetriever
    from llama_index.core.base.embeddings.base import BaseEmbedding
    from llama_index.core.node_parser import NodeParser
    from llama_index.core.query_engine import RetrieverQueryEngine
    from llama_index.core.retrievers import BaseRetriever as LlamaIndexRetriever
    from llama_index.core.vector_stores.types import BasePydanticVectorStore

    from workbench.jobs.runners import Runner, Runners
    from workbench.jobs.worker import WorkerHandle, WorkerOptions, WorkerProcess
    from workbench.models.cross_encoder import CrossEncoder
    from workbench.models.encoder import Encoder
    from workbench.models.llm import Llm
    from workbench.retrieval.explain import Explanation
    from workbench.retrieval.own import HaystackRetriever, Search

# The corpus described by the settings

BUILT_IN_RERANKER = "late-interaction"
APPLIED_STRATEGIES = "strategies.json"  # in the data folder: the strategies of files that were applied


def open_corpus(settings: Settings) -> Corpus:
    """Start or join the database and apply its migrations; start telemetry if the settings enable it.

    Raises:
        StorageError: The database is unreachable.
        ConfigurationError: An extra is missing.
    """
    record_content(settings.telemetry_content)
    if settings.telemetry:
        export()
    from workbench.storage.database import Database
    from workbench.storage.migrate import migrate
    from workbench.storage.postgres import forget_variables, start_embedded_server
    from workbench.storage.replica import Replica

    configured_url = settings.database_url.get_secret_value() if settings.database_url else None
    forget_variables()
    url = configured_url or start_embedded_server(settings.postgres_dir)
    migrate(url)
    revive = None if configured_url else functools.partial(start_embedded_server, settings.postgres_dir)
    database = Database(url, pool_size=settings.pool_size, revive=revive)
    replica = settings.read_database_url
    reader = Replica(replica.get_secret_value(), database, settings.pool_size) if replica else database
    return Corpus(
        database,
        reader,
        functools.partial(_load_encoder, settings),
        settings.embedding_model,
        functools.partial(_load_llm, settings),
        functools.partial(_load_cross_encoder, settings),
    )


def declare_strategies(settings: Settings) -> OwnStrategies:
    """Return the strategies, including those declared by packages and ``workbench.toml``, read when needed."""
    headers = settings.strategy_headers.get_secret_value() if settings.strategy_headers else ""
    config = settings.config_file or settings.home / "workbench.toml"
    return OwnStrategies(config, settings.home / APPLIED_STRATEGIES, settings.strategy_seconds, headers)


def _load_encoder(settings: Settings, name: str) -> Encoder:
    from workbench.models.registry import load_encoder

    return load_encoder(name, settings.models_dir, settings.embedding_threads, provider_variables(settings))


def _load_llm(settings: Settings, name: str) -> Llm | None:
    from workbench.models.llm import Llm, load_llm

    if not name and not settings.has_llm:
        return None
    key = settings.llm_api_key.get_secret_value() if settings.llm_api_key else ""
    if settings.llm_base_url and name in ("", settings.llm_model):  # the endpoint's own name, of whatever form
        return Llm(settings.llm_base_url, settings.llm_model, key, settings.llm_timeout)
    variables = provider_variables(settings)
    wanted = name or settings.llm_model
    configured = wanted == settings.llm_model  # others come from the parameters of a search, which a link may contain
    return load_llm(wanted, settings.llm_base_url, key, settings.llm_timeout, variables, any_url=configured)


def _load_cross_encoder(settings: Settings, name: str) -> CrossEncoder | None:
    from workbench.models.cross_encoder import load_cross_encoder

    wanted = name or settings.reranker
    if wanted == BUILT_IN_RERANKER:
        return None
    configured = wanted == settings.reranker  # others come from the parameters of a search, which a link may contain
    return load_cross_encoder(wanted, settings.embedding_threads, provider_variables(settings), any_url=configured)


TRIED_MODELS = ("llm", "embedding", "reranker")


def try_model(settings: Settings, part: str) -> str:
    """Use a model of the settings once, and return a sentence on its result and time.

    Args:
        settings: The settings, which may differ from those of an open workbench.
        part: One of ``TRIED_MODELS``.

    Raises:
        ConfigurationError: A name is invalid, or a package, key or URL is missing.
        ModelError: The model failed, or ranks an unrelated text first.
    """
    import_framework()  # before any model imports parts of it, next to another thread
    began = time.perf_counter()
    if part == "llm":
        if (result := _try_llm(settings)) is None:
            return "No language model is set: answers are cited extracts."
    elif part == "embedding":
        vector = _load_encoder(settings, settings.embedding_model).encode_query("Does the model answer?").vector
        result = f"{settings.embedding_model} returned {len(vector):,} dimensions"
    else:
        reranker = _load_cross_encoder(settings, "")
        if reranker is None:
            return f"{BUILT_IN_RERANKER} is built in: it compares word vectors of the embedding model."
        texts = ("A tide gauge records the level of the sea.", "Knead the dough, let it rise, and bake it.")
        good, bad = reranker.scores("What does a tide gauge record?", texts)
        if good <= bad:
            raise ModelError(
                f"The reranker {reranker.name!r} scores an unrelated text {bad:.3f} and the matching one {good:.3f}; "
                "use another model."
            )
        result = f"{reranker.name} scored the matching text {good:.3f} and an unrelated one {bad:.3f}"
    return f"{result} ({(time.perf_counter() - began) * 1000:,.0f} ms)."


def _try_llm(settings: Settings) -> str | None:
    from workbench.models.llm import LocalLlm

    llm = _load_llm(settings, "")
    if llm is None:
        return None
    try:
        reply = " ".join(llm.complete("Answer with one word.", "What is the capital of France?").split())
    finally:
        if isinstance(llm, LocalLlm):
            llm.close()
    return f"{llm.name} replied {reply[:60]!r}"


class SearchOptions(TypedDict, total=False):
    """Further options of a search, as in ``Workbench.search``."""

    scope: Scope | None
    index: str | None
    parameters: Mapping[str, object] | None


def _make_ask(
    strategy: str | None,
    limit: int,
    scope: Scope | None = None,
    index: str | None = None,
    parameters: Mapping[str, object] | None = None,
    history: Sequence[str] = (),
) -> Ask:
    return Ask(strategy, limit, scope or Scope(), index, parameters or {}, history=history)


class Workbench:
    """One corpus and its operations; open it with ``Workbench.open()``.

    It can be used from any thread and from a running event loop. Several processes can share one database.
    """

    def __init__(self, settings: Settings, corpus: Corpus, *, embedded: bool) -> None:
        """Use ``Workbench.open``."""
        self.settings = settings
        self._worker: WorkerHandle | None = None
        self.worker_process: WorkerProcess | None = None
        self.corpus, self.pages = corpus, PageImages(corpus)
        self.strategies = declare_strategies(settings)
        self.requests = Requests(corpus, self.pages.of_passage)
        self.search_service = SearchService(corpus, self.requests)
        self.indexes = IndexService(corpus)
        self.sources = SourceService(corpus, self.indexes)
        self.documents = DocumentService(corpus, self.sources, self.indexes)
        self.document_search = DocumentSearch(corpus, self.requests, self.search_service)
        self.tool_calls = ToolCalls(corpus.database)
        self.history = History(corpus.database)
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
        self.jobs = JobService(corpus, self.sources)
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
        """Open the workbench: start or join the database and apply its migrations.

        Arguments override the environment. Models load on first use.

        Raises:
            ConfigurationError: A setting is invalid.
            StorageError: The database is unreachable.
        """
        chosen = settings or load_settings(home=home, database_url=database_url)
        return cls(chosen, open_corpus(chosen), embedded=not chosen.database_url)

    def work(self, further: Runners | None = None) -> WorkerHandle:
        """Run jobs in this process until the workbench is closed; a second call returns the same worker.

        Args:
            further: Runners for additional kinds of jobs, such as ``evals.background.runners``.

        Raises:
            StorageError: The queue is unreachable.
        """
        if self._worker is None or not self._worker.is_alive:
            self._worker = self.start_worker(further)
        return self._worker

    def start_worker_process(self) -> None:
        """Run a worker process alongside this one until the workbench is closed; it starts when jobs are queued."""
        from workbench.jobs.worker import WorkerProcess

        if self.worker_process is None:
            command = [sys.executable, "-m", "workbench.cli", "worker", "--until-input-ends"]
            self.worker_process = WorkerProcess(command, make_environment(self.settings), self.jobs.table)
            self.worker_process.start()

    def start_worker(self, further: Runners | None = None, **options: Unpack[WorkerOptions]) -> WorkerHandle:
        """Start a worker that the caller stops.

        Args:
            further: Runners for additional kinds of jobs.
            options: Options of ``workbench.jobs.worker.start_worker``.

        Raises:
            StorageError: The queue is unreachable.
        """
        from workbench.jobs.worker import start_worker

        return start_worker(self.jobs.table, self.jobs.queue, {**self.runners(), **(further or {})}, **options)

    def runners(self) -> dict[str, Runner]:
        """Return the runners of the built-in kinds of jobs: ingest, index_build, crawl."""
        from workbench.jobs.runners import make_runners

        folders = {"archive": self.archives.open_mirror, "articles": self.articles.open_mirror}
        return make_runners(
            self.sources, self.documents, self.workspaces, self.jobs.table, self.indexes, self.crawls, folders
        )

    def close(self, *, waits: bool = True) -> None:
        """Return running jobs to the queue and close all connections.

        Args:
            waits: False to let the worker process finish on its own, shortly after this one.
        """
        if self.worker_process is not None:
            self.worker_process.stop(waits=waits)
            self.worker_process = None
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

    # Operations for notebooks

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
        """Read files and folders into a source, with a progress bar unless ``on_progress`` replaces it.

        Args:
            paths: Files, folders or zip archives.
            source: Id or title; created if no source has that title. By default named after the path.
            project: Id or title of the project of a new source.
            folder: Name of a folder in that project.
            tags: Tags to add to the source.
            index: Index to fill; the default index and all promoted ones if None.
            on_progress: Called with each ``Progress``.
            should_stop: Polled between documents; return True to stop.

        Raises:
            InvalidInput: None of the paths exists.
            NotFound: No such project, folder or index.
            Cancelled: ``should_stop`` returned True; documents stored so far are kept.
        """
        from workbench.formatting import progress_bar

        if not isinstance(paths, str | Path | Iterable):
            raise InvalidInput(f"Invalid path {paths!r}: expected str or Path.")
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
        history: Sequence[str] = (),
    ) -> SearchResult:
        """Return the best passages for a query, best first.

        Args:
            query: Question or keywords.
            strategy: Name of a strategy, or NAME@INDEX; by default the one promoted for the scope.
            limit: Maximum number of passages, 1 to 200.
            scope: Part of the corpus to search; everything if None.
            index: Index to search; the default index if None.
            parameters: Parameters of the strategy, by name.
            history: Earlier turns of the conversation, oldest first: question, answer, question, ...

        Raises:
            InvalidInput: The query is empty, or the strategy or a parameter is unknown.
            ScopeError: The scope contains an unknown name.
        """
        return self.search_service.search(query, _make_ask(strategy, limit, scope, index, parameters, history))

    def compare(
        self,
        query: str,
        strategies: Sequence[str] = COMPARED_STRATEGIES,
        limit: int = 10,
        scope: Scope | None = None,
        *,
        index: str | None = None,
        parameters: Mapping[str, Mapping[str, object]] | None = None,
        history: Sequence[str] = (),
    ) -> Comparison:
        """Run one query with several strategies, side by side.

        Args:
            query: Question or keywords.
            strategies: Names of strategies, each NAME or NAME@INDEX.
            limit: Maximum number of passages for each strategy, 1 to 200.
            scope: Part of the corpus to search; everything if None.
            index: Index to search; the default index if None.
            parameters: Parameters by strategy and name.
            history: Earlier turns of the conversation, as in ``search``.

        Raises:
            InvalidInput: The query is empty, or a strategy or parameter is unknown.
            ScopeError: The scope contains an unknown name.
        """
        ask = _make_ask(None, limit, scope, index, history=history)
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
        history: Sequence[str] = (),
    ) -> Answer | AnswerStream:
        """Answer a question with numbered citations, using the configured LLM, or extracts if there is none.

        Args:
            query: Question to answer.
            strategy: Name of a strategy, or NAME@INDEX; by default the one promoted for the scope.
            limit: Maximum number of passages to answer from, 1 to 20.
            scope: Part of the corpus to search; everything if None.
            stream: True to return an iterator over the pieces, whose ``answer()`` returns the complete answer.
            index: Index to search; the default index if None.
            parameters: Parameters of the strategy, by name.
            history: Earlier turns of the conversation, as in ``search``.

        Raises:
            InvalidInput: The query is empty, or the strategy or a parameter is unknown.
            ScopeError: The scope contains an unknown name.
            ModelError: The LLM failed in the middle of an answer.
        """
        answering = self.answers.ask(query, _make_ask(strategy, limit, scope, index, parameters, history))
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
        history: Sequence[str] = (),
        elsewhere: bool = True,
    ) -> Explanation:
        """Explain the rank of a passage or document in a search, or at which stage it was dropped.

        Args:
            query: Question or keywords.
            passage_id: Passage to explain; give either this or ``document_id``.
            document_id: Document to explain, by its best passage.
            strategy: Name of a strategy, or NAME@INDEX; by default the one promoted for the scope.
            limit: Number of passages that count as found, 1 to 200.
            scope: Part of the corpus to search; everything if None.
            index: Index to search; the default index if None.
            parameters: Parameters of the strategy, by name.
            history: Earlier turns of the conversation, as in ``search``.
            elsewhere: Also rank it with every other strategy that needs no additional model.

        Raises:
            InvalidInput: The query is empty, or the strategy or a parameter is unknown.
            ScopeError: The scope contains an unknown name.
            NotFound: No such passage or document.
        """
        ask = _make_ask(strategy, limit, scope, index, parameters, history)
        return self.explaining.explain(query, ask, passage_id=passage_id, document_id=document_id, elsewhere=elsewhere)

    def query_engine(
        self, strategy: str | None = None, limit: int = 10, **options: Unpack[SearchOptions]
    ) -> RetrieverQueryEngine:
        """Return the LlamaIndex query engine of a strategy.

        Raises:
            InvalidInput: The strategy or a parameter is unknown.
            ScopeError: The scope contains an unknown name.
        """
        return self.search_service.query_engine(_make_ask(strategy, limit, **options))

    def retriever(
        self, strategy: str | None = None, limit: int = 10, **options: Unpack[SearchOptions]
    ) -> LlamaIndexRetriever:
        """Return a strategy as a LlamaIndex retriever; the arguments and errors are those of ``search``."""
        from workbench.retrieval.own import make_llama_index_retriever

        return make_llama_index_retriever(self._bind_search(_make_ask(strategy, limit, **options)))

    def langchain_retriever(
        self, strategy: str | None = None, limit: int = 10, **options: Unpack[SearchOptions]
    ) -> LangChainRetriever:
        """Return a strategy as a LangChain retriever; the arguments and errors are those of ``search``.

        Raises:
            ConfigurationError: langchain-core is not installed.
        """
        from workbench.retrieval.own import make_langchain_retriever

        return make_langchain_retriever(self._bind_search(_make_ask(strategy, limit, **options)))

    def haystack_retriever(
        self, strategy: str | None = None, limit: int = 10, **options: Unpack[SearchOptions]
    ) -> HaystackRetriever:
        """Return a strategy as a Haystack component; the arguments and errors are those of ``search``.

        Its inputs are ``query`` and ``top_k`` (the limit by default), its output is ``documents``.

        Raises:
            ConfigurationError: haystack-ai is not installed.
        """
        from workbench.retrieval.own import make_haystack_retriever

        return make_haystack_retriever(self._bind_search(_make_ask(strategy, limit, **options)))

    def _bind_search(self, ask: Ask) -> Search:
        """Return a search with these options, which are checked now."""
        self.requests.make(ask)
        return lambda question, wanted: self.search_service.search(
            question, ask if wanted is None else replace(ask, limit=wanted)
        )

    def node_parser(
        self, chunker: str = "structure", options: Mapping[str, object] | None = None, *, model: str | None = None
    ) -> NodeParser:
        """Return a chunker as a LlamaIndex node parser.

        Args:
            chunker: Name of a chunker.
            options: Its parameters.
            model: Embedding model whose tokens are counted and whose limit is kept; the configured one if None.

        Raises:
            InvalidInput: There is no such chunker or option.
        """
        import_framework()
        from workbench.ingestion.components import make_node_parser

        return make_node_parser(chunker, options or {}, self.corpus.encoder(model))

    def vector_store(self, index: str | None = None) -> BasePydanticVectorStore:
        """Return the passages of an index as a LlamaIndex vector store; the default index if None.

        Raises:
            NotFound: No such index.
        """
        import_framework()
        return self.corpus.store(self.corpus.index(index)).for_llama_index

    def embed_model(self, index: str | None = None) -> BaseEmbedding:
        """Return the model of an index as a LlamaIndex embedding; that of the default index if None.

        Raises:
            NotFound: No such index.
            ModelError: Loading the model failed.
        """
        return self.corpus.embed_model(self.corpus.index(index))

    def status(self) -> Status:
        """Return counts, indexes, sizes and versions."""
        return self.health.status()

    def warm(self) -> None:
        """Load the default model and the modules that a search needs, so that the first search is fast."""
        self.search_service.warm()

    def __repr__(self) -> str:
        return f"Workbench(home={str(self.settings.home)!r})"
