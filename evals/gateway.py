"""How evaluation reaches the workbench: a test set's corpus is a separate source with separate indexes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from statistics import fmean

from evals.test_set import WHOLE_CORPUS, FolderCorpus, MeasuredScope, Question, StoredCorpus, TestSet
from workbench.errors import Cancelled, Conflict, NotFound, ScopeError, StorageError, UnreadableDocument
from workbench.retrieval.options import Ask
from workbench.retrieval.ranker import FeatureSheet
from workbench.services.checks import check_title, clean_tags
from workbench.services.corpus import retry_on_primary
from workbench.services.documents import IngestOptions
from workbench.services.strategies import read_configuration_file
from workbench.storage.database import Row, new_id
from workbench.storage.evaluation import ExperimentTables, NewRun, RunTables, TestSetTables
from workbench.storage.passages import fetch_documents_in_scope
from workbench.storage.tool_calls import ToolCall as ToolCall
from workbench.types import (
    CLUSTER,
    DATASET,
    Document,
    Index,
    OnProgress,
    PageSpan,
    ResolvedScope,
    Scope,
    ShouldStop,
    Source,
)
from workbench.workbench import Workbench

# Documents and queries of the corpus

MAX_TEXTS_READ = 300  # questions whose relevant documents are read to compare their words


def list_documents(wb: Workbench, scope: ResolvedScope, index: str | None = None) -> list[Document]:
    """Return the documents that a search of a scope can find, without their texts."""
    documents = wb.documents.list()
    if scope.is_everything:
        return documents
    chosen = wb.corpus.index(index)
    with wb.corpus.store(chosen).reading() as connection:
        found = set(fetch_documents_in_scope(connection, chosen.name, scope))
    return [document for document in documents if document.id in found]


def describe_scope(wb: Workbench, scope: Scope) -> MeasuredScope:
    """Return a scope by ids, with their titles. Raises ScopeError if it names something that does not exist."""
    wb.requests.resolve(scope)
    if scope == Scope():
        return WHOLE_CORPUS
    titles: dict[str, str] = {}
    if scope.project:
        project = wb.projects.get(scope.project)
        titles[project.id] = project.title
        scope = replace(scope, project=project.id)
        if scope.folder:
            folder = next(one for one in wb.projects.folders(project.id) if scope.folder in (one.id, one.name))
            titles[folder.id] = folder.name
            scope = replace(scope, folder=folder.id)
    if scope.sources is not None:
        sources = [wb.sources.get(key) for key in scope.sources]
        titles |= {source.id: source.title for source in sources}
        scope = replace(scope, sources=tuple(source.id for source in sources))
    titles |= {key: wb.documents.get(key).title for key in scope.documents or ()}
    return MeasuredScope(scope, titles)


def resolve_scope(wb: Workbench, measured: MeasuredScope) -> ResolvedScope:
    """Resolve a test set's scope. Raises ScopeError if a part of it has been deleted."""
    if lost := describe_deleted(wb, measured):
        raise ScopeError(
            f"The scope of this test set included {lost}, now deleted, so it can no longer be searched; "
            "create a new test set over existing documents."
        )
    return wb.requests.resolve(measured.scope)


def describe_deleted(wb: Workbench, measured: MeasuredScope) -> str:
    """Return the parts of a scope that were deleted, such as "the project Shop"; "" if nothing was deleted."""
    scope = measured.scope
    if measured.is_everything:
        return ""
    lost: list[str] = []
    projects = {project.id for project in wb.projects.list()} if scope.project else set[str]()
    if scope.project and scope.project not in projects:
        lost.append(f"the project {measured.title(scope.project)}")
    elif scope.project and scope.folder and scope.folder not in {one.id for one in wb.projects.folders(scope.project)}:
        lost.append(f"the folder {measured.title(scope.folder)}")
    sources = set(wb.sources.ids()) if scope.sources else set[str]()
    lost += [f"the source {measured.title(key)}" for key in scope.sources or () if key not in sources]
    documents = {document.id for document in wb.documents.list()} if scope.documents else set[str]()
    lost += [f"the document {measured.title(key)}" for key in scope.documents or () if key not in documents]
    return " and ".join(lost)


# Features for training rankers


