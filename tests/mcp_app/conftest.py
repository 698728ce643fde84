"""Fixtures of the MCP tests: a server over the test's workbench, and an agent connected to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mcp_app.server import create_server
from tests.mcp_app.agent import Agent
from workbench import Workbench
from workbench.settings import Settings


@pytest.fixture
def agent(wb: Workbench) -> Agent:
    """An agent with every tool, over a fresh workbench with the model 'hash'."""
    return Agent(create_server(wb, toolsets=["all"]))


@pytest.fixture
def wb(make_settings: Callable[..., Settings], tmp_path: Path) -> Iterator[Workbench]:
    """The workbench behind the server: agents may read files under ``tmp_path/docs``.

    Tests that need a job run call ``wb.work()``: a worker process takes seconds to start, and tests/cli has it.
    """
    root = tmp_path / "docs"
    root.mkdir()
    with Workbench.open(settings=make_settings(file_roots=str(root), run_worker=False)) as workbench:
        yield workbench
