"""The columns of a comparison: one that fails shows why and does not affect the others."""

import pytest

from workbench import Scope
from workbench.app.compare.board import build_failures_data
from workbench.app.compare.columns import SearchSettings, run_comparison
from workbench.errors import NotFound, ScopeError

EVERYTHING = SearchSettings(Scope(), None, {})


@pytest.fixture
def tides(wb, folder):
    wb.ingest(folder({"gauge.md": "# Gauge\n\nThe tide gauge records the sea."}), source="Tides")
    return wb


def test_a_strategy_that_insists_on_a_scope_fails_alone_and_offers_the_scopes(tides):
    compared = run_comparison(tides, "tide", ["vector", "keyword", "scoped"], 10, EVERYTHING)
    assert list(compared.comparison.strategies) == ["vector", "keyword"]
    assert [len(result) for result in compared.comparison.strategies.values()] == [1, 1]
    (failure,) = build_failures_data(tides, compared.failures)
    assert failure["name"] == "scoped"
    assert [place["title"] for place in failure["scopes"]["source"]] == ["Tides"]


def test_a_parameter_out_of_its_range_is_explained_in_its_column(tides):
    asking = SearchSettings(Scope(), None, {"rerank": {"candidates": "9999"}})
    compared = run_comparison(tides, "tide", ["keyword", "rerank"], 10, asking)
    assert list(compared.comparison.strategies) == ["keyword"]
    assert "Invalid candidates" in str(compared.failures["rerank"])
    assert build_failures_data(tides, compared.failures)[0]["scopes"] == {}


def test_an_unknown_strategy_fails_alone_with_the_ones_there_are(tides):
    compared = run_comparison(tides, "tide", ["keyword", "nonsense"], 10, EVERYTHING)
    assert "nonsense" in str(compared.failures["nonsense"])
    assert "vector" in str(compared.failures["nonsense"])


def test_what_makes_every_column_fail_is_stated_once(tides):
    with pytest.raises(NotFound):
        run_comparison(tides, "tide", ["vector", "keyword"], 10, SearchSettings(Scope(), "nowhere", {}))
    with pytest.raises(ScopeError):
        run_comparison(tides, "tide", ["vector"], 10, SearchSettings(Scope(project="nowhere"), None, {}))


def test_the_only_column_may_fail_and_still_offers_its_remedy(tides):
    compared = run_comparison(tides, "tide", ["scoped"], 10, EVERYTHING)
    assert not compared.comparison.strategies
    assert list(compared.failures) == ["scoped"]
