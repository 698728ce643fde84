"""The README is held to the code: its tables, its Python, its files; and so is the Python of the concepts."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from written_tables import GUIDES, ROOT, TABLES

from workbench.cli.main import COMMANDS
from workbench.sample import articles_dir

README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("table", TABLES)
def test_its_tables_are_what_the_code_says(table: str) -> None:
    guides = "".join((ROOT / name).read_text(encoding="utf-8") for name in GUIDES)
    assert f"<!-- {table} -->\n{TABLES[table]()}\n<!-- /{table} -->" in guides, "run: make docs"


@pytest.fixture
def run_snippet(
    make_settings: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[str], dict[str, Any]]:
    """Run the one snippet of a text beside a folder of papers, and return the names that it binds."""
    settings = make_settings()
    monkeypatch.setenv("WORKBENCH_HOME", str(settings.home))
    monkeypatch.setenv("WORKBENCH_DATABASE_URL", settings.database_url.get_secret_value())
    monkeypatch.setenv("WORKBENCH_EMBEDDING_MODEL", "hash")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "papers").mkdir()
    for name in ("ndcg", "mean-reciprocal-rank"):
        article = articles_dir() / "concepts" / f"{name}.md"
        (tmp_path / "papers" / article.name).write_bytes(article.read_bytes())

    def run(text: str) -> dict[str, Any]:
        [snippet] = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
        names: dict[str, Any] = {}
        exec(compile(snippet, "snippet", "exec"), names)
        return names

    return run


def test_its_python_runs_as_it_stands(run_snippet: Callable[[str], dict[str, Any]]) -> None:
    names = run_snippet(README)
    assert len(names["hits"]) == 5
    assert list(names["comparison"].strategies) == ["vector", "keyword", "rerank"]
    assert names["mine"].scope.source_ids


def test_the_work_of_the_concepts_is_done_in_the_background(run_snippet: Callable[[str], dict[str, Any]]) -> None:
    names = run_snippet((ROOT / "docs" / "concepts.md").read_text(encoding="utf-8"))
    assert [names[job].status for job in ("ingested", "built")] == ["completed", "completed"]


def test_the_snippet_has_the_promised_ten_lines() -> None:
    [snippet] = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert len([line for line in snippet.splitlines() if line.strip()]) == 10


def test_its_commands_exist() -> None:
    shell = "\n".join(re.findall(r"```sh\n(.*?)```", README, re.DOTALL))
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert set(re.findall(r"^workbench ([a-z]+)", shell, re.MULTILINE)) <= set(COMMANDS)
    assert set(re.findall(r"^make ([a-z]+)", shell, re.MULTILINE)) <= set(targets)


def test_the_files_it_names_are_there() -> None:
    named = re.findall(r"\]\(([^)#:]+)\)|`([\w./]+\.(?:md|example))`", README)
    assert named
    missing = [first or second for first, second in named if not (ROOT / (first or second)).exists()]
    assert missing == []
