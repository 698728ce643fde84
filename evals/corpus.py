"""Index a test set's corpus: a source of its own with indexes of its own, made once, apart from a person's sources."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from evals.dataset import Dataset, FolderCorpus, StoredCorpus
from workbench.errors import Conflict, NotFound
from workbench.types import DATASET, Index, Progress, Source
from workbench.workbench import Workbench

OnProgress = Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class IndexedCorpus:
    """Where a test set can be searched; ``keys`` turns a document's id into the key that judgments name.

    ``documents`` counts those that can be found, ``failures`` tell of the others.
    """

    index: Index
    corpus_hash: str
    documents: int
    keys: Mapping[str, str]
    failures: tuple[str, ...] = ()

    @property
    def index_hash(self) -> str:
        """Equal where passages would be cut and embedded alike."""
        return settings_hash(self.index)

    def key(self, document_id: str) -> str:
        """Return the name judgments use for a document."""
        return self.keys.get(document_id, document_id)


def settings_hash(index: Index) -> str:
    """Hash how an index cuts and embeds, whatever it holds."""
    settings = [index.chunker, sorted(index.chunker_options.items()), index.embedding_model]
    return hashlib.sha256(json.dumps(settings).encode()).hexdigest()


def index_corpus(
    wb: Workbench,
    dataset: Dataset,
    like: str | None = None,
    *,
    on_progress: OnProgress | None = None,
    should_stop: Callable[[], bool] | None = None,
) -> IndexedCorpus:
    """Return where the dataset can be searched, cut and embedded like the index ``like`` (default: the default one).

    A corpus that is unchanged is used again; one that was left half done is gone on with.

    Raises:
        NotFound: no such index. Cancelled: ``should_stop`` said so.
    """
    model = wb.corpus.index(like)
    corpus = dataset.corpus
    if corpus is None:
        if wb.indexes.missing(model.name):
            wb.indexes.build(model.name, on_progress=on_progress, should_stop=should_stop)
        return _own(wb, model)
    source_id = corpus.source_id if isinstance(corpus, StoredCorpus) else store_source(wb, dataset.name, corpus).id
    index = _index(wb, source_id, corpus.hash, model)
    failures: tuple[str, ...] = ()
    was_ready = index.status == "ready"
    if not was_ready:
        failures = _fill(wb, index, corpus, source_id, on_progress, should_stop)
    known = wb.corpus.documents.known(source_id, index.name)
    if was_ready and isinstance(corpus, FolderCorpus):
        missing = (item.key for item in corpus.documents if item.key not in known)
        failures = tuple(f"{key}: could not be read when the corpus was indexed." for key in missing)
    return IndexedCorpus(
        index=wb.corpus.indexes.counted(index.name),
        corpus_hash=corpus.hash,
        documents=len(known),
        keys={document.id: key for key, document in known.items()},
        failures=failures,
    )


def document_ids(wb: Workbench, dataset: Dataset) -> dict[str, str]:
    """Return the key that judgments name -> the document's id; empty where judgments name ids."""
    if not isinstance(dataset.corpus, StoredCorpus):
        return {}
    known = wb.corpus.documents.known(dataset.corpus.source_id, wb.corpus.index().name)
    return {key: document.id for key, document in known.items()}


def store_source(wb: Workbench, name: str, corpus: FolderCorpus) -> Source:
    """Return the source that holds a test set's documents, made where there is none."""
    title = f"{name} {corpus.hash[:12]}"
    for _ in range(2):
        for source in wb.corpus.sources.list(source_type=DATASET):
            if source.title == title:
                return source
        try:
            return wb.corpus.sources.create(title, source_type=DATASET, metadata={"corpus_hash": corpus.hash})
        except Conflict:  # another process made it a moment ago
            continue
    raise Conflict(f"The corpus of {name!r} is being removed by another process; try again.")


def _fill(
    wb: Workbench,
    index: Index,
    corpus: FolderCorpus | StoredCorpus,
    source_id: str,
    on_progress: OnProgress | None,
    should_stop: Callable[[], bool] | None,
) -> tuple[str, ...]:
    """Bring the documents in, or cut and embed those that are there; returns what could not be read."""
    if isinstance(corpus, StoredCorpus):
        wb.indexes.build(index.name, on_progress=on_progress, should_stop=should_stop)
        return ()
    report = wb.knowledge.ingest_items(
        source_id, corpus.documents, index=index.name, on_progress=on_progress, should_stop=should_stop
    )
    wb.corpus.indexes.set_status(index.name, "ready")
    return tuple(f"{failure.path}: {failure.error}" for failure in report.failures)


def own_hash(wb: Workbench) -> str:
    """Hash the person's own documents: any one added, changed or deleted changes it."""
    digest = hashlib.sha256()
    for document in sorted(wb.corpus.documents.list(), key=lambda item: item.id):
        digest.update(f"{document.id} {document.content_hash}\n".encode())
    return digest.hexdigest()


def _own(wb: Workbench, index: Index) -> IndexedCorpus:
    counted = wb.corpus.indexes.counted(index.name)
    return IndexedCorpus(counted, own_hash(wb), counted.documents_count, {})


def _index(wb: Workbench, source_id: str, corpus_hash: str, like: Index) -> Index:
    digest = hashlib.sha256(f"{source_id} {corpus_hash} {settings_hash(like)}".encode()).hexdigest()[:8]
    name = f"ds_{digest}_{like.chunker}"
    try:
        return wb.corpus.indexes.get(name)
    except NotFound:
        pass
    try:
        return wb.indexes.create(
            name,
            chunker=like.chunker,
            options=like.chunker_options,
            embedding_model=like.embedding_model,
            dataset=source_id,
        )
    except Conflict:  # another process made it a moment ago
        return wb.corpus.indexes.get(name)
