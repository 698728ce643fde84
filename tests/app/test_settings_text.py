"""The settings of a run as shown in the lists of experiments."""

from __future__ import annotations

import pytest

from evals.experiments.runs import Cell
from workbench.app.evaluate.outcome import format_settings

TOLD = [
    (Cell("vector"), ""),
    (Cell("hybrid", {"vector_weight": 0.75, "fusion": "rrf"}), "vector weight 0.75, fusion rrf"),
    (Cell("hybrid", {"vector_weight": 1.0}, "by_sentences"), "index by_sentences, vector weight 1"),
    (Cell("keyword", {}, "fine"), "index fine"),
    (Cell("Their search", file_hash="ab12"), "run file"),
]


@pytest.mark.parametrize(("cell", "text"), TOLD)
def test_the_settings_of_a_run_are_reported_in_the_words_of_the_leaderboard(cell: Cell, text: str) -> None:
    assert format_settings(cell.label, cell.strategy) == text
