"""The sample corpus as a source, so that a first run has something to search."""

from __future__ import annotations

from workbench.errors import Ambiguous, NotFound
from workbench.ingestion.readers.formats import discover
from workbench.sample import articles_dir
from workbench.services.documents import Destination, DocumentService, IngestOptions
from workbench.services.sources import SourceService
from workbench.types import IngestReport, OnProgress, ShouldStop

SAMPLE_TITLE = "Sample: retrieval and RAG"
SAMPLE_TAGS = ("sample",)


def read_sample_files() -> list[tuple[str, bytes]]:
    """Return the sample's articles as uploads (name, bytes), with the names that ``load_sample`` gives them."""
    root = articles_dir()
    return [(path.relative_to(root).as_posix(), path.read_bytes()) for path in discover([root]).files]


def load_sample(
    documents: DocumentService, on_progress: OnProgress | None = None, should_stop: ShouldStop | None = None
) -> IngestReport:
    """Ingest the sample's articles into their source; unchanged articles are skipped.

    Raises:
        Cancelled: ``should_stop`` returned True; articles stored so far are kept.
    """
    destination = Destination(source=SAMPLE_TITLE, tags=SAMPLE_TAGS)
    options = IngestOptions(on_progress=on_progress, should_stop=should_stop)
    return documents.ingest([articles_dir()], destination, options)


def needs_sample(sources: SourceService) -> bool:
    """Return whether there is no source yet, or only a partly loaded sample."""
    try:
        sample = sources.get(SAMPLE_TITLE)
    except NotFound:
        return sources.count() == 0
    except Ambiguous:  # the user gave a source of their own that title
        return False
    return sample.documents_count < len(list(articles_dir().rglob("*.md"))) and sources.count() == 1
