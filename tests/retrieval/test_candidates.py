"""The parameter ``candidates``: how many passages each leg and the reranker get, and the statements that takes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql

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


def test_a_hybrid_search_takes_three_statements(
    wb: Workbench, folder: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = {f"flock {number}.md": f"Flock {number} has {'many ' * number}sheep that graze." for number in range(12)}
    wb.ingest(folder({**texts, "goats of the hill.md": "Goats climb."}))
    found = wb.search("which sheep graze", "hybrid")  # also reads the names of the documents, which are kept
    statements: list[str] = []
    execute = psycopg.Connection[Any].execute

    def record(connection: Any, query: Any, *values: Any, **options: Any) -> Any:
        statements.append(query.as_string(connection))
        return execute(connection, query, *values, **options)

    monkeypatch.setattr(psycopg.Connection, "execute", record)
    again = wb.search("which sheep graze", "hybrid")
    searched = [text for text in statements if "data_main" in text or "documents" in text or "lexicon_main" in text]
    assert len(searched) == 3, searched  # words with their postings, cosines, texts
    assert [(hit.passage_id, hit.score) for hit in again] == [(hit.passage_id, hit.score) for hit in found]
    named = wb.search("the goats of the hill", "hybrid")
    assert named[0].document_title == "goats of the hill" and named[0].attribution["document"].contribution > 0


def test_the_plans_of_a_hybrid_search_are_kept(wb: Workbench, folder: Callable[..., Path]) -> None:
    wb.ingest(folder({"sheep.md": "Sheep graze.", "goats.md": "Goats climb."}))
    for _ in range(40):  # the driver prepares what a connection of the pool has sent five times
        wb.search("which sheep graze", "hybrid")
    prepared = wb.corpus.database.rows(sql.SQL("SELECT statement FROM pg_prepared_statements"))
    texts = [row["statement"] for row in prepared]
    assert any("is_near" in text for text in texts), texts  # the vector leg's
