"""Real server processes on the test's database: over stdio, and over HTTP on a free loopback port."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from mcp.client.stdio import StdioServerParameters

from workbench.settings import Settings

TOKEN = "a-token-for-tests"


def environment(settings: Settings, **more: str) -> dict[str, str]:
    """Return the environment in which a server process opens the test's workbench."""
    assert settings.database_url is not None
    own = {
        "WORKBENCH_HOME": str(settings.home),
        "WORKBENCH_DATABASE_URL": settings.database_url.get_secret_value(),
        "WORKBENCH_EMBEDDING_MODEL": settings.embedding_model,
        "WORKBENCH_FILE_ROOTS": settings.file_roots,
    }
    return {**os.environ, **own, **more}


def over_stdio(settings: Settings, *options: str, **more: str) -> StdioServerParameters:
    """Return the parameters with which the SDK's client starts the server, with all tools unless some are named."""
    return StdioServerParameters(
        command=sys.executable,
        args=["-m", "mcp_app", *chosen(options)],
        env=environment(settings, **more),
        cwd=Path.cwd(),
    )


def chosen(options: Sequence[str]) -> list[str]:
    """Return a server's options, with all toolsets unless some are named."""
    return [*options] if "--toolsets" in options else [*options, "--toolsets", "all"]


@contextmanager
def over_http(settings: Settings, *options: str, **more: str) -> Iterator[str]:
    """Run a server on a free port; yields its base URL and ends the process by its id."""
    command = [sys.executable, "-m", "mcp_app", "--transport", "http", "--port", "0", *chosen(options)]
    process = subprocess.Popen(command, env=environment(settings, **more), stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        line = process.stderr.readline()
        assert line.startswith("Serving MCP at http"), line + process.stderr.read()
        yield line.removeprefix("Serving MCP at ").strip().removesuffix("/mcp")
    finally:
        process.terminate()
        process.communicate(timeout=60)


@contextmanager
def serving(settings: Settings, **more: str) -> Iterator[str]:
    """Run app and tools at one address, which may not listen yet; the process must shut down cleanly at the end."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "workbench.cli", "serve", "--port", str(port), "--toolsets", "all"]
    told = environment(settings, WORKBENCH_RUN_WORKER="false", **more)
    process = subprocess.Popen(command, env=told, stderr=subprocess.DEVNULL)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        assert process.wait(60) in (0, 130)
