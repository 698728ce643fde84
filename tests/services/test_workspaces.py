"""Workspaces during concurrent writes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from workbench import Workbench
from workbench.services.search import DocumentSearch
from workbench.services.workspaces import WorkspaceService

TALKS = {f"plan/2025-11-1{number}/00{number}-talk.md": f"# Talk {number}\n\nTalk of tides." for number in (1, 2)}


class RemovedMeanwhile(DocumentSearch):
    """A search during which another process removes the best document."""

    def __init__(self, wb: Workbench) -> None:
        super().__init__(wb.corpus, wb.requests, wb.search_service)
        self.documents = wb.corpus.documents

    def search(self, *given: Any, **more: Any) -> Any:
        result = super().search(*given, **more)
        self.documents.delete([result.documents[0].document_id])
        return result


def test_a_conversation_that_is_removed_while_it_is_being_found_is_left_out(
    wb: Workbench, folder: Callable[..., Path]
) -> None:
    workspace = folder(TALKS)
    wb.workspaces.embed(workspace)
    found = WorkspaceService(wb.corpus, wb.sources, wb.documents, RemovedMeanwhile(wb), "").search(workspace, "tides")
    paths = [hit.source_path for hit in wb.workspaces.search(workspace, "tides")]
    assert len(paths) == 1
    assert [hit.source_path for hit in found] == paths