def extract_features(
    wb: Workbench, question: Question, corpus: IndexedCorpus
) -> tuple[FeatureSheet, dict[str, tuple[int, ...]]] | None:
    """Search a test set's corpus with the strategy ``learned``; None if nothing is found.

    Returns the features of the candidates, and their rows by fixed strategy, best first. Raises what a search raises.
    """
    from workbench.retrieval.name_matching import restrict_to_named
    from workbench.retrieval.pipeline import run_search
    from workbench.retrieval.stages.stage import RETRIEVED_STEP

    ask = Ask("learned", scope=corpus.scope, index=corpus.index.name, history=question.turns)

    def extract() -> tuple[FeatureSheet, dict[str, tuple[int, ...]]] | None:
        query = restrict_to_named(wb.requests.make(ask).question(question.text))
        passed = query.request.trace.passed = {}
        run_search(query)
        if query.sheet is None:
            return None
        rows = {key: row for row, key in enumerate(query.sheet.ids)}
        steps = {"hybrid": RETRIEVED_STEP, "rerank": CLUSTER}
        orders = {name: tuple(rows[key] for key in passed[step] if key in rows) for name, step in steps.items()}
        return query.sheet, orders

    return retry_on_primary(wb.corpus, extract)


@dataclass(frozen=True, slots=True)
class IndexedCorpus:
    """The index in which a test set is searched; ``keys`` maps document ids to the keys used by judgments.

    ``documents`` is the number indexed, and ``failures`` describes the others; ``pages`` returns a document's pages,
    given its id. ``scope`` narrows every search; the default is the whole index.
    """

    index: Index
    corpus_hash: str
    documents: int
    keys: Mapping[str, str]
    failures: tuple[str, ...] = ()
    pages: Callable[[str], tuple[PageSpan, ...]] = field(default=lambda document_id: (), compare=False)
    scope: ResolvedScope = field(default_factory=ResolvedScope)

    @property
    def index_hash(self) -> str:
        """A hash of the chunking and embedding settings."""
        return hash_settings(self.index)

    @property
    def ids(self) -> dict[str, str]:
        """The document ids by the keys used by judgments; empty if judgments use ids."""
        return {key: document_id for document_id, key in self.keys.items()}

    def document_ids(self, keys: Iterable[str]) -> tuple[str, ...]:
        """Map document keys of judgments to ids; missing documents are omitted."""
        ids = self.ids
        return tuple(ids[key] for key in keys if key in ids) if ids else tuple(keys)

    def key(self, document_id: str) -> str:
        """Return the key of a document in judgments."""
        return self.keys.get(document_id, document_id)


def hash_settings(index: Index) -> str:
    """Hash the chunking and embedding settings of an index."""
    settings: list[object] = [index.chunker, sorted(index.chunker_options.items()), index.embedding_model]
    if index.attachment is not None:
        settings.append(index.attachment["content"])
    settings += [list(index.transformations)] if index.transformations else []
    return hashlib.sha256(json.dumps(settings).encode()).hexdigest()


def index_corpus(
    wb: Workbench,
    test_set: TestSet,
    like: str | None = None,
    *,
    on_progress: OnProgress | None = None,
    should_stop: ShouldStop | None = None,
) -> IndexedCorpus:
    """Index a test set's corpus with the chunker and model of the index ``like`` (default: the default index).

    An unchanged corpus is reused and a partial one completed. If no document of it
    can be read, nothing is kept.

    Raises:
        NotFound: No such index. Cancelled: ``should_stop`` returned True. UnreadableDocument: No document can be read.
        ScopeError: A part of the test set's scope has been deleted.
    """
    model = wb.corpus.index(like)
    corpus = test_set.corpus
    if corpus is None:
        scope = resolve_scope(wb, test_set.scope)
        if model.is_attached or wb.indexes.count_missing(model.name):
            wb.indexes.build(model.name, on_progress=on_progress, should_stop=should_stop)
        index = wb.corpus.indexes.with_counts(model.name)
        is_whole = test_set.scope.is_everything
        documents = index.documents_count if is_whole else len(list_documents(wb, scope, model.name))
        corpus_hash = hash_documents(wb, test_set.scope)
        return IndexedCorpus(index, corpus_hash, documents, {}, pages=make_page_lookup(wb), scope=scope)
    source_id = corpus.source_id if isinstance(corpus, StoredCorpus) else ensure_source(wb, test_set.name, corpus).id
    if model.is_attached:
        # Rows outside all documents of the test set are also found, and count as not relevant.
        stored = index_corpus(wb, test_set, on_progress=on_progress, should_stop=should_stop)
        attached = wb.indexes.attach_for_corpus(model, source_id)
        synced = wb.indexes.sync(attached.name, on_progress=on_progress, should_stop=should_stop)
        return replace(stored, index=synced)
    index = _ensure_index(wb, source_id, corpus.hash, model)
    failures: tuple[str, ...] = ()
    was_ready = index.status == "ready"
    if not was_ready:
        failures = _fill_index(wb, index, corpus, source_id, on_progress, should_stop)
    indexed = wb.corpus.documents.by_key(source_id, index.name)
    if was_ready and isinstance(corpus, FolderCorpus):
        missing = (item.key for item in corpus.documents if item.key not in indexed)
        failures = tuple(f"{key}: could not be read when the corpus was indexed." for key in missing)
    return IndexedCorpus(
        index=wb.corpus.indexes.with_counts(index.name),
        corpus_hash=corpus.hash,
        documents=len(indexed),
        keys={document.id: key for key, document in indexed.items()},
        failures=failures,
        pages=make_page_lookup(wb),
    )


