"""The rows of the table of strategies agree with their retrievers and stages."""

from __future__ import annotations

import pytest

from workbench.errors import ConfigurationError
from workbench.retrieval.strategies import BUILT_IN_STRATEGIES, check_parameters, load_retrievers, load_stages


def test_every_row_names_a_retriever_and_stages_that_exist() -> None:
    for strategy in BUILT_IN_STRATEGIES.values():
        assert strategy.retriever in load_retrievers(), strategy.name
        assert set(strategy.stages) <= load_stages().keys(), strategy.name


def test_what_a_row_says_of_its_candidates_follows_from_its_retriever() -> None:
    rows = BUILT_IN_STRATEGIES.values()
    assert {row.name for row in rows if row.is_one_leg} == {"vector", "keyword"}
    assert {row.name for row in rows if row.typo_tolerant} == {"fuzzy"}
    assert {row.name for row in rows if not row.has_keyword_leg} == {"vector", "keyword", "llamaindex-hybrid"}
    others = {"vector", "keyword", "fuzzy", "feedback", "hyde", "multi-query", "llamaindex-hybrid"}
    assert {row.name for row in rows if not row.pools} == others


def test_a_parameter_that_a_row_forgets_is_named_with_its_strategy() -> None:
    parameters = check_parameters("vector", None)
    with pytest.raises(ConfigurationError, match=r"'vector' has no parameter 'vector_weight'.*add it to .* row"):
        parameters["vector_weight"]
