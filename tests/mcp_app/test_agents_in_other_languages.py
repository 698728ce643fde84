"""Agents in other languages: a language narrows a search and is in the hit, and no threshold hides words."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from mcp_app.server import create_server
from tests.mcp_app.agent import Agent
from workbench import Workbench
from workbench.settings import Settings

JAPANESE = {
    "検索": "検索エンジンは文書を索引に登録し、質問に合う文書を順に並べます。",
    "料理": "味噌汁は出汁に味噌を溶いて作ります。豆腐とわかめを入れます。",
    "鉄道": "新幹線は東京と大阪を二時間半で結びます。",
    "評価": "検索エンジンの評価には適合率と再現率を使います。",
}
TEXTS = {
    "Turm": (
        "Der Turm steht in der alten Stadt und ist dreihundert Meter hoch, sagen die Leute am Markt. "
        "Man darf für zwei Euro hinauf und sieht über die Dächer bis zum Fluss."
    ),
    "Tower": (
        "The tower, in German Turm, stands in the old town and is three hundred metres high. "
        "Those who climb it see the river and the roofs of the houses."
    ),
}


@pytest.fixture
def japanese(make_settings: Callable[..., Settings]) -> Iterator[Agent]:
    """An agent on a Japanese corpus with a model that only reads English."""
    with Workbench.open(settings=make_settings(embedding_model="minilm")) as workbench:
        for title, text in JAPANESE.items():
            workbench.documents.create(title=title, text=text)
        yield Agent(create_server(workbench, toolsets=["all"]))


@pytest.mark.parametrize("search_type", ["hybrid", "rerank"])
def test_the_default_threshold_hides_no_words_that_the_model_cannot_see(japanese: Agent, search_type: str) -> None:
    answer = japanese("search_knowledge_base", query="検索エンジン", search_type=search_type)
    assert {result["document_title"] for result in answer["results"]} >= {"検索", "評価"}
    assert {result["document_title"] for result in answer["results"][:2]} == {"検索", "評価"}
    everything = japanese(
        "search_knowledge_base", query="検索エンジン", search_type=search_type, similarity_threshold=0
    )
    assert [result["chunk_id"] for result in answer["results"][:2]] == [
        result["chunk_id"] for result in everything["results"][:2]
    ]


def test_a_language_narrows_the_search_and_is_on_the_hit(agent: Agent, wb: Workbench) -> None:
    for title, text in TEXTS.items():
        wb.documents.create(title=title, text=text)

    def languages(tool: str, **arguments: object) -> set[str]:
        return {result["metadata"]["language"] for result in agent(tool, query="Turm", **arguments)["results"]}

    assert languages("search_knowledge_base") == {"english", "german"}
    assert languages("search_knowledge_base", language="de") == {"german"}
    assert languages("rag_search_knowledge_base", return_mode="chunks", match_count=5) == {"english", "german"}
    assert languages("rag_search_knowledge_base", return_mode="chunks", language="english") == {"english"}


@pytest.mark.parametrize("tool", ["search_knowledge_base", "rag_search_knowledge_base"])
def test_a_language_that_does_not_exist_is_one_sentence(agent: Agent, tool: str) -> None:
    answer = agent.failure(tool, query="Turm", language="klingon")
    assert "There is no language 'klingon'" in answer["error"]
