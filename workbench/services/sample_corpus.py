"""The sample corpus as a source, so that a first run has something to search."""

from __future__ import annotations

from collections.abc import Callable

from workbench.errors import NotFound
from workbench.ingestion.readers import discover
from workbench.sample import articles_dir
from workbench.services.knowledge import KnowledgeService, OnProgress
from workbench.types import IngestReport

SAMPLE_TITLE = "Sample: retrieval and RAG"
SAMPLE_TAGS = ("sample",)


def sample_files() -> list[tuple[str, bytes]]:
    """Return the sample's articles as uploads (name, bytes), named as ``load_sample`` names them."""
    root = articles_dir()
    return [(path.relative_to(root).as_posix(), path.read_bytes()) for path in discover([root])]


def load_sample(
    knowledge: KnowledgeService,
    on_progress: OnProgress | None = None,
    should_stop: Callable[[], bool] | None = None,
) -> IngestReport:
    """Bring the sample's articles into their source; what is there already costs a hash each and embeds nothing.

    Raises:
        Cancelled: ``should_stop`` said so; the articles stored before stay.
    """
    return knowledge.ingest(
        [articles_dir()], source=SAMPLE_TITLE, tags=SAMPLE_TAGS, on_progress=on_progress, should_stop=should_stop
    )


def needs_sample(knowledge: KnowledgeService) -> bool:
    """True on a first run (no source at all), and where a first run was cut short while it loaded the sample."""
    try:
        sample = knowledge.source(SAMPLE_TITLE)
    except NotFound:
        return knowledge.count_sources() == 0
    return sample.documents_count < len(list(articles_dir().rglob("*.md"))) and knowledge.count_sources() == 1