def make_page_lookup(wb: Workbench) -> Callable[[str], tuple[PageSpan, ...]]:
    """Return a lookup of a document's pages by its id, each document is read once; empty for formats without pages."""

    @cache
    def pages(document_id: str) -> tuple[PageSpan, ...]:
        return tuple((page, start, end) for page, start, end in wb.corpus.documents.record(document_id).pages)

    return pages


def map_document_ids(wb: Workbench, test_set: TestSet) -> dict[str, str]:
    """Return {key used by judgments: document id}; empty if judgments use ids."""
    if not isinstance(test_set.corpus, StoredCorpus):
        return {}
    indexed = wb.corpus.documents.by_key(test_set.corpus.source_id, wb.corpus.index().name)
    return {key: document.id for key, document in indexed.items()}


def read_judged_texts(wb: Workbench, test_set: TestSet, ids: Mapping[str, str] | None = None) -> dict[str, list[str]]:
    """Return the relevant texts of each answerable question: judged spans, or whole documents.

    Args:
        ids: {key used by judgments: document id}; those of a stored test set if None. Deleted documents are left out.
    """
    ids = map_document_ids(wb, test_set) if ids is None else ids

    @cache
    def read(key: str) -> str:
        try:
            return wb.documents.get(ids.get(key, key)).text or ""
        except NotFound:
            return ""

    texts: dict[str, list[str]] = {}
    for question in test_set.answerable[:MAX_TEXTS_READ]:
        spans = test_set.spans.get(question.id)
        if spans:
            texts[question.id] = [span.quote or read(span.document)[span.start : span.end] for span in spans]
        else:
            relevant = [key for key, grade in test_set.qrels[question.id].items() if grade > 0]
            texts[question.id] = [read(key) for key in relevant]
    return texts


MAX_DOCUMENTS_SAMPLED = 20  # documents whose passages are read to estimate the size of a passage


