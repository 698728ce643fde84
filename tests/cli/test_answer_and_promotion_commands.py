"""``ask``, ``search --explain`` and ``--expect``, ``strategies promote``, and comparison of indexes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from commands import Ran

from tests.ingestion import files

DOCS = {
    "cats.md": "# Cats\n\nCats purr when they are content. A cat sleeps most of the day.",
    "dogs.md": "# Dogs\n\nDogs bark at strangers. A dog guards the house.",
}


@pytest.fixture
def animals(workbench: Callable[..., Ran], folder: Callable[..., Path]) -> Callable[..., Ran]:
    """The command over two documents."""
    assert workbench("ingest", str(folder(DOCS)), "--source", "Animals").code == 0
    return workbench


def test_ask_prints_the_answer_and_its_numbered_sources(animals: Callable[..., Ran]) -> None:
    ran = animals("ask", "When do cats purr?")
    assert ran.code == 0 and "Cats purr when they are content. [1]" in ran.out
    assert "[1] Cats  cats.md" in ran.out
    answer = json.loads(animals("ask", "When do cats purr?", "--json").out)
    assert (answer["kind"], answer["citations"][0]["number"]) == ("extracts", 1)
    assert "Nothing in the documents answers" in animals("ask", "Who won the football cup?").out


def test_a_row_of_a_table_is_shown_below_the_names_of_its_columns_and_an_answer_reports_the_page(
    workbench: Callable[..., Ran], tmp_path: Path
) -> None:
    (tmp_path / "dues.md").write_text("# Dues\n\n| Quay | 2023 | 2024 |\n|---|---|---|\n| Outer | 120 | 131 |\n")
    (tmp_path / "log.pdf").write_bytes(files.pdf([["A herring gull nests on the mast of the lightship."]] * 2))
    workbench("ingest", str(tmp_path))
    lines = [line.split() for line in workbench("search", "outer quay 2024", "--limit", "1").out.splitlines()]
    assert ["Quay", "2023", "2024"] in lines and ["Outer", "120", "131"] in lines
    assert "Outer, 2023: 120 · 2024: 131" in workbench("compare", "outer quay", "--strategies", "keyword").out
    assert "log.pdf, page 1" in workbench("ask", "Where does the herring gull nest?").out


def test_explain_explains_why_in_words_and_in_json(animals: Callable[..., Ran]) -> None:
    shown = " ".join(animals("search", "cats purr", "--explain").out.split())
    assert "rank 1 in scope" in shown and "rank 1 of the candidates" in shown
    assert "purr x1" in shown and "keyword 1" in shown
    value = json.loads(animals("search", "cats purr", "--explain", "--json").out)
    assert [why["passage_id"] for why in value["explanations"]] == [hit["passage_id"] for hit in value["results"]]
    assert value["explanations"][0]["terms"][0]["share"] > 0


def test_expect_reports_where_a_document_was_dropped(animals: Callable[..., Ran]) -> None:
    listed = json.loads(animals("documents", "list", "--json").out)["documents"]
    dogs = next(document["id"] for document in listed if document["title"] == "Dogs")
    value = json.loads(animals("search", "cats", "--strategy", "keyword", "--expect", dogs, "--json").out)
    assert value["expected"]["outcome"] == "not retrieved"
    assert [step["kept"] for step in value["expected"]["steps"]] == [True, True, False, False]
    shown = " ".join(animals("search", "cats", "--strategy", "keyword", "--expect", dogs).out.split())
    assert "Dogs: not retrieved" in shown and "In scope (2) > Found (1): dropped" in shown
    assert animals("search", "cats", "--expect", "doc_none").code == 2


def test_a_misspelled_word_is_reported_as_searched_as_another(animals: Callable[..., Ran]) -> None:
    ran = animals("search", "stranegrs")
    assert "No document contains 'stranegrs'; also searched for 'strangers'." in ran.err
    assert json.loads(animals("search", "stranegrs", "--json").out)["corrections"] == {"stranegrs": ["strangers"]}


def test_indexes_are_compared_like_strategies(animals: Callable[..., Ran]) -> None:
    assert animals("indexes", "create", "small", "--chunker", "sentence").code == 0
    ran = animals("compare", "cats", "--strategies", "hybrid,hybrid@main", "--set", "hybrid@main.fusion=rrf", "--json")
    assert list(json.loads(ran.out)["strategies"]) == ["hybrid", "hybrid@main"]
    assert "There is no strategy 'x'" in animals("compare", "cats", "--strategies", "x@main").err


def test_every_strategy_is_asked_on_every_index_that_is_named(animals: Callable[..., Ran]) -> None:
    animals("indexes", "create", "second", "--chunker", "sentence", "--build")
    words = ("compare", "cats", "--strategies", "keyword,hybrid", "--set", "hybrid.fusion=rrf", "--json")
    ran = animals(*words, "--indexes", "main, second")
    columns = {name: (result["strategy"], result["index"]) for name, result in ran.json["strategies"].items()}
    pairs = [(strategy, index) for strategy in ("keyword", "hybrid") for index in ("main", "second")]
    assert columns == {f"{strategy}@{index}": (strategy, index) for strategy, index in pairs}
    assert "use one of them" in animals("compare", "cats", "--strategies", "hybrid@main", "--indexes", "main").err
    assert "not allowed with" in animals(*words, "--index", "main", "--indexes", "second").err


def test_a_promoted_strategy_serves_until_it_is_undone(animals: Callable[..., Ran]) -> None:
    promoted = animals("strategies", "promote", "hybrid@main", "--set", "fusion=rrf", "--note", "won", "--json")
    assert json.loads(promoted.out)["parameters"]["fusion"] == "rrf"
    assert json.loads(animals("search", "cats", "--json").out)["strategy"] == "hybrid"
    assert json.loads(animals("search", "cats", "--source", "Animals", "--json").out)["strategy"] == "hybrid"
    assert "in effect" in animals("strategies", "history").out
    assert "The default in this scope is now rerank." in animals("strategies", "undo").out
    assert json.loads(animals("search", "cats", "--json").out)["strategy"] == "rerank"
    again = animals("strategies", "undo")
    assert again.code == 1 and "Nothing is promoted" in again.err
