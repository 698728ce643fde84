"""Indexes side by side: make one, fill it from the stored documents, switch to it, drop the old one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from workbench.errors import InvalidInput, choices
from workbench.services.corpus import Corpus
from workbench.types import Index, Progress

OnProgress = Callable[[Progress], None]


class IndexService:
    """The verbs over indexes."""

    def __init__(self, corpus: Corpus) -> None:
        self._corpus = corpus

    def list(self) -> list[Index]:
        """Return a person's indexes with what they hold."""
        self._corpus.index()
        return self._corpus.indexes.list()

    def get(self, name: str | None = None) -> Index:
        """Return an index with its counts, by name or the default one. Raises NotFound."""
        return self._corpus.indexes.counted(self._corpus.index(name).name)

    def create(
        self,
        name: str,
        *,
        chunker: str,
        options: Mapping[str, Any] | None = None,
        embedding_model: str | None = None,
        dataset: str | None = None,
    ) -> Index:
        """Make an empty index; ``build`` fills it. Raises InvalidInput or Conflict."""
        from workbench.ingestion.chunking import CHUNKERS, complete

        if chunker not in CHUNKERS:
            raise InvalidInput(f"There is no chunker {chunker!r}; use one of {choices(CHUNKERS, 20)}.")
        checked = complete(CHUNKERS[chunker], options or {})
        encoder = self._corpus.encoder(embedding_model)
        return self._corpus.indexes.create(
            name,
            chunker=chunker,
            chunker_options=checked,
            embedding_model=encoder.name,
            dimensions=encoder.dimensions,
            dataset=dataset,
            status="building",
        )

    def build(
        self,
        name: str,
        *,
        on_progress: OnProgress | None = None,
        should_stop: Callable[[], bool] | None = None,
    ) -> Index:
        """Bring an index up to date with the stored documents; may be stopped and gone on with.

        Raises:
            Cancelled: ``should_stop`` said so; the documents done so far stay in the index.
        """
        from workbench.ingestion.build import IndexBuilder

        corpus = self._corpus
        index = corpus.index(name)
        builder = IndexBuilder(
            corpus.database,
            corpus.documents,
            corpus.indexes,
            corpus.store(index),
            corpus.encoder_of(index),
            reuse=corpus.stores_of_model(index.embedding_model, but=name),
        )
        builder.build(on_progress=on_progress, should_stop=should_stop)
        corpus.indexes.set_status(name, "ready")
        return corpus.indexes.counted(name)

    def missing(self, name: str) -> int:
        """Return how many documents an index does not hold in their present version."""
        index = self._corpus.index(name)
        return len(self._corpus.documents.missing_from(name, index.dataset))

    def set_default(self, name: str) -> Index:
        """Let searches that name no index use this one. Raises NotFound, or Conflict while it is being built."""
        return self._corpus.indexes.set_default(name)

    def delete(self, name: str) -> Index:
        """Drop an index; its documents stay. Raises Conflict for the default one, and for one that a job builds."""
        return self._corpus.indexes.delete(name)

    def bytes_on_disk(self, name: str) -> int:
        """Return the size of an index on disk."""
        return self._corpus.indexes.bytes_on_disk(name)
