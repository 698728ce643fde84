"""The same text from several concurrent callers."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

from workbench import Workbench
from workbench.types import Progress


def test_ten_identical_creates_at_once_give_one_document_and_nine_unchanged(wb: Workbench) -> None:
    source = wb.sources.create("Notes").id
    with ThreadPoolExecutor(10) as pool:
        written = list(pool.map(lambda _: wb.documents.create(text="The same words.", source=source), range(10)))
    assert Counter(document.outcome for document in written) == {"created": 1, "unchanged": 9}
    assert len({document.document.id for document in written}) == 1


def test_two_ingests_of_one_folder_at_once_add_each_document_once_and_update_none(
    wb: Workbench, tmp_path: Path
) -> None:
    for number in range(3):
        (tmp_path / f"{number}.md").write_text(f"# Kettle {number}\n\nCopper, number {number}.\n", encoding="utf-8")
    source = wb.sources.create("Twice").id
    both_embed = Barrier(2)  # neither has stored anything when both have looked at what is there
    waiting = {"first": True, "second": True}

    def ingest(workbench: Workbench, name: str) -> tuple[int, int, int]:
        def wait(progress: Progress) -> None:
            if "embedded" in progress.message and waiting[name]:
                waiting[name] = False
                both_embed.wait(60)

        report = workbench.ingest(tmp_path, source=source, on_progress=wait)
        return report.added, report.updated, report.unchanged

    with Workbench.open(settings=wb.settings) as other, ThreadPoolExecutor(2) as pool:
        first, second = pool.submit(ingest, wb, "first"), pool.submit(ingest, other, "second")
        assert sorted([first.result(), second.result()]) == [(0, 0, 3), (3, 0, 0)]
    assert wb.sources.get(source).documents_count == 3
