"""The progress of an ingest while one batch is written and the next is embedded."""

from workbench.ingestion.progress import DocumentChange, IngestProgress
from workbench.types import Progress

ITEMS = 30  # in three batches


def _far(progress: Progress) -> float:
    counted = progress.count_active_items()
    return counted.done + counted.part


def test_what_waits_to_be_written_still_counts_while_the_next_batch_goes_through_the_model() -> None:
    heard: list[Progress] = []
    tally = IngestProgress([100] * ITEMS, heard.append, [])
    written: list[tuple[str, DocumentChange]] = [(f"doc_{place}", "added") for place in range(10)]
    for first in (0, 10, 20):
        tally.begin_batch(range(first, first + 10), [2] * 10)
        for count in range(20):
            tally.count_embedded(1, 0.01)
            if first and count == 15:
                tally.count_stored(first - 10, 20)
                tally.report_written(first - 10, written, 20, 0.1)
    tally.count_stored(20, 20)
    tally.report_written(20, written, 20, 0.1)
    far = [_far(progress) for progress in heard]
    assert [round(each, 6) for each in far] == sorted(round(each, 6) for each in far)
    assert far[-1] == ITEMS and {progress.total for progress in heard} == {ITEMS}
