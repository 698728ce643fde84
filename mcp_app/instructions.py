"""The server's instructions: what an agent is told when it connects, made from the tools' own lines."""

from __future__ import annotations

from collections.abc import Sequence

from mcp_app.tool import Tool


def instructions(tools: Sequence[Tool], *, read_only: bool) -> str:
    """Return the instructions for the tools that are offered, each advised in its own line."""
    lines = [f"- {tool.advice}" for tool in tools if tool.advice]
    mode = "This server is read-only: nothing can be changed.\n" if read_only else ""
    return (
        "One corpus of documents, searched by meaning and by words. Queries work best short: 2 to 5 keywords.\n"
        f"{mode}Which tool to take:\n" + "\n".join(lines) + "\n"
        "Answers are JSON and stay under 8,000 tokens: texts in results end in '...' after 1000 characters, and 'note' "
        "names the call that gives the next part. A failed call says what to do in 'suggestion'."
    )
