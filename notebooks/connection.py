"""A connection to an MCP server that stays open between the cells of a notebook."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Awaitable, Callable

from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client


async def connect(process: StdioServerParameters) -> tuple[Client, Callable[[], Awaitable[None]]]:
    """Start a server process; return a client and a function that stops both.

    The SDK requires that the same task opens and closes a client, but each cell of a notebook may run in its own task,
    so a separate task holds the client.
    """
    opened: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
    leave = asyncio.Event()

    async def hold() -> None:
        with tempfile.TemporaryFile("w+") as errors:  # the stderr of a notebook is not a file
            async with Client(stdio_client(process, errlog=errors)) as client:
                opened.set_result(client)
                await leave.wait()

    async def disconnect() -> None:
        leave.set()
        await holding

    holding = asyncio.create_task(hold())
    await asyncio.wait({holding, opened}, return_when=asyncio.FIRST_COMPLETED)
    if holding.done():
        await holding  # raises the error that prevented the start
    return opened.result(), disconnect
