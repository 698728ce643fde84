"""The pages of a search together are one ranking, and the last page reports the limit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest

from mcp_app.server import create_server
from tests.mcp_app.agent import Agent
from workbench import Workbench
from workbench.ingestion.incoming import text_item
from workbench.settings import Settings

QUESTION = "the refund of an invoice"
DOCUMENTS = 230


@pytest.fixture
def crowd(wb: Workbench, database_url: str) -> None:
    """More documents than a search ranks."""
    source = wb.sources.create("Tickets").id
    items = [
        text_item(
            f"{n}", f"Ticket {n}: {QUESTION if n % 2 else 'a lantern'} number {n % 7} was asked for.", title=f"T{n}"
        )
        for n in range(DOCUMENTS)
    ]
    wb.documents.ingest_items(source, items)
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE")  # else the server may change its plan between two pages


def pages(
    agent: Agent, tool: str, key: str, size: dict[str, int], **arguments: Any
) -> tuple[list[str], dict[str, Any]]:
    """Return the ids of all pages, and the last page; no page reports both more and under_filled.

    Like an agent, it asks for the next page until the answer names the limit of the search.
    """
    ids: list[str] = []
    while True:
        answer = agent(tool, query=QUESTION, offset=len(ids), **size, **arguments)
        ids += [str(item[key]) for item in answer["results"]]
        assert answer["more"]
        assert not answer.get("under_filled")
        if "limit_reached" in answer:
            return ids, answer
        assert f"offset={len(ids)}" in answer["note"]


@pytest.mark.parametrize(
    ("tool", "key", "arguments", "most", "kind"),
    [
        ("search_knowledge_base", "chunk_id", {"search_type": "rerank", "similarity_threshold": 0}, 200, "passages"),
        ("search_knowledge_base", "chunk_id", {"search_type": "hybrid", "similarity_threshold": 0}, 200, "passages"),
        ("rag_search_knowledge_base", "id", {"return_mode": "chunks"}, 200, "passages"),
        ("rag_search_global_knowledge", "page_id", {}, 100, "documents"),
    ],
)
def test_pages_of_any_size_are_one_ranking_and_the_last_reports_its_limit(
    agent: Agent, crowd: None, tool: str, key: str, arguments: dict[str, Any], most: int, kind: str
) -> None:
    ids, last = pages(agent, tool, key, {"match_count": 17}, **arguments)
    assert len(ids) == len(set(ids)) == most
    assert last["note"].startswith(f"A search ranks at most {most} ")
    assert "more specific query" in last["note"]
    assert last["limit_reached"] == most
    beyond = agent.failure(tool, query=QUESTION, offset=most, **arguments)
    assert beyond["error"] == f"A search ranks at most {most} {kind}; use an offset from 0 to {most - 1}"
    assert last["note"].endswith(f"{beyond['suggestion']}.")
    assert pages(agent, tool, key, {"match_count": 50}, **arguments)[0] == ids
    first = agent(tool, query=QUESTION, match_count=10, **arguments)
    assert [str(item[key]) for item in first["results"]] == ids[:10]


def test_a_page_after_the_end_reports_how_many_there_are(agent: Agent, wb: Workbench) -> None:
    wb.documents.create(text="One refund.", title="One")
    for tool in ("search_knowledge_base", "rag_search_knowledge_base"):
        answer = agent(tool, query="refund", offset=5, match_count=5)
        assert (answer["results"], answer["more"]) == ([], False)
        assert answer["suggestion"] == "Only 1 found. Use an offset below 1"


def test_a_full_page_that_is_all_there_is_adds_nothing(agent: Agent, wb: Workbench) -> None:
    source = wb.sources.create("Three").id
    wb.documents.ingest_items(source, [text_item(f"{n}", f"A refund {n}.", title=f"{n}") for n in range(3)])
    for tool in ("search_knowledge_base", "rag_search_knowledge_base"):
        full = agent(tool, query="refund", match_count=3, source_id=source)
        assert (len(full["results"]), full["more"], full.get("under_filled", False)) == (3, False, False)
        assert "note" not in full


def test_pages_of_archives_are_one_ranking(make_settings: Callable[..., Settings], tmp_path: Path) -> None:
    folder = tmp_path / "archives" / "research" / "2025-05-20"
    folder.mkdir(parents=True)
    for number in range(60):
        (folder / f"{number}.md").write_text(f"# Note {number}\n\n{QUESTION} number {number}.")
    with Workbench.open(settings=make_settings(archives_dir=tmp_path / "archives")) as wb:
        wb.archives.refresh()
        ids, last = pages(Agent(create_server(wb, toolsets=["all"])), "searchLocalArchives", "document", {"limit": 20})
        assert len(ids) == len(set(ids)) == 50
        assert last["note"].startswith("A search ranks at most 50 documents")
        assert (
            pages(Agent(create_server(wb, toolsets=["all"])), "searchLocalArchives", "document", {"limit": 7})[0] == ids
        )
