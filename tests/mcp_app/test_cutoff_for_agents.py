"""An agent that gives no count gets only good results; one more call returns the rest, and people see all."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_app.paging import count_above_cutoff
from tests.mcp_app.agent import Agent
from workbench import Workbench
from workbench.retrieval.parameters import AGENT_CUTOFF, DOCUMENT_CUTOFF

QUERY = "owls hunt mice at night"
TOOLS = [
    ("rag_search_global_knowledge", {}, "aggregate_similarity", DOCUMENT_CUTOFF, 5),
    ("rag_search_project_knowledge", {"project_id": "Birds"}, "aggregate_similarity", DOCUMENT_CUTOFF, 5),
    ("rag_search_knowledge_base", {}, "aggregate_similarity", DOCUMENT_CUTOFF, 5),
    ("rag_search_knowledge_base", {"return_mode": "chunks"}, "rerank_score", AGENT_CUTOFF, 5),
    ("search_knowledge_base", {}, "score", AGENT_CUTOFF, 10),
]


@pytest.fixture
def birds(wb: Workbench) -> Workbench:
    """One document that answers, and nine that share a word with the question, in a project and outside."""
    wb.projects.create("Birds")
    for source, project in (("Everybody's", None), ("Ours", "Birds")):
        wb.sources.create(source, project=project)
        wb.documents.create(text="Owls hunt mice at night, with ears that hear them.", title="Owls", source=source)
        for number in range(9):
            text = f"Trains number {number} leave the station in the morning, one at night, and carry coal and corn."
            wb.documents.create(text=text, title=f"Train {number}", source=source)
    return wb


@pytest.mark.parametrize(("tool", "more", "score", "share", "default"), TOOLS)
def test_without_a_number_the_default_counts_and_what_is_far_from_the_best_is_marked(
    agent: Agent, birds: Workbench, tool: str, more: dict[str, Any], score: str, share: float, default: int
) -> None:
    answer = agent(tool, query=QUERY, **more)
    results = answer["results"]
    assert (answer["count"], len(results)) == (default, default)
    weak = [result["below_cutoff"] for result in results if "below_cutoff" in result]
    near = len(results) - len(weak)
    assert 0 < near < default and weak == [True] * len(weak)
    assert results[near - 1][score] >= share * results[0][score] - 0.0001 > results[near][score] - 0.0002
    assert answer["cutoff"].startswith(f"From result {near + 1} on, scores are below {share:g} of the best")
    named = agent(tool, query=QUERY, match_count=default, **more)
    assert [result[score] for result in named["results"]] == [result[score] for result in results]
    assert agent(tool, query=QUERY, match_count=2, **more)["count"] == 2


@pytest.mark.parametrize(("tool", "more", "score", "share", "default"), TOOLS)
def test_nothing_close_gives_few_results_a_suggestion_and_no_next_call(
    agent: Agent, birds: Workbench, tool: str, more: dict[str, Any], score: str, share: float, default: int
) -> None:
    answer = agent(tool, query="quarterly dividend forecast", **more)
    assert answer["nothing_close"].startswith("Nothing close was found")
    assert (answer["count"], len(answer["results"])) == (3, 3)
    assert answer["suggestion"] and "note" not in answer
    rest = agent(tool, query="quarterly dividend forecast", offset=3, **more)["results"]
    assert rest and not {str(result) for result in rest} & {str(result) for result in answer["results"]}


def test_a_connector_gets_the_documents_near_the_best_and_people_all_ten(agent: Agent, birds: Workbench) -> None:
    answer = agent("search", query=QUERY)
    titles = [result["title"] for result in answer["results"]]
    assert titles[0] == "Owls" and len(titles) < 10
    assert answer["cutoff"].startswith(f"{10 - len(titles)} more score below")
    assert len(birds.search(QUERY)) == len(birds.search(QUERY, "hybrid")) == 10


def test_scores_that_no_cutoff_fits_all_count() -> None:
    assert count_above_cutoff([1.0, 0.7, 0.69], "rerank", 0.7) == 2
    assert count_above_cutoff([1.0, 0.7, 0.1], "vector", 0.7) == 3
    assert count_above_cutoff([], "rerank", 0.7) == 0
