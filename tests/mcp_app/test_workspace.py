"""Every scenario of the workspace tools' specification, driven by the SDK's client."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mcp_app.arguments import Refused
from mcp_app.file_roots import FileRoots
from mcp_app.server import create_server
from mcp_app.tool import Call
from mcp_app.tools.workspace import resolve_workspace
from tests.mcp_app.agent import MODES, Agent
from workbench import Workbench
from workbench.opening import Opening
from workbench.services.article_files import ArticleFolder
from workbench.settings import Settings

CONVERSATIONS = {
    "brainstorm/2025-11-17/001-jwt": "# JWT\n\nAuthentication patterns with JWT tokens and signed claims.",
    "debug/2025-11-18/002-oauth": "# OAuth\n\nAuthentication patterns with OAuth tokens and scopes.",
    "plan/2025-11-19/003-session-auth": "# Session auth\n\nAuthentication patterns with cookies and sessions.",
    "plan/2025-10-01/004-api-design": "# API design\n\nApi design with resources, verbs and versions.",
    "debug/2025-12-02/005-kubernetes": "# Kubernetes\n\nKubernetes pods that restart and lose their volumes.",
}


def put(root: Path, conversations: dict[str, str]) -> Path:
    """Write conversations, each a folder with one file."""
    for path, text in conversations.items():
        (root / path).mkdir(parents=True, exist_ok=True)
        (root / path / "conversation.md").write_text(text)
    return root


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return put(tmp_path / "work", CONVERSATIONS)


@pytest.fixture
def agent(make_settings: Callable[..., Settings], tmp_path: Path, workspace: Path) -> Iterator[Agent]:
    """An agent whose server may read below tmp_path and runs in the workspace folder."""
    roots = f"{workspace}:{tmp_path}"
    with Workbench.open(settings=make_settings(file_roots=roots)) as workbench:
        yield Agent(create_server(workbench, toolsets=["all"]))


def paths(answer: dict[str, Any]) -> list[str]:
    assert answer["success"] is True
    assert answer["num_results"] == len(answer["results"])
    scores = [hit["score"] for hit in answer["results"]]
    assert scores == sorted(scores, reverse=True)
    return [hit["source_path"] for hit in answer["results"]]


def test_agent_embeds_single_conversation(agent: Agent) -> None:
    answer = agent("embed_document", path="brainstorm/2025-11-17/001-jwt")
    assert {key: answer[key] for key in ("success", "embedded", "skipped", "total_files")} == {
        "success": True, "embedded": 1, "skipped": 0, "total_files": 1,
    }  # fmt: skip
    assert paths(agent("search_semantic", query="JWT tokens")) == ["brainstorm/2025-11-17/001-jwt"]


@pytest.mark.parametrize("mode", MODES)
def test_agent_embeds_entire_workspace(agent: Agent, workspace: Path, mode: str) -> None:
    agent = Agent(agent.server, mode)
    agent("embed_workspace")
    put(workspace, {f"plan/2025-11-2{n}/10{n}-more": f"# More {n}\n\nNew conversation number{n}." for n in range(5)})
    answer = agent("embed_workspace")
    assert (answer["success"], answer["embedded"], answer["skipped"], answer["removed"]) == (True, 5, 5, 0)
    assert paths(agent("search_semantic", query="number3"))[0] == "plan/2025-11-23/103-more"


def test_embedding_non_existent_path(agent: Agent) -> None:
    for path in ("nonexistent/path", "../../etc", "/etc/passwd", "a\x00b", ".git"):
        assert agent.failure("embed_document", path=path)["error"] == f"Path not found: {path}"


def test_agent_searches_for_authentication_topics(agent: Agent) -> None:
    agent("embed_workspace")
    answer = agent("search_semantic", query="authentication patterns", n_results=3)
    assert {path.rpartition("-")[2] for path in paths(answer)} == {"jwt", "oauth", "auth"}
    assert {"conversation", "score", "text", "source_path", "type", "date"} <= set(answer["results"][0])


def test_agent_filters_search_by_conversation_type(agent: Agent) -> None:
    agent("embed_workspace")
    found = agent("search_semantic", query="api design", conversation_type="plan")
    assert [hit["type"] for hit in found["results"]] == ["plan", "plan"]
    assert agent("search_semantic", query="api design", conversation_type="' OR 1=1")["num_results"] == 0


def test_agent_filters_search_by_date(agent: Agent) -> None:
    agent("embed_workspace")
    november = agent("search_semantic", query="kubernetes", date_range="2025-11")
    assert {hit["date"][:7] for hit in november["results"]} == {"2025-11"}
    day = agent("search_semantic", query="kubernetes", date_range="2025-12-02")
    assert paths(day) == ["debug/2025-12-02/005-kubernetes"]
    for wrong in ("2025", "2025-13", "2025-02-30", "november", "2025-11-1", "2025-W01-1"):
        assert "YYYY-MM" in agent.failure("search_semantic", query="x", date_range=wrong)["error"]


def test_search_with_no_embeddings(agent: Agent) -> None:
    answer = agent("search_semantic", query="anything")
    assert {key: answer[key] for key in ("success", "num_results", "results")} == {
        "success": True, "num_results": 0, "results": [],
    }  # fmt: skip


def test_agent_finds_similar_conversations(agent: Agent, workspace: Path) -> None:
    agent("embed_workspace")
    path = "brainstorm/2025-11-17/001-jwt"
    answer = agent("get_similar", source_path=path)
    assert paths(answer)[0] == "debug/2025-11-18/002-oauth"
    assert path not in paths(answer)
    assert paths(agent("get_similar", source_path=str(workspace / path / "conversation.md"))) == paths(answer)


def test_finding_similar_to_non_existent_document(agent: Agent) -> None:
    agent("embed_document", path="plan")
    for path in ("nonexistent", "brainstorm/2025-11-17/001-jwt", "../x", "/etc/passwd"):
        assert agent.failure("get_similar", source_path=path)["error"] == f"Document not found: {path}"


def test_agent_checks_embedding_coverage(agent: Agent, tmp_path: Path) -> None:
    many = {f"plan/2025-11-{n:02}/{n:03}-talk": f"# Talk {n}\n\nWords of talk {n}." for n in range(1, 16)}
    put(tmp_path / "fifteen", many)
    agent("embed_workspace", workspace_path="fifteen")
    status = agent("get_embedding_status", workspace_path="fifteen")
    assert (status["num_documents"], status["total_chunks"]) == (15, 15)
    assert status["db_path"]
    assert len(status["recent_embeddings"]) == 10
    assert all(row["embedded_at"][:4].isdigit() and row["source_path"] in many for row in status["recent_embeddings"])
    assert agent("get_embedding_status")["num_documents"] == 0


def test_agent_specifies_workspace_path_and_workspaces_never_see_each_other(agent: Agent, tmp_path: Path) -> None:
    put(tmp_path / "other", {"plan/2025-11-01/001-secret": "# Secret\n\nAuthentication patterns of the other one."})
    agent("embed_workspace")
    agent("embed_workspace", workspace_path=str(tmp_path / "other"))
    other = agent("search_semantic", query="authentication patterns", workspace_path=str(tmp_path / "other"))
    assert paths(other) == ["plan/2025-11-01/001-secret"]
    assert "plan/2025-11-01/001-secret" not in paths(agent("search_semantic", query="authentication patterns"))
    assert agent("get_similar", source_path="plan/2025-11-01/001-secret", workspace_path="other")["num_results"] == 0


def test_agent_uses_default_workspace(agent: Agent, workspace: Path) -> None:
    agent("embed_document", path="plan/2025-10-01/004-api-design")
    assert paths(agent("search_semantic", query="api")) == paths(
        agent("search_semantic", query="api", workspace_path=str(workspace))
    )


def test_an_answer_with_fewer_than_all_names_the_call_that_continues(agent: Agent, tmp_path: Path) -> None:
    agent("embed_workspace")
    for tool, given in (
        ("search_semantic", {"query": "authentication patterns"}),
        ("get_similar", {"source_path": "plan/2025-10-01/004-api-design"}),
    ):
        whole = agent(tool, **given)
        first = agent(tool, n_results=2, **given)
        assert (whole["more"], "note" in whole, first["more"], len(first["results"])) == (False, False, True, 2)
        assert "offset=2" in first["note"]
        rest = agent(tool, n_results=50, offset=2, **given)
        assert paths(whole) == paths(first) + paths(rest)
    root = put(tmp_path / "many", {f"plan/2025-11-11/{n:03}-talk": f"# Talk {n}\n\nZebras." for n in range(1, 61)})
    agent("embed_workspace", workspace_path=str(root))
    assert len(agent("search_semantic", query="zebras", workspace_path=str(root), offset=50)["results"]) == 10


def test_all_unreadable_conversations_are_named(agent: Agent, tmp_path: Path) -> None:
    many = {f"plan/2025-11-11/{number:03}-empty": "" for number in range(1, 61)}
    answer = agent.failure("embed_workspace", workspace_path=str(put(tmp_path / "many", many)))
    assert answer["error"].startswith("Nothing was embedded: 60 conversations failed. The first: plan/2025-11-11/001-")
    assert (answer["embedded"], answer["failed"], len(answer["failures"]), "note" in answer) == (0, 60, 60, False)
    folder = agent.failure("embed_document", path="plan", workspace_path=str(tmp_path / "many"))
    assert folder["error"].startswith("Could not embed plan: plan/2025-11-11/001-")
    more = {f"plan/2025-11-12/{number:03}-{'also-empty-' * 9}": "" for number in range(1, 400)}
    answer = agent.failure("embed_workspace", workspace_path=str(put(tmp_path / "many", more)))
    named = len(answer["failures"])
    assert (answer["failed"], 60 < named < 459) == (459, True)
    assert answer["note"].startswith(f"The first {named} are listed.")


def test_consistent_error_response(agent: Agent) -> None:
    assert agent.failure("search_semantic")["error"] == "Missing required parameter: query"
    assert agent.failure("embed_document")["error"] == "Missing required parameter: path"
    assert agent.failure("get_similar")["error"] == "Missing required parameter: source_path"
    assert agent.failure("embed_workspace", workspace_path="nowhere")["error"] == "Path not found: nowhere"
    assert agent.failure("search_semantic", query="x", workspace_path="/etc")["error"].startswith("Not allowed: /etc")
    assert "from 1 to 50" in agent.failure("search_semantic", query="x", n_results=51)["suggestion"]
    assert agent.failure("get_embedding_status", verbose=True)["error"] == "Unknown argument: verbose"


def test_conversations_that_vanished_from_disk_are_removed_and_counted(agent: Agent, workspace: Path) -> None:
    agent("embed_workspace")
    gone = workspace / "debug/2025-12-02/005-kubernetes"
    (gone / "conversation.md").unlink()
    gone.rmdir()
    answer = agent("embed_workspace")
    assert (answer["embedded"], answer["skipped"], answer["removed"]) == (0, 4, 1)
    assert "debug/2025-12-02/005-kubernetes" not in paths(agent("search_semantic", query="kubernetes pods"))


def test_one_changed_conversation_is_embedded_again_and_the_rest_skipped(agent: Agent, workspace: Path) -> None:
    agent("embed_workspace")
    put(workspace, {"plan/2025-10-01/004-api-design": "# API design\n\nNow about graphql."})
    answer = agent("embed_workspace")
    assert (answer["embedded"], answer["skipped"]) == (1, 4)
    assert paths(agent("search_semantic", query="graphql"))[0] == "plan/2025-10-01/004-api-design"


def test_a_conversation_of_several_files_is_one_entry_and_a_single_file_is_one_too(
    agent: Agent, tmp_path: Path
) -> None:
    root = put(tmp_path / "mixed", {"plan/2025-11-01/001-long": "# Long\n\nThe zebra enters."})
    (root / "plan/2025-11-01/001-long/notes.txt").write_text("The zebra leaves.")
    (root / "plan/2025-11-01/002-short.md").write_text("# Short\n\nA zebra sleeps.")
    (root / "plan/2025-11-01/no-number.md").write_text("A zebra that is no conversation.")
    (root / "plan/2025-11-01/003-empty").mkdir()
    (root / "plan/2025-11-01/001-long/link.md").symlink_to("/etc/hostname")
    answer = agent("embed_workspace", workspace_path=str(root))
    assert (answer["embedded"], answer["total_files"], answer["files"], answer["failed"]) == (2, 3, 3, 1)
    found = agent("search_semantic", query="zebra", workspace_path=str(root))
    assert sorted(hit["conversation"] for hit in found["results"]) == [
        "plan/2025-11-01/001-long", "plan/2025-11-01/002-short",
    ]  # fmt: skip


def test_progress_of_a_large_workspace_reaches_the_client(agent: Agent) -> None:
    states: list[str] = []

    async def watch(progress: float, total: float | None, message: str | None) -> None:
        states.append(message or "")

    agent.talk(lambda client: client.call_tool("embed_workspace", {}, progress_callback=watch))
    assert any("5 of 5" in message for message in states)


def test_unreadable_conversations_leave_no_source(agent: Agent, tmp_path: Path) -> None:
    put(tmp_path / "other", {"plan/2025-11-11/001-empty": ""})
    failure = agent.failure("embed_document", path="plan/2025-11-11/001-empty", workspace_path=str(tmp_path / "other"))
    assert "Add text to it" in str(failure)
    assert agent.failure("embed_workspace", workspace_path=str(tmp_path / "other"))["embedded"] == 0
    assert agent("manage_source", action="list")["total_count"] == 0


def test_a_read_only_server_offers_only_the_searches(agent: Agent) -> None:
    server = create_server(agent.server.opening, toolsets=["workspace"], read_only=True)
    assert list(server.tools) == ["search_semantic", "get_similar", "get_embedding_status"]


def test_a_server_started_at_the_root_of_the_file_system_reports_how_to_open_a_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir("/")
    with pytest.raises(Refused, match="The tools have no allowed folder") as refused:
        resolve_workspace(Call(Opening(), ArticleFolder(tmp_path), FileRoots()), "")
    assert "WORKBENCH_FILE_ROOTS" in refused.value.suggestion
