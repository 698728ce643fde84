"""Every example of the knowledge tools' specification, under its own name, as an agent would run it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.mcp_app.agent import MODES, Agent
from workbench import Workbench

MAX_CONTENT_LENGTH = 1000
MAX_DOCUMENTS_PER_PAGE = 20
PAPERS = {
    "attention.md": "# Attention\n\nAttention mechanisms in transformers weigh every token against every other.",
    "pooling.md": "# Pools\n\nDatabase connection pooling best practices: keep connections open and few.",
    "async.md": "# Async\n\nPython async context managers close what they open, whatever happens.",
}


@pytest.fixture
def papers(tmp_path: Path) -> list[str]:
    for name, text in PAPERS.items():
        (tmp_path / "docs" / name).write_text(text)
    return [str(tmp_path / "docs" / name) for name in PAPERS]


@pytest.mark.parametrize("mode", MODES)
def test_example_1_research_workflow(agent: Agent, papers: list[str], mode: str) -> None:
    agent = Agent(agent.server, mode)
    source = agent("manage_source", action="create", title="AI Research Papers 2024", source_type="upload")
    source_id = source["source"]["id"]
    for paper_path in papers:
        assert agent("manage_document", action="create", file_path=paper_path, source_id=source_id)["success"]
    found = agent(
        "search_knowledge_base",
        query="attention mechanisms in transformers",
        source_id=source_id,
        search_type="hybrid",
        match_count=10,
    )
    assert found["results"][0]["document_title"] == "Attention"
    assert {hit["metadata"]["source_id"] for hit in found["results"]} == {source_id}


@pytest.mark.parametrize("mode", MODES)
def test_example_3_multi_source_search(agent: Agent, papers: list[str], mode: str) -> None:
    agent = Agent(agent.server, mode)
    ids = [agent("manage_source", action="create", title=title)["source"]["id"] for title in ("One", "Two")]
    for source_id in ids:
        agent("manage_document", action="create", file_path=papers[1], source_id=source_id)
    assert agent("manage_source", action="list")["total_count"] == 2
    query = "database connection pooling best practices"
    everywhere = agent("search_knowledge_base", query=query, search_type="rerank", match_count=20)
    assert {hit["metadata"]["source_id"] for hit in everywhere["results"]} == set(ids)
    filtered = agent("search_knowledge_base", query=query, source_id=ids[0], search_type="hybrid")
    assert {hit["metadata"]["source_id"] for hit in filtered["results"]} == {ids[0]}


def test_full_ingestion_search_workflow(agent: Agent, papers: list[str]) -> None:
    source_id = agent("manage_source", action="create", title="Test Source", source_type="upload")["source"]["id"]
    assert agent("manage_document", action="create", file_path=papers[0], source_id=source_id)["success"]
    search = agent("search_knowledge_base", query="attention tokens transformers", source_id=source_id)
    assert search["count"] > 0
    deleted = agent("manage_source", action="delete", source_id=source_id)
    assert (deleted["deleted"]["documents"], deleted["deleted"]["passages"]) == (1, 1)
    assert agent("search_knowledge_base", query="attention tokens transformers")["count"] == 0


def test_search_knowledge_base_returns_json_string(agent: Agent, papers: list[str]) -> None:
    agent("manage_document", action="create", file_path=papers[0])
    parsed = json.loads(agent.text("search_knowledge_base", query="attention", match_count=5))
    assert parsed["success"] is True
    assert set(parsed) >= {"success", "results", "count", "search_type", "query"}
    assert set(parsed["results"][0]) == {
        "chunk_id", "document_id", "document_title", "text", "score", "match_type", "metadata",
    }  # fmt: skip
    assert set(parsed["results"][0]["metadata"]) >= {"source_id", "chunk_index", "url"}


def test_search_results_truncated(agent: Agent) -> None:
    agent("manage_document", action="create", content="tokens " * 2000, title="T" * 290)
    hit = agent("search_knowledge_base", query="tokens", match_count=1)["results"][0]
    assert len(hit["text"]) <= MAX_CONTENT_LENGTH
    assert len(hit["document_title"]) == 200
    assert hit["document_title"].endswith("...")


def test_manage_document_create_validation(agent: Agent) -> None:
    parsed = agent.failure("manage_document", action="create")
    assert parsed["error"] == "Missing required parameter: file_path"


def test_manage_document_list_pagination(agent: Agent) -> None:
    assert agent("manage_document", action="list", per_page=1000)["per_page"] == MAX_DOCUMENTS_PER_PAGE


def test_a_search_without_results_reports_that_documents_are_still_being_read(
    agent: Agent, wb: Workbench, papers: list[str]
) -> None:
    wb.jobs.enqueue_ingest(papers, source="Papers")
    found = agent("search_knowledge_base", query="kelp")
    reading = "Documents are still being read; search again when that has finished."
    assert (found["results"], found["suggestion"]) == ([], reading) and reading in found["degraded"]


def test_error_response_format(agent: Agent) -> None:
    parsed = agent.failure("manage_source", action="invalid_action")
    assert parsed["error"] == "Unknown action: invalid_action"
    assert parsed["suggestion"] == "Use 'create', 'get', 'list', 'update', or 'delete'"


ERRORS = {
    "invalid search type": (
        "search_knowledge_base", {"query": "q", "search_type": "fuzzy"},
        "Invalid search_type: fuzzy", "Use 'vector', 'hybrid', or 'rerank'",
    ),
    "unknown source in a search": (
        "search_knowledge_base", {"query": "q", "source_id": "src_abc123"},
        "Invalid source_id: src_abc123 not found", "Use manage_source(action='list') to see available sources",
    ),
    "unknown action": (
        "manage_document", {"action": "burn"},
        "Unknown action: burn", "Use 'create', 'get', 'list', 'update', or 'delete'",
    ),
    "no document named": ("manage_document", {"action": "get"}, "Missing required parameter: document_id", "get"),
    "unknown document": (
        "manage_document", {"action": "get", "document_id": "doc_x"},
        "Document not found: doc_x", "Verify document_id or use manage_document(action='list')",
    ),
    "unknown document to delete": (
        "manage_document", {"action": "delete", "document_id": "doc_x"}, "Document not found: doc_x", "Verify",
    ),
    "no title": ("manage_source", {"action": "create"}, "Missing required parameter: title", "title is required"),
    "no source named": ("manage_source", {"action": "delete"}, "Missing required parameter: source_id", "delete"),
    "unknown source": (
        "manage_source", {"action": "get", "source_id": "src_x"}, "Invalid source_id: src_x not found", "list",
    ),
    "not a web address": (
        "crawl_website", {"url": "ftp://example.com"},
        "Invalid URL: must start with http:// or https://", "Provide fully qualified URL",
    ),
    "no job named": ("manage_crawl_job", {"action": "get"}, "Missing required parameter: job_id", "list"),
    "empty query": ("search_knowledge_base", {"query": "  "}, "The query is empty.", "again"),
}  # fmt: skip


def test_every_error_has_its_sentence(agent: Agent) -> None:
    for case, (tool, arguments, error, suggestion) in ERRORS.items():
        found = agent.failure(tool, **arguments)
        assert found["error"] == error, case
        assert suggestion in found["suggestion"], case


@pytest.mark.parametrize("search_type", ["vector", "hybrid", "rerank"])
def test_the_threshold_is_the_least_cosine_for_every_search_type(agent: Agent, wb: Workbench, search_type: str) -> None:
    for text in ("alpha beta gamma", "alpha delta epsilon", "zeta eta theta"):
        wb.documents.create(text=text, title="Same")
    everything = agent("search_knowledge_base", query="alpha beta", search_type=search_type, similarity_threshold=0)
    similar = sorted(hit["metadata"]["similarity"] for hit in everything["results"])
    assert len(similar) == 3
    least = similar[1]
    kept = agent(
        "search_knowledge_base", query="alpha beta", search_type=search_type, similarity_threshold=least - 0.001
    )
    assert sorted(hit["metadata"]["similarity"] for hit in kept["results"]) == similar[1:]


@pytest.mark.parametrize("search_type", ["vector", "hybrid", "rerank"])
def test_scores_lie_between_0_and_1_and_fall(agent: Agent, wb: Workbench, search_type: str) -> None:
    for number in range(12):
        wb.documents.create(text=f"alpha {'beta ' * number} gamma{number}")
    found = agent("search_knowledge_base", query="alpha beta", search_type=search_type, match_count=10)
    scores = [hit["score"] for hit in found["results"]]
    assert len(scores) == 10
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)


def test_an_agent_that_names_no_number_gets_ten_and_sees_which_come_near_the_best(agent: Agent, wb: Workbench) -> None:
    wb.documents.create(text="Refunds are paid within fourteen days by bank transfer.", title="Refunds")
    for number in range(9):
        wb.documents.create(
            text=f"Report {number}: fourteen days of rain, fog number{number} over hills.", title=f"W{number}"
        )
    query = "refunds are paid within fourteen days"
    whole = agent("search_knowledge_base", query=query, match_count=10)
    near = agent("search_knowledge_base", query=query)
    assert whole["count"] == 10
    best = whole["results"][0]["score"]
    expected = [one["chunk_id"] for one in whole["results"] if one["score"] >= 0.7 * best]
    assert [one["chunk_id"] for one in near["results"] if "below_cutoff" not in one] == expected
    assert 0 < len(expected) < near["count"] == 10
    rest = agent("search_knowledge_base", query=query, offset=3)
    assert rest["results"][0]["chunk_id"] == whole["results"][3]["chunk_id"]
