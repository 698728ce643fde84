"""The test set that Tune and a new experiment start with."""

from __future__ import annotations

from datetime import UTC, datetime

from evals.test_sets.store import TestSetInfo
from workbench.app.evaluate.test_sets import preselect_test_set


def _info(key: str, day: int, source_id: str | None = None) -> TestSetInfo:
    return TestSetInfo(
        id=key, title=key, description="", source_id=source_id, version=1, questions=30, judgments=30,
        updated_at=datetime(2026, 1, day, tzinfo=UTC),
    )  # fmt: skip


def test_a_form_starts_with_the_persons_own_test_set_that_was_changed_last() -> None:
    test_sets = [_info("sample", 9, "src_1"), _info("older", 2), _info("newer", 3), _info("beir", 8, "src_2")]
    assert preselect_test_set(test_sets) == "newer"


def test_without_one_of_their_own_it_starts_with_the_one_changed_last() -> None:
    assert preselect_test_set([_info("sample", 1, "src_1"), _info("beir", 2, "src_2")]) == "beir"
    assert preselect_test_set([]) == ""
