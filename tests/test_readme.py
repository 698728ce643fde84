"""The guides agree with the code: tables, commands, files, Python snippets, errors, and the README of the package."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from written_tables import GUIDES, ROOT, TABLES

from hatch_build import readme_for_index
from workbench.cli.main import COMMANDS, main
from workbench.sample import articles_dir

README = (ROOT / "README.md").read_text(encoding="utf-8")
GUIDE_PATHS = [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "reference").glob("*.md")]


@pytest.mark.parametrize("table", TABLES)
def test_its_tables_are_what_the_code_reports(table: str) -> None:
    guides = "".join((ROOT / name).read_text(encoding="utf-8") for name in GUIDES)
    assert f"<!-- {table} -->\n{TABLES[table]()}\n<!-- /{table} -->" in guides, "run: make docs"


RunSnippet = Callable[..., dict[str, Any]]


@pytest.fixture
def run_snippet(make_settings: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunSnippet:
    """Return a function that runs the only snippet of a text next to a folder of papers, and returns its variables."""
    settings = make_settings()
    monkeypatch.setenv("WORKBENCH_HOME", str(settings.home))
    monkeypatch.setenv("WORKBENCH_DATABASE_URL", settings.database_url.get_secret_value())
    monkeypatch.chdir(tmp_path)
    (tmp_path / "papers").mkdir()

    def run(text: str, model: str = "hash", articles: str = "[mn]*.md") -> dict[str, Any]:
        monkeypatch.setenv("WORKBENCH_EMBEDDING_MODEL", model)
        for article in (articles_dir() / "concepts").glob(articles):
            (tmp_path / "papers" / article.name).write_bytes(article.read_bytes())
        [snippet] = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
        names: dict[str, Any] = {}
        exec(compile(snippet, "snippet", "exec"), names)
        return names

    return run


def test_the_readme_snippet_prints_what_the_readme_shows(
    run_snippet: RunSnippet, capsys: pytest.CaptureFixture[str]
) -> None:
    names = run_snippet(README, "minilm", "*.md")
    printed = capsys.readouterr().out.split()
    [shown] = re.findall(r"```text\n(.*?)```", README, re.DOTALL)
    assert abs(float(printed[3]) - float(shown.split()[3])) < 0.02  # by the precision of the embeddings
    assert printed[:3] + printed[4:] == shown.split()[:3] + shown.split()[4:]
    assert len(names["hits"]) == 5
    assert list(names["comparison"].strategies) == ["vector", "keyword", "rerank"]
    assert names["mine"].scope.source_ids


def test_the_concepts_snippet_finishes_its_jobs(run_snippet: RunSnippet) -> None:
    names = run_snippet((ROOT / "docs" / "concepts.md").read_text(encoding="utf-8"))
    assert [names[job].status for job in ("ingested", "built")] == ["completed", "completed"]


def test_the_snippets_on_own_retrievers_run(run_snippet: RunSnippet) -> None:
    text = (ROOT / "docs" / "bring-your-own.md").read_text(encoding="utf-8")
    added, attached, measured, parsed = re.findall(r"```python\n.*?```", text, re.DOTALL)
    names = run_snippet(added)
    assert list(names["comparison"].strategies) == ["rerank", "mine"]
    assert run_snippet(attached)["index"].attachment["rows"] == 1
    assert run_snippet(measured)["difference"].metric == "ndcg@10"
    assert run_snippet(parsed)["built"].name == "sentences"


def test_the_snippet_on_testing_runs(run_snippet: RunSnippet) -> None:
    text = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    snippets = re.findall(r"```python\n.*?```", text, re.DOTALL)
    assert "workbench_check" in snippets[0]  # tests/test_testing.py runs it
    assert callable(run_snippet(snippets[1])["newest_first"])


def test_the_snippet_has_the_promised_ten_lines() -> None:
    [snippet] = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert len([line for line in snippet.splitlines() if line.strip()]) == 10


def test_commands_in_the_guides_exist() -> None:
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    for path in GUIDE_PATHS:
        text = path.read_text(encoding="utf-8")
        shell = "\n".join(re.findall(r"```(?:sh|yaml)\n(.*?)```", text, re.DOTALL))
        inline = re.findall(r"`((?:workbench|make) [^`]*)`", text)
        lines = [line.strip().removeprefix("- ").removeprefix("run: ") for line in (*shell.splitlines(), *inline)]
        assert {words[1] for line in lines if (words := line.split())[:1] == ["workbench"] if words[1].islower()} <= {
            *COMMANDS
        }, path.name
        assert {words[1] for line in lines if (words := line.split())[:1] == ["make"] if words[1].islower()} <= {
            *targets
        }, path.name


def test_options_in_the_recipes_exist(capsys: pytest.CaptureFixture[str]) -> None:
    recipes = (ROOT / "docs" / "recipes.md").read_text(encoding="utf-8")
    lines = re.findall(r"^ *(?:- run: )?workbench ([^#\n]+)", recipes, re.MULTILINE)
    assert len(lines) > 15
    for line in lines:
        name, *words = shlex.split(line)
        verbs = [words[0]] if words and name in {"indexes", "strategies", "jobs"} else []
        assert main([name, *verbs, "--help"]) == 0
        shown = capsys.readouterr().out
        assert [word for word in words if word.startswith("--") and word not in shown] == [], line


def test_files_named_in_the_readme_exist() -> None:
    named = re.findall(r"\]\(([^)#:]+)\)|`([\w./]+\.(?:md|example))`", README)
    assert named
    missing = [first or second for first, second in named if not (ROOT / (first or second)).exists()]
    assert missing == []


def test_errors_quoted_in_the_faq_are_in_the_code() -> None:
    faq = (ROOT / "docs" / "faq.md").read_text(encoding="utf-8")
    quoted = re.findall(r"^### (.+)$", faq, re.MULTILINE)
    code = "".join(
        path.read_text(encoding="utf-8")
        for package in ("workbench", "mcp_app")
        for path in (ROOT / package).rglob("*.py")
    )
    code = re.sub(r'"\s*\n\s*f?"', "", code)  # a message over several lines
    parts = [part for error in quoted for part in re.split(r"\b[A-Z]{2,}\b(?:\[[^]]*\])?|…", error.strip("`"))]
    parts = [part.strip(" '.") for part in parts if len(part) > 12]
    assert len(parts) > 8
    assert [part for part in parts if part not in code] == []


def test_lines_of_the_docs_are_wrapped() -> None:
    paths = [path for path in (ROOT / "docs").rglob("*.md") if "decisions" not in path.parts]
    long = [
        (path.name, number)
        for path in paths
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if len(line) > 120 and not line.startswith("|")
    ]
    assert long == []


def test_the_packaged_readme_has_no_relative_address() -> None:
    without = readme_for_index(README, "", "0.1.0")
    assert not re.findall(r"<img|!\[|\]\((?!https?:)[^)]*\)", without)
    assert "Recipes · Concepts" in without
    text = readme_for_index(README, "https://example.org/a/b/", "0.1.0")
    assert (
        "![Four strategies answer the same question side by side](https://example.org/a/b/raw/v0.1.0/docs/images/"
        in text
    )
    assert "[benchmarks](https://example.org/a/b/blob/v0.1.0/docs/benchmarks.md)" in text
    assert not re.findall(r"\]\((?!https?:)[^)]*\)|<picture>", text)
