"""A connection to an MCP server that stays open from one cell of a notebook to the next."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Awaitable, Callable

from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client


async def connect(process: StdioServerParameters) -> tuple[Client, Callable[[], Awaitable[None]]]:
    """Start a server process; return the client that speaks to it, and what ends both.

    The SDK wants a client opened and closed by the same task, and every cell of a notebook may be a task of its own:
    so one more task holds it.
    """
    opened: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
    leave = asyncio.Event()

    async def hold() -> None:
        with tempfile.TemporaryFile("w+") as errors:  # a notebook's own stderr is no file that a process can write to
            async with Client(stdio_client(process, errlog=errors)) as client:
                opened.set_result(client)
                await leave.wait()

    async def disconnect() -> None:
        leave.set()
        await holding

    holding = asyncio.create_task(hold())
    await asyncio.wait({holding, opened}, return_when=asyncio.FIRST_COMPLETED)
    if holding.done():
        await holding  # raises what kept it from starting
    return opened.result(), disconnect
