"""An agent that names no number gets what is worth its tokens; the rest is one call away, and people see everything."""

from __future__ import annotations

import re
from typing import Any

import pytest

from mcp_app.worth import worth_reading
from tests.mcp_app.agent import Agent
from workbench import Workbench
from workbench.retrieval.parameters import DOCUMENTS_CUTOFF, MACHINES_CUTOFF

QUERY = "owls hunt mice at night"
TOOLS = [
    ("rag_search_global_knowledge", {}, "aggregate_similarity", DOCUMENTS_CUTOFF),
    ("rag_search_project_knowledge", {"project_id": "Birds"}, "aggregate_similarity", DOCUMENTS_CUTOFF),
    ("rag_search_knowledge_base", {}, "aggregate_similarity", DOCUMENTS_CUTOFF),
    ("rag_search_knowledge_base", {"return_mode": "chunks"}, "rerank_score", MACHINES_CUTOFF),
    ("search_knowledge_base", {}, "score", MACHINES_CUTOFF),
]


@pytest.fixture
def birds(wb: Workbench) -> Workbench:
    """One document that answers and nine of which each holds a word of the question, in a project and outside."""
    wb.projects.create("Birds")
    for source, project in (("Everybody's", None), ("Ours", "Birds")):
        wb.sources.create(source, project=project)
        wb.documents.create(text="Owls hunt mice at night, with ears that hear them.", title="Owls", source=source)
        for number in range(9):
            text = f"Trains number {number} leave the station in the morning, one at night, and carry coal and corn."
            wb.documents.create(text=text, title=f"Train {number}", source=source)
    return wb


@pytest.mark.parametrize(("tool", "more", "score", "share"), TOOLS)
def test_without_a_number_only_what_is_near_the_best_is_given(
    agent: Agent, birds: Workbench, tool: str, more: dict[str, Any], score: str, share: float
) -> None:
    few = agent(tool, query=QUERY, **more)
    scores = [result[score] for result in few["results"]]
    assert 0 < len(scores) < 5 and min(scores) >= share * scores[0] - 0.0001
    offset = int(re.findall(r"offset=(\d+)", few["note"])[0])
    assert (few["count"], offset, few["more"]) == (len(scores), len(scores), True)
    rest = agent(tool, query=QUERY, offset=offset, **more)["results"]
    assert rest and rest[0][score] < share * scores[0]
    assert agent(tool, query=QUERY, match_count=8, **more)["count"] == 8


def test_a_connector_gets_the_documents_near_the_best_and_people_all_ten(agent: Agent, birds: Workbench) -> None:
    titles = [result["title"] for result in agent("search", query=QUERY)["results"]]
    assert titles[0] == "Owls" and len(titles) < 10
    assert len(birds.search(QUERY)) == len(birds.search(QUERY, "hybrid")) == 10


def test_scores_that_no_cutoff_fits_all_count() -> None:
    assert worth_reading([1.0, 0.7, 0.69], "rerank", 0.7) == 2
    assert worth_reading([1.0, 0.7, 0.1], "vector", 0.7) == 3
    assert worth_reading([], "rerank", 0.7) == 0
