"""Every statement and example of the archives tool's specification, driven by the SDK's client."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from psycopg import sql

from mcp_app.paging import tokens
from mcp_app.server import create_server, to_listed_tool
from mcp_app.tools.archives import searchLocalArchives
from tests.mcp_app.agent import MODES, Agent
from workbench import Workbench
from workbench.settings import Settings

ARCHIVES = {
    "research-archive/2025-05-20/machine_learning_intro.md": (
        "# Introduction to Machine Learning\n\nMachine learning is a subset of artificial intelligence.\n\n"
        "For more information on ML algorithms, see [this resource](https://example.com/ml-algorithms). "
        "It is also told in the Handbook of Neural Forests."
    ),
    "url-content/2025-05-21/ml-algorithms.md": (
        "# Algorithm Overview\n\nURL: https://example.com/ml-algorithms\n\nTrees and forests decide. "
        "Details are in [the forest notes](../../research-archive/2025-05-22/forests.md)."
    ),
    "research-archive/2025-05-22/forests.md": (
        "---\ntitle: Handbook of neural forests\n---\n\nForests vote. Back to [the start][1].\n\n"
        "[1]: ../2025-05-20/machine_learning_intro.md"
    ),
    "research-archive/2025-05-23/scripts.md": (
        "# A <script>alert('title')</script> page\n\nThe payload <script>alert(1)</script> & <b>bold</b> stays text."
    ),
    "research-archive/2025-05-24/empty.md": "",
    "research-archive/2025-05-24/broken.md": "---\ntitle: [broken\n---\n\n[unclosed](( [[ `` <!-- odd words",
}
RESEARCH, PAGE, FORESTS = list(ARCHIVES)[:3]


@pytest.fixture
def wb(make_settings: Callable[..., Settings], folder: Callable[..., Path]) -> Iterator[Workbench]:
    with Workbench.open(settings=make_settings(archives_dir=folder(ARCHIVES, "archives"))) as workbench:
        yield workbench


def search(agent: Agent, query: str, **arguments: Any) -> dict[str, Any]:
    return agent("searchLocalArchives", query=query, **arguments)


def found(answer: dict[str, Any]) -> list[str]:
    return [result["document"]["path"] for result in answer["results"]]


def test_the_input_schema_is_the_specifications() -> None:
    schema = to_listed_tool(searchLocalArchives).input_schema
    parts = {name: {**part, "description": ""} for name, part in schema["properties"].items()}
    assert schema["required"] == ["query"]
    assert parts == {
        "query": {"type": "string", "description": ""},
        "fuzzy": {"type": "boolean", "default": True, "description": ""},
        "includeCitations": {"type": "boolean", "default": False, "description": ""},
        "citationDepth": {"type": "integer", "default": 1, "minimum": 1, "maximum": 3, "description": ""},
        "limit": {"type": "integer", "default": 10, "minimum": 1, "maximum": 50, "description": ""},
        "offset": {"type": "integer", "default": 0, "minimum": 0, "description": ""},  # beyond it
        "citationOffset": {"type": "integer", "default": 0, "minimum": 0, "description": ""},  # and this
    }


@pytest.mark.parametrize("mode", MODES)
def test_the_example_of_the_specification(agent: Agent, mode: str) -> None:
    agent = Agent(agent.server, mode)
    answer = search(agent, "machine learning", fuzzy=True, includeCitations=True, limit=5)
    first = answer["results"][0]
    assert first["document"] | {"id": "", "score": 0} == {
        "id": "", "title": "Introduction to Machine Learning", "path": RESEARCH, "source": "research",
        "date": "2025-05-20", "score": 0,
    }  # fmt: skip
    assert 0 < first["document"]["score"] <= 1
    assert first["highlights"][0] == {
        "field": "title", "snippets": ["Introduction to <mark>Machine Learning</mark>"],
    }  # fmt: skip
    assert "<mark>Machine learning</mark> is a subset of artificial intelligence" in str(first["highlights"][1])
    citation = first["citations"]["citing"][0]
    assert citation["sourceId"] == first["document"]["id"]
    assert citation["targetUrl"] == "https://example.com/ml-algorithms"
    assert citation["context"] == (
        "For more information on ML algorithms, see [this resource](https://example.com/ml-algorithms)."
    )
    assert citation["confidence"] == 1.0
    graph = answer["citationGraph"]
    assert {"id": citation["targetId"], "label": "Algorithm Overview", "type": "target"} in graph["nodes"]
    edge = {"from": citation["sourceId"], "to": citation["targetId"], "confidence": 1.0}
    assert edge in graph["edges"]
    assert answer["metadata"] == {
        "totalResults": len(answer["results"]), "query": "machine learning", "fuzzy": True, "includeCitations": True,
        "citationDepth": 1, "limit": 5,
    }  # fmt: skip


def test_one_result_per_document_best_first_with_source_and_date(agent: Agent) -> None:
    answer = search(agent, "forests trees")
    scores = [result["document"]["score"] for result in answer["results"]]
    assert scores == sorted(scores, reverse=True)
    assert len(found(answer)) == len(set(found(answer)))
    page = next(r["document"] for r in answer["results"] if r["document"]["path"] == PAGE)
    assert (page["source"], page["date"], page["title"]) == ("url", "2025-05-21", "Algorithm Overview")


MISSPELT = {
    "artifical": "artificial",  # a letter left out
    "intelligense": "intelligence",  # two typos for the stem
    "mahcine": "Machine",  # two letters exchanged
    "lerning": "Learning",
    "forsts": "forests",
    "tees": "Trees",  # one typo in a short word
    "resouurce": "resource",  # doubled
    "sbset": "subset",
    "informaiton": "information",  # a typo in the ending, which the stem lacks
}


def test_a_misspelled_word_still_finds_its_document_and_its_highlight(agent: Agent) -> None:
    for typed, marked in MISSPELT.items():
        answer = search(agent, typed)
        text = str([highlight["snippets"] for highlight in answer["results"][0]["highlights"]]).lower()
        assert f"<mark>{marked.lower()}" in text or f"{marked.lower()}</mark>" in text, typed
        assert {guess["typed"] for guess in answer["metadata"]["guessedWords"]} == {typed}
        whole = " ".join(ARCHIVES.values()).lower()  # a guess is a word as it is in the documents, and no stem
        assert all(re.search(rf"\b{one['meant']}\b", whole) for one in answer["metadata"]["guessedWords"]), answer[
            "metadata"
        ]["guessedWords"]


def test_without_fuzzy_a_misspelled_word_finds_nothing(agent: Agent) -> None:
    for typed in ("artifical", "mahcine lerning", "tees", "sbset"):
        assert search(agent, typed, fuzzy=False)["results"] == []
    assert found(search(agent, "artificial", fuzzy=False)) == [RESEARCH]


def test_two_slips_in_a_short_word_are_too_many(agent: Agent) -> None:
    assert search(agent, "fxrxst")["metadata"]["guessedWords"]
    assert "guessedWords" not in search(agent, "txxs")["metadata"]


def test_the_word_typed_right_comes_before_the_guessed(agent: Agent, tmp_path: Path) -> None:
    root = tmp_path / "archives/research-archive/2025-06-01"
    root.mkdir(parents=True)
    (root / "exact.md").write_text("# One\n\nA zebra crosses the quiet road today.")
    (root / "near.md").write_text("# Two\n\nA zebro crosses the quiet road today.")
    assert found(search(agent, "zebra"))[0] == "research-archive/2025-06-01/exact.md"
    assert found(search(agent, "zebro"))[0] == "research-archive/2025-06-01/near.md"


def test_citations_are_there_only_if_requested(agent: Agent) -> None:
    answer = search(agent, "machine learning")
    assert "citationGraph" not in answer
    assert all("citations" not in result for result in answer["results"])
    empty = search(agent, "xyzzyqux", includeCitations=True)
    assert (empty["results"], empty["metadata"]["totalResults"], "citationGraph" in empty) == ([], 0, False)


def test_citing_and_cited_are_the_two_directions(agent: Agent) -> None:
    results = {r["document"]["path"]: r for r in search(agent, "forests", includeCitations=True)["results"]}
    ids = {path: r["document"]["id"] for path, r in results.items()}
    page = results[PAGE]["citations"]
    assert [(citation["targetId"], citation["confidence"]) for citation in page["citing"]] == [(ids[FORESTS], 1.0)]
    assert [citation["sourceId"] for citation in page["cited"]] != []
    cited = {citation["sourceId"]: citation["confidence"] for citation in results[FORESTS]["citations"]["cited"]}
    assert cited[ids[PAGE]] == 1.0
    assert sorted(cited.values()) == [0.6, 1.0]  # the introduction mentions its title in words


def test_citation_depth_follows_citations_outward_without_looping(agent: Agent) -> None:
    depths = {}
    for depth in (1, 2, 3):
        answer = search(agent, "artificial intelligence", includeCitations=True, citationDepth=depth, limit=1)
        depths[depth] = [citation["depth"] for citation in answer["results"][0]["citations"]["citing"]]
        edges = [(edge["from"], edge["to"]) for edge in answer["citationGraph"]["edges"]]
        assert len(edges) == len(set(edges))
        nodes = {node["id"] for node in answer["citationGraph"]["nodes"]}
        assert {end for edge in edges for end in edge} <= nodes
    assert depths[1] == [1, 1]
    assert max(depths[2]) == 2
    assert len(depths[3]) <= 4  # three documents in a ring: every edge once


def test_a_document_full_of_script_shows_as_text(agent: Agent) -> None:
    answer = search(agent, "payload script")
    snippets = [text for highlight in answer["results"][0]["highlights"] for text in highlight["snippets"]]
    assert all("<" not in text.replace("<mark>", "").replace("</mark>", "") for text in snippets)
    assert "&lt;<mark>script</mark>&gt;" in " ".join(snippets)
    assert "&amp;" in " ".join(snippets)


def test_snippets_are_at_most_three_of_about_200_characters(agent: Agent, tmp_path: Path) -> None:
    filler = "Other words fill the space between one place and the next one here. " * 6
    text = "# Long\n\n" + "\n\n".join(f"{filler} The quagga number{n} is seen. {filler}" for n in range(6))
    file = tmp_path / "archives/research-archive/long.md"
    file.write_text(text)
    first = search(agent, "quagga")["results"][0]
    (content,) = [highlight["snippets"] for highlight in first["highlights"] if highlight["field"] == "content"]
    assert len(content) == 3
    assert all(len(re.sub("</?mark>", "", text)) <= 230 and "<mark>quagga</mark>" in text for text in content)
    assert first["document"]["date"] == date.fromtimestamp(file.stat().st_mtime).isoformat()  # it names no other


def test_changes_on_disk_are_found_at_the_next_search(agent: Agent, tmp_path: Path) -> None:
    assert found(search(agent, "artificial", fuzzy=False)) == [RESEARCH]
    file = tmp_path / "archives" / RESEARCH
    file.write_text("# Introduction\n\nNow about narwhals.")
    assert found(search(agent, "artificial", fuzzy=False)) == []
    assert found(search(agent, "narwhal", fuzzy=False)) == [RESEARCH]
    file.unlink()
    assert found(search(agent, "narwhal", fuzzy=False)) == []


def test_a_link_that_leads_out_of_the_archives_is_not_followed(agent: Agent, tmp_path: Path) -> None:
    (tmp_path / "private").mkdir()
    (tmp_path / "private" / "secret.md").write_text("# Secret\n\nThe okapi.")
    (tmp_path / "archives" / "research-archive" / "way").symlink_to(tmp_path / "private")
    (tmp_path / "archives" / "research-archive" / "link.md").symlink_to(tmp_path / "private" / "secret.md")
    assert found(search(agent, "okapi", fuzzy=False)) == []
    (tmp_path / "archives" / "research-archive" / "own.md").write_text("# Own\n\nAnother okapi.")
    assert found(search(agent, "okapi", fuzzy=False)) == ["research-archive/own.md"]


def test_errors_are_descriptive_and_start_as_specified(agent: Agent) -> None:
    wrong = ({}, {"query": ""}, {"query": "x", "limit": 51}, {"query": "x", "citationDepth": 4}, {"query": [5]})
    for arguments in wrong:
        result = agent.talk(lambda client, given=arguments: client.call_tool("searchLocalArchives", given))
        assert result.is_error
        assert result.content[0].text.startswith("Failed to search local archives: ")


def test_a_missing_folder_is_reported_in_a_sentence(make_settings: Callable[..., Settings]) -> None:
    with Workbench.open(settings=make_settings()) as workbench:
        agent = Agent(create_server(workbench, toolsets=["all"]))
        result = agent.talk(lambda client: client.call_tool("searchLocalArchives", {"query": "x"}))
        assert result.is_error
        assert "WORKBENCH_ARCHIVES_DIR" in result.content[0].text


def test_a_hub_of_citations_stays_within_the_budget_and_reports_what_was_left_out(agent: Agent, tmp_path: Path) -> None:
    root = tmp_path / "archives/research-archive/2025-07-01"
    root.mkdir(parents=True)
    links = "\n\n".join(f"The long reason for number {n} is told in [paper {n}](p{n}.md) at length." for n in range(80))
    (root / "hub.md").write_text(f"# Okapi hub\n\n{links}")
    for n in range(80):
        (root / f"p{n}.md").write_text(
            f"# Paper {n}\n\nAbout the okapi, see [the hub](hub.md) and [next](p{n + 1}.md)."
        )
    text = agent.text("searchLocalArchives", query="okapi", includeCitations=True, citationDepth=3, limit=10)
    answer = json.loads(text)
    assert tokens(text) <= 8000
    assert len(answer["results"]) == 10
    assert answer["metadata"]["citationsLeftOut"] > 0
    assert "Next: searchLocalArchives(" in answer["metadata"]["note"]


def test_every_citation_of_a_hub_is_reached_by_the_calls_that_are_named(agent: Agent, tmp_path: Path) -> None:
    root = tmp_path / "archives/research-archive/2025-07-01"
    root.mkdir(parents=True)
    (root / "hub.md").write_text("# Okapi hub\n\nThe okapi.")
    for n in range(53):
        (root / f"p{n}.md").write_text(f"# Paper {n}\n\nPaper number {n} rests on [the hub](hub.md).")
    call: dict[str, Any] = {"query": "okapi", "includeCitations": True, "limit": 1}
    seen: list[str] = []
    edges: list[str] = []
    while call:
        answer = agent("searchLocalArchives", **call)
        (hub,) = answer["results"]
        assert (hub["citations"]["totalCiting"], hub["citations"]["totalCited"]) == (0, 53)
        seen += [citation["sourceId"] for citation in hub["citations"]["cited"]]
        edges += [edge["from"] for edge in answer["citationGraph"]["edges"]]
        following = re.search(r"Next: searchLocalArchives\((.*)\)", answer["metadata"].get("note", ""))
        named = re.sub(r"(\w+)=", r'"\1": ', following.group(1)) if following else ""
        call = json.loads(f"{{{named}}}")
    assert (len(seen), len(set(seen)), set(edges)) == (53, 53, set(seen))


def test_quotes_wildcards_and_emoji_in_a_query_are_words_like_any_other(agent: Agent) -> None:
    for query in ("' OR '1'='1", "100% %s", "🦓", '"', "a\x00b", "(((", "ß" * 30, "x" * 9000):
        assert "results" in search(agent, query, includeCitations=True)


def test_if_the_model_is_missing_keywords_answer_alone(agent: Agent, wb: Workbench) -> None:
    expected = found(search(agent, "artificial"))
    wb.corpus.database.rows(sql.SQL("UPDATE indexes SET embedding_model = 'nobody/nothing'"))
    with Workbench.open(settings=wb.settings) as without_model:
        again = search(Agent(create_server(without_model, toolsets=["all"])), "artifical", includeCitations=True)
    assert found(again)[:1] == expected[:1]
    assert again["citationGraph"]["edges"]
