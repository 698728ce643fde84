"""The first run: the sample is loaded if requested and there is no source yet."""

from __future__ import annotations

from collections.abc import Callable

from commands import Ran


def test_a_search_of_the_sample_loads_it_once(workbench: Callable[..., Ran]) -> None:
    first = workbench("search", "how is ranking quality measured?", "--sample", "--json")
    assert first.code == 0 and first.json["results"]
    assert "First run: loading the sample corpus" in first.err
    assert "First run" not in workbench("search", "ranking", "--sample").err


def test_a_corpus_of_ones_own_stays_without_the_sample(workbench: Callable[..., Ran], animals: object) -> None:
    workbench("ingest", str(animals), "--source", "Animals")
    searched = workbench("search", "how is ranking quality measured?", "--sample", "--json")
    assert "First run" not in searched.err
    assert {hit["document_title"] for hit in searched.json["results"]} <= {"Cats", "Dogs", "fish"}
