"""The bundle for desktop clients: a valid manifest, and a server started by the bundle's own command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from written_tables import ROOT

from mcp_app.tools import DEFAULT_TOOLS
from tests.shared_home import fresh_home
from workbench import __version__

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
# the names that the published form of 0.4 knows; it is strict, so another one is an error
KNOWN = {
    "manifest_version", "name", "display_name", "version", "description", "author", "license", "keywords", "server",
    "user_config", "tools", "compatibility",
}  # fmt: skip
UV = str(Path(sys.executable).with_name("uv"))
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundle built by ``make mcpb``."""
    folder = tmp_path_factory.mktemp("mcpb")
    subprocess.run([sys.executable, "mcpb_build.py", str(folder)], cwd=ROOT, check=True, capture_output=True)
    return folder / f"rag-workbench-{__version__}.mcpb"


def test_the_manifest_has_the_published_form_and_names_the_tools_it_offers(bundle: Path) -> None:
    with zipfile.ZipFile(bundle) as whole:
        names = whole.namelist()
        manifest = json.loads(whole.read("manifest.json"))
    assert set(manifest) == KNOWN
    assert manifest["server"]["type"] == "uv" and manifest["server"]["entry_point"] in names
    assert {tool["name"] for tool in manifest["tools"]} == {tool.name for tool in DEFAULT_TOOLS}
    assert {"${user_config." + name + "}" for name in manifest["user_config"]} == set(
        manifest["server"]["mcp_config"]["env"].values()
    )


def test_the_same_tree_makes_the_same_bundle(bundle: Path, tmp_path: Path) -> None:
    subprocess.run([sys.executable, "mcpb_build.py", str(tmp_path)], cwd=ROOT, check=True, capture_output=True)
    assert (tmp_path / bundle.name).read_bytes() == bundle.read_bytes()


def test_its_command_starts_a_server_that_answers(bundle: Path) -> None:
    with fresh_home() as home:
        with zipfile.ZipFile(bundle) as whole:
            whole.extractall(home / "extension")
            server = json.loads(whole.read("manifest.json"))["server"]["mcp_config"]
        arguments = [word.replace("${__dirname}", str(home / "extension")) for word in server["args"]]
        mine = {name: value for name, value in os.environ.items() if not name.startswith(("WORKBENCH_", "PYTHON"))}
        environment = mine | {
            "WORKBENCH_HOME": str(home),
            "UV_PYTHON": sys.executable,
            "WORKBENCH_FILE_ROOTS": str(home),
        }
        asked = [{"jsonrpc": "2.0", "method": "notifications/initialized"}, {**HELLO, "id": 2, "method": "tools/list"}]
        said = "".join(json.dumps(message) + "\n" for message in (HELLO, *asked))
        process = subprocess.Popen(
            [UV, *arguments], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(said)
        process.stdin.flush()
        answers = [json.loads(process.stdout.readline()) for _ in range(2)]
        process.communicate(timeout=120)
        assert process.returncode == 0
    assert answers[0]["result"]["serverInfo"]["name"] == "rag-workbench"
    assert "search_knowledge_base" in {tool["name"] for tool in answers[1]["result"]["tools"]}
