"""The runners by the kind of job: each is called with an assignment and returns how it ended.

The entry points put the tables together: ``own_runners`` here, those of experiments in ``evals``. A worker takes only
the kinds of jobs that it has a runner for; the others wait for a worker that has one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from workbench.jobs.assignment import Assignment, Outcome
from workbench.jobs.ingest import run_ingest
from workbench.jobs.sharing import embedding_shared, progress_beside, progress_of, shared
from workbench.jobs.single import run_document, run_mirrored, run_workspace
from workbench.services.crawls import CrawlService
from workbench.services.documents import DocumentService
from workbench.services.folders import MirroredFolder
from workbench.services.indexes import IndexService
from workbench.services.sources import SourceService
from workbench.services.workspaces import WorkspaceService
from workbench.storage.jobs import Jobs
from workbench.types import as_text

Runner = Callable[[Assignment], Outcome]
Runners = Mapping[str, Runner]


def own_runners(
    sources: SourceService,
    documents: DocumentService,
    workspaces: WorkspaceService,
    jobs: Jobs,
    indexes: IndexService,
    crawls: CrawlService,
    folders: Mapping[str, Callable[[Path], MirroredFolder]],
) -> dict[str, Runner]:
    """Return the runners of the workbench's own kinds of jobs; ``folders`` as for ``run_mirrored``."""

    def ingest(assignment: Assignment) -> Outcome:
        if "document" in assignment.job.parameters:
            return run_document(documents, jobs.files, assignment)
        if "workspace" in assignment.job.parameters:
            return run_workspace(workspaces, assignment)
        if "mirrored" in assignment.job.parameters:
            return run_mirrored(folders, assignment)
        return run_ingest(sources, documents, indexes, jobs, assignment)

    return {
        "ingest": ingest,
        "index_build": lambda assignment: run_index_build(indexes, jobs, assignment),
        "crawl": lambda assignment: run_crawl(crawls, indexes, jobs, assignment),
    }


def run_index_build(indexes: IndexService, jobs: Jobs, assignment: Assignment) -> Outcome:
    """Build an index; the documents it holds already are not touched."""
    name = as_text(assignment.job.parameters["index"])
    with shared(jobs, assignment, lambda: indexes.plan(name, jobs.parts, assignment.job.id)) as parts:
        tell = progress_of(assignment, parts, "documents")
        index = indexes.build(name, on_progress=tell, should_stop=assignment.should_stop, parts=parts)
        if not assignment.leads:
            indexes.embed_waiting(parts.embedding, assignment.should_stop)
    message = f"{index.name} holds {index.documents_count:,} documents in {index.passages_count:,} passages."
    return Outcome({"documents": index.documents_count, "passages": index.passages_count}, message)


def run_crawl(crawls: CrawlService, indexes: IndexService, jobs: Jobs, assignment: Assignment) -> Outcome:
    """Crawl from where the job is, or embed the pages that another worker fetches."""
    with embedding_shared(jobs, assignment) as hands:
        if not assignment.leads:
            indexes.embed_waiting(hands, assignment.should_stop)
            return Outcome({}, "")
        status, result, message = crawls.run(assignment, hands, progress_beside(assignment, hands))
    return Outcome(result, message, with_errors=status == "completed_with_errors")
