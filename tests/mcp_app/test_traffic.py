"""Agents' traffic: weak judgments, chains of searches as cases, and two strategies in one service."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from evals.evaluation import TestSets
from evals.experiments.leaderboard import describe_weaknesses
from mcp_app.paging import tokens
from mcp_app.server import create_server
from tests.mcp_app.agent import Agent
from tests.mcp_app.processes import over_http, over_stdio
from workbench import Workbench
from workbench.cli import main
from workbench.errors import InvalidInput
from workbench.types import Scope

TEXTS = {
    "cats.md": "# Cats\n\nCats purr when they are content. They hunt at night.",
    "bees.md": "# Bees\n\nBees make honey in summer. They dance for others.",
    "dogs.md": "# Dogs\n\nDogs bark at strangers. They fetch sticks.",
}
SEARCH = "search_knowledge_base"


@pytest.fixture
def agent(wb: Workbench, folder: Callable[..., Path]) -> Agent:
    for project in ("Shop", "Bank"):
        wb.projects.create(project)
    wb.ingest(folder({name: TEXTS[name] for name in ("cats.md", "bees.md")}), source="Animals", project="Shop")
    wb.ingest(folder({"dogs.md": TEXTS["dogs.md"]}, "others"), source="Others", project="Bank")
    return Agent(create_server(wb, toolsets=["all", "evaluation"]))


def find_id(wb: Workbench, title: str) -> str:
    return next(document.id for document in wb.documents.list() if document.title == title)


def test_what_agents_open_and_cite_becomes_weak_judgments_in_the_scope_only(agent: Agent, wb: Workbench) -> None:
    cats, bees, dogs = (find_id(wb, title) for title in ("Cats", "Bees", "Dogs"))
    shop = wb.projects.get("Shop").id
    asked = agent("rag_search_project_knowledge", query="Why do cats purr?", project_id=shop, match_count=2)
    assert asked["results"][0]["page_id"] == cats
    agent("rag_read_full_page", page_id=cats)
    agent("rag_read_full_page", page_id=cats)
    agent("rag_search_project_knowledge", query="Who makes honey?", project_id=shop, match_count=1)
    agent("cite_documents", documents=[bees])
    agent(SEARCH, query="dogs bark", source_id="Others")
    agent("rag_read_full_page", page_id=dogs)
    sets = TestSets(wb)
    sets.create("Shop", scope=Scope(kind="project", project="Shop"))
    added = agent("add_test_questions", title="Shop", from_agents="queries")
    assert (added["added"], added["weak_judgments"]) == (2, 2)
    test_set = sets.load("Shop")
    texts = {question.id: question.text for question in test_set.questions}
    grades = {(texts[key], name): grade for key, own in test_set.qrels.items() for name, grade in own.items()}
    assert grades == {("Why do cats purr?", cats): 1, ("Who makes honey?", bees): 2}  # opened, and cited
    assert {(one.rater, one.judge) for one in sets.ratings("Shop")} == {("traffic", "agent")}
    assert sets.ratings("Shop")[0].reason == "opened 2, cited 0 times by agents"
    assert len(test_set.by_agents) == 2
    assert "2 of 2 judgments are weak" in " ".join(describe_weaknesses(test_set, {}, "ndcg@10"))
    again = agent("add_test_questions", title="Shop", from_agents="queries")
    assert (again["added"], again["weak_judgments"]) == (0, 0)
    # a person's grade takes precedence, and the judgment is no longer weak
    question = next(key for key, text in texts.items() if text == "Why do cats purr?")
    sets.judge("Shop", question, cats, "relevant")
    judged = sets.load("Shop")
    assert judged.qrels[question][cats] == 2 and len(judged.by_agents) == 1
    sets.create("All")
    [other] = sets.add_questions("All", [{"text": "dogs bark", "turns": ["Do cats purr?", "Yes."]}])
    assert sets.add_agent_queries("All").judgments == 3
    assert [one.text for one in sets.load("All").questions].count("dogs bark") == 2  # asked without its conversation
    assert other.id not in sets.load("All").qrels


def test_a_chain_of_searches_is_one_case_with_what_was_found_when_and_never(agent: Agent, wb: Workbench) -> None:
    cats, bees, dogs = (find_id(wb, title) for title in ("Cats", "Bees", "Dogs"))
    agent(SEARCH, query="purr", source_id="Others", match_count=1)
    agent(SEARCH, query="cats purr", match_count=1)
    agent("rag_read_full_page", page_id=cats)
    agent(SEARCH, query="honey of bees", match_count=1)
    agent("fetch", id=bees)
    sets = TestSets(wb)
    sets.create("All")
    (verdict,) = sets.chains("All")
    assert verdict.hops == 3 and not verdict.is_judged
    assert verdict.found == {cats: (2, 1), bees: (3, 1)} and verdict.missed == ()
    assert verdict.recall == (0.0, 0.5, 1.0)
    assert verdict.describe() == "3 searches found 2 of 2 opened or cited documents: search 2 rank 1, search 3 rank 1"
    added = sets.add_agent_queries("All", as_chains=True)
    assert (added.questions, added.judgments) == (1, 2)
    assert sets.chains("All")[0].describe().startswith("3 searches found 2 of 2 weakly judged documents: search 2")
    (question,) = sets.load("All").questions
    assert (question.text, question.metadata) == ("purr", {"chain": ["purr", "cats purr", "honey of bees"]})
    wolves = wb.documents.create(text="Wolves howl.", title="Wolves", source="Others").document.id
    sets.judge("All", question.id, wolves, "relevant")  # a person misses it in all three searches
    shown = agent("list_search_chains", test_set="All")
    assert shown["total"] == 1 and shown["untrusted"] is True
    (chain,) = shown["chains"]
    assert [one["query"] for one in chain["searches"]] == ["purr", "cats purr", "honey of bees"]
    assert [one["recall"] for one in chain["searches"]] == [0.0, 0.3333, 0.6667]
    assert chain["never_found"] == [wolves]
    assert chain["outcome"].startswith("3 searches found 2 of 3 relevant documents")
    sets.create("Shop", scope=Scope(kind="project", project="Shop"))
    assert sets.chains("Shop") == []  # these searches were wider than the project
    assert dogs not in str(chain)


def test_a_long_chain_comes_in_parts_within_the_budget(agent: Agent, wb: Workbench) -> None:
    queries = [f"{number} " + "".join(chr(0x20000 + number * 300 + n) for n in range(280)) for number in range(24)]
    for query in queries:
        agent(SEARCH, query=query, match_count=1)
    TestSets(wb).create("All")
    seen, offset, total = list[str](), 0, 1
    while offset < total:
        text = agent.text("list_search_chains", test_set="All", limit=20, offset=offset)
        assert tokens(text) <= 8_000
        answer = json.loads(text)
        seen += [one["query"].split()[0] for chain in answer["chains"] for one in chain["searches"]]
        offset, total = offset + answer["count"], answer["total"]
    assert seen == [str(number) for number in range(24)]


def test_each_connection_is_a_chain_over_stdio_and_over_http(agent: Agent, wb: Workbench) -> None:
    async def ask(server: Any, *queries: str) -> None:
        async with Client(server, mode="legacy") as client:
            for query in queries:
                await client.call_tool(SEARCH, {"query": query})

    asyncio.run(ask(over_stdio(wb.settings), "cats", "cats purr"))
    with over_http(wb.settings) as base:
        asyncio.run(ask(f"{base}/mcp", "bees", "bees dance"))
        asyncio.run(ask(f"{base}/mcp", "dogs"))
    TestSets(wb).create("All")
    found = [[one.query for one in verdict.chain.searches] for verdict in TestSets(wb).chains("All")]
    assert found == [["dogs"], ["bees", "bees dance"], ["cats", "cats purr"]]
    assert len({call.session for call in wb.tool_calls.list()}) == 3


def test_what_a_connection_has_just_done_counts_in_its_next_call(agent: Agent, wb: Workbench) -> None:
    cats = find_id(wb, "Cats")

    async def work(client: Client) -> list[dict[str, Any]]:
        await client.call_tool(SEARCH, {"query": "Why do cats purr?"})
        await client.call_tool("cite_documents", {"documents": [cats]})
        added = await client.call_tool("add_test_questions", {"title": "All", "from_agents": "queries"})
        await client.call_tool(SEARCH, {"query": "bees"})
        chains = await client.call_tool("list_search_chains", {"test_set": "All"})
        return [json.loads(result.content[0].text) for result in (added, chains)]

    added, shown = agent.talk(work)
    assert (added["added"], added["weak_judgments"]) == (1, 1)
    assert [one["query"] for one in shown["chains"][0]["searches"]] == ["Why do cats purr?", "bees"]


def test_two_strategies_are_mixed_only_if_a_promotion_has_a_rival_and_the_answer_names_both(
    agent: Agent, wb: Workbench
) -> None:
    assert "interleaved" not in agent(SEARCH, query="cats purr")
    with pytest.raises(InvalidInput, match="itself"):
        wb.promotions.promote("keyword", rival="keyword")
    wb.promotions.promote("keyword", rival="vector")
    mixed = agent(SEARCH, query="who makes honey", match_count=3)
    assert mixed["interleaved"] == ["keyword", "vector"]
    assert {one["match_type"] for one in mixed["results"]} == {"hybrid"}  # nothing shows who found it
    scores = [one["score"] for one in mixed["results"]]
    assert scores == sorted(scores, reverse=True)
    (first, *rest) = (agent(SEARCH, query="who makes honey", match_count=1, offset=n)["results"] for n in range(3))
    pages = [one["document_id"] for page in (first, *rest) for one in page]
    assert pages == [one["document_id"] for one in mixed["results"]]
    for tool, more in (("rag_search_knowledge_base", {"return_mode": "pages"}), ("search", {})):
        assert agent(tool, query="who makes honey", **more)["interleaved"] == ["keyword", "vector"]
    assert "interleaved" not in agent(SEARCH, query="who makes honey", search_type="vector")
    assert wb.search("who makes honey").interleaving is None  # only agents' opened documents are known
    call = next(call for call in wb.tool_calls.list() if call.promotion)
    assert call.promotion == "everywhere 1" and set(call.teams) <= {"keyword", "vector"}
    assert len(call.teams) == len(call.documents)
    wb.promotions.undo()
    assert "interleaved" not in agent(SEARCH, query="who makes honey")


def test_opened_documents_are_credited_to_the_strategy_that_contributed_them(
    agent: Agent, wb: Workbench, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = agent("propose_promotion", strategy="keyword", rival="vector", reason="To compare", proposed_by="small")
    assert wb.promotions.accept(made["proposal_id"]).rival == "vector"
    for number in range(8):  # an agent that opens what the promoted strategy contributed, whatever its rank
        agent(SEARCH, query=f"cats and bees and dogs {number}", match_count=3)
        call = wb.tool_calls.list(queries_only=True, limit=1)[0]
        own = [key for key, team in zip(call.documents, call.teams, strict=True) if team == "keyword"]
        agent("rag_read_full_page", page_id=own[0])
    agent(SEARCH, query="nothing is opened", match_count=3)
    (result,) = wb.interleavings()
    assert (result.lists, result.difference.wins, result.difference.losses) == (9, 8, 0)
    assert result.difference.significant and result.difference.p == pytest.approx(2 / 2**8, abs=1e-6)
    assert result.describe().startswith("keyword interleaved with vector: 9 lists of results, 8 with an opened")
    (shown,) = agent("list_rivals")["rivals"]
    assert (shown["difference"]["wins"], shown["promotion"]["rival"]) == (8, "vector")
    assert shown["outcome"] == result.describe()
    assert wb.settings.database_url is not None
    monkeypatch.setenv("WORKBENCH_HOME", str(wb.settings.home))
    monkeypatch.setenv("WORKBENCH_DATABASE_URL", wb.settings.database_url.get_secret_value())
    monkeypatch.setenv("WORKBENCH_EMBEDDING_MODEL", wb.settings.embedding_model)
    assert main(["strategies", "rivals", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rivals"][0]["difference"]["wins"] == 8
    TestSets(wb).create("All")
    assert main(["judgments", "collect", "All"]) == 0
    assert "Questions added: 9. Weak judgments by the rater 'traffic': 8." in capsys.readouterr().out
    assert main(["judgments", "chains", "All", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["chains"][0]["chain"]["client"]
    assert main(["strategies", "promote", "vector", "--rival", "keyword"]) == 0
    assert [one.rival for one in wb.promotions.current()] == ["keyword"]
