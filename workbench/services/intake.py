"""The intake: documents on their way into a source, its citations and the indexes that serve."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from workbench.errors import ModelError
from workbench.retrieval.first_import import import_framework
from workbench.services.corpus import Corpus
from workbench.services.index_builds import IndexService, saying
from workbench.storage.database import Connection
from workbench.storage.documents import NewDocument
from workbench.storage.jobs import pace_of_ingests
from workbench.types import IngestFailure, IngestReport, OnProgress, Progress, ShouldStop

if TYPE_CHECKING:
    from workbench.ingestion.incoming import Incoming
    from workbench.ingestion.pipeline import AfterWrite
    from workbench.ingestion.progress import OnItems
    from workbench.ingestion.sharing import SharedItems
    from workbench.storage.job_parts import EmbeddingHands


class Intake:
    """The composer of the ingestion pipeline, for one source and one index at a time."""

    def __init__(self, corpus: Corpus, indexes: IndexService) -> None:
        self._corpus, self._indexes = corpus, indexes

    def take(
        self,
        source_id: str,
        items: Sequence[Incoming],
        *,
        failures: Iterable[IngestFailure] = (),
        index: str | None = None,
        on_progress: OnProgress | None = None,
        should_stop: ShouldStop | None = None,
        after_write: AfterWrite | None = None,
        on_items: OnItems | None = None,
        shared: SharedItems | None = None,
        hands: EmbeddingHands | None = None,
    ) -> IngestReport:
        """Bring items into a source; see ``DocumentService.ingest_items``."""
        pace: float | None = None
        if on_progress is not None and items:  # the framework takes seconds to be imported
            from workbench.ingestion.progress import FIRST_PACE, Forecast

            pace = pace_of_ingests(self._corpus.database) or FIRST_PACE
            forecast = Forecast([item.size for item in items], pace)
            message = f"0 of about {forecast.total:,} passages embedded" if forecast.total else "reading"
            on_progress(Progress(0, len(items), message, seconds_left=forecast.seconds_left))
        import_framework()
        from workbench.ingestion.citations import citation_writer
        from workbench.ingestion.pipeline import Pipeline

        corpus = self._corpus
        write_citations = citation_writer(corpus.citations)

        def written(connection: Connection, document_id: str, document: NewDocument) -> None:
            write_citations(connection, document_id, document)
            if after_write is not None:
                after_write(connection, document_id, document)

        chosen = corpus.index(index)
        pipeline = Pipeline(
            corpus.database,
            corpus.documents,
            corpus.writer_of(chosen, shared.parts.embedding if shared is not None else hands),
            after_write=written,
            on_items=on_items,
            pace=pace,
        )
        report = pipeline.ingest(
            source_id,
            items,
            failures=failures,
            on_progress=on_progress,
            should_stop=should_stop,
            shared=shared,
        )
        if shared is not None and not shared.parts.leads:
            return report
        if report.added + report.updated:
            corpus.store(chosen).maintain_graph(saying(on_progress, len(items)))
        if index is None:
            self._bring_up_to_date(chosen.name, on_progress, should_stop)
        changed = chosen.is_default and report.added + report.updated
        offer = self._indexes.language_offer(report.document_ids) if changed else None
        return replace(report, offer=f"{offer.sentence} {offer.way}") if offer else report

    def _bring_up_to_date(self, filled: str, on_progress: OnProgress | None, should_stop: ShouldStop | None) -> None:
        """Let the new documents be found by the searches that a promotion sends to another index."""
        for name in self._corpus.promotions.indexes():
            if name == filled:
                continue

            def tell(progress: Progress, name: str = name) -> None:
                if on_progress is not None:
                    on_progress(replace(progress, message=f"index {name}: {progress.message}"))

            with suppress(ModelError):  # its model is gone: searches say so, and what the index lacks
                self._indexes.build(name, on_progress=tell, should_stop=should_stop)
