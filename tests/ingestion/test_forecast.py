"""The forecast of an ingest's passages and time: available from the start, and increasingly accurate."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from workbench import Workbench
from workbench.errors import Cancelled
from workbench.ingestion.progress import INITIAL_SECONDS_PER_PASSAGE, Forecast
from workbench.types import Progress, time_left_text

LARGE = "\n\n".join(
    f"Paragraph {number} tells of lighthouse {number} and of its keeper. " * 6 for number in range(2_000)
)


def totals(told: list[Progress]) -> list[int]:
    """Return the forecast numbers of passages, in order."""
    found = (re.search(r"of (?:about )?([\d,]+) passages", progress.message) for progress in told)
    return [int(match.group(1).replace(",", "")) for match in found if match]


def test_a_total_and_a_time_left_are_reported_before_anything_is_embedded(
    wb: Workbench, folder: Callable[..., Path]
) -> None:
    told: list[Progress] = []
    report = wb.ingest(folder({"large.md": LARGE}), source="Lights", on_progress=told.append)
    first = next(place for place, progress in enumerate(told) if re.match(r"[1-9].* embedded", progress.message))
    early = [progress for progress in told[:first] if progress.seconds_left is not None]
    assert early and "0 of about" in early[0].message
    steps = [progress.message.partition(";")[0] for progress in told[:first]]
    assert steps[0] == "loading libraries" and "loading the model" in steps
    assert report.passages / 3 < totals(early)[0] < report.passages * 3
    assert totals(told)[-1] == report.passages and "about" not in told[-1].message


def test_each_of_many_short_texts_counts_as_a_passage() -> None:
    forecast = Forecast([120] * 310, pace=0.1)
    assert forecast.total == 310
    for place in range(100):
        forecast.record_cut(place, 1)
    assert forecast.total == 310
    assert forecast.seconds_left == pytest.approx(31, rel=0.05)


def test_how_far_a_large_document_is_only_grows_until_it_is_stored(wb: Workbench, folder: Callable[..., Path]) -> None:
    told: list[Progress] = []
    wb.ingest(folder({"large.md": LARGE, "small.md": "# Small"}), source="Lights", on_progress=told.append)
    embedding = [progress.part for progress in told if progress.done == 1 and "embedded" in progress.message]
    storing = [progress.part for progress in told if progress.done == 1 and "stored" in progress.message]
    assert embedding == sorted(embedding) and 0.0 < embedding[-1] < 1.0
    assert storing[-1] == pytest.approx(1.0)
    assert told[-1].done == told[-1].total == 2


def test_a_document_that_is_being_cut_can_be_stopped_and_no_thread_continues_it(
    wb: Workbench, folder: Callable[..., Path]
) -> None:
    told: list[Progress] = []
    root = folder({"large.md": LARGE})
    with pytest.raises(Cancelled):
        wb.ingest(root, source="Lights", on_progress=told.append, should_stop=lambda: bool(told))
    for thread in threading.enumerate():
        if thread.name == "read-ahead":
            thread.join()
    assert wb.documents.count() == 0
    assert totals(told) and not re.search(r"'[1-9][\d,]* of", str(told))


def test_the_first_ingest_of_all_reports_a_time_left_at_once_and_measures_it_later(
    wb: Workbench, folder: Callable[..., Path]
) -> None:
    told: list[Progress] = []
    wb.ingest(folder({"large.md": LARGE}), source="Lights", on_progress=told.append)
    assert told[0].seconds_left == pytest.approx(totals(told)[0] * INITIAL_SECONDS_PER_PASSAGE)
    assert None not in [progress.seconds_left for progress in told]
    measured = [progress for progress in told if re.match(r"[1-9].* embedded", progress.message)]
    assert measured[0].seconds_left != pytest.approx(totals(measured)[0] * INITIAL_SECONDS_PER_PASSAGE, rel=0.01)


def test_the_time_left_is_reported_by_the_pace_of_the_last_job_if_that_is_known(
    wb: Workbench, folder: Callable[..., Path]
) -> None:
    first = folder({"large.md": LARGE}, "first")
    wb.work()
    job = wb.jobs.wait(wb.jobs.enqueue_ingest([first], source="Lights").id, timeout=120)
    assert job.status == "completed"
    pace = float(str(job.result["seconds"])) / int(str(job.result["embedded"]))
    later: list[Progress] = []
    wb.ingest(folder({"other.md": LARGE.replace("light", "lamp")}, "other"), source="Lamps", on_progress=later.append)
    assert later[0].seconds_left == pytest.approx(totals(later)[0] * pace)
    assert None not in [progress.seconds_left for progress in later]  # nor forgotten while the model is loaded


def test_what_was_measured_takes_the_place_of_the_guess() -> None:
    forecast = Forecast([1_000_000, 1_000_000])
    assert forecast.seconds_left is None
    forecast.record_model_time(12, 0.6)
    guessed = forecast.total
    forecast.record_cut(0, 4_000)
    assert guessed * 1.9 < forecast.total and not forecast.is_exact
    forecast.record_cut(1, 4_000)
    assert (forecast.total, forecast.is_exact) == (8_000, True)
    forecast.record_embedded(8_000)
    forecast.record_storing_time(4_000, 40.0)
    forecast.record_stored(4_000)
    assert forecast.seconds_left == pytest.approx(40.0, rel=0.1)


def test_one_small_cold_passage_does_not_outweigh_the_earlier_pace() -> None:
    forecast = Forecast([50, 50_000_000], 0.03)
    before = forecast.seconds_left
    assert before is not None and before > 1_800
    forecast.record_cut(0, 1)
    forecast.record_embedded(1)
    forecast.record_model_time(1, 0.3)  # alone in its batch, and the first of a process
    assert forecast.seconds_left == pytest.approx(before, rel=0.2)
    forecast.record_cut(1, 80_000)
    forecast.record_embedded(20_000)
    forecast.record_model_time(20_000, 100.0)
    assert forecast.seconds_left == pytest.approx(60_000 * 0.005 + 80_000 * 0.004, rel=0.1)


def test_time_left_is_reported_in_words() -> None:
    assert [time_left_text(seconds) for seconds in (None, 0.2, 40, 400, 9000)] == [
        "", "about 1 s left", "about 40 s left", "about 7 min left", "about 2.5 h left",
    ]  # fmt: skip


def test_no_time_is_named_once_the_model_is_later_than_the_earlier_pace() -> None:
    """The first start compiles the model; meanwhile the same seconds would be named again and again."""
    forecast = Forecast([120], pace=0.5)
    assert forecast.seconds_left == 0.5
    time.sleep(0.6)
    assert forecast.seconds_left is None
    forecast.record_model_time(1, 2.0)
    assert forecast.seconds_left is not None