def measure_passage_bytes(wb: Workbench, test_set: TestSet, like: str | None = None) -> float | None:
    """Return the mean bytes of a passage in some documents of a test set's index; None if there is no such index."""
    index, corpus = wb.corpus.index(like).name, test_set.corpus
    if corpus is None:
        ids = [document.id for document in list_documents(wb, resolve_scope(wb, test_set.scope), like)]
    else:
        title = _name_source(test_set.name, corpus.hash)
        sources = [one.id for one in wb.corpus.sources.list(source_type=DATASET) if one.title == title]
        source_id = corpus.source_id if isinstance(corpus, StoredCorpus) else next(iter(sources), "")
        index = _name_index(source_id, corpus.hash, wb.corpus.index(like))
        if index not in wb.corpus.indexes.of_dataset(source_id):
            return None
        ids = [document.id for document in wb.corpus.documents.by_key(source_id, index).values()]
    sampled = ids[:: max(1, len(ids) // MAX_DOCUMENTS_SAMPLED)]
    sizes = [len(hit.text.encode()) for key in sampled for hit in wb.documents.passages(key, index=index)]
    return fmean(sizes) if sizes else None


def _name_source(test_set: str, corpus_hash: str) -> str:
    return f"{test_set} {corpus_hash[:12]}"


def ensure_source(wb: Workbench, name: str, corpus: FolderCorpus) -> Source:
    """Return the source that holds a test set's documents, creating it if there is none."""
    title = _name_source(name, corpus.hash)
    for _ in range(2):
        for source in wb.corpus.sources.list(source_type=DATASET):
            if source.title == title:
                return source
        try:
            return wb.corpus.sources.create(title, source_type=DATASET, metadata={"corpus_hash": corpus.hash})
        except Conflict:  # another process has just created it
            continue
    raise Conflict(f"The corpus of {name!r} is being removed by another process; try again.")


def delete_corpus(wb: Workbench, source_id: str) -> None:
    """Delete a test set's documents with every index over them."""
    for name in wb.corpus.indexes.of_dataset(source_id):
        wb.corpus.indexes.drop(name)
    wb.corpus.sources.delete(source_id, [])


def _fill_index(
    wb: Workbench,
    index: Index,
    corpus: FolderCorpus | StoredCorpus,
    source_id: str,
    on_progress: OnProgress | None,
    should_stop: ShouldStop | None,
) -> tuple[str, ...]:
    """Ingest the documents, or chunk and embed those already stored; return what could not be read."""
    if isinstance(corpus, StoredCorpus):
        wb.indexes.build(index.name, on_progress=on_progress, should_stop=should_stop)
        return ()
    try:
        options = IngestOptions(index=index.name, on_progress=on_progress, should_stop=should_stop)
        report = wb.documents.ingest_items(source_id, corpus.documents, options)
    except Cancelled:
        raise
    except Exception:
        with suppress(StorageError):  # the first error is more informative
            _delete_if_empty(wb, source_id)
        raise
    if _delete_if_empty(wb, source_id) and report.failures:
        first = report.failures[0]
        raise UnreadableDocument(
            f"None of the {len(report.failures):,} documents could be read; the first, {first.path}: {first.error}"
        )
    wb.corpus.indexes.set_status(index.name, "ready")
    return tuple(f"{failure.path}: {failure.error}" for failure in report.failures)


def _delete_if_empty(wb: Workbench, source_id: str) -> bool:
    """Delete a corpus that has no documents, with its indexes; return whether it was deleted."""
    empty = wb.corpus.documents.count(source_id=source_id) == 0
    if empty:
        delete_corpus(wb, source_id)
    return empty


def hash_documents(wb: Workbench, measured: MeasuredScope) -> str:
    """Hash the user's own documents in a scope, and the scope; adding, changing or deleting one changes the hash.

    Raises:
        ScopeError: A part of the scope has been deleted.
    """
    scope = resolve_scope(wb, measured)
    digest = hashlib.sha256()
    for document in sorted(list_documents(wb, scope), key=lambda item: item.id):
        digest.update(f"{document.id} {document.content_hash}\n".encode())
    if not measured.is_everything:
        filters = replace(scope, notes=()).to_dict()
        if not scope.metadata:
            del filters["metadata"]  # hashes are older than this field
        digest.update(json.dumps(filters, sort_keys=True).encode())
    return digest.hexdigest()


def _name_index(source_id: str, corpus_hash: str, like: Index) -> str:
    digest = hashlib.sha256(f"{source_id} {corpus_hash} {hash_settings(like)}".encode()).hexdigest()[:8]
    return f"ds_{digest}_{like.chunker.partition(':')[0]}"


def _ensure_index(wb: Workbench, source_id: str, corpus_hash: str, like: Index) -> Index:
    name = _name_index(source_id, corpus_hash, like)
    try:
        return wb.corpus.indexes.get(name)
    except NotFound:
        pass
    try:
        return wb.indexes.create(
            name,
            chunker=like.chunker,
            options=like.chunker_options,
            transformations=like.transformations,
            embedding_model=like.embedding_model,
            dataset=source_id,
        )
    except Conflict:  # another process has just created it
        return wb.corpus.indexes.get(name)


# Names of the workbench for the rest of evaluation

__all__ = ["ExperimentTables", "NewRun", "Row", "RunTables", "TestSetTables"]
__all__ += ["check_title", "clean_tags", "new_id", "read_configuration_file"]
