"""The subcommands for articles, workspaces and archives."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from commands import Ran


def test_articles_are_listed_shown_and_searched(workbench: Callable[..., Ran]) -> None:
    listed = json.loads(workbench("articles", "list", "--category", "patterns", "--json").out)
    assert {article["category"] for article in listed["articles"]} == {"patterns"}
    assert json.loads(workbench("articles", "show", "bm25", "--json").out)["content"]
    assert json.loads(workbench("articles", "search", "bm25", "--json").out)["articles"][0]["slug"] == "bm25"
    missing = workbench("articles", "show", "nope")
    assert (missing.code, "Article not found: nope" in missing.err) == (2, True)


def test_a_workspace_is_embedded_searched_and_described(
    workbench: Callable[..., Ran], folder: Callable[..., Path]
) -> None:
    talks = {
        "plan/2025-11-01/001-zebras.md": "# Zebras\n\nZebras run.",
        "plan/2025-11-02/002-gnus.md": "# Gnus\n\nGnus run.",
    }
    place = ("--workspace", str(folder(talks, "work")), "--json")
    assert json.loads(workbench("workspace", "embed", *place).out)["embedded"] == 2
    found = json.loads(workbench("workspace", "search", "zebras", "--date", "2025-11", *place).out)
    assert found["results"][0]["conversation"] == "plan/2025-11-01/001-zebras"
    similar = json.loads(workbench("workspace", "similar", "plan/2025-11-01/001-zebras.md", *place).out)
    assert [hit["title"] for hit in similar["results"]] == ["Gnus"]
    status = json.loads(workbench("workspace", "status", *place).out)
    assert (status["num_documents"], status["pending"]) == (2, {"new": 0, "changed": 0, "vanished": 0})
    (Path(place[1]) / "plan/2025-11-02/003-lions.md").write_text("# Lions\n\nLions rest.")
    assert "on disk        1 new, 0 changed, 0 vanished" in workbench("workspace", "status", *place[:2]).out
    assert workbench("workspace", "search", "x", "--date", "soon", *place).code == 2


def test_archives_are_searched_with_marks_and_citations(
    workbench: Callable[..., Ran], folder: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    notes = {"research-archive/2025-01-01/a.md": "# A note\n\nThe okapi eats. See [b](b.md).",
             "research-archive/2025-01-01/b.md": "# B note\n\nThe giraffe eats."}  # fmt: skip
    monkeypatch.setenv("WORKBENCH_ARCHIVES_DIR", str(folder(notes, "archives")))
    found = json.loads(workbench("archives", "search", "okpai", "--citations", "--json").out)
    assert found["results"][0]["title"] == "A note"
    assert "<mark>okapi</mark>" in found["results"][0]["highlights"][0]["snippets"][0]
    shown = workbench("archives", "search", "okpai", "--citations")
    assert "cites B note" in shown.out
    assert "<mark>" not in shown.out
    assert "No document in the archives matches" in workbench("archives", "search", "okpai", "--exact").out
    assert "'archives' has 2 documents" in workbench("archives", "refresh").out
