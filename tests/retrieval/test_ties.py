"""Equal scores in hybrid: the passage with the words comes first."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from workbench import Workbench


def test_the_only_passage_with_the_word_comes_before_the_nearest_one_if_they_tie(
    wb: Workbench, folder: Callable[..., Path]
) -> None:
    texts = {"a.txt": "the in the of the in the", "b.txt": "zyzzyva brass lantern orchard violet copper thimble meadow"}
    wb.ingest(folder(texts), source="Notes")
    result = wb.search("zyzzyva the the the in of in", strategy="hybrid", parameters={"vector_weight": 0.5})
    assert [hit.score for hit in result] == pytest.approx([0.5, 0.5])
    assert [hit.path for hit in result] == ["b.txt", "a.txt"]
