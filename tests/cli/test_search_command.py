"""``workbench search`` and ``workbench compare``."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from commands import Ran

PROMISED = {"query", "strategy", "scope", "under_filled", "degraded", "timings_ms", "results"}
PASSAGE = {"rank", "score", "passage_id", "document_id", "document_title", "source_id", "path", "url", "text", "start"}
PASSAGE |= {"end", "match_type", "attribution", "metadata"}


@pytest.fixture(autouse=True)
def corpus(workbench: Callable[..., Ran], animals: Path) -> None:
    """Three documents in the source Animals."""
    workbench("ingest", str(animals), "--source", "Animals", "--tag", "pets")


def test_its_json_is_what_the_interfaces_promise(workbench: Callable[..., Ran]) -> None:
    found = workbench("search", "cats purr", "--strategy", "hybrid", "--limit", "2", "--json").json
    assert set(found) >= PROMISED
    assert (found["query"], found["strategy"], len(found["results"])) == ("cats purr", "hybrid", 2)
    assert set(found["results"][0]) >= PASSAGE
    assert found["results"][0]["document_title"] == "Cats"
    assert found["results"][0]["attribution"]["keyword"]["rank"] == 1


def test_explain_shows_how_the_score_came_about(workbench: Callable[..., Ran]) -> None:
    shown = workbench("search", "cats purr", "--strategy", "hybrid", "--explain").out
    assert "vector" in shown and "keyword" in shown and "contribution" in shown


def test_matched_words_are_marked_on_a_terminal(workbench: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[1;33mbark\x1b[0m" in workbench("search", "who barks?").out


def test_a_parameter_changes_the_ranking(workbench: Callable[..., Ran]) -> None:
    words = ("search", "gills", "--strategy", "hybrid", "--json", "--set")
    by_words = workbench(*words, "vector_weight=0").json["results"][0]["attribution"]
    by_meaning = workbench(*words, "vector_weight=1").json["results"][0]["attribution"]
    assert by_words["vector"]["contribution"] == 0 < by_words["keyword"]["contribution"]
    assert by_meaning["keyword"]["contribution"] == 0 < by_meaning["vector"]["contribution"]


@pytest.mark.parametrize("query", ["' OR '1'='1", 'a"b', "100% %s", "cats\x00purr", "🐈", "[bold]cats[/bold]", "\\"])
def test_odd_queries_are_searched_like_any_other(workbench: Callable[..., Ran], query: str) -> None:
    ran = workbench("search", query, "--json")
    assert (ran.code, ran.json["query"]) == (0, query)
    assert workbench("search", query).code == 0


def test_the_scope_narrows_and_an_unknown_one_is_refused(workbench: Callable[..., Ran]) -> None:
    assert workbench("search", "cats", "--source", "Animals", "--tag", "pets", "--json").json["results"]
    nothing = workbench("search", "cats", "--tag", "' OR '1'='1", "--json")
    assert (nothing.code, nothing.json["results"]) == (0, [])
    assert "other tags: 'pets'" in nothing.err
    refused = workbench("search", "cats", "--source", "Plants")
    assert (refused.code, refused.out) == (2, "")
    assert "Source not found: Plants." in refused.err


def test_text_from_a_document_cannot_steer_the_terminal(
    workbench: Callable[..., Ran], folder: Callable[..., Path]
) -> None:
    workbench("ingest", str(folder({"evil.txt": "red \x1b[31malert\x07 everywhere"})))
    assert "\x1b" not in workbench("search", "red alert").out


def test_a_query_may_start_with_a_dash(workbench: Callable[..., Ran]) -> None:
    assert workbench("search", "--json", "--", "-x --json").json["query"] == "-x --json"


def test_compare_gives_a_search_result_a_strategy_and_their_agreement(workbench: Callable[..., Ran]) -> None:
    found = workbench("compare", "cats purr", "--strategies", "vector,keyword", "--limit", "3", "--json").json
    assert list(found) == ["query", "strategies", "agreement"]
    assert list(found["strategies"]) == ["vector", "keyword"]
    assert set(found["strategies"]["vector"]) >= PROMISED
    assert set(found["agreement"]) == {"jaccard", "rbo"}
    assert 0 <= found["agreement"]["jaccard"]["vector|keyword"] <= 1


def test_compare_sets_a_parameter_for_one_strategy_or_for_all_that_have_it(workbench: Callable[..., Ran]) -> None:
    words = ("compare", "dogs", "--strategies", "hybrid,rerank", "--json", "--set")
    one = workbench(*words, "hybrid.vector_weight=0").json["strategies"]
    assert one["hybrid"]["results"][0]["attribution"]["vector"]["contribution"] == 0
    assert one["rerank"]["results"][0]["attribution"]["vector"]["contribution"] > 0
    both = workbench(*words, "vector_weight=0").json["strategies"]
    assert all(answer["results"][0]["attribution"]["vector"]["contribution"] == 0 for answer in both.values())


def test_compare_shows_columns_side_by_side(workbench: Callable[..., Ran]) -> None:
    head = next(line for line in workbench("compare", "cats").out.splitlines() if "vector" in line)
    assert [name for name in head.split() if name.isalpha() and name != "ms"] == [
        "vector",
        "keyword",
        "hybrid",
        "rerank",
    ]


def test_a_comparison_is_written_in_the_form_of_the_files_ending(
    workbench: Callable[..., Ran], environment: dict[str, str], tmp_path: Path
) -> None:
    asked = ("compare", "cats purr", "--strategies", "keyword,hybrid", "--limit", "2", "--tag", "pets")
    for name in ("c.md", "c.json", "c.ipynb"):
        assert workbench(*asked, "--export", str(tmp_path / name)).code == 0
    text = (tmp_path / "c.md").read_text()
    assert text.startswith("# cats purr\n") and "## hybrid" in text and "1. **Cats**" in text
    assert set(json.loads((tmp_path / "c.json").read_text())["strategies"]) == {"keyword", "hybrid"}
    cells = json.loads((tmp_path / "c.ipynb").read_text())["cells"]
    source = "\n".join(cell["source"] for cell in cells if cell["cell_type"] == "code")
    again = subprocess.run(
        [sys.executable, "-c", source + "\nprint(list(comparison.strategies), len(comparison.strategies['keyword']))"],
        capture_output=True, text=True, env=environment, timeout=120,
    )  # fmt: skip
    assert again.stdout.endswith("['keyword', 'hybrid'] 1\n"), again.stderr


def test_a_comparison_is_not_written_if_the_path_is_invalid(workbench: Callable[..., Ran], tmp_path: Path) -> None:
    refused = workbench("compare", "cats", "--export", "c.docx")
    assert refused.code != 0 and "expected a suffix in '.md', '.json', '.ipynb'" in refused.err
    nowhere = workbench("compare", "cats", "--export", str(tmp_path / "no" / "c.md"))
    assert nowhere.code != 0 and "choose a file in an existing folder" in nowhere.err


def test_names_of_documents_are_preferred_ignored_or_the_only_ones(
    workbench: Callable[..., Ran], tmp_path: Path
) -> None:
    for name in ("ALPINE_2022_10K", "ALPINE_2023_10K", "NORTHWIND_2022_10K"):
        (tmp_path / f"{name}.md").write_text("Receipts of the harbour rose by a tenth.")
    workbench("ingest", str(tmp_path), "--source", "Reports")
    words = ("search", "harbour receipts, Alpine 2023", "--strategy", "hybrid")
    shown = workbench(*words)
    assert "Preferring: Alpine · 2023." in shown.err
    ignored = workbench(*words, "--ignore-name", "alpine", "--json").json
    assert [name["text"] for name in ignored["preferring"]] == ["2023"]
    only = workbench(*words, "--names", "only", "--json").json
    assert [Path(hit["path"]).name for hit in only["results"]] == ["ALPINE_2023_10K.md"]
    assert "preferring" in workbench(*words, "--explain").out
    compared = workbench("compare", words[1], "--strategies", "keyword,hybrid", "--names", "ignore")
    assert "Preferring" not in compared.err
    assert "Preferring" in workbench("compare", words[1], "--strategies", "keyword,hybrid").err
