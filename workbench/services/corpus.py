"""What the services share: tables, models and one store per index, opened once per process."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime
from functools import wraps
from typing import TYPE_CHECKING, Concatenate, ParamSpec, Protocol, TypeVar

from workbench.errors import (
    SETUP_HINT,
    ConfigurationError,
    Conflict,
    ModelError,
    NotFound,
    StorageError,
    WorkbenchError,
)
from workbench.models.registry import BUILT_IN, find_thresholds
from workbench.runtime import pause_gc
from workbench.services.checks import check_key
from workbench.storage.citations import Citations
from workbench.storage.database import Database, dispose_engine
from workbench.storage.documents import Documents
from workbench.storage.indexes import Indexes
from workbench.storage.promotions import Promotions, Proposals, Rankers
from workbench.storage.replica import Replica
from workbench.storage.sources import Projects, Sources
from workbench.types import Index, ResolvedScope

if TYPE_CHECKING:
    from llama_index.core.base.embeddings.base import BaseEmbedding

    from workbench.ingestion.components import IndexComponents
    from workbench.ingestion.writing import IndexWriter
    from workbench.models.cross_encoder import CrossEncoder
    from workbench.models.encoder import Encoder
    from workbench.models.llm import Llm
    from workbench.retrieval.names import NamesCache
    from workbench.storage.jobs import EmbeddingLease
    from workbench.storage.store import PassageStore

DEFAULT_INDEX = "main"


# The first import of the retrieval framework, by one thread at a time
#
# LlamaIndex's packages import each other in cycles. If two threads import them at once, one sees a partly initialised
# module and fails with an ImportError. So every entry point (a store, a request, a search) starts with it.

_IMPORT_LOCK = threading.Lock()
_is_done = threading.Event()


def import_framework() -> None:
    """Import what every search needs; later calls do nothing."""
    if _is_done.is_set():
        return
    with _IMPORT_LOCK:
        with pause_gc():
            from workbench.retrieval import pipeline
            from workbench.retrieval.answering import synthesis
            from workbench.retrieval.retrievers import vector
        _ = (pipeline, synthesis, vector)
        _is_done.set()


class Corpus:
    """Tables, models and stores that the services share; thread-safe."""

    def __init__(
        self,
        database: Database,
        reader: Database,
        load_encoder: Callable[[str], Encoder],
        default_model: str,
        load_llm: Callable[[str], Llm | None] = lambda _: None,
        load_cross_encoder: Callable[[str], CrossEncoder | None] = lambda _: None,
    ) -> None:
        """Open the tables.

        Args:
            database: The primary, for writes.
            reader: Database that searches read: a replica, or the primary.
            load_encoder: Loads an encoder by its model's name; called once per name.
            default_model: Model of new indexes.
            load_llm: Returns an LLM by name; for "" the configured one, or None.
            load_cross_encoder: Returns a cross-encoder by name; for "" the configured one, or None.
        """
        self.database, self.reader = database, reader
        self.projects, self.sources = Projects(database), Sources(database)
        self.documents, self.indexes = Documents(database), Indexes(database)
        self.citations = Citations(database)
        self.promotions, self.rankers = Promotions(database), Rankers(database)
        self.proposals = Proposals(database)
        self._load_llm, self._load_cross_encoder = load_llm, load_cross_encoder
        self._load_encoder, self.default_model = load_encoder, default_model
        self._encoders: dict[str, Encoder] = {}
        self._cross_encoders: dict[str, CrossEncoder | None] = {}
        self._llms: dict[str, Llm | None] = {}
        self._stores: dict[str, PassageStore] = {}
        self._elsewhere: dict[str, Database] = {}  # of attached tables, by address
        self._names: dict[str, tuple[datetime | None, NamesCache]] = {}
        self._last_seen: dict[str | None, Index] = {}
        self._lock = threading.RLock()

    def encoder(self, name: str | None = None) -> Encoder:
        """Return a model by name, by default the one for new indexes. Raises ModelError if loading the model failed."""
        wanted = name or self.default_model
        with self._lock:
            if wanted not in self._encoders:
                self._encoders[wanted] = self._load_encoder(wanted)
            return self._encoders[wanted]

    def index_encoder(self, index: Index) -> Encoder:
        """Return the model that an index was built with.

        Raises:
            ModelError: Loading the model failed, or its dimensions have changed.
        """
        model = index.embedding_model
        try:
            encoder = self.encoder(model)
        except WorkbenchError as error:
            raise ModelError(
                f"The index {index.name!r} was built with the model {model!r}, which is unavailable "
                f"here: {error} Or use another index."
            ) from error
        if model in BUILT_IN and encoder.dimensions != index.dimensions:
            raise ModelError(
                f"The index {index.name!r} has {index.dimensions} dimensions, from an earlier version of the model "
                f"{model!r}, which now has {encoder.dimensions}; build a new one: workbench indexes create NEW "
                f"--model {model} --build, then: workbench indexes default NEW."
            )
        return encoder

    @property
    def llm(self) -> Llm | None:
        """The configured LLM, or None; raises ConfigurationError if its configuration is incomplete."""
        return self.find_llm()

    def find_llm(self, name: str = "") -> Llm | None:
        """Return an LLM by name, or the configured one; None if none is configured.

        Raises:
            ConfigurationError: Its name is invalid, or its package, key or URL is missing.
        """
        with self._lock:
            if name not in self._llms:
                self._llms[name] = self._load_llm(name)
            return self._llms[name]

    def cross_encoder(self, name: str = "") -> CrossEncoder | None:
        """Return a cross-encoder by name, or the configured one; None if none is configured.

        Raises:
            ConfigurationError: Its package, its key or its URL is missing.
        """
        with self._lock:
            if name not in self._cross_encoders:
                self._cross_encoders[name] = self._load_cross_encoder(name)
            return self._cross_encoders[name]

    def index(self, name: str | None = None) -> Index:
        """Return an index by name, or the default one, which is created on first use. Raises NotFound."""
        if name is not None:
            check_key("index", name)
        try:
            index = self.indexes.get(name)
        except NotFound:
            if name is not None:
                raise
            self._make_default()
            index = self.indexes.get()
        self._last_seen[name] = index
        return index

    def last_seen_index(self, name: str | None = None) -> Index:
        """Return the index that the last call of ``index`` returned; the caller must check whether it is current."""
        return self._last_seen.get(name) or self.index(name)

    def store(self, index: Index) -> PassageStore:
        """Return the store of an index, cached until the index's row changes."""
        from workbench.storage.store import PassageStore

        with self._lock:
            store = self._stores.get(index.name)
            if store is None or store.index != index:
                reader = self._index_reader(index.name)
                if index.attachment is not None:
                    from workbench.storage.attached import AttachedStore, AttachedTable, TableMap

                    table = AttachedTable(self.open_table(index), TableMap.parse(index.attachment))
                    store = AttachedStore(self.database, index, reader, table)
                else:
                    store = PassageStore(self.database, index, reader)
                if reader is self.reader:
                    self._stores[index.name] = store
            return store

    def open_table(self, index: Index) -> Database:
        """Return the database of an attached index, opened once per address.

        Raises:
            ConfigurationError: Its address is unknown, because the index was imported.
        """
        url = self.indexes.attachment_url(index.name)
        if url is None and index.attachment is not None and not index.attachment["is_ours"]:
            raise ConfigurationError(
                f"The address of the table of {index.name!r} is not part of an export; delete the index and attach it "
                "again."
            )
        return self.open_elsewhere(url)

    def open_elsewhere(self, url: str | None) -> Database:
        """Return the database at an address, opened once; our own one for None."""
        from workbench.storage.attached import CONNECT_TIMEOUT_S

        if url is None:
            return self.database
        with self._lock:
            if url not in self._elsewhere:
                self._elsewhere[url] = Database(url, pool_size=4, connect_timeout=CONNECT_TIMEOUT_S)
            return self._elsewhere[url]

    def names(self, index: Index) -> NamesCache:
        """Return the names of an index's documents, cached until the index is recreated."""
        from workbench.retrieval.names import NamesCache

        with self._lock:
            made_at, kept = self._names.get(index.name, (None, None))
            if kept is None or made_at != index.created_at:
                kept = NamesCache()
                self._names[index.name] = (index.created_at, kept)
            return kept

    def warm(self) -> None:
        """Load what the first search of the default index needs.

        The model and the document names load in parallel with LlamaIndex's import, because they run in native code and
        in the database while the import runs in the interpreter.

        Raises:
            ModelError: Loading the model failed.
        """
        index = self.index()
        with ThreadPoolExecutor(2, thread_name_prefix="warm") as pool:
            importing, reading = pool.submit(import_framework), pool.submit(self._read_names, index)
            self.index_encoder(index).encode_query("warm")
            importing.result()
            reading.result()

    def _read_names(self, index: Index) -> None:
        from workbench.storage.ranking import fetch_query_terms

        with self.store(index).reading() as connection:
            totals = fetch_query_terms(connection, index.name, "", ResolvedScope(), 0).totals
            self.names(index).table_in_scope(connection, index.name, totals)

    @property
    def replica(self) -> Replica | None:
        """The replica that searches read, or None."""
        return self.reader if isinstance(self.reader, Replica) else None

    @property
    def has_lost_its_replica(self) -> bool:
        """True while the replica is unavailable; a failed read may then succeed on the primary."""
        return self.replica is not None and self.replica.is_away

    def _index_reader(self, index: str) -> Database:
        """Return the database for searches of an index: the replica once it has the index's tables."""
        if self.reader is self.database:
            return self.database
        try:
            follows = Indexes(self.reader).bytes_on_disk(index) > 0
        except StorageError:  # a search reports it; writing needs no replica
            return self.reader
        return self.reader if follows else self.database

    def stores_alike(self, index: Index) -> list[PassageStore]:
        """Return the stores of other indexes with the same model, whose vectors can be reused."""
        others = (self.indexes.get(name) for name in self.indexes.of_model(index.embedding_model) if name != index.name)
        return [self.store(other) for other in others if other.dimensions == index.dimensions]

    def open_writer(self, index: Index, hands: EmbeddingLease | None = None) -> IndexWriter:
        """Return the writer that adds documents to an index; with ``hands``, other workers help to embed.

        Raises:
            Conflict: The index reads a table in place.
        """
        from workbench.ingestion.writing import IndexWriter

        if index.is_attached:
            raise Conflict(
                f"The index {index.name!r} reads a table in place, so documents cannot be added to it; name another "
                "index."
            )
        others, encoder = self.stores_alike(index), self.index_encoder(index)
        components = self.components(index)
        return IndexWriter(self.documents, self.indexes, self.store(index), encoder, others, hands, components)

    def components(self, index: Index) -> IndexComponents | None:
        """Return the parser and transformations that an index names; None if it names none.

        Raises:
            InvalidInput: A component could not be made.
            ConfigurationError: It needs an LLM, and none is configured.
            NotFound: A component was an object of another process.
        """
        from workbench.ingestion.components import IndexComponents, is_component

        if not (index.transformations or is_component(index.chunker)):
            return None

        offered = {"llm": self._make_framework_llm, "embed_model": lambda: self.embed_model(index)}
        return IndexComponents(index, self.indexes, offered)

    def _make_framework_llm(self) -> object:
        if self.llm is None:
            raise ConfigurationError(f"A component of the index needs an LLM; {SETUP_HINT}.")
        return self.llm.framework

    def embed_model(self, index: Index) -> BaseEmbedding:
        """Return the model of an index as a LlamaIndex embedding. Raises ModelError if loading the model failed."""
        import_framework()
        from workbench.models.llamaindex import WorkbenchEmbedding

        return WorkbenchEmbedding(self.index_encoder(index))

    def finish_index(self, index: Index, on_step: Callable[[str], None] | None = None) -> None:
        """Bring the graph and the thresholds of evidence up to date after passages were written.

        The thresholds of a model that is not built in are measured again when the passages have doubled. ``on_step``
        gets the steps, whose duration is not known.
        """
        if on_step is not None:
            on_step("finishing the index")
        self.store(index).maintain_graph(on_step)
        if index.is_attached:
            return
        counted = self.indexes.with_counts(index.name)
        measured = counted.nearness.get("passages", 0) if counted.nearness else 0
        is_known = (counted.nearness and counted.nearness.get("chosen")) or find_thresholds(index.embedding_model)
        if is_known or counted.passages_count < max(1, 2 * measured):
            return
        import_framework()
        from workbench.retrieval.evidence import measure_thresholds

        with suppress(ModelError):  # then only the words of a question decide
            found = measure_thresholds(self.store(counted), self.index_encoder(counted))
            if found is not None:
                self.indexes.set_nearness(index.name, found._asdict() | {"passages": counted.passages_count})

    def close(self) -> None:
        """Close every connection of the databases and stores."""

        for llm in filter(None, self._llms.values()):
            llm.close()
        for database in self._elsewhere.values():
            database.close()
        for database in {self.database, self.reader}:
            dispose_engine(database.url)
            database.close()

    def _make_default(self) -> None:
        from workbench.ingestion.chunking import DEFAULT_CHUNKER

        encoder = self.encoder()
        try:
            self.indexes.create(
                DEFAULT_INDEX,
                chunker=DEFAULT_CHUNKER,
                chunker_options={},
                embedding_model=encoder.name,
                dimensions=encoder.dimensions,
                is_default=True,
            )
        except Conflict:  # another process has just created it
            return


# Reads that are repeated on the primary if the replica they used has just been lost

Got = TypeVar("Got")
Arguments = ParamSpec("Arguments")


class _Service(Protocol):
    """A service that reads from a corpus."""

    _corpus: Corpus


ReadingService = TypeVar("ReadingService", bound=_Service)


def retry_on_primary(corpus: Corpus, read: Callable[[], Got]) -> Got:
    """Call ``read``; if the replica is lost during the call, repeat it on the primary."""
    try:
        return read()
    except StorageError:
        if not corpus.has_lost_its_replica:
            raise
    return read()


def retry_read(
    verb: Callable[Concatenate[ReadingService, Arguments], Got],
) -> Callable[Concatenate[ReadingService, Arguments], Got]:
    """Decorate a read-only method, so that it is repeated on the primary if the replica is lost."""

    @wraps(verb)
    def read_with_retry(service: ReadingService, /, *values: Arguments.args, **named: Arguments.kwargs) -> Got:
        corpus = service._corpus  # pyright: ignore[reportPrivateUsage]
        return retry_on_primary(corpus, lambda: verb(service, *values, **named))

    return read_with_retry
