"""The overhead of MCP: a search over MCP compared with the same search in Python.

The three paths alternate query by query, so that other load affects them equally.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

from workbench.errors import WorkbenchError
from workbench.types import JsonObject

if TYPE_CHECKING:
    from mcp import Client

    from workbench.workbench import Workbench

TOOL_NAME = "search_knowledge_base"
STRATEGY_NAME = "hybrid"
MIN_SIMILARITY = 0.05  # the tool's default, so that both searches are equal
SearchCall = Callable[[str], Awaitable[object]]


def measure_overhead(wb: Workbench, queries: Sequence[str], *, rounds: int = 5, limit: int = 10) -> JsonObject:
    """Return the p50 latency (ms) of a search in Python, over stdio and over HTTP, and the overhead at p50.

    Each transport is a real server process on the workbench's database, with the SDK's client.

    Raises:
        WorkbenchError: A server did not start or refused a search.
    """
    return asyncio.run(_measure_async(wb, list(queries), rounds, limit))


async def _measure_async(wb: Workbench, queries: list[str], rounds: int, limit: int) -> JsonObject:
    times: dict[str, list[float]] = {"python": [], "stdio": [], "http": []}
    async with AsyncExitStack() as stack:
        ways: dict[str, SearchCall] = {
            "python": _search_in_python(wb, limit),
            "stdio": await stack.enter_async_context(_search_over_stdio(wb, limit)),
            "http": await stack.enter_async_context(_search_over_http(wb, limit)),
        }
        for search in ways.values():
            for query in queries[:3]:
                await search(query)
        for _ in range(rounds):
            for query in queries:
                for name, search in ways.items():
                    began = time.perf_counter()
                    await search(query)
                    times[name].append((time.perf_counter() - began) * 1000)
    p50 = {name: round(statistics.median(values), 3) for name, values in times.items()}
    return {
        "searches": len(times["python"]),
        "p50_ms": p50,
        "overhead_ms": {name: round(p50[name] - p50["python"], 3) for name in ("stdio", "http")},
    }


def _search_in_python(wb: Workbench, limit: int) -> SearchCall:
    from workbench.retrieval.options import Ask

    async def search(query: str) -> object:
        return wb.search_service.search(query, Ask(STRATEGY_NAME, limit, min_similarity=MIN_SIMILARITY))

    return search


@asynccontextmanager
async def _search_over_stdio(wb: Workbench, limit: int) -> AsyncGenerator[SearchCall]:
    from mcp import Client
    from mcp.client.stdio import StdioServerParameters

    server = StdioServerParameters(command=sys.executable, args=["-m", "mcp_app"], env=make_environment(wb))
    async with Client(server) as client:
        yield _search_with_client(client, limit)


@asynccontextmanager
async def _search_over_http(wb: Workbench, limit: int) -> AsyncGenerator[SearchCall]:
    from mcp import Client

    async with run_http_server(make_environment(wb)) as url, Client(url) as client:
        yield _search_with_client(client, limit)


def _search_with_client(client: Client, limit: int) -> SearchCall:
    async def search(query: str) -> object:
        result = await client.call_tool(TOOL_NAME, {"query": query, "match_count": limit, "search_type": STRATEGY_NAME})
        if result.is_error:
            raise WorkbenchError(str(result.content[0]))
        return result

    return search


@asynccontextmanager
async def run_http_server(env: dict[str, str], *options: str) -> AsyncGenerator[str]:
    """Run an HTTP server in a separate process on a free port and yield its URL."""
    command = [sys.executable, "-m", "mcp_app", "--transport", "http", "--port", "0", *options]
    process = subprocess.Popen(command, env=env, stderr=subprocess.PIPE, text=True)
    try:
        yield await asyncio.to_thread(_read_url, process)
    finally:
        process.terminate()
        await asyncio.to_thread(process.communicate)


def _read_url(process: subprocess.Popen[str]) -> str:
    assert process.stderr is not None
    output = ""
    for line in process.stderr:
        output += line
        if line.startswith("Serving MCP at "):
            return line.removeprefix("Serving MCP at ").strip()
    raise WorkbenchError(f"The server did not start: {output.strip()}")


def make_environment(wb: Workbench) -> dict[str, str]:
    """Return the environment in which another process opens the same workbench."""
    settings = wb.settings
    own = {
        "WORKBENCH_HOME": str(settings.home),
        "WORKBENCH_DATABASE_URL": wb.corpus.database.url,
        "WORKBENCH_EMBEDDING_MODEL": settings.embedding_model,
        "WORKBENCH_FILE_ROOTS": settings.file_roots,
    }
    return {**os.environ, **own}
