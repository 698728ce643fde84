"""In an ingest of several files, a large one never delays the small ones."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from workbench import Workbench
from workbench.errors import Cancelled
from workbench.types import Progress


def test_a_small_file_is_stored_before_a_large_one_and_stays_when_the_ingest_is_stopped(
    wb: Workbench, folder: Callable[..., Path]
) -> None:
    large = "\n\n".join(f"Paragraph {number} tells of lighthouse {number}." * 4 for number in range(3_000))
    root = folder({"a_large.md": large, "b_small.md": "# Small\n\nIt is short."})
    told: list[Progress] = []

    def large_is_under_way() -> bool:
        return any("of" in progress.message and progress.part > 0 and progress.done for progress in told)

    with pytest.raises(Cancelled):
        wb.ingest(root, source="Mixed", on_progress=told.append, should_stop=large_is_under_way)
    assert [document.title for document in wb.documents.list()] == ["Small"]
