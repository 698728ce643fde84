"""The rows of the table of strategies agree with their retrievers and stages."""

from __future__ import annotations

from itertools import combinations

import pytest

from workbench.errors import ConfigurationError
from workbench.retrieval.strategies import STRATEGIES, check_parameters


@pytest.mark.parametrize("field", ["pools", "has_keyword_leg", "is_one_leg"])
def test_rows_with_the_same_retriever_describe_it_alike(field: str) -> None:
    for one, other in combinations(STRATEGIES.values(), 2):
        if one.retriever is other.retriever:
            agree = getattr(one, field) == getattr(other, field)
            assert agree, f"{one.name!r} and {other.name!r} have one retriever: give {field} alike in both rows"


def test_a_parameter_that_a_row_forgets_is_named_with_its_strategy() -> None:
    parameters = check_parameters("vector", None)
    with pytest.raises(ConfigurationError, match=r"'vector' has no parameter 'vector_weight'.*add it to .* row"):
        parameters["vector_weight"]
