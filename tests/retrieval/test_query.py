"""A question is a value: its properties do not depend on which code reads them first."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from llama_index.core.schema import QueryBundle

from workbench import Workbench
from workbench.retrieval.legs import leg_confidences
from workbench.retrieval.options import Ask
from workbench.retrieval.pipeline import run_search

DOCS = {"a.md": "# Animals\n\nThe aardvark sleeps at noon.", "b.md": "# Birds\n\nThe heron stands in the river."}
TYPO = "aardvrak sleeps"


@pytest.fixture
def animals(wb: Workbench, folder: Callable[..., Path]) -> Workbench:
    """Two short documents."""
    wb.ingest(folder(DOCS), source="Animals")
    return wb


def test_votes_are_the_same_before_and_after_a_search(animals: Workbench) -> None:
    unread = animals.requests.make(Ask("fuzzy")).question(TYPO)
    searched = animals.requests.make(Ask("fuzzy")).question(TYPO)
    run_search(searched)
    assert leg_confidences(unread) == leg_confidences(searched)
    assert leg_confidences(unread)["vector"] == 0.5  # one of two words is misspelled


@pytest.mark.parametrize("asked", [TYPO, QueryBundle(TYPO)])
def test_an_engine_corrects_typos_as_a_search_does(animals: Workbench, asked: str | QueryBundle) -> None:
    result = animals.search(TYPO, "rerank", 2)
    assert result.corrections == {"aardvrak": ("aardvark",)}
    nodes = animals.query_engine("rerank", limit=2).retrieve(asked)  # pyright: ignore[reportArgumentType]
    assert [(node.node_id, node.score) for node in nodes] == [(hit.passage_id, hit.score) for hit in result]


def test_the_question_of_a_request_is_returned_as_it_is(animals: Workbench) -> None:
    request = animals.requests.make(Ask("hybrid"))
    query = request.question(QueryBundle("heron"))
    assert request.question(query) is query
    assert (query.text, query.query_str, query.request) == ("heron", "heron", request)


def test_the_vector_leg_reads_a_question_in_the_normal_form_of_documents(animals: Workbench) -> None:
    request = animals.requests.make(Ask("vector"))
    plain, odd = request.question("the aardvark digs"), request.question("the aard\u00advark\u200b\u00a0digs")
    assert odd.encoded.vector.tolist() == plain.encoded.vector.tolist()
