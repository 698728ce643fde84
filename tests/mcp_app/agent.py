"""An agent that connects to a server with the SDK's client."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from mcp import Client
from mcp.shared.exceptions import MCPError

from mcp_app.server import WorkbenchServer

MODES = ("legacy", "2026-07-28")


@dataclass(frozen=True)
class Agent:
    """An agent that calls tools as a model's client does; every call opens a new connection."""

    server: WorkbenchServer
    mode: str = "2026-07-28"

    def talk(self, script: Callable[[Client], Awaitable[Any]]) -> Any:
        """Run a script of awaits with a connected client."""

        async def connected() -> Any:
            async with Client(self.server, mode=self.mode) as client:
                try:
                    return await script(client), None
                except MCPError as error:  # raised outside, else it comes wrapped in the client's task group
                    return None, error

        answer, error = asyncio.run(connected())
        if error is not None:
            raise error
        return answer

    def text(self, tool: str, **arguments: Any) -> str:
        """Return the only text block of an answer."""
        result = self.talk(lambda client: client.call_tool(tool, arguments))
        assert [block.type for block in result.content] == ["text"]
        assert isinstance(result.structured_content, dict)
        return result.content[0].text

    def __call__(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Return an answer's JSON; a failure fails the test."""
        result = self.talk(lambda client: client.call_tool(tool, arguments))
        assert not result.is_error, result.content[0].text
        return json.loads(result.content[0].text)

    def failure(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Return the JSON of an error result; an answer fails the test."""
        result = self.talk(lambda client: client.call_tool(tool, arguments))
        assert result.is_error, result.content[0].text
        found = json.loads(result.content[0].text)
        assert found["success"] is False
        assert found["error"]
        assert found["suggestion"]
        return found
