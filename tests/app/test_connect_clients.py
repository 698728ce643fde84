"""The configurations on the Connect page are complete for every client and never contain a secret."""

import json
import shlex

import pytest

from workbench.app.connect.clients import CLIENTS, format_serve_command, make_connection
from workbench.settings import Settings

SECRETS = {"mcp_token": "s3cret-token", "database_url": "postgresql://me:s3cret-password@db/x"}


def connection(transport="stdio", toolsets=(), read_only=False, **settings):
    return make_connection(Settings(_env_file=None, **settings), transport, toolsets, read_only)


@pytest.mark.parametrize("transport", ["stdio", "http"])
@pytest.mark.parametrize("client", CLIENTS)
def test_no_configuration_holds_a_secret(client, transport):
    asked = connection(transport, **SECRETS)
    for text in (CLIENTS[client].write(asked), format_serve_command(asked)):
        assert "s3cret" not in text


@pytest.mark.parametrize("client", [name for name, client in CLIENTS.items() if client.language == "json"])
def test_what_was_chosen_is_in_the_configuration(client):
    written = CLIENTS[client].write(connection(toolsets=("scoped", "articles"), read_only=True))
    servers = next(iter(json.loads(written).values()))
    assert servers["rag-workbench"]["args"][-3:] == ["--toolsets", "scoped,articles", "--read-only"]


def test_the_line_for_a_shell_survives_odd_paths(tmp_path):
    odd = tmp_path / "my 'data' $HOME"
    words = shlex.split(CLIENTS["claude-code"].write(connection(home=odd)))
    assert f"WORKBENCH_HOME={odd}" in words


def test_over_http_the_token_goes_by_its_variables_name():
    written = json.loads(CLIENTS["cursor"].write(connection("http", **SECRETS)))
    headers = written["mcpServers"]["rag-workbench"]["headers"]
    assert headers == {"Authorization": "Bearer ${env:WORKBENCH_MCP_TOKEN}"}
    without = json.loads(CLIENTS["cursor"].write(connection("http")))
    assert "headers" not in without["mcpServers"]["rag-workbench"]
