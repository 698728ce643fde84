"""The parameter ``candidates``: how many passages the reranker gets, and how many each leg contributes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from workbench import Workbench


def test_more_candidates_are_more_passages_of_each_leg(wb: Workbench, folder: Callable[..., Path]) -> None:
    wb.ingest(folder({f"n{number:03}.md": f"Flock {number}: {'sheep ' * (number + 1)}graze." for number in range(260)}))
    best = wb.search("sheep", "rerank", 1)[0]

    def brought(strategy: str, candidates: int) -> int:
        why = wb.explain(
            "sheep", best.passage_id, strategy=strategy, parameters={"candidates": candidates}, elsewhere=False
        )
        return {step.name: step.count for step in why.steps}["legs"]

    for strategy in ("rerank", "learned"):
        counts = [brought(strategy, candidates) for candidates in (10, 100, 160, 300)]
        assert counts[0] == counts[1] < counts[2] < counts[3]
