"""The corpus as evaluation needs it: documents with texts and passages, searches, the queries of agents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from evals.test_set import EVERYTHING, MeasuredScope
from workbench.errors import ScopeError
from workbench.retrieval.options import Ask
from workbench.services.answers import Answer
from workbench.storage.passages import StoredPassage, documents_in_scope
from workbench.types import Document, ResolvedScope, Scope, SearchResult, Source
from workbench.workbench import Workbench


def documents_of(wb: Workbench, source_id: str | None = None) -> list[Document]:
    """Return the documents of a source without their texts; of None those of the person's own sources."""
    return wb.documents.list(source_id=source_id)


def documents_in(wb: Workbench, scope: ResolvedScope, index: str | None = None) -> list[Document]:
    """Return the documents that a search of a scope can find, without their texts."""
    documents = wb.documents.list()
    if scope.is_everything:
        return documents
    chosen = wb.corpus.index(index)
    with wb.corpus.store(chosen).reading() as connection:
        found = set(documents_in_scope(connection, chosen.name, scope))
    return [document for document in documents if document.id in found]


def measured_scope(wb: Workbench, scope: Scope) -> MeasuredScope:
    """Return a scope by ids, with the titles of these. Raises ScopeError if it names something that does not exist."""
    wb.requests.resolve(scope)
    if scope == Scope():
        return EVERYTHING
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


def resolved_scope(wb: Workbench, measured: MeasuredScope) -> ResolvedScope:
    """Return what a test set's scope means now. Raises ScopeError if a part of it has been deleted."""
    if lost := deleted_parts(wb, measured):
        raise ScopeError(
            f"The scope of this test set has lost {lost}, which has been deleted, so it can no longer be searched; "
            "make a new test set over documents that exist."
        )
    return wb.requests.resolve(measured.scope)


def deleted_parts(wb: Workbench, measured: MeasuredScope) -> str:
    """Return the parts of a scope that were deleted, such as "the project Shop"; "" if it is whole."""
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


def document_of(wb: Workbench, document_id: str) -> Document:
    """Return a document with its text. Raises NotFound."""
    return wb.documents.get(document_id)


def passages_of(wb: Workbench, document_id: str, index: str | None = None) -> Sequence[StoredPassage]:
    """Return a document's passages in an index (None: the default one), in reading order. Raises NotFound."""
    return wb.documents.passages(document_id, index=index)


def source_named(wb: Workbench, key: str) -> Source:
    """Return a source by id, title or URL. Raises NotFound."""
    return wb.sources.get(key)


def search(wb: Workbench, question: str, ask: Ask) -> SearchResult:
    """Search as the faces do; raises what a search raises."""
    return wb.search_service.search(question, ask)


def answer(wb: Workbench, question: str, ask: Ask) -> Answer:
    """Answer as the faces do; raises what an answer raises."""
    return wb.answers.ask(question, ask).answer()


def agent_queries(wb: Workbench, limit: int, *, zero_only: bool = False) -> list[str]:
    """Return what agents asked in their last ``limit`` queries, each once; ``zero_only``: those that found nothing."""
    calls = wb.tool_calls.list(queries_only=True, zero_only=zero_only, limit=limit)
    return list(dict.fromkeys(" ".join(call.query.split()) for call in calls if call.query and call.query.strip()))
