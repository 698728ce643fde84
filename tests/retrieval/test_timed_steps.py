"""The timed steps of a search are declared in one place; each occurs, and no others do."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path

from workbench import Workbench
from workbench.retrieval.strategies import STRATEGIES
from workbench.types import TOTAL, TimedStep

ROOT = Path(__file__).parents[2]


def test_every_step_that_is_timed_is_declared_and_every_declared_one_is_timed() -> None:
    named: set[str] = set()
    for path in (ROOT / "workbench").rglob("*.py"):
        named |= _list_steps(path)
    assert named == {f"TimedStep.{step.name}" for step in TimedStep}


def test_a_search_times_declared_steps_next_to_the_whole(wb: Workbench) -> None:
    wb.documents.create(text="The gauge records the tide.")
    asked = [one for one in STRATEGIES.values() if not (one.needs_scope or one.needs_llm or one.needs_reranker)]
    names = [strategy.name for strategy in asked]
    results = wb.compare("the gauge", strategies=names).strategies
    timed = {name for result in results.values() for name in result.timings_ms}
    assert {"keyword", "vector", "fuse", "fetch", TOTAL} <= timed
    assert timed <= {*TimedStep, TOTAL}


def _list_steps(path: Path) -> set[str]:
    calls = (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call))
    return {
        ast.unparse(call.args[0])
        for call in calls
        if isinstance(call.func, ast.Attribute) and call.func.attr == "stage" and "trace" in ast.unparse(call.func)
    }


def test_every_compared_strategy_is_charged_with_the_embedding_of_the_question(
    wb: Workbench, folder: Callable[..., Path]
) -> None:
    wb.ingest(folder({"a.md": "The tide gauge.", "b.md": "The stilling well."}))
    strategies = wb.compare("tide gauge", strategies=["keyword", "vector", "hybrid", "rerank"]).strategies
    embedding = {result.timings_ms["embed"] for name, result in strategies.items() if name != "keyword"}
    assert len(embedding) == 1 and embedding.pop() > 0  # computed once, charged to each
    for result in strategies.values():
        assert result.timings_ms["total"] >= result.timings_ms.get("embed", 0.0)
